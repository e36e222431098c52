"""Finds phrases of the lists in `words/*.json` in what people and models write; pure.

`rules` decides which rules a whole prompt fulfils. Their phrases have classes, choices and gaps, and see words only.
`patterns` finds where in a sentence a phrase is; its phrases are spelled with their punctuation ("n't been", "todo:").
What a phrase means is for the callers: `gates`, `standing` and `summary`.
"""
