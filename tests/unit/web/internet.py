"""An internet of the test's own: names with addresses, and a proxy through which every address leads to one site.

Fake is only the resolver, the one place where names become addresses. What is checked, connected to and sent is real:
a public address is asked through the proxy, as in a company's network, and the proxy remembers what it was asked for.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import anyio

from sidecar.settings.values import FetchSettings
from sidecar.store import Store
from sidecar.tools.base import ToolError, ToolInput, ToolOutcome
from sidecar.tools.web.addresses import AddressRefused
from sidecar.tools.web.fetch_url import FetchUrl
from sidecar.tools.web.pages import PageFetcher
from sidecar.tools.web.reaching import FetchLimits, Unavailable, WebClient
from sidecar.workspace.paths import Workspace
from tests.blackbox.models.network import listening
from tests.support.patience import PATIENCE_S
from tests.unit.tools.context import FolderContext
from tests.unit.web.server import Site, Tunnel

PUBLIC = "93.184.215.14"
OTHER = "151.101.1.69"
LIMITS = FetchLimits(seconds=10, silence=5, connect=2)


class Internet:
    """`names` has each name's answers, one after another, the last one for ever; `tunnels` what the proxy was asked."""

    def __init__(self, store: Store, folder: str, limits: FetchLimits = LIMITS) -> None:
        self.names: dict[str, list[list[str]]] = {}
        self.resolved: list[str] = []
        self.site = Site()
        self.trap = Site()
        self.trap.put("/secret", "the keys of the house")
        self.settings = FetchSettings.of()
        self.now = 1_800_000_000.0
        self.store = store
        self.web = PageFetcher(store, WebClient(self.resolve, limits), lambda: self.now)
        self.context = FolderContext(Workspace(folder))
        self.ports = {80: 0, 443: 0}
        self.proxy = Tunnel(lambda port: self.ports.get(port) or self.ports[80])
        self.name("public.test", PUBLIC)
        self.name("other.test", OTHER)
        self.name("localhost", "127.0.0.1")

    def name(self, host: str, *addresses: str) -> None:
        self.names[host] = [list(addresses)]

    def changing(self, host: str, *answers: list[str]) -> None:
        self.names[host] = list(answers)

    async def resolve(self, host: str, port: int) -> list[str]:
        self.resolved.append(host)
        answers = self.names.get(host)
        if not answers:
            raise Unavailable(f"The name {host} cannot be resolved.")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    @property
    def tunnels(self) -> list[str]:
        return self.proxy.seen

    @property
    def tool(self) -> FetchUrl:
        return FetchUrl(lambda: self.web, self.settings)

    async def fetch(self, url: str, **more: Any) -> ToolOutcome:
        """A call of the tool from the plan to its outcome."""
        ready = await self.tool.prepare(ToolInput({"url": url, **more}), self.context)
        return await ready.run()

    async def words(self, url: str, **more: Any) -> str:
        """What a call that fails says."""
        try:
            outcome = await self.fetch(url, **more)
        except ToolError as wrong:
            return str(wrong)
        raise AssertionError(f"{url} was fetched: {outcome.text[:200]!r}")

    async def is_refused(self, url: str) -> bool:
        """Whether the address itself was the reason, and nothing was asked of the trap."""
        try:
            await self.fetch(url)
        except ToolError as wrong:
            return isinstance(wrong.__cause__, AddressRefused) and not self.trap.asked
        return False


@contextmanager
def connected(
    internet: Internet, tls: ssl.SSLContext, setenv: Callable[[str, str], None]
) -> Iterator[Internet]:
    """The internet while its servers run, with the environment saying where the proxy is."""
    with ExitStack() as stack:
        internet.site.port = internet.ports[80] = stack.enter_context(listening(internet.site.handle)).port
        internet.ports[443] = stack.enter_context(listening(internet.site.handle, tls)).port
        internet.trap.port = stack.enter_context(listening(internet.trap.handle)).port
        proxy = stack.enter_context(listening(internet.proxy.handle))
        for name in ("http_proxy", "https_proxy"):
            setenv(name, f"http://127.0.0.1:{proxy.port}")
        setenv("no_proxy", "")
        yield internet


async def let_through(internet: Internet, urls: Sequence[str]) -> list[str]:
    """Which of these were not refused."""
    found: list[str] = []
    for url in urls:
        with anyio.fail_after(PATIENCE_S):
            if not await internet.is_refused(url):
                found.append(url)
    return found
