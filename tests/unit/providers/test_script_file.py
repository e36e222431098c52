from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.model.failures import ProviderFailed
from sidecar.providers import script_file
from sidecar.providers.scripted import ScriptedProvider

from .conftest import text


def complaint(path: Path, content: str | bytes) -> str:
    """What loading says of a file with this content, after its name."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ProviderFailed) as caught:
        script_file.load(str(path))
    assert (caught.value.reason, caught.value.hint) == ("bad_reply", "docs/scripted.md describes the format")
    return caught.value.message.removeprefix(str(path))


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"txet": "a"}, ": there is no field `txet`; did you mean `text`?"),
        ({"zzz": 1}, ": there is no field `zzz`"),
        ({"text": 3}, ".text`: Expected `str | null`, got `int`"),
        ({"text": "a", "chunk": 0}, ".chunk`: Expected `int` >= 1"),
        (
            {"text": "a", "chunk": "line"},
            '.chunk`: Invalid enum value \'line\'; allowed: one of "char", "word" or an integer or null',
        ),
        ({"delayMs": -1}, ".delayMs`: Expected `int` >= 0"),
        ({"toolCall": {}}, ".toolCall`: Object missing required field `name`"),
        ({"toolCall": {"name": "a", "input": []}}, ".toolCall.input`: Expected `object`, got `array`"),
        ({"toolCalls": []}, ".toolCalls`: Expected `array` of length >= 1"),
        (
            {"error": {"reason": "tired"}},
            ".error.reason`: Invalid enum value 'tired'; allowed: one of "
            '"bad_key", "bad_reply", "model_unknown", "no_key", "offline", "overloaded", "quota", '
            '"rate_limit", "refused", "stream_cut", "timeout", "window"',
        ),
        (
            {"stop": "tool_calls"},
            '.stop`: Invalid enum value \'tool_calls\'; allowed: one of "end_turn", "max_tokens", "refusal" or null',
        ),
        ({"repeat": 2, "steps": []}, ".steps`: Expected `array` of length >= 1"),
        ({"repeat": 2, "steps": [{"text": 1}]}, ".steps[0].text`: Expected `str | null`, got `int`"),
        (
            {},
            ": Expected one of text, thought, toolCall, toolCalls, error, hang, usage, stop, repeat, delayMs",
        ),
        ({"text": "a", "stop": "end_turn"}, ": A step is one thing, not both `text` and `stop`"),
        ({"stop": "end_turn", "chunk": 3}, ": `chunk` belongs to `text` or `thought`"),
        ({"hang": True, "delayMs": 3}, ": `delayMs` belongs to `text` or `thought`, or is a step of its own"),
        ({"hang": False}, ": `hang` is true or left out"),
        ({"repeat": 2}, ": `repeat` and `steps` belong together"),
        ({"text": "a", "steps": [{"text": "a"}]}, ": `repeat` and `steps` belong together"),
    ],
)
def test_a_bad_step_is_told_with_its_place(tmp_path: Path, step: dict[str, Any], said: str) -> None:
    script = {"replies": [{"steps": []}, {"steps": [{"text": "fine"}, step]}]}
    place = ": `replies[1].steps[1]"

    expected = place + said if said.startswith(".") else f"{place}`{said}"
    assert complaint(tmp_path / "s.json", json.dumps(script)) == expected


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ({}, ": Object missing required field `replies`"),
        ({"replys": []}, ": there is no field `replys`; did you mean `replies`?"),
        ({"replies": [{}]}, ": `replies[0]`: Object missing required field `steps`"),
        ([{"steps": 1}], ": `replies[0].steps`: Expected `array`, got `int`"),
        (3, ": Expected `object`, got `int`"),
        (
            {"replies": [], "onExhausted": "stop"},
            ': `onExhausted`: Invalid enum value \'stop\'; allowed: one of "echo", "error", "repeat"',
        ),
        (
            {"replies": [{"match": "a", "regex": "b", "steps": []}]},
            ": `replies[0]`: Expected `match` or `regex`, not both",
        ),
        (
            {"replies": [{"regex": "(", "steps": []}]},
            ": `replies[0]`: `regex` is no regular expression: "
            "missing ), unterminated subpattern at position 0",
        ),
        (
            {"replies": [{"steps": [{"hang": True}, {"text": "a"}]}]},
            ": `replies[0]`: `steps[0]` ends the reply, so `steps[1]` would never play",
        ),
        ({"replies": [{"times": 0, "steps": []}]}, ": `replies[0].times`: Expected `int` >= 1"),
    ],
)
def test_a_bad_reply_is_told_with_its_place(tmp_path: Path, script: object, said: str) -> None:
    assert complaint(tmp_path / "s.json", json.dumps(script)) == said


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.json", '{"replies"\n: ]', ": is not valid JSON: Expecting value: line 2 column 3 (char 13)"),
        ("s.json", "", ": is not valid JSON: Expecting value: line 1 column 1 (char 0)"),
        ("s.json", '["\\ud800"]', ": is not valid JSON: "),
        ("s.json", "[NaN]", ": is not valid JSON: "),
        ("s.json", b'["\xff"]', ": is not valid JSON: "),
        ("s.json", "[" * 100_000, ": is not valid JSON: "),
        ("s.toml", "replies = ", ": is not valid TOML: Invalid value (at end of document)"),
        ("s.toml", b"\xff", ": is not valid TOML: "),
        (
            "s.json",
            b" " * (script_file.MAX_SCRIPT_BYTES + 1),
            ": is longer than 4194304 bytes; make long streams with",
        ),
    ],
)
def test_a_file_that_cannot_be_understood_is_told(
    tmp_path: Path, name: str, content: str | bytes, said: str
) -> None:
    assert complaint(tmp_path / name, content).startswith(said)


def test_a_missing_script_is_a_model_that_is_not_known(tmp_path: Path) -> None:
    path = str(tmp_path / "absent.json")
    with pytest.raises(ProviderFailed) as caught:
        script_file.load(path)

    failed = caught.value
    assert (failed.message, failed.reason) == (f"{path}: there is no such script", "model_unknown")
    assert (
        failed.hint == "Write scripted:PATH with a path from the sidecar's working folder, or an absolute one"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs in folders")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ProviderFailed, match="there is no such script"):
        script_file.load(str(tmp_path / "pipe"))


async def test_a_bad_script_can_be_mended(tmp_path: Path) -> None:
    provider = ScriptedProvider(str(tmp_path / "s.json"))
    complaint(tmp_path / "s.json", "[")
    with pytest.raises(ProviderFailed):
        await text(provider, "hi")
    (tmp_path / "s.json").write_text('[{"steps": [{"text": "ok"}]}]')

    assert await text(provider, "hi") == "ok"


async def test_a_path_is_seen_from_the_working_folder_or_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.json").write_text('\ufeff[{"steps": [{"text": "ok"}]}]', "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))

    assert [await text(ScriptedProvider(path), "hi") for path in ("s.json", "~/s.json")] == ["ok", "ok"]
