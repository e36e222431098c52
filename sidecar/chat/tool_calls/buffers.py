"""Writes edits of files through the app's editor, which has unsaved text of them.

The editor replaces its text and saves it, so that nobody's typing is lost. As on disk, bytes are replaced only if they
are those that the edit was planned for.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import anyio
import anyio.to_thread

from ...model.chats import ChatKey
from ...model.failures import Failure, Refused
from ...tools.base import Edit
from ...tools.files.editing import encode_like
from ...workspace.names import RealNames
from ...workspace.paths import Workspace, denied_refusal
from ...workspace.text import decode_text
from ..services.client_app import BufferRequest, BufferWrite, ClientApp
from .environment import absolute_path

logger = logging.getLogger(__name__)

BUFFER_WRITE_S = 10.0
"""How long an editor may take to write a file; it may format it, and ask nobody."""


class EditorBuffers:
    """The buffers of a chat's project. `approved` has the real path for which each edit was permitted."""

    def __init__(
        self, app: ClientApp, key: ChatKey, workspace: Workspace, approved: Mapping[str, str]
    ) -> None:
        self._app = app
        self._key = key
        self._workspace = workspace
        self._approved = approved

    async def write(self, edits: Sequence[Edit]) -> None:
        """Write all edits or none."""
        done: list[Edit] = []
        try:
            for edit in edits:
                await self._replace(edit)
                done.append(edit)
        except Failure:
            await self.restore(done)
            raise

    async def restore(self, edits: Sequence[Edit]) -> None:
        """Put the text of before back, because another edit of the same call failed."""
        for edit in reversed(edits):
            try:
                await self._replace(Edit(edit.path, edit.after, edit.before, in_buffer=True))
            except Failure as failure:
                logger.error("a buffer was not restored", extra={"error": failure.message})

    async def _replace(self, edit: Edit) -> None:
        assert edit.before is not None
        assert edit.after is not None
        real = await anyio.to_thread.run_sync(RealNames(self._workspace).absolute, edit.path)
        if real != self._approved.get(edit.path, real):
            words = "The path leads to another file than the one that was permitted"
            raise denied_refusal(edit.path, "changed", words)
        path = absolute_path(self._workspace, edit.path)
        session, chat = self._key.session_id, self._key.chat_id
        try:
            with anyio.fail_after(BUFFER_WRITE_S):
                text = await self._app.read_buffer(BufferRequest(session_id=session, chat_id=chat, path=path))
                if text is None or encode_like(decode_text(edit.before), text) != edit.before:
                    raise denied_refusal(
                        edit.path, "changed", "The file changed in the editor since it was read"
                    )
                after = decode_text(edit.after)
                # An editor that shows its own line ends gets them; the others restore them when they save.
                written = after.text if "\r" in text else after.plain
                await self._app.write_buffer(
                    BufferWrite(session_id=session, chat_id=chat, path=path, text=written)
                )
        except TimeoutError:
            raise Refused("denied", f"{edit.path}: the editor did not write it in time") from None
