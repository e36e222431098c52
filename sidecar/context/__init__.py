"""Context assembly: decides which text is sent to the model within its token budget. Pure."""
