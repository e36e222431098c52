"""How file systems spell names: whether a folder finds what is in it by other letters too. Asks the file system itself,
since one machine may have both kinds, and even one folder of a disk may differ from the next.
"""

from __future__ import annotations

import os
import string
import unicodedata
from collections.abc import Callable

_OTHER_CASE = str.maketrans(string.ascii_letters, string.ascii_letters[26:] + string.ascii_letters[:26])

Same = Callable[[str, str], bool]


def canonical(real: str, same: Same | None = None) -> str:
    """The real path with every name folded that its folder would find in other letters; one text for one folder.

    A name that is not there is taken to be as its folder is. `same` tells whether two paths are one entry.
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
    """Not following links: a link in other letters is a name of its own."""
    try:
        one, other = os.lstat(left), os.lstat(right)
    except OSError:
        return False
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
