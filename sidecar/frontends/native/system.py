"""Handlers of methods that belong to no single chat: blobs, models, settings, trust, the doctor."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import anyio
import msgspec
from sidecar_protocol import messages as m
from sidecar_protocol.messages.base import Empty
from sidecar_protocol.peer import Call

from ...chat.journal import project_identity
from ...chat.journal.identity import real_project_path
from ...chat.services.content import MAX_ATTACHED_BYTES, decode_base64
from ...chat.sessions.chats import Chats
from ...model.failures import Failure, invalid_param
from ...providers.base import ModelEntry
from ...rpc.dispatch import Handler, run_to_end
from ...settings import SettingsConflict, SettingsError
from ...system import trusted_files

if TYPE_CHECKING:
    from ..base import System


class SystemHandlers:
    def __init__(self, ready: Callable[[], Awaitable[Chats]], system: System) -> None:
        self._chats = ready
        self._system = system

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "blob/put": self._put_blob,
            "blob/read": self._read_blob,
            "models/list": self._models,
            "settings/read": self._read_settings,
            "settings/write": self._write_settings,
            "project/trust": self._trust,
            "doctor/run": self._doctor,
            "doctor/report": self._report,
        }

    async def _put_blob(self, call: Call, params: m.BlobPutParams) -> m.BlobPutResult:
        data = decode_base64(params.data, "data")
        if len(data) > MAX_ATTACHED_BYTES:
            raise invalid_param("data", f"at most {MAX_ATTACHED_BYTES} bytes")
        store = (await self._chats()).store
        blob = await run_to_end(store.blobs.put(data, params.mime_type, params.name))
        return m.BlobPutResult(blob_id=blob.id, size=blob.size)

    async def _read_blob(self, call: Call, params: m.BlobReadParams) -> m.BlobReadResult:
        if (params.blob_id is None) == (params.ref is None):
            raise invalid_param("blobId", "exactly one of `blobId` and `ref`")
        if not 0 <= params.offset < 2**53 or not (params.length is None or 0 <= params.length < 2**53):
            raise invalid_param("offset/length", "numbers from 0")
        length = min(MAX_ATTACHED_BYTES if params.length is None else params.length, MAX_ATTACHED_BYTES)
        store = (await self._chats()).store
        blob, data = await store.blobs.read(params.blob_id or params.ref or "", params.offset, length)
        return m.BlobReadResult(
            blob_id=blob.id,
            data=base64.b64encode(data).decode(),
            total=blob.size,
            mime_type=blob.mime_type,
            name=blob.name,
        )

    async def _models(self, call: Call, params: m.ModelsListParams) -> m.ModelsListResult:
        chosen = await self._system.default_model()
        entries = await self._system.models(params.provider)
        return m.ModelsListResult(items=[_model(entry, chosen) for entry in entries])

    async def _read_settings(self, call: Call, params: m.SettingsReadParams) -> m.SettingsReadResult:
        return self._settings_result(params.scope, _project(params.project_path))

    async def _write_settings(self, call: Call, params: m.SettingsWriteParams) -> m.SettingsReadResult:
        project = _project(params.project_path)
        try:
            self._system.write_settings(params.scope, project, params.set, params.expected_version)
        except SettingsConflict as error:
            raise Failure("precondition_failed", str(error), params={"field": "expectedVersion"}) from error
        except SettingsError as error:
            raise Failure("invalid_params", str(error), params={"field": f"set.{error.key}"}) from error
        return self._settings_result(params.scope, project)

    def _settings_result(self, scope: str | None, project: str | None) -> m.SettingsReadResult:
        try:
            if scope is not None:
                file = self._system.read_scope(scope, project)
                shown = {
                    key: m.SettingValue(value=value, layer=scope)
                    for key, value in file.masked_values().items()
                }
                return m.SettingsReadResult(values=shown, version=file.version, path=file.path)
            settings = self._system.settings(project)
        except SettingsError as error:
            raise Failure("precondition_failed", str(error), action="fix_settings") from error
        values = {
            key: m.SettingValue(value=value, layer=layer)
            for key, (value, layer) in settings.values_and_layers().items()
        }
        return m.SettingsReadResult(values=values, version=settings.version, warnings=list(settings.warnings))

    async def _trust(self, call: Call, params: m.ProjectTrustParams) -> m.ProjectTrustResult:
        project = await project_identity.find_project(params.path)
        chats = await self._chats()
        if params.trusted:
            project_identity.refuse_own_folder("path", project.path, chats.services.own_folders)
        store = chats.store
        try:
            found = await anyio.to_thread.run_sync(self._system.trust_changes, project.path)
            files = (
                await anyio.to_thread.run_sync(trusted_files.make_record, project.path)
                if params.trusted
                else None
            )
        except trusted_files.TooMuch as much:
            raise Failure("precondition_failed", f"The project cannot be trusted: {much}") from much
        changes = [m.TrustChange(path=path, change=kind, diff=diff) for path, kind, diff in found] or None
        if params.trusted is None:
            trusted = self._system.is_trusted(project.path)
            return m.ProjectTrustResult(path=project.path, trusted=trusted, changes=changes)
        spellings = await run_to_end(store.retention.trust(project, params.trusted, files))
        for path in spellings:
            self._system.record_trust(path, files)
        return m.ProjectTrustResult(path=project.path, trusted=params.trusted, changes=changes)

    async def _doctor(self, call: Call, params: Empty) -> m.DoctorRunResult:
        checks = [m.DoctorCheck(**msgspec.structs.asdict(check)) for check in await self._system.checks()]
        worst = max((check.status for check in checks), key=("ok", "warn", "fail").index)
        return m.DoctorRunResult(status=worst, checks=checks)

    async def _report(self, call: Call, params: m.DoctorReportParams) -> m.DoctorReportResult:
        size, files = await self._system.report(params.path, params.redact, params.overwrite)
        return m.DoctorReportResult(path=params.path, bytes=size, files=files)


def _model(entry: ModelEntry, chosen: str | None) -> m.ModelInfo:
    return m.ModelInfo(
        id=entry.id,
        name=entry.name,
        provider=entry.provider,
        window=entry.window,
        max_output=entry.max_output,
        modalities=list(entry.modalities or ("text",)),
        efforts=list(entry.efforts or ()),
        tools=entry.takes_tools,
        thinking=entry.thinks,
        images="image" in entry.modalities if entry.modalities is not None else None,
        available=entry.available,
        reason=entry.reason,
        default=entry.id == chosen,
        prices=dict(entry.prices) if entry.prices else None,
    )


def _project(path: str | None) -> str | None:
    return real_project_path(path) if path is not None else None
