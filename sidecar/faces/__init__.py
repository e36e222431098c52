"""The dialects that the sidecar speaks. A face decides nothing: it decodes, asks the chat, and encodes."""
