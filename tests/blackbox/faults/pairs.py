"""The faults that pairs are drawn from. Each is done to a running sidecar at some point of its work, and undone at the
end; none says what must come of it."""

from __future__ import annotations

import base64
import random
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.blackbox.faults.disks import fill
from tests.blackbox.faults.test_memory import MB, feed, starve
from tests.blackbox.faults.tracing import Fault, joined
from tests.blackbox.faults.tracing import unable as no_strace
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

PAGE = 4096


@dataclass
class Stage:
    """A sidecar at work, what was asked of it and of others, and what has to be undone."""

    spawn: Spawner
    rng: random.Random
    model: str
    disk: Path | None
    live: Sidecar
    asked: list[tuple[Sidecar, int]] = field(default_factory=list)
    undo: ExitStack = field(default_factory=ExitStack)
    damages: bool = False
    """Whether bytes were taken away that nobody can bring back."""
    removed: bool = False

    @property
    def database(self) -> Path:
        return self.spawn.data_dir / "sidecar.db"

    def ask(self, method: str, **params: object) -> None:
        with suppress(BrokenPipeError):
            self.asked.append((self.live, self.live.ask(method, **params)))

    def send(self, chat: str, text: str, **more: object) -> None:
        self.ask("prompt/send", chatId=chat, promptId=f"p{len(self.asked)}", text=text, **more)

    def start(self) -> Sidecar:
        self.live = self.spawn(model=self.model)
        return self.live


def no_room(stage: Stage) -> None:
    assert stage.disk
    ballast = stage.disk / "ballast"
    fill(ballast)
    stage.undo.callback(lambda: ballast.unlink(missing_ok=True))


def failing_writes(stage: Stage) -> None:
    log = stage.spawn.folder / f"trace-{len(stage.asked)}"
    fault = Fault("pwrite64", stage.rng.choice(["EIO", "ENOSPC"]), stage.rng.randint(1, 4), on=True)
    stage.undo.enter_context(joined(stage.live.pid, stage.spawn.data_dir, log, fault))


def kill(stage: Stage) -> None:
    stage.live.kill()
    stage.start()


def remove_database(stage: Stage) -> None:
    stage.database.unlink(missing_ok=True)
    stage.removed = True


def remove_log(stage: Stage) -> None:
    Path(f"{stage.database}-wal").unlink(missing_ok=True)
    stage.removed = True


def damage_pages(stage: Stage) -> None:
    stage.damages = True
    with suppress(OSError), stage.database.open("r+b") as file:
        pages = max(stage.database.stat().st_size // PAGE, 1)
        file.seek(stage.rng.randrange(pages) * PAGE)
        file.write(stage.rng.randbytes(PAGE * stage.rng.randint(1, 3)))


def failing_provider(stage: Stage) -> None:
    stage.send("c0", stage.rng.choice(["break", "break slowly"]))


def bad_image(stage: Stage) -> None:
    data = base64.b64encode(stage.rng.randbytes(300)).decode()
    image = {"type": "image", "mimeType": "image/png", "data": data}
    params: Json = {"chatId": "c1", "promptId": f"image {len(stage.asked)}", "content": [image]}
    stage.ask("prompt/send", **params)


def little_memory(stage: Stage) -> None:
    sidecar = stage.live
    sidecar.killed = True  # where not even an error can be made, it ends
    starve(sidecar, stage.rng.choice([3, 8, 20]) * MB)
    stage.undo.callback(lambda: None if sidecar.is_gone else feed(sidecar))


def second_process(stage: Stage) -> None:
    first = stage.live
    stage.start()
    stage.send("c0", "from another process")
    stage.send("c2", "from another process")
    stage.live = first


FAULTS: dict[str, Callable[[Stage], None]] = {
    fault.__name__: fault
    for fault in (
        no_room, failing_writes, kill, remove_database, remove_log, damage_pages, failing_provider, bad_image,
        little_memory, second_process,
    )
}  # fmt: skip


def possible(has_disk: bool) -> list[str]:
    """The faults that this machine can do."""
    missing = set()
    if not has_disk:
        missing.add("no_room")
    if no_strace():
        missing.add("failing_writes")
    if sys.platform != "linux":
        missing.add("little_memory")
    return [name for name in FAULTS if name not in missing]
