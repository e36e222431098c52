"""Case sensitivity of file systems: whether a folder finds a name in another case too. Queries the file system
itself, since one machine may have both kinds, and even two folders of one disk may differ.
"""

from __future__ import annotations

import os
import string
import unicodedata
from collections.abc import Callable

_OTHER_CASE = str.maketrans(string.ascii_letters, string.ascii_letters[26:] + string.ascii_letters[:26])

Same = Callable[[str, str], bool]


def canonical_path(real: str, same: Same | None = None) -> str:
    """Return the real path with every name folded that its folder would find in another case; one text per folder.

    A missing name follows its folder. `same` says whether two paths are one entry.
    """
    same = same or _is_same
    root, *names = real.split(os.sep)
    spelled, place, folds = [root], root + os.sep, False
    for name in names:
        other = name.translate(_OTHER_CASE)
        if other == name:
            other = name.swapcase()
        here = os.path.join(place, name)
        if other != name and os.path.lexists(here):
            folds = same(here, os.path.join(place, other))
        spelled.append(unicodedata.normalize("NFC", name.casefold()) if folds else name)
        place = here
    return os.sep.join(spelled)


def _is_same(left: str, right: str) -> bool:
    """Does not follow links: a link in another case is a name of its own."""
    try:
        one, other = os.lstat(left), os.lstat(right)
    except OSError:
        return False
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
