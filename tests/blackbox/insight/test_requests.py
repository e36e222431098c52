"""Who gets an answer from the page's server, and what becomes of everyone else."""

from __future__ import annotations

import json
import signal
import socket
from contextlib import suppress

import pytest

from tests.blackbox.work.workbench import Workbench
from tests.support.patience import PATIENCE_S
from tests.support.spawner import Spawner

from .page import Page, fill, opened

WRONG_HOSTS = ["evil.example", "localhost", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", "evil.example:{port}",
               "127.0.0.1:{port}.evil.example", "127.0.0.1:{port}@evil.example", "0.0.0.0:{port}", ""]  # fmt: skip
FOREIGN_ORIGINS = ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://localhost:{port}",
                   "http://127.0.0.1:1", "http://127.0.0.1:{port}.evil.example", "", "file://"]  # fmt: skip
PATHS = [
    "/../../etc/passwd",
    "/assets/../guard.py",
    "/assets/../../server.py",
    "/assets/%2e%2e/guard.py",
    "/assets/..%2fguard.py",
    "/assets//app.js",
    "//evil.example/",
    "/assets/./app.js",
    "/assets/app.js%00",
    "/assets/app.js?x",
    "/assets/",
    "/assets",
    "/assets/vendor",
    "/assets/.hidden",
    "/assets/app.js/..",
    "\\..\\guard.py",
    "/assets\\app.js",
    "http://evil.example/",
    "http://127.0.0.1/",
    "/chats/../../etc/passwd",
    "/knowledge/%2e%2e/x",
    "/unknown",
    "/call",
    "/assets/APP.JS",
    "*",
]


def test_the_token_is_exchanged_once_for_a_cookie(page: Page) -> None:
    answer = page.request("GET", f"/enter/{page.token}")
    assert answer.status == 200
    attributes = answer.headers["set-cookie"].split("; ")[1:]
    assert attributes == ["HttpOnly", "SameSite=Strict", "Path=/"]
    again = page.request("GET", f"/enter/{page.token}")
    assert (again.status, again.body) == (401, b"")
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize("target", ["/", "/chats", "/assets/app.js", "/events", "/enter/", "/enter/wrong"])
def test_without_the_cookie_there_is_nothing(page: Page, target: str) -> None:
    for headers in ({}, {"Cookie": f"sidecar_insight_{page.port}=wrong"}, {"Cookie": "=;=\x7f"}):
        answer = page.request("GET", target, headers)
        assert (answer.status, answer.body) == (401, b"")
    posted = page.post({}, "stats/read")
    assert (posted.status, posted.body) == (401, b"")


def test_another_host_gets_nothing(page: Page) -> None:
    cookie = page.enter()
    for host in WRONG_HOSTS:
        answer = page.request("GET", "/", {**cookie, "Host": host.format(port=page.port)})
        assert answer.status in (400, 403), host
        assert answer.body == b"", host


def test_a_foreign_page_gets_nothing(page: Page) -> None:
    cookie = page.enter()
    for origin in FOREIGN_ORIGINS:
        answer = page.post({**cookie, "Origin": origin.format(port=page.port)}, "stats/read")
        assert (answer.status, answer.body) == (403, b""), origin
    for site in ("cross-site", "same-site"):
        answer = page.request("GET", "/", {**cookie, "Sec-Fetch-Site": site})
        assert (answer.status, answer.body) == (403, b""), site


def test_a_call_needs_an_origin_and_json(page: Page) -> None:
    cookie = page.enter()
    body = b'{"method":"stats/read"}'
    json_type = {"Content-Type": "application/json"}
    assert page.request("POST", "/call", {**cookie, **json_type}, body).status == 403
    ours = {**cookie, "Origin": page.origin}
    assert page.request("POST", "/call", {**ours, "Content-Type": "text/plain"}, body).status == 415
    assert page.request("POST", "/call", {**ours, **json_type}, b"{").status == 400
    assert page.request("POST", "/call", {**ours, **json_type}, b" " * 1_100_000).status == 413
    assert page.request("PUT", "/call", {**ours, **json_type}, body).status == 405


@pytest.mark.parametrize(
    "method", ["prompt/send", "settings/write", "data/purge", "shutdown", "project/trust", ""]
)
def test_a_method_that_the_page_does_not_need_is_refused(page: Page, method: str) -> None:
    answer = page.post(page.enter(), method)
    assert (answer.status, answer.body) == (403, b"")


def test_path_tricks_get_nothing(page: Page) -> None:
    cookie = page.enter()
    for path in PATHS:
        answer = page.request("GET", path, cookie)
        assert answer.status in (400, 403, 404), path
        assert answer.body == b"", path


def test_what_is_not_http_is_cut_off(page: Page) -> None:
    for sent in (
        b"\x16\x03\x01\x00\xa5\x01",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"\x00" * 100_000,
    ):
        with socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE_S) as stream:
            stream.sendall(sent)
            stream.shutdown(socket.SHUT_WR)
            with suppress(ConnectionResetError):
                assert stream.recv(1) == b""
    assert page.request("GET", "/", page.enter()).status == 200


def test_every_file_has_the_strict_headers(page: Page) -> None:
    cookie = page.enter()
    for path in (
        "/",
        "/chats",
        "/knowledge/data/out:00000001",
        "/assets/app.js",
        "/assets/vendor/uPlot.iife.min.js",
    ):
        answer = page.request("GET", path, cookie)
        assert answer.status == 200, path
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_figures_are_those_of_the_contract_and_the_journal(bench: Workbench) -> None:
    session = fill(bench)
    sidecar = bench.spawn()
    told = sidecar.call("stats/read")
    with opened(bench.spawn.environment()) as page:
        shown = json.loads(page.post(page.enter(), "stats/read").body)["result"]
    known = {name: value for name, value in shown.items() if name not in ("databaseBytes", "index")}
    assert known == {name: told[name] for name in known}
    journal = sidecar.journal(session)
    assert shown["events"] == journal[-1]["seq"]
    assert shown["turns"] == sum(each["type"] == "turn.started" for each in journal)


def test_news_of_another_process_arrive_while_it_chats(spawn: Spawner) -> None:
    with opened(spawn.environment()) as page:
        cookie = page.enter()["Cookie"]
        with socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE_S) as stream:
            stream.sendall(f"GET /events HTTP/1.1\r\nHost: {page.host}\r\nCookie: {cookie}\r\n\r\n".encode())
            read = b""
            while b"retry" not in read:
                read += stream.recv(4096)
            spawn().run("hello", chatId="c")
            while b"event: changed" not in read:
                received = stream.recv(4096)
                assert received, read
                read += received


def test_a_change_is_made_by_the_same_methods_as_any_client(bench: Workbench) -> None:
    session = fill(bench)
    with opened(bench.spawn.environment()) as page:
        cookie = page.enter()
        found = json.loads(page.post(cookie, "patches/list", sessionId=session).body)["result"]["items"]
        edit = next(each for each in found if each["toolName"] == "edit_file")
        page.post(cookie, "patches/revert", sessionId=session, id=edit["id"])
    assert "a - b" in bench.read("src/add.py")
    last = bench.spawn().journal(session)[-1]
    assert last["type"] == "patch.recorded"


def test_it_ends_with_the_pipe_of_its_parent(page: Page) -> None:
    assert page.process.stdin is not None
    page.process.stdin.close()
    assert page.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ends_by_a_signal_also_while_a_page_listens(page: Page, number: signal.Signals) -> None:
    cookie = page.enter()["Cookie"]
    with socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE_S) as stream:
        stream.sendall(f"GET /events HTTP/1.1\r\nHost: {page.host}\r\nCookie: {cookie}\r\n\r\n".encode())
        assert stream.recv(4096)
        page.process.send_signal(number)
        assert page.process.wait(PATIENCE_S) == 0
