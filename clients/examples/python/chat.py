"""A chat in the terminal: answers stream, Ctrl-C ends a turn, and the chat is there again tomorrow.

    python chat.py tab-7

`SIDECAR_MODEL=echo:` needs no key. A line that begins with a slash is a command, such as `/context`.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import anyio
from sidecar_client import Answer, Chat, PermissionAnswer, PermissionRequest, Sidecar


async def permit(request: PermissionRequest) -> PermissionAnswer:
    for change in request.changes:
        print(change.unified_diff or change.path)
    said = await anyio.to_thread.run_sync(input, f"{request.title}? [y/N] ")
    return PermissionAnswer(decision="allow_once" if said.strip().lower() == "y" else "deny_once")


async def cancel_at_interrupt(answer: Answer) -> None:
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        async for _ in signals:
            await answer.cancel()


async def say(chat: Chat, text: str) -> None:
    async with chat.prompt(text) as answer, anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_at_interrupt, answer)
        async for event in answer:
            if event.type in ("message.delta", "command.result"):
                print(event.text, end="", flush=True)
            elif event.type == "tool.started" and event.item:
                print(f"[{event.item.title}]")
            elif event.type == "turn.ended" and event.error:
                print(event.error.message)
        print()
        tasks.cancel_scope.cancel()


async def main(chat_id: str) -> None:
    async with Sidecar.spawn(on_permission=permit, client_name="example") as app:
        chat = await app.chat(chat_id, project_path=Path.cwd())
        print(f"{chat.status}: {chat.title or chat_id}, {len(chat.turns)} turns")
        while True:
            try:
                text = await anyio.to_thread.run_sync(input, "> ")
            except EOFError:
                return
            if text.strip():
                await say(chat, text)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else "example")
