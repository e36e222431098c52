"""What belongs to no single chat: blobs, models, settings, trust, statistics, the doctor."""

from __future__ import annotations

from typing import Any, Literal

from .base import Json, Params, Wire, always

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
    "ModelsFetchParams",
    "ModelsFetchResult",
    "ModelsListParams",
    "ModelsListResult",
    "ProjectTrustParams",
    "ProjectTrustResult",
    "SettingValue",
    "SettingsReadParams",
    "SettingsReadResult",
    "SettingsWriteParams",
    "TrustChange",
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
    """How many bytes are stored."""


class BlobReadParams(Params, kw_only=True, frozen=True):
    """Exactly one of `blobId` and `ref`."""

    blob_id: str | None = None
    """The id from `blob/put` or from a turn's content."""
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
    """Tokens of its context window; null when unknown."""
    max_output: int | None
    """Maximum tokens of one answer; null when unknown."""
    modalities: list[str]
    """What it takes: text, image, audio."""
    efforts: list[str]
    """The values that `effort` may have."""
    tools: bool | None
    """Whether it can call tools; null when unknown."""
    thinking: bool | None
    """Whether it can think before it answers; null when unknown."""
    images: bool | None
    """Whether it takes images; null when unknown."""
    available: bool
    """Whether it can be used now."""
    default: bool
    """Whether it is used when none is chosen."""
    prices: Json | None = None
    """US dollars per million tokens, where known."""
    reason: str | None = None
    """Why it cannot be used."""


class ModelsListResult(Wire, kw_only=True, frozen=True):
    items: list[ModelInfo]
    """The models."""
    next_cursor: str | None = None
    """For the next page; absent on the last."""


class ModelsFetchParams(Params, kw_only=True, frozen=True):
    name: str
    """The model, such as `smollm2`."""


class ModelsFetchResult(Wire, kw_only=True, frozen=True):
    model: str
    """`local:NAME`, as `config.model` takes it."""
    path: str
    """The file."""
    bytes: int
    """Its size."""
    fetched: bool
    """False when it was there already."""


class SettingsReadParams(Params, kw_only=True, frozen=True):
    """`scope` limits the answer to one file; without it the effective values come."""

    scope: Literal["user", "project"] | None = None
    """Only the values of this file."""
    project_path: str | None = None
    """The project whose file takes part."""


class SettingValue(Wire, kw_only=True, frozen=True):
    value: Any
    """The effective value."""
    layer: str
    """Where it comes from: default, user, project, file (`--config`), environment or command line."""


class SettingsReadResult(Wire, kw_only=True, frozen=True):
    values: dict[str, SettingValue]
    """Dotted keys and their values."""
    version: str
    """Changes whenever the file does."""
    path: str | None = None
    """The file that was read."""
    warnings: list[str] = always([])
    """Errors in the files; these values are not used."""


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
    trusted: bool | None = None
    """Whether it is trusted from now on, with its settings, hooks and rules as they are now; absent: only look."""


class TrustChange(Wire, kw_only=True, frozen=True):
    path: str
    """The file, from the project's top."""
    change: str
    """`added`, `changed` or `removed`."""
    diff: str
    """A unified diff of limited length; values that may be secrets are masked."""


class ProjectTrustResult(Wire, kw_only=True, frozen=True):
    path: str
    """The real path of the folder."""
    trusted: bool
    """Whether it is trusted now."""
    changes: list[TrustChange] | None = None
    """What had changed in its settings, hooks and rules since it was trusted before; until it is trusted again,
    nothing of them runs."""


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
    """The zip file to write, an absolute path. A link in its place is never followed, and the sidecar's own data folder
    is refused in any case."""
    redact: bool = True
    """False keeps names, titles and paths."""
    overwrite: bool = False
    """Replace an existing regular file, instead of answering -32003."""


class DoctorReportResult(Wire, kw_only=True, frozen=True):
    path: str
    """The zip file that was written."""
    bytes: int
    """Its size."""
    files: list[str]
    """What is in it."""
