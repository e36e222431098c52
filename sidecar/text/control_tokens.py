"""Makes control tokens of models, such as `<|im_start|>`, plain text. Knows no provider."""

from __future__ import annotations

import re

_CONTROL_TOKEN = re.compile(
    r"<(?=[|\uff5c][^<>\s]{1,64}[|\uff5c]>)"
    r"|<(?=/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|start_of_image|end_of_utterance)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
    r"|<(?=</?SYS>>)"
)
"""The first character of what models take for the end of a message or the start of a role."""


def break_control_tokens(text: str) -> str:
    """Return the text with an invisible character in each control token: a server that parses them would read one in
    a file or a tool's output, and what follows would be a message with a role of the file's choice.
    """
    return _CONTROL_TOKEN.sub(lambda found: f"{found[0]}\u200b", text)
