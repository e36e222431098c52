"""What chats get of the settings about tools and the window."""

from __future__ import annotations

import pytest

from sidecar.chat.services.project_settings import ProjectSettings
from sidecar.model.failures import Failure
from sidecar.policy.rules import Rule
from sidecar.server.settings_conversion import ProjectSettingsCache, project_settings
from sidecar.settings import load
from sidecar.settings.values import IndexSettings, settings_of
from sidecar.workspace.open_files import OpenFileLimits

from .conftest import Places

FULL = """\
open_files = {max_recent = 3, max_pinned = 0}
permissions = {allow = ["run(git log *)"], deny = ["read(.env)"]}
"""


def test_they_are_the_settings_with_the_rules_parsed(places: Places) -> None:
    places.put(places.user, FULL)
    settings = load(environ={})

    assert project_settings(settings) == ProjectSettings(
        settings,
        rules=(
            Rule("file-user-1", "user", "allow", "run", "git log *", source="file"),
            Rule("file-user-2", "user", "deny", "read", ".env", source="file"),
        ),
    )
    assert project_settings(settings).open_file_limits == OpenFileLimits(3, 0)


def test_groups_are_made_from_the_table(places: Places) -> None:
    made, read = settings_of({}), load(environ={})
    assert (made.session, made.context, made.hooks) == (read.session, read.context, read.hooks)
    assert settings_of({"index.enabled": False}).index == IndexSettings.of(enabled=False)


def test_rules_are_numbered_within_their_scope(places: Places) -> None:
    places.put(places.user, 'permissions = {allow = ["*"], deny = ["read(.env)"]}')
    places.put(places.project_file, 'permissions = {allow = ["*"], ask = ["run(make)"], deny = ["edit(a)"]}')
    settings = load(project=str(places.project), environ={}, trusted=True)

    assert [(rule.id, rule.scope, rule.effect) for rule in project_settings(settings).rules] == [
        ("file-user-1", "user", "allow"),
        ("file-user-2", "user", "deny"),
        ("file-project-1", "project", "allow"),
        ("file-project-2", "project", "ask"),
        ("file-project-3", "project", "deny"),
    ]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("write(src/**)", "'write(src/**)' is not a rule; write a kind"),
        ("edit(../other)", "must be relative to the project"),
        ("edit(src**)", "has ** within a name"),
        ("run(a; b)", "must be the plain words of one command"),
        ("fetch(ftp://x)", "must begin with http:// or https://"),
        ("mcp(a b)", "must be server/tool"),
    ],
)
def test_a_rule_that_is_not_understood_stops_everything_and_is_named(
    places: Places, rule: str, why: str
) -> None:
    places.put(places.user, f'permissions = {{allow = ["*"], deny = ["read(.env)", "{rule}"]}}')

    with pytest.raises(Failure) as caught:
        project_settings(load(environ={}))

    assert (caught.value.name, caught.value.action) == ("precondition_failed", "fix_settings")
    assert caught.value.message.startswith(f"{places.user}: `permissions.deny`: {rule!r} is not understood: ")
    assert why in caught.value.message


def test_they_are_made_anew_only_for_settings_that_were_read_anew(places: Places) -> None:
    kept, first, again = ProjectSettingsCache(), load(environ={}), load(environ={})

    made = kept.for_project(None, first)

    assert kept.for_project(None, first) is made
    assert kept.for_project("/project", first) is not made
    assert kept.for_project(None, again) is not made
