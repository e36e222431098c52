"""The way to a provider: TLS and whom it trusts, proxies, connections that were closed while they idled, IPv6."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from sidecar.fake_provider import FakeProvider, in_thread, unused_port
from tests.blackbox.models.network import Authority, Front, Proxy, listening
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

KEY = "sk-0123456789abcdef"
NAME = "provider.test"
"""A name that only the proxy knows the way to."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def start(spawn: Spawner, base_url: str, **env: str) -> Sidecar:
    """A sidecar whose model is at `base_url`, and which tries nothing twice."""
    config = spawn.folder / "once.toml"
    config.write_text("[providers.openai]\nretries = 0\n")
    here = {"OPENAI_BASE_URL": f"{base_url}/v1", "OPENAI_API_KEY": KEY}
    return spawn("--config", str(config), model="openai:fake", env={**here, **env})


def ask(sidecar: Sidecar) -> dict[str, Any]:
    data: dict[str, Any] = sidecar.run("[[say=fine]]", chatId="c")["data"]
    return data


def offline(sidecar: Sidecar) -> str:
    """The words of a prompt that could not be sent."""
    error = ask(sidecar)["error"]
    assert (error["data"]["reason"], error["data"]["action"]) == ("offline", "check_network")
    message: str = error["message"]
    return message


def test_a_server_with_a_trusted_certificate_answers(
    fake: FakeProvider, spawn: Spawner, authority: Authority
) -> None:
    with listening(Front(fake.port).handle, authority.server("localhost", "127.0.0.1")) as tls:
        for host in ("localhost", "127.0.0.1"):
            sidecar = start(spawn, f"https://{host}:{tls.port}", SSL_CERT_FILE=str(authority.path))
            assert ask(sidecar)["reason"] == "end_turn"
            assert ask(sidecar)["reason"] == "end_turn"


def test_a_certificate_that_nobody_trusts_is_refused_in_clear_words(
    fake: FakeProvider, spawn: Spawner, authority: Authority
) -> None:
    with listening(Front(fake.port).handle, authority.server("localhost")) as tls:
        sidecar = start(spawn, f"https://localhost:{tls.port}")
        assert offline(sidecar) == f"openai: the certificate of localhost:{tls.port} is not trusted"
    assert fake.requests == []


def test_a_certificate_of_another_name_is_refused(
    fake: FakeProvider, spawn: Spawner, authority: Authority
) -> None:
    with listening(Front(fake.port).handle, authority.server("other.test")) as tls:
        sidecar = start(spawn, f"https://localhost:{tls.port}", SSL_CERT_FILE=str(authority.path))
        assert "is not trusted" in offline(sidecar)


def test_a_server_that_does_not_speak_tls_is_told(fake: FakeProvider, spawn: Spawner) -> None:
    message = offline(start(spawn, f"https://127.0.0.1:{fake.port}"))
    assert f"127.0.0.1:{fake.port}" in message


def test_an_http_proxy_is_asked_by_the_whole_address(fake: FakeProvider, spawn: Spawner) -> None:
    proxy = Proxy(fake.port, fake.port, "Basic bWU6cCBx")
    with listening(proxy.handle) as there:
        sidecar = start(spawn, f"http://{NAME}", HTTP_PROXY=f"http://me:p%20q@127.0.0.1:{there.port}")
        assert ask(sidecar)["reason"] == "end_turn"

    assert proxy.seen == [(f"POST http://{NAME}/v1/chat/completions HTTP/1.1", "Basic bWU6cCBx")]
    assert fake.requests[0].headers["host"] == NAME


def test_https_goes_through_a_tunnel(fake: FakeProvider, spawn: Spawner, authority: Authority) -> None:
    with listening(Front(fake.port).handle, authority.server(NAME)) as tls:
        proxy = Proxy(fake.port, tls.port, "Basic bWU6c2VjcmV0")
        with listening(proxy.handle) as there:
            sidecar = start(
                spawn,
                f"https://{NAME}",
                HTTPS_PROXY=f"http://me:secret@127.0.0.1:{there.port}",
                SSL_CERT_FILE=str(authority.path),
            )
            for _ in range(2):
                assert ask(sidecar)["reason"] == "end_turn"

    assert proxy.seen == [(f"CONNECT {NAME}:443 HTTP/1.1", "Basic bWU6c2VjcmV0")], "the tunnel is kept"
    assert not any("proxy-authorization" in request.headers for request in fake.requests)


def test_a_proxy_that_refuses_is_named(fake: FakeProvider, spawn: Spawner) -> None:
    with listening(Proxy(fake.port, fake.port, "Basic other").handle) as there:
        sidecar = start(spawn, f"https://{NAME}", HTTPS_PROXY=f"http://me:secret@127.0.0.1:{there.port}")
        message = offline(sidecar)
    assert message == "openai: the proxy 127.0.0.1 refused (HTTP 407)"


def test_a_proxy_that_refuses_plain_http_is_no_provider_that_refuses_the_key(
    fake: FakeProvider, spawn: Spawner
) -> None:
    with listening(Proxy(fake.port, fake.port, "Basic other").handle) as there:
        sidecar = start(spawn, f"http://{NAME}", HTTP_PROXY=f"http://127.0.0.1:{there.port}")
        assert "proxy" in offline(sidecar)


def test_a_proxy_that_is_not_there_is_told(spawn: Spawner) -> None:
    sidecar = start(spawn, f"https://{NAME}", HTTPS_PROXY=f"127.0.0.1:{unused_port()}")
    assert "cannot be reached" in offline(sidecar)


def test_no_proxy_is_respected(spawn: Spawner) -> None:
    nowhere = f"http://127.0.0.1:{unused_port()}"
    with in_thread(host="127.0.0.2") as fake:
        assert "cannot be reached" in offline(start(spawn, fake.url, HTTP_PROXY=nowhere))
        for exempt in ("127.0.0.2", "*", f"other.test, 127.0.0.2:{fake.port}"):
            sidecar = start(spawn, fake.url, HTTP_PROXY=nowhere, NO_PROXY=exempt)
            assert ask(sidecar)["reason"] == "end_turn", exempt


def test_this_machine_is_reached_without_a_proxy(fake: FakeProvider, spawn: Spawner) -> None:
    nowhere = f"http://127.0.0.1:{unused_port()}"
    for host in ("127.0.0.1", "localhost"):
        sidecar = start(spawn, f"http://{host}:{fake.port}", HTTP_PROXY=nowhere, ALL_PROXY=nowhere)
        assert ask(sidecar)["reason"] == "end_turn"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "address", ["socks5://127.0.0.1:1080", "socks5h://127.0.0.1:1080", "https://127.0.0.1:1"]
)
def test_a_proxy_of_another_kind_is_refused_in_clear_words(address: str, spawn: Spawner) -> None:
    message = offline(start(spawn, f"https://{NAME}", ALL_PROXY=address))
    assert message == f"openai: the proxy {address.rpartition(':')[0]} is of a kind that is not supported"


def test_a_password_of_a_proxy_is_in_no_error(spawn: Spawner) -> None:
    nowhere = f"http://me:planted-secret@127.0.0.1:{unused_port()}"
    sidecar = start(spawn, f"https://{NAME}", HTTPS_PROXY=nowhere)
    assert "planted-secret" not in offline(sidecar)
    sidecar = start(spawn, f"https://{NAME}", HTTPS_PROXY=nowhere.replace("http:", "socks5:"))
    assert "planted-secret" not in offline(sidecar)
    assert "planted-secret" not in str(sidecar.log_lines())


def test_a_connection_that_was_closed_while_it_idled_is_no_error(fake: FakeProvider, spawn: Spawner) -> None:
    front = Front(fake.port)
    with listening(front.handle) as there:
        sidecar = start(spawn, f"http://127.0.0.1:{there.port}")
        for _ in range(3):
            assert ask(sidecar)["reason"] == "end_turn"
            there.call(front.drop)
        session = sidecar.call("chat/open", chatId="c")["sessionId"]

    assert sidecar.events(session, "error") == []
    assert front.connections == 3


def test_a_connection_that_was_opened_ahead_and_closed_is_no_error(
    fake: FakeProvider, spawn: Spawner
) -> None:
    """Opening a chat makes a connection; the user may think for longer than the server waits."""
    front = Front(fake.port)
    with listening(front.handle) as there:
        sidecar = start(spawn, f"http://127.0.0.1:{there.port}")
        session = sidecar.call("chat/open", chatId="c")["sessionId"]
        while front.connections == 0:
            sidecar.call("ping")
        there.call(front.drop)
        assert ask(sidecar)["reason"] == "end_turn"

    assert sidecar.events(session, "error") == []


def test_a_name_that_does_not_exist_is_told(spawn: Spawner) -> None:
    assert offline(start(spawn, "http://localhost.invalid")) in (
        "openai: the name localhost.invalid cannot be resolved",
        "openai: localhost.invalid does not answer",
    )


def test_a_server_on_ipv6_answers(spawn: Spawner) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 here")
    with in_thread(host="::1") as fake:
        sidecar = start(spawn, fake.url)
        assert ask(sidecar)["reason"] == "end_turn"
        assert fake.requests[0].headers["host"] == f"[::1]:{fake.port}"
