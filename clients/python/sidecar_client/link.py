"""A link to a sidecar that may die: starts it again, and repeats what may be repeated. Knows no chat.

Whoever uses the link is asked to attach anew (`reattach`) before any other request goes to a new process.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup
from sidecar_protocol import messages as m
from sidecar_protocol.catalog import METHODS
from sidecar_protocol.errors import RpcError
from sidecar_protocol.jsonrpc import Notification
from sidecar_protocol.peer import Serve

from .connection import Connection
from .errors import SidecarDied
from .process import Transport

logger = logging.getLogger(__name__)

RESTART_DELAYS = (0.0, 0.1, 0.5, 1.0, 2.0)
"""The first restart is at once, as most deaths are single; one delay for each of the tries in a row."""

STABLE_SECONDS = 10.0
"""A process that lived this long did not die of starting: the tries count from the first again."""

MAX_SENDS = 3
"""A request that outlives two processes is likely what kills them."""

NOT_REPEATABLE = (
    "initialize",
    "chat/fork",
    "chat/import",
    "input/answer",
    "patches/apply",
    "patches/revert",
    "permission/answer",
    "prompt/edit",
    "prompt/remove",
    "settings/write",
    "shutdown",
)
REPEATABLE = frozenset(METHODS).difference(NOT_REPEATABLE)
"""Methods whose repetition changes nothing: they read, set a value, or carry a promptId. Others fail."""

T = TypeVar("T")
Launch = Callable[[], Awaitable[Transport]]
Reattach = Callable[[Connection], Awaitable[None]]


class Link:
    """Requests that survive the process. `start` it, then `supervise` it in a task until `stop`.

    `hello` is what each process is greeted with; `serve` answers what it asks.
    """

    def __init__(
        self,
        launch: Launch,
        hello: m.InitializeParams,
        serve: Serve,
        hear: Callable[[Notification], None],
        reattach: Reattach,
        tasks: TaskGroup,
    ) -> None:
        self.hello = hello
        self.restarts = 0
        self._launch = launch
        self._serve = serve
        self._hear = hear
        self._reattach = reattach
        self._tasks = tasks
        self._failures = 0
        self._born = 0.0
        self._changed = anyio.Event()
        self._connection: Connection | None = None
        self._end: SidecarDied | None = None

    async def start(self) -> m.InitializeResult:
        """The first life. What goes wrong here is raised: a program that never ran is not started again."""
        self._connection, self.server = await self._connect()
        return self.server

    async def supervise(self) -> SidecarDied:
        """Start the sidecar again whenever it dies; returns why there will be no other."""
        while self._end is None:
            connection = self._connection
            assert connection is not None, "start comes before supervise"
            await connection.over.wait()
            if self._end is None:
                logger.warning("%s; starting it again", connection.death.message)
                await self._revive(connection.death)
        return self._end

    async def stop(self) -> None:
        self._give_up(SidecarDied("The connection to the sidecar is closed"))
        if self._connection is not None:
            await self._connection.close()

    async def request(self, method: str, params: Any) -> Any:
        """The raw result, from this process or, for what may be repeated, from a later one."""
        for left in reversed(range(MAX_SENDS)):
            connection = await self._live()
            try:
                return await connection.request(method, params)
            except SidecarDied:
                if not left or method not in REPEATABLE:
                    raise
        raise AssertionError("unreachable: the last send returns or raises")

    async def ask(self, method: str, params: Any, result: type[T]) -> T:
        """The result as the type that the contract gives it."""
        return msgspec.convert(await self.request(method, params), result)

    @property
    def pid(self) -> int | None:
        return None if self._connection is None else self._connection.pid

    async def _live(self) -> Connection:
        while self._end is None:
            if self._connection is not None and not self._connection.over.is_set():
                return self._connection
            await self._changed.wait()
        raise self._end.again()

    async def _connect(self) -> tuple[Connection, m.InitializeResult]:
        connection = Connection(await self._launch(), self._serve, self._hear, self._tasks)
        self._tasks.start_soon(connection.run)
        try:
            server = await connection.initialize(self.hello)
        except BaseException:
            await connection.close()
            raise
        self._born = anyio.current_time()
        return connection, server

    async def _revive(self, death: SidecarDied) -> None:
        """A new process with every chat attached, or the end of the link."""
        if anyio.current_time() - self._born > STABLE_SECONDS:
            self._failures = 0
        while self._failures < len(RESTART_DELAYS):
            await anyio.sleep(RESTART_DELAYS[self._failures])
            self._failures += 1
            try:
                await self._begin_new_life()
                return
            except SidecarDied as error:
                death = error
            except RpcError as error:
                death = SidecarDied(f"A new sidecar refused to start: {error.message}")
                break
        self._give_up(death)

    async def _begin_new_life(self) -> None:
        connection, self.server = await self._connect()
        await self._reattach(connection)
        self._connection = connection
        self.restarts += 1
        self._tell()

    def _give_up(self, death: SidecarDied) -> None:
        self._end = self._end or death
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
