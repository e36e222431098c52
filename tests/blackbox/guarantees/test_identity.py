"""Section 2: which session a chat has, for every client the same."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from tests.support.identity import session_id
from tests.support.sidecar import Sidecar
from tests.support.spawner import Spawner

VECTORS = {
    "tab-7": "sc-tab-7-bf133f99bd6e5d06",
    "a/b": "sc-a-b-f170465bd977e3c9",
    "a b": "sc-a-b-bf165c9aaf7dbb27",
    "чат": "sc-chat-4c8a1b195ce61390",
}
OTHERS = [
    "x" * 512,
    "ж" * 256,
    "A--B",
    "-",
    "\u0000",
    "a\nb",
    "." * 41,
    f"{'a' * 39}-b",
    "İstanbul",
    "👩‍👩‍👧",
    " ",
]


def test_the_vectors_of_the_contract_hold(sidecar: Sidecar) -> None:
    assert {chat: sidecar.call("chat/open", chatId=chat)["sessionId"] for chat in VECTORS} == VECTORS


def test_any_client_can_compute_the_session_id(sidecar: Sidecar) -> None:
    opened = {chat: sidecar.call("chat/open", chatId=chat)["sessionId"] for chat in OTHERS}
    assert opened == {chat: session_id(chat) for chat in OTHERS}


def test_ids_equal_after_normalisation_are_one_chat(sidecar: Sidecar) -> None:
    composed, decomposed = "caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")
    first = sidecar.call("chat/open", chatId=composed)
    second = sidecar.call("chat/open", chatId=decomposed)
    assert (second["sessionId"], second["status"]) == (first["sessionId"], "attached")


def test_an_id_outside_of_1_to_512_bytes_is_refused_by_name(sidecar: Sidecar) -> None:
    for chat in ("", "x" * 513, "ж" * 257):
        refusal = sidecar.refused("chat/open", chatId=chat)
        assert refusal.code == -32602
        assert "chatId" in str(refusal)


def test_the_three_kinds_of_key_never_collide(sidecar: Sidecar, tmp_path: Path) -> None:
    path = str(tmp_path.resolve())
    opened = [
        sidecar.call("chat/open"),
        sidecar.call("chat/open", chatId="default"),
        sidecar.call("chat/open", projectPath=path),
        sidecar.call("chat/open", chatId=path),
    ]
    assert [(o["sessionId"], o["chatId"], o["key"]) for o in opened] == [
        (session_id("default", "default"), None, {"kind": "default", "value": "default"}),
        (session_id("default"), "default", {"kind": "chat", "value": "default"}),
        (session_id(path, "project"), None, {"kind": "project", "value": path}),
        (session_id(path), path, {"kind": "chat", "value": path}),
    ]


def test_a_project_is_known_by_its_real_path(sidecar: Sidecar, tmp_path: Path) -> None:
    project, link = tmp_path / "project", tmp_path / "link"
    project.mkdir()
    link.symlink_to(project)
    opened = [sidecar.call("chat/open", projectPath=str(path)) for path in (project, link, f"{link}/")]
    assert {o["sessionId"] for o in opened} == {session_id(str(project.resolve()), "project")}


def test_beside_a_chat_id_the_project_is_only_the_workspace(sidecar: Sidecar, tmp_path: Path) -> None:
    opened = sidecar.call("chat/open", chatId="tab-7", projectPath=str(tmp_path))
    assert (opened["sessionId"], opened["projectPath"]) == (VECTORS["tab-7"], str(tmp_path.resolve()))


def test_a_namespace_keeps_equal_ids_apart(sidecar: Sidecar) -> None:
    first = sidecar.call("chat/open", chatId="tab-7")
    second = sidecar.call("chat/open", chatId="tab-7", namespace="work")
    assert (first["sessionId"], second["sessionId"]) == (
        VECTORS["tab-7"],
        session_id("tab-7", namespace="work"),
    )
    assert second["status"] == "created"


def test_the_session_id_alone_names_a_chat(sidecar: Sidecar) -> None:
    sidecar.call("chat/open", chatId="tab-7", namespace="work")
    attached = sidecar.call("chat/open", sessionId=session_id("tab-7", namespace="work"))
    assert (attached["status"], attached["chatId"]) == ("attached", "tab-7")


def test_a_session_id_cannot_create_a_chat(sidecar: Sidecar) -> None:
    assert sidecar.refused("chat/open", sessionId=session_id("never made")).code == -32002


def test_the_command_line_stands_in_for_an_omitted_chat_id(spawn: Spawner) -> None:
    sidecar = spawn("--chat-id", "tab-7")
    assert sidecar.call("chat/open")["sessionId"] == VECTORS["tab-7"]
    assert sidecar.call("chat/open", chatId="a b")["sessionId"] == VECTORS["a b"]


def test_the_environment_stands_in_for_an_omitted_chat_id(spawn: Spawner) -> None:
    sidecar = spawn(env={"SIDECAR_CHAT_ID": "tab-7"})
    assert sidecar.run("hello")["sessionId"] == VECTORS["tab-7"]
