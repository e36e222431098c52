"""Lists of rules and tools: what may stand in them, whose rules hold, and that no project takes any away."""

from __future__ import annotations

import pytest

from sidecar.settings import SettingsError, load, read_scope, write_settings

from .conftest import Places

USER = """\
[permissions]
allow = ["run(git log *)", "edit(src/**)"]
deny = ["read(.env)"]
"""

PROJECT = """\
[permissions]
allow = ["*"]
ask = ["fetch(example.com)"]
deny = ["run(rm *)"]
"""

RULES = 'a list of rules, such as ["run(git log *)", "edit(src/**)"]'


def message(places: Places, text: str) -> str:
    places.put(places.user, text)
    with pytest.raises(SettingsError) as caught:
        load(environ={})
    return str(caught.value).removeprefix(str(places.user))


def test_the_rules_of_all_files_hold_each_with_its_scope(places: Places) -> None:
    places.put(places.user, USER)
    places.put(places.project_file, PROJECT)
    named = str(places.put(places.other, 'permissions.deny = ["mcp(github/*)"]'))

    settings = load(config_file=named, project=str(places.project), environ={}, trusted=True)

    assert settings.permission_rules() == (
        ("user", "allow", "run(git log *)", str(places.user)),
        ("user", "allow", "edit(src/**)", str(places.user)),
        ("user", "deny", "read(.env)", str(places.user)),
        ("user", "deny", "mcp(github/*)", named),
        ("project", "allow", "*", str(places.project_file)),
        ("project", "ask", "fetch(example.com)", str(places.project_file)),
        ("project", "deny", "run(rm *)", str(places.project_file)),
    )


def test_an_untrusted_project_stops_but_allows_nothing(places: Places) -> None:
    places.put(places.user, USER)
    places.put(places.project_file, PROJECT)

    settings = load(project=str(places.project), environ={})

    assert [(scope, effect) for scope, effect, _, _ in settings.permission_rules()] == [
        ("user", "allow"),
        ("user", "allow"),
        ("user", "deny"),
        ("project", "ask"),
        ("project", "deny"),
    ]
    assert settings.permissions.allow == ("run(git log *)", "edit(src/**)")
    assert settings.warnings == (
        f"{places.project_file}: `permissions.allow` is ignored until the project is trusted (`project/trust`)",
    )


@pytest.mark.parametrize("emptied", ["permissions.deny = []", "permissions.ask = []"])
def test_a_project_takes_no_rule_away(places: Places, emptied: str) -> None:
    places.put(places.user, 'permissions = {ask = ["run(make)"], deny = ["read(.env)"]}')
    places.put(places.project_file, emptied)

    settings = load(project=str(places.project), environ={}, trusted=True)

    assert [text for _, _, text, _ in settings.permission_rules()] == ["run(make)", "read(.env)"]


def test_what_is_shown_are_the_rules_of_all_files(places: Places) -> None:
    places.put(places.user, USER)
    places.put(places.project_file, PROJECT)

    shown = load(project=str(places.project), environ={}).values_and_layers()

    assert shown["permissions.deny"] == (("read(.env)", "run(rm *)"), "project")
    assert shown["permissions.allow"] == (("run(git log *)", "edit(src/**)"), "user")


def test_a_project_denies_tools_and_allows_them_once_it_is_trusted(places: Places) -> None:
    places.put(places.user, 'tools = {allow = ["read_file"], deny = ["grep"]}')
    places.put(places.project_file, 'tools = {allow = ["run_command"], deny = ["glob"]}')

    before, after = (
        load(project=str(places.project), environ={}, trusted=trusted).tools for trusted in (False, True)
    )

    assert (before.allow, before.deny) == (("read_file",), ("grep", "glob"))
    assert (after.allow, after.deny) == (("run_command",), ("grep", "glob"))


@pytest.mark.parametrize("loosened", ['sandbox = "off"', "session.max_seconds = 0", "session.max_tokens = 0"])
def test_an_untrusted_project_lifts_no_limit(places: Places, loosened: str) -> None:
    places.put(places.user, 'sandbox = "require"\nsession = {max_seconds = 60, max_tokens = 1000}')
    places.put(places.project_file, loosened)

    settings = load(project=str(places.project), environ={})

    found = (settings.sandbox, settings.session.max_seconds, settings.session.max_tokens)
    assert found == ("require", 60.0, 1000)
    assert len(settings.warnings) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('deny = "read(.env)"', f'`permissions.deny`: expected {RULES}, found "read(.env)"'),
        ('deny = ["read"]', f'`permissions.deny`: expected {RULES}, found "read" in it'),
        (
            'deny = ["read(a)", "read(a"]',
            f'`permissions.deny`: expected {RULES}, found "read(a" in it',
        ),
        ('deny = ["read( )"]', f'`permissions.deny`: expected {RULES}, found "read( )" in it'),
        ('deny = ["(a)"]', f'`permissions.deny`: expected {RULES}, found "(a)" in it'),
        ('deny = ["Read(a)"]', f'`permissions.deny`: expected {RULES}, found "Read(a)" in it'),
        ("deny = [1]", f"`permissions.deny`: expected {RULES}, found 1 in it"),
        ('deny = [["read(a)"]]', f"`permissions.deny`: expected {RULES}, found a list in it"),
        ("deny = {read = 'a'}", f"`permissions.deny`: expected {RULES}, found a table"),
        (
            "denied = []",
            "`permissions.denied`: there is no such setting. docs/configuration.md lists the keys",
        ),
        ("expiry = -1", "`permissions.expiry`: expected a number of seconds from 0 to 86400, found -1"),
    ],
)
def test_what_is_no_list_of_rules_is_told_with_its_place(places: Places, line: str, said: str) -> None:
    assert message(places, f"[permissions]\n{line}") == f", line 2: {said}"


def test_a_list_over_the_bound_is_refused(places: Places) -> None:
    names = ", ".join(f'"tool{number}"' for number in range(1001))

    assert message(places, f"tools.deny = [{names}]").endswith("found a list")


def test_no_variable_and_no_option_sets_a_list_by_text(places: Places) -> None:
    with pytest.raises(SettingsError, match=r"`permissions\.allow`: command line: expected a list of rules"):
        load(environ={}, command_line={"permissions.allow": "*"})


def test_a_list_is_written_over_and_reads_back(places: Places) -> None:
    places.put(places.user, "# mine\n" + USER + "# last\n")

    write_settings(
        "user", None, {"permissions.allow": ["run(git log *)", 'run(echo "]")'], "permissions.deny": None}
    )

    assert read_scope("user").values == {"permissions.allow": ["run(git log *)", 'run(echo "]")']}
    text = places.user.read_text()
    assert text.startswith("# mine\n[permissions]\n")
    assert text.endswith("# last\n")


@pytest.mark.parametrize("value", [["run"], "run(git *)", ["run(\ud800)"], ["run(a\0b)"], [None]])
def test_a_bad_list_is_not_written(places: Places, value: object) -> None:
    places.put(places.user, USER)

    with pytest.raises(SettingsError, match=r"`permissions\.allow`: expected a list of rules"):
        write_settings("user", None, {"permissions.allow": value})

    assert places.user.read_text() == USER
