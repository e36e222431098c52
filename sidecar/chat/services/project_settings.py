"""The settings of one project, with what is parsed once: the permission rules of its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ...settings import Settings
from ...workspace.open_files import OpenFileLimits

if TYPE_CHECKING:
    from ...policy.rules import Rule


class ProjectSettings(msgspec.Struct, frozen=True):
    values: Settings
    rules: Sequence[Rule] = ()

    @property
    def open_file_limits(self) -> OpenFileLimits:
        return OpenFileLimits(self.values.open_files.max_recent, self.values.open_files.max_pinned)
