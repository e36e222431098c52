"""What belongs to no single chat: blobs, models, settings, trust, statistics, the doctor."""

from __future__ import annotations

from typing import Any, Literal

from .base import Json, Params, Wire

__all__ = [
    "BlobPutParams",
    "BlobPutResult",
    "BlobReadParams",
    "BlobReadResult",
    "DoctorCheck",
    "DoctorReportParams",
    "DoctorReportResult",
    "DoctorRunResult",
    "ModelInfo",
    "ModelsListParams",
    "ModelsListResult",
    "ProjectTrustParams",
    "ProjectTrustResult",
    "SettingValue",
    "SettingsReadParams",
    "SettingsReadResult",
    "SettingsWriteParams",
]


class BlobPutParams(Params, kw_only=True, frozen=True):
    """`data` is base64."""

    data: str
    """The bytes, in base64."""
    mime_type: str
    """What they are."""
    name: str | None = None
    """A name to show."""


class BlobPutResult(Wire, kw_only=True, frozen=True):
    blob_id: str
    """The name of the bytes: the same bytes have the same id."""
    size: int
    """How many bytes are kept."""


class BlobReadParams(Params, kw_only=True, frozen=True):
    """Exactly one of `blobId` and `ref`."""

    blob_id: str | None = None
    """The id that `blob/put` or a turn's content told."""
    ref: str | None = None
    """The `ref` of a clipped text."""
    offset: int = 0
    """The first byte."""
    length: int | None = None
    """How many bytes; to the end when absent."""


class BlobReadResult(Wire, kw_only=True, frozen=True):
    """`data` is base64 of the range; `total` the size of the whole."""

    blob_id: str
    """The id of the bytes."""
    data: str
    """The range, in base64."""
    total: int
    """The size of the whole."""
    mime_type: str | None = None
    """What the bytes are."""
    name: str | None = None
    """The name to show."""


class ModelsListParams(Params, kw_only=True, frozen=True):
    provider: str | None = None
    """Only models of this provider."""


class ModelInfo(Wire, kw_only=True, frozen=True):
    id: str
    """`provider:model`, as `config.model` takes it."""
    name: str
    """A name to show."""
    provider: str
    """Whose model it is."""
    window: int | None
    """Tokens of its window; null when not known."""
    max_output: int | None
    """The most tokens of one answer; null when not known."""
    modalities: list[str]
    """What it takes: text, image, audio."""
    efforts: list[str]
    """The values that `effort` may have."""
    available: bool
    """Whether it can be used now."""
    default: bool
    """Whether it is used when none is chosen."""
    prices: Json | None = None
    """US dollars a million tokens, where known."""
    reason: str | None = None
    """Why it cannot be used."""


class ModelsListResult(Wire, kw_only=True, frozen=True):
    items: list[ModelInfo]
    """The models."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""


class SettingsReadParams(Params, kw_only=True, frozen=True):
    """`scope` limits the answer to one file; without it the effective values come."""

    scope: Literal["user", "project"] | None = None
    """Only what this file says."""
    project_path: str | None = None
    """The project whose file takes part."""


class SettingValue(Wire, kw_only=True, frozen=True):
    value: Any
    """The value in force."""
    layer: str
    """Where it comes from: default, user, project, file (`--config`), environment or command line."""


class SettingsReadResult(Wire, kw_only=True, frozen=True):
    values: dict[str, SettingValue]
    """Dotted keys and their values."""
    version: str
    """Changes whenever the file does."""
    path: str | None = None
    """The file that was read."""
    warnings: list[str] = []
    """What was wrong in the files and is not in force."""


class SettingsWriteParams(Params, kw_only=True, frozen=True):
    """`set` maps dotted keys to values; null removes one."""

    scope: Literal["user", "project"]
    """Which file."""
    set: Json
    """Dotted keys and their new values."""
    project_path: str | None = None
    """The project, for scope `project`."""
    expected_version: str | None = None
    """Refuse with -32010 when the file has another version."""


class ProjectTrustParams(Params, kw_only=True, frozen=True):
    path: str
    """The project's folder."""
    trusted: bool
    """Whether it is trusted from now on."""


class ProjectTrustResult(Wire, kw_only=True, frozen=True):
    path: str
    """The real path of the folder."""
    trusted: bool
    """Whether it is trusted now."""


class DoctorCheck(Wire, kw_only=True, frozen=True):
    name: str
    """What was checked."""
    status: Literal["ok", "warn", "fail"]
    """How it stands."""
    code: str
    """A stable name of the finding."""
    message: str
    """The finding, in English."""
    action: str | None = None
    """What to do about it."""


class DoctorRunResult(Wire, kw_only=True, frozen=True):
    status: Literal["ok", "warn", "fail"]
    """The worst of the checks."""
    checks: list[DoctorCheck]
    """What was checked, one by one."""


class DoctorReportParams(Params, kw_only=True, frozen=True):
    """Writes a zip for a bug report to `path`; `redact` leaves out names, titles and paths."""

    path: str
    """The zip file to write."""
    redact: bool = True
    """False keeps names, titles and paths."""


class DoctorReportResult(Wire, kw_only=True, frozen=True):
    path: str
    """The zip file that was written."""
    bytes: int
    """Its size."""
    files: list[str]
    """What is in it."""
