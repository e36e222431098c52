"""Rows of the index: what is kept out of the window, and found again."""

from .row import Method

_CHAT = {"chatId": "tab-7"}

INDEX = [
    Method(
        "index/add",
        "IndexAddParams",
        "IndexAddResult",
        "global",
        "Keep a text, a file or a folder, so that it can be searched. Answered when it can be found.",
        {**_CHAT, "content": "WARN loom 7: thread broke\nINFO loom 7: mended\n", "source": "loom.log"},
    ),
    Method(
        "index/search",
        "IndexSearchParams",
        "IndexSearchResult",
        "global",
        "Search what is kept, by words: the places that hold them, within so many tokens.",
        {**_CHAT, "queries": ["thread broke"], "maxTokens": 600},
    ),
    Method(
        "index/get",
        "IndexGetParams",
        "IndexGetResult",
        "global",
        "The whole text of a source, or some lines of it.",
        {**_CHAT, "id": "out:0123456789ab", "lines": {"start": 1, "end": 40}},
    ),
    Method(
        "index/list", "IndexListParams", "IndexListResult", "global", "What is kept, newest first.", _CHAT
    ),
    Method(
        "index/remove",
        "IndexRemoveParams",
        "IndexRemoveResult",
        "global",
        "Forget a source, or all of one name.",
        {**_CHAT, "source": "loom.log"},
    ),
]
