"""Files with instruction rules are found where they lie, read within bounds, and never beyond the project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.model.failures import Refused
from sidecar.policy.instructions import Instruction, read_rules
from sidecar.policy.instructions.cache import MAX_DEPTH, MAX_FILE_BYTES, MAX_FILES, MAX_RULE_FOLDERS
from sidecar.policy.instructions.imports import MAX_IMPORTS
from sidecar.workspace.paths import ConfinedPath, FolderEntry, Workspace
from tests.unit.policy.instructions import lay_out, one_rule, problems, rules_of

SOURCES = {
    ".cursor/rules/ui/buttons.mdc": "---\nglobs: *.tsx\n---\nRound buttons.",
    ".cursor/rules/words.md": "Plain words.",
    ".cursorrules": "Old rules.",
    ".github/copilot-instructions.md": "Be brief.",
    ".sidecar/rules/a/b/c/deep.md": "---\npriority: 3\n---\nDeep.",
    ".sidecar/rules/flat.json": '{"instruction": "From JSON."}',
    ".sidecar/rules/tree.yaml": "instruction: |\n  From YAML.\nwords: [tree]\n",
    ".sidecar/rules/twig.yml": "instruction: From yml.\n",
    "AGENTS.md": "For agents.",
    "CLAUDE.md": "For one.",
    "GEMINI.md": "For another.",
}


def texts(rules: list[Instruction]) -> dict[str, str]:
    return {rule.path: rule.text for rule in rules}


def test_every_source_of_a_project_is_read_in_the_order_of_its_path(tmp_path: Path) -> None:
    rules = rules_of(lay_out(tmp_path, dict(SOURCES)))
    assert [(rule.path, rule.text) for rule in rules] == [
        (".cursor/rules/ui/buttons.mdc", "Round buttons."),
        (".cursor/rules/words.md", "Plain words."),
        (".cursorrules", "Old rules."),
        (".github/copilot-instructions.md", "Be brief."),
        (".sidecar/rules/a/b/c/deep.md", "Deep."),
        (".sidecar/rules/flat.json", "From JSON."),
        (".sidecar/rules/tree.yaml", "From YAML."),
        (".sidecar/rules/twig.yml", "From yml."),
        ("AGENTS.md", "For agents."),
        ("CLAUDE.md", "For one."),
        ("GEMINI.md", "For another."),
    ]
    assert {rule.scope for rule in rules} == {"project"}
    assert problems(rules) == {}


def test_what_is_no_rule_is_not_read(tmp_path: Path) -> None:
    files = {
        ".sidecar/rules/notes.txt": "x",
        ".sidecar/rules/.hidden.md": "x",
        "agents.txt": "x",
        "docs/x.md": "x",
    }
    assert rules_of(lay_out(tmp_path, dict(files))) == []


def test_the_users_rules_follow_the_projects(tmp_path: Path) -> None:
    project = lay_out(tmp_path / "project", {"AGENTS.md": "Ours."})
    user = lay_out(tmp_path / "rules", {"a/mine.md": "Mine.", "also.json": '{"instruction": "Too."}'})
    rules = read_rules(Workspace(str(project)), str(user))
    assert [(rule.path, rule.name, rule.scope) for rule in rules] == [
        ("AGENTS.md", "AGENTS.md", "project"),
        (f"{user}/a/mine.md", "mine", "user"),
        (f"{user}/also.json", "also", "user"),
    ]


def test_without_a_project_or_a_folder_of_the_user_there_are_no_rules(tmp_path: Path) -> None:
    assert read_rules(None, None) == read_rules(None, str(tmp_path / "absent")) == []


def test_nested_files_are_found_above_the_paths_in_play_alone(tmp_path: Path) -> None:
    files = {
        "AGENTS.md": "top",
        "web/AGENTS.md": "web",
        "web/ui/CLAUDE.md": "ui",
        "web/ui/.sidecar/rules/x.md": "ui rule",
        "web/.cursor/rules/y.mdc": "web rule",
        "server/AGENTS.md": "server",
    }
    rules = rules_of(lay_out(tmp_path, dict(files)), "web/ui/button.tsx", "../../etc/passwd", "\0")
    assert [(rule.path, rule.folder) for rule in rules] == [
        ("AGENTS.md", ""),
        ("web/.cursor/rules/y.mdc", "web"),
        ("web/AGENTS.md", "web"),
        ("web/ui/.sidecar/rules/x.md", "web/ui"),
        ("web/ui/CLAUDE.md", "web/ui"),
    ]


def test_a_path_in_play_may_be_a_folder_or_absolute_or_not_there_yet(tmp_path: Path) -> None:
    lay_out(tmp_path, {"web/AGENTS.md": "web"})
    for path in ("web", "web/", f"{tmp_path}/web/new.ts", "web/new/file.ts"):
        assert texts(rules_of(tmp_path, path)) == {"web/AGENTS.md": "web"}


def test_one_bad_file_is_named_and_the_others_hold(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "AGENTS.md": "Good.",
        "CLAUDE.md": b"\0\1\2",
        ".sidecar/rules/bad.json": "{",
        ".sidecar/rules/good.md": "Fine.",
        ".sidecar/rules/huge.md": "x" * (MAX_FILE_BYTES + 1),
    }
    rules = rules_of(lay_out(tmp_path, files))
    assert texts([rule for rule in rules if not rule.problem]) == {
        ".sidecar/rules/good.md": "Fine.",
        "AGENTS.md": "Good.",
    }
    assert problems(rules) == {
        ".sidecar/rules/bad.json": "it is not JSON: Input data was truncated",
        ".sidecar/rules/huge.md": (
            f"the file has {MAX_FILE_BYTES + 1} bytes, more than the {MAX_FILE_BYTES} that may be read"
        ),
        "CLAUDE.md": "it is not a text file",
    }
    assert {rule.path: rule.problem_code for rule in rules if rule.problem} == {
        ".sidecar/rules/bad.json": "malformed",
        ".sidecar/rules/huge.md": "unreadable",
        "CLAUDE.md": "unreadable",
    }


def test_a_file_of_the_greatest_size_is_read(tmp_path: Path) -> None:
    assert one_rule(tmp_path, "AGENTS.md", "x" * MAX_FILE_BYTES).text == "x" * MAX_FILE_BYTES


def test_no_link_leads_out_of_the_project(tmp_path: Path) -> None:
    outside = lay_out(tmp_path / "outside", {"secret.md": "secret", "rules/r.md": "secret"})
    project = lay_out(tmp_path / "project", {".sidecar/rules/x/keep.md": "kept", ".cursor/a": ""})
    (project / "AGENTS.md").symlink_to(outside / "secret.md")
    (project / ".sidecar/rules/out.md").symlink_to("../../../outside/secret.md")
    (project / ".sidecar/rules/folder").symlink_to(outside / "rules")
    (project / ".cursor/rules").symlink_to(outside / "rules")
    rules = rules_of(project)
    out = "a link in the path leads out of the project, or is absolute"
    assert problems(rules) == {
        ".cursor/rules": out,
        ".sidecar/rules/out.md": out,
        "AGENTS.md": out,
    }
    assert [rule.text for rule in rules if rule.text] == ["kept"]


def test_a_link_within_the_project_is_followed(tmp_path: Path) -> None:
    lay_out(tmp_path, {"AGENTS.md": "Shared.", ".sidecar/rules/a.md": "x"})
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    (tmp_path / ".sidecar/rules/gone.md").symlink_to("nowhere.md")
    rules = rules_of(tmp_path)
    assert texts(rules)["CLAUDE.md"] == "Shared."
    assert problems(rules) == {".sidecar/rules/gone.md": "the link leads to nothing"}


def test_a_link_to_a_file_with_keys_is_refused(tmp_path: Path) -> None:
    lay_out(tmp_path, {".env": "KEY=1", "b/.keep": ""})
    (tmp_path / "AGENTS.md").symlink_to(".env")
    (rule,) = rules_of(tmp_path)
    assert (rule.text, rule.problem) == (
        "",
        "by its name it holds keys or passwords, which are not sent unasked",
    )


def test_pipes_and_folders_in_the_place_of_a_file_are_named(tmp_path: Path) -> None:
    lay_out(tmp_path, {".sidecar/rules/a.md": "x", "CLAUDE.md/inside": ""})
    os.mkfifo(tmp_path / ".sidecar/rules/pipe.md")
    assert problems(rules_of(tmp_path)) == {
        ".sidecar/rules/pipe.md": "the path is a device, a pipe or a socket, not a file",
        "CLAUDE.md": "the path is a folder, not a file",
    }
    assert problems(read_rules(None, str(tmp_path / ".sidecar/rules"))) == {
        f"{tmp_path}/.sidecar/rules/pipe.md": "it is not a regular file"
    }


def test_a_name_that_is_not_utf_8_is_named_in_text_that_travels(tmp_path: Path) -> None:
    lay_out(tmp_path, {".sidecar/rules/a.md": "x"})
    try:
        (tmp_path / ".sidecar/rules" / os.fsdecode(b"\xff.md")).write_text("x")
    except OSError:
        pytest.skip("the file system takes UTF-8 names alone")
    assert problems(rules_of(tmp_path)) == {".sidecar/rules/\\udcff.md": "its name is not UTF-8: rename it"}


def test_the_first_file_too_many_is_named(tmp_path: Path) -> None:
    lay_out(tmp_path, {f".sidecar/rules/{number:04}.md": "x" for number in range(MAX_FILES + 5)})
    for rules in (rules_of(tmp_path, "src/a.py"), read_rules(None, str(tmp_path / ".sidecar/rules"))):
        assert len(rules) == MAX_FILES + 1
        words = f"{MAX_FILES} files with rules are read: this one and those after it are not"
        assert list(problems(rules).values()) == [words]
        assert rules[-1].path.endswith(f"{MAX_FILES:04}.md")


def test_rules_lie_only_so_deep(tmp_path: Path) -> None:
    deep = "/".join(["d"] * MAX_DEPTH)
    lay_out(tmp_path, {f".sidecar/rules/{deep}/in.md": "in", f".sidecar/rules/{deep}/d/out.md": "out"})
    for top in ("", f"{tmp_path}/"):
        rules = rules_of(tmp_path) if not top else read_rules(None, f"{tmp_path}/.sidecar/rules")
        assert [rule.text for rule in rules if rule.text] == ["in"]
        assert problems(rules) == {
            f"{top}.sidecar/rules/{deep}/d": f"rules lie at most {MAX_DEPTH} folders deep"
        }


def test_only_so_many_folders_are_looked_into(tmp_path: Path) -> None:
    for number in range(MAX_RULE_FOLDERS + 5):
        (tmp_path / f".sidecar/rules/{number:04}").mkdir(parents=True)
    (rule,) = rules_of(tmp_path)
    assert rule.problem == f"only {MAX_RULE_FOLDERS} folders of rules are read: this one is not"


def test_imports_take_the_place_of_their_line_once(tmp_path: Path) -> None:
    files = {
        "AGENTS.md": "Before.\n@docs/style.md\nAfter, see @docs/style.md inline.\n@docs/style.md",
        "docs/style.md": "Style.\n@docs/more.md\n",
        "docs/more.md": "Never.",
    }
    (rule,) = rules_of(lay_out(tmp_path, dict(files)))
    assert rule.text == "Before.\nStyle.\n@docs/more.md\nAfter, see @docs/style.md inline."
    assert rule.notes == ()


def test_lines_in_code_and_names_of_people_are_no_imports(tmp_path: Path) -> None:
    text = "```python\n@app.route\n~~~\n@docs/style.md\n```\n@someone\n@dataclass"
    lay_out(tmp_path, {"docs/style.md": "Style."})
    rule = one_rule(tmp_path, "CLAUDE.md", text)
    assert (rule.text, rule.notes) == (text, ())


def test_an_import_that_cannot_be_stays_as_it_is_written_and_is_noted(tmp_path: Path) -> None:
    lay_out(tmp_path / "outside", {"x.md": "secret"})
    project = tmp_path / "project"
    lay_out(project, {".env": "KEY=1", "big.md": "x" * (MAX_FILE_BYTES + 1), "bytes.md": b"\0"})
    (project / "link.md").symlink_to("../outside/x.md")
    (project / "quiet.md").symlink_to(".env")
    names = [
        "../outside/x.md",
        "/etc/passwd",
        "link.md",
        "gone.md",
        ".env",
        "quiet.md",
        "big.md",
        "bytes.md",
        "./.git/..",
    ]
    text = "\n".join(f"@{name}" for name in names)
    rule = one_rule(project, "CLAUDE.md", text)
    assert rule.text == text
    assert [note.split(" was not imported: ")[0] for note in rule.notes] == [f"@{name}" for name in names]
    assert "there is no such file" in rule.notes[3]
    assert rule.problem is None


def test_imports_begin_at_the_folder_of_their_file(tmp_path: Path) -> None:
    lay_out(
        tmp_path, {"web/AGENTS.md": "@style.md\n@../shared.md", "web/style.md": "web", "shared.md": "shared"}
    )
    (rule,) = rules_of(tmp_path, "web/x")
    assert rule.text == "web\nshared"


def test_imports_are_bounded_in_number_and_in_size(tmp_path: Path) -> None:
    names = [f"p/{number}.md" for number in range(MAX_IMPORTS + 1)]
    lay_out(tmp_path, dict.fromkeys(names, "x"))
    rule = one_rule(tmp_path, "AGENTS.md", "\n".join(f"@{name}" for name in names))
    assert rule.text.count("x") == MAX_IMPORTS
    assert rule.notes == (f"@{names[-1]} was not imported: {MAX_IMPORTS} imports of one file are the most",)
    lay_out(tmp_path, {"p/0.md": "y" * (MAX_FILE_BYTES - 1), "p/1.md": "zz", "p/2.md": "z"})
    (rule,) = rules_of(lay_out(tmp_path, {"AGENTS.md": "@p/0.md\n@p/1.md\n@p/2.md"}))
    assert (rule.text.count("y"), rule.text.count("z"), len(rule.notes)) == (MAX_FILE_BYTES - 1, 1, 1)


def test_an_import_of_what_is_sent_anyway_adds_nothing(tmp_path: Path) -> None:
    files = {
        "AGENTS.md": "Shared.",
        "CLAUDE.md": "@AGENTS.md\nMine.",
        "web/CLAUDE.md": "@../AGENTS.md\nWeb.",
        "GEMINI.md": "@web/CLAUDE.md",
    }
    found = texts(rules_of(lay_out(tmp_path, dict(files)), "web/x"))
    # The last one is not sent with every prompt that GEMINI.md is sent with.
    assert found == {
        "AGENTS.md": "Shared.",
        "CLAUDE.md": "Mine.",
        "GEMINI.md": "@../AGENTS.md\nWeb.",
        "web/CLAUDE.md": "Web.",
    }


def test_other_files_have_no_imports(tmp_path: Path) -> None:
    lay_out(tmp_path, {"docs/style.md": "Style."})
    assert one_rule(tmp_path, ".sidecar/rules/a.md", "@docs/style.md").text == "@docs/style.md"


def test_the_hash_tells_a_change_of_the_file_or_of_its_imports(tmp_path: Path) -> None:
    def read_hash(files: dict[str, str | bytes]) -> str:
        (rule,) = rules_of(lay_out(tmp_path, files))
        return rule.hash

    first = read_hash({"AGENTS.md": "@a.md", "a.md": "one"})
    assert read_hash({}) == first
    second = read_hash({"a.md": "two"})
    assert len({first, second, read_hash({"AGENTS.md": "@a.md\n"})}) == 3


def test_what_is_read_twice_is_the_same(tmp_path: Path) -> None:
    lay_out(tmp_path, dict(SOURCES))
    assert rules_of(tmp_path, "a/b.py") == rules_of(tmp_path, "a/b.py")


class Watched(Workspace):
    """Knows which folders were listed."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.listed: list[str] = []

    def list_dir(self, path: str) -> list[FolderEntry]:
        self.listed.append(path)
        return super().list_dir(path)

    def walk(self, path: str = ".") -> Iterator[tuple[ConfinedPath, list[FolderEntry]]]:
        for place, entries in super().walk(path):
            self.listed.append(place.shown)
            yield place, entries


def test_no_folder_is_listed_but_those_of_rules(tmp_path: Path) -> None:
    lay_out(tmp_path, {**SOURCES, **{f"src/{number}/file.py": "" for number in range(50)}})
    workspace = Watched(str(tmp_path))
    read_rules(workspace, None, [f"src/{number}/file.py" for number in range(50)])
    assert sorted(workspace.listed) == [
        ".cursor/rules",
        ".cursor/rules/ui",
        ".sidecar/rules",
        ".sidecar/rules/a",
        ".sidecar/rules/a/b",
        ".sidecar/rules/a/b/c",
    ]


def test_a_project_that_is_gone_has_no_rules(tmp_path: Path) -> None:
    project = lay_out(tmp_path / "project", {"AGENTS.md": "x"})
    workspace = Workspace(str(project))
    project.rename(tmp_path / "moved")
    assert read_rules(workspace, None) == []
    with pytest.raises(Refused):
        Workspace(str(project))
