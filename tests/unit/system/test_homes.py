"""What a command in the sandbox sees of homes: toolchains, and none of the files that hold credentials."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.system.sandbox import SandboxView
from tests.support.patience import PATIENCE_S
from tests.unit.system.sandboxes import (
    ORDINARY,
    PATH,
    as_ordinary,
    folder_of,
    give,
    own_home,
    run_boxed,
    seen_folder,
)

CREDENTIALS = [
    ".ssh/id_ed25519", ".ssh/config", ".gnupg/private-keys-v1.d/k", ".aws/credentials", ".azure/tokens.json",
    ".kube/config", ".docker/config.json", ".netrc", ".git-credentials", ".pypirc", ".npmrc", ".pgpass",
    ".cargo/credentials.toml", ".cargo/credentials", ".gem/credentials", ".m2/settings.xml",
    ".gradle/gradle.properties", ".config/gh/hosts.yml", ".config/gcloud/access_tokens.db",
    ".config/hub", ".config/rclone/rclone.conf", ".config/some-new-tool/token.json", ".vault-token",
    ".terraform.d/credentials.tfrc.json", ".local/share/uv/credentials/c.toml", ".local/share/keyrings/login",
    ".cache/huggingface/token", ".claude.json", ".codex/auth.json", ".bash_history", ".mozilla/firefox/key4.db",
    ".nvm/.npmrc", ".local/share/pnpm/.npmrc", "sdk/.netrc", ".cargo/bin/.token", "miniconda3/.condarc",
    ".npm-global/etc/npmrc", ".pyenv/.env", ".m2/repository/settings.xml",
    "Documents/taxes.pdf", "other-project/.env", ".pub-cache/credentials.json", ".sbt/.credentials",
]  # fmt: skip
TOOLS = [
    ".cargo/bin/tool",
    ".pyenv/version",
    ".local/bin/tool",
    "go/pkg/mod/x",
    ".m2/repository/a.jar",
    ".nvm/nvm.sh",
]
CAT = f"cd ~; cat {' '.join(CREDENTIALS)} 2>/dev/null; cat {' '.join(TOOLS)}"


def plant(home: Path) -> None:
    for name in (*CREDENTIALS, *TOOLS):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("tool\n" if name in TOOLS else f"canary in {name}\n")


@pytest.fixture
def place() -> Iterator[Path]:
    with seen_folder() as folder:
        yield folder


@pytest.fixture
def home(place: Path) -> Path:
    plant(place / "home")
    return place / "home"


@pytest.fixture
def project(home: Path) -> Path:
    path = home / "work/project"
    path.mkdir(parents=True)
    return path


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": PATH, **more}


def test_toolchains_can_be_read_and_no_credentials(home: Path, project: Path) -> None:
    assert run_boxed(CAT, project, environ(home)) == "tool\n" * len(TOOLS)


def test_the_same_holds_for_an_ordinary_user() -> None:
    with folder_of(ORDINARY) as folder:
        plant(folder / "home")
        give(folder, ORDINARY)
        said = as_ordinary(lambda: run_boxed(CAT, folder / "project", environ(folder / "home")))
    assert said == "tool\n" * len(TOOLS)


def test_a_home_that_is_the_project_keeps_what_is_known_for_credentials(home: Path) -> None:
    known = [name for name in CREDENTIALS if "new-tool" not in name and name[0] == "."]
    said = run_boxed(f"cat {' '.join(known)} 2>/dev/null; cat Documents/taxes.pdf", home, environ(home))
    assert said == "canary in Documents/taxes.pdf\n"


def test_a_home_by_a_link_is_found(home: Path, project: Path, place: Path) -> None:
    (place / "link").symlink_to(home)
    assert run_boxed(CAT, project, environ(place / "link")) == "tool\n" * len(TOOLS)


def test_the_home_that_the_system_lists_is_emptied_too(project: Path, home: Path) -> None:
    mine = own_home()
    seen = run_boxed(f"ls -A {mine} | sort", project, environ(home)).split()
    assert set(seen) <= {
        ".cache",
        ".cargo",
        ".local",
        ".m2",
        ".npm",
        ".nvm",
        ".pyenv",
        ".rustup",
        ".gradle",
        "go",
    }


def test_what_is_written_to_the_home_is_gone(home: Path, project: Path) -> None:
    said = run_boxed("echo x > ~/new && cat ~/new; echo y >> ~/.pyenv/version", project, environ(home))
    assert said.startswith("x\n")
    assert not (home / "new").exists()
    assert (home / ".pyenv/version").read_text() == "tool\n"


@pytest.mark.parametrize(
    "variable",
    [
        "AWS_SHARED_CREDENTIALS_FILE",
        "KUBECONFIG",
        "GNUPGHOME",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "XDG_CONFIG_HOME",
    ],
)
def test_credentials_that_a_variable_names_are_hidden_in_the_project(
    home: Path, project: Path, variable: str
) -> None:
    (project / "elsewhere").mkdir()
    (project / "elsewhere/file").write_text("canary")
    folder = variable in ("GNUPGHOME", "XDG_CONFIG_HOME")
    named = project / ("elsewhere" if folder else "elsewhere/file")
    assert "canary" not in run_boxed("cat elsewhere/file", project, environ(home, **{variable: str(named)}))
    assert run_boxed("cat elsewhere/file", project, environ(home)) == "canary"


def test_files_of_the_machine_that_root_reads_are_hidden(home: Path, project: Path) -> None:
    assert Path("/etc/shadow").exists()
    said = run_boxed("cat /etc/shadow /etc/gshadow; ls -A /etc/ssl/private /etc/ssh", project, environ(home))
    assert [
        line for line in said.splitlines() if line and not line.endswith((":", "denied", "directory"))
    ] == []


def test_settings_show_more_of_the_home_but_never_all_of_it(home: Path, project: Path) -> None:
    view = SandboxView(readable=[str(home / "Documents"), str(home)])
    said = run_boxed(
        "cat ~/Documents/*; echo z > ~/Documents/z; ls ~/.ssh", project, environ(home), view=view
    )
    assert said.startswith("canary in Documents/taxes.pdf\n")
    assert (sorted(os.listdir(home / "Documents")), "id_ed25519" in said) == (["taxes.pdf"], False)


def test_a_project_beside_the_home_sees_no_more_of_it(home: Path, place: Path) -> None:
    (place / "project").mkdir()
    assert run_boxed(CAT, place / "project", environ(home)) == "tool\n" * len(TOOLS)


def test_other_projects_are_hidden_and_what_lies_around_is_not(place: Path, home: Path) -> None:
    writable = place / "shared"
    for name in ("project/inner", "other", "third"):
        (writable / name).mkdir(parents=True)
        (writable / name / "file").write_text(f"{name}\n")
    others = [str(writable / name) for name in ("other", "third", "project/inner", "missing")]
    others += ["/", "/usr", str(writable)]
    said = run_boxed(
        "cat ../other/file ../third/file 2>/dev/null; cat inner/file",
        writable / "project",
        environ(home),
        view=SandboxView(others=others),
    )
    assert said == "project/inner\n"


def test_a_tool_on_the_path_is_shown_with_its_libraries(home: Path, project: Path) -> None:
    for name in ("opt/tool-1/bin/run", "opt/tool-1/lib/data", "opt/secret"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(
            "#!/bin/sh\ncat ~/opt/tool-1/lib/data\n" if name.endswith("run") else "data\n"
        )
    (home / "opt/tool-1/bin/run").chmod(0o755)
    path = f"{home}/opt/tool-1/bin:{PATH}"
    assert run_boxed("run; ls ~/opt", project, environ(home, PATH=path)) == "data\ntool-1\n"


GITCONFIG = """
[user]
	name = A "quoted" name
	email = me@example.org
[github]
	token = canary
[url "https://me:canary@example.org/"]
	insteadOf = https://example.org/
[http]
	extraHeader = "Authorization: canary"
[credential]
	helper = "!echo canary"
[core]
	pager = canary
	autocrlf = input
	sshCommand = canary
[include]
	path = ~/secret.inc
"""


def test_git_knows_the_user_and_nothing_secret(home: Path, project: Path) -> None:
    (home / ".gitconfig").write_text(GITCONFIG)
    (home / "secret.inc").write_text("[user]\n\tsigningkey = canary\n")
    said = run_boxed(
        "git config --global --list | sort; cat ~/.gitconfig ~/secret.inc", project, environ(home)
    )
    assert said.splitlines()[:3] == [
        "core.autocrlf=input",
        "user.email=me@example.org",
        "user.name=A quoted name",
    ]
    assert "canary" not in said


def test_settings_of_cargo_are_shown_unless_they_hold_a_token(home: Path, project: Path) -> None:
    (home / ".cargo/config.toml").write_text('[build]\nrustflags = ["-g"]\n')
    assert "rustflags" in run_boxed("cat ~/.cargo/config.toml", project, environ(home))
    (home / ".cargo/config.toml").write_text('[registry]\ntoken = "canary"\n')
    assert "canary" not in run_boxed("cat ~/.cargo/config.toml", project, environ(home))


BUILDS = {
    "python3": ("t.py", "assert 1 + 1 == 2\nprint('fine')\n", "python3 t.py"),
    "node": ("t.js", "console.log('fine')\n", "node t.js"),
    "npm": ("package.json", '{"name":"x","scripts":{"test":"echo fine"}}', "npm test --silent"),
    "make": ("Makefile", "test:\n\t@echo fine > /tmp/x && cat /tmp/x\n", "make test"),
    "cargo": ("src/main.rs", 'fn main() { println!("fine"); }', "cargo run -q"),
    "pytest": (
        "test_x.py",
        "def test_x(tmp_path): print('fine')\n",
        f"{sys.executable} -m pytest -qs test_x.py",
    ),
}


def works_outside(command: str, folder: Path) -> bool:
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S
    )
    return "fine" in done.stdout


@pytest.mark.parametrize("tool", BUILDS)
def test_builds_work_with_the_toolchains_of_the_real_home(tmp_path: Path, tool: str) -> None:
    if shutil.which(tool) is None and tool != "pytest":
        pytest.skip(f"{tool} is not installed here")
    file, text, command = BUILDS[tool]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n')
    if tool == "cargo" and not works_outside(command, tmp_path):
        pytest.skip("cargo does not work here")
    assert "fine" in run_boxed(command, tmp_path, dict(os.environ))
