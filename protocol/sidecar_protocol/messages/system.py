"""What belongs to no single chat: blobs, models, settings, trust, statistics, the doctor."""

from __future__ import annotations

from typing import Any, Literal

from .base import Json, Key, Params, Wire

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
    "StatsReadParams",
    "StatsReadResult",
]


class BlobPutParams(Params, kw_only=True):
    """`data` is base64."""

    data: str
    mime_type: str
    name: str | None = None


class BlobPutResult(Wire, kw_only=True):
    blob_id: str
    size: int


class BlobReadParams(Params, kw_only=True):
    """Exactly one of `blobId` and `ref`."""

    blob_id: str | None = None
    ref: str | None = None
    offset: int = 0
    length: int | None = None


class BlobReadResult(Wire, kw_only=True):
    """`data` is base64 of the range; `total` the size of the whole."""

    blob_id: str
    data: str
    total: int
    mime_type: str | None = None
    name: str | None = None


class ModelsListParams(Params, kw_only=True):
    provider: str | None = None


class ModelInfo(Wire, kw_only=True):
    id: str
    name: str
    provider: str
    window: int | None
    max_output: int | None
    modalities: list[str]
    efforts: list[str]
    available: bool
    default: bool
    prices: Json | None = None
    reason: str | None = None


class ModelsListResult(Wire, kw_only=True):
    items: list[ModelInfo]
    next_cursor: str | None = None


class SettingsReadParams(Params, kw_only=True):
    """`scope` limits the answer to one file; without it the effective values come."""

    scope: Literal["user", "project"] | None = None
    project_path: str | None = None


class SettingValue(Wire, kw_only=True):
    value: Any
    layer: str


class SettingsReadResult(Wire, kw_only=True):
    values: dict[str, SettingValue]
    version: str
    path: str | None = None
    warnings: list[str] = []


class SettingsWriteParams(Params, kw_only=True):
    """`set` maps dotted keys to values; null removes one. `expectedVersion` guards against a change in between."""

    scope: Literal["user", "project"]
    set: Json
    project_path: str | None = None
    expected_version: str | None = None


class ProjectTrustParams(Params, kw_only=True):
    path: str
    trusted: bool


class ProjectTrustResult(Wire, kw_only=True):
    path: str
    trusted: bool


class StatsReadParams(Key, kw_only=True):
    scope: Literal["chat", "project", "all"] = "all"


class StatsReadResult(Wire, kw_only=True):
    scope: str
    chats: int
    turns: int
    events: int
    messages: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    blobs: int
    blob_bytes: int
    database_bytes: int


class DoctorCheck(Wire, kw_only=True):
    name: str
    status: Literal["ok", "warn", "fail"]
    code: str
    message: str
    action: str | None = None


class DoctorRunResult(Wire, kw_only=True):
    status: Literal["ok", "warn", "fail"]
    checks: list[DoctorCheck]


class DoctorReportParams(Params, kw_only=True):
    """Writes a zip for a bug report to `path`; `redact` leaves out names, titles and paths."""

    path: str
    redact: bool = True


class DoctorReportResult(Wire, kw_only=True):
    path: str
    bytes: int
    files: list[str]
