"""Methods of the index: text that is stored outside the context window and can be searched."""

from .base import Method

_CHAT = {"chatId": "tab-7"}

INDEX = [
    Method(
        "index/add",
        "IndexAddParams",
        "IndexAddResult",
        "global",
        "Store a text, a file or a folder, so that it can be searched. Answered when it can be found.",
        {**_CHAT, "content": "WARN loom 7: thread broke\nINFO loom 7: mended\n", "source": "loom.log"},
    ),
    Method(
        "index/search",
        "IndexSearchParams",
        "IndexSearchResult",
        "global",
        "Search the index by words: the chunks that contain them, within a number of tokens.",
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
        "index/chunks",
        "IndexChunksParams",
        "IndexChunksResult",
        "global",
        "The chunks of a source, in the order of its text.",
        {**_CHAT, "id": "out:0123456789ab", "includeText": True, "limit": 2},
    ),
    Method(
        "index/list",
        "IndexListParams",
        "IndexListResult",
        "global",
        "The sources in the index, newest first.",
        _CHAT,
    ),
    Method(
        "index/remove",
        "IndexRemoveParams",
        "IndexRemoveResult",
        "global",
        "Remove a source, or all of one name.",
        {**_CHAT, "source": "loom.log"},
    ),
]
