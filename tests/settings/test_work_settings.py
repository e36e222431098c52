"""What chats are told of the settings about tools and the window."""

from __future__ import annotations

import pytest

from sidecar.chat.desk import WorkSettings
from sidecar.model.failures import Failure
from sidecar.model.pages import FetchSettings
from sidecar.policy.rules import Rule
from sidecar.settings import load
from sidecar.work_settings import KeptWorkSettings, work_settings
from sidecar.workspace.open_files import Limits

from .conftest import Places

FULL = """\
sandbox = "require"
session = {max_seconds = 90, max_tokens = 5000}
open_files = {max_recent = 3, max_pinned = 0, max_file_bytes = 2048}
patches = {max_entries = 7, max_bytes = 4096}
tools = {allow = ["read_file", "grep"], deny = ["grep"]}
permissions = {allow = ["run(git log *)"], deny = ["read(.env)"], expiry = 60}
mcp.notes = {command = "npx"}
context = {rules = 900}
compaction = {target = 0.25, keep_turns = 5}
rules = {enabled = false, paths = ["team.md"]}
fetch = {enabled = false, cache_enabled = false, cache_ttl = 9, cache_max_bytes = 77, allow_private = ["*.lan"]}
"""


def test_without_files_they_are_the_defaults_of_the_chats(places: Places) -> None:
    assert work_settings(load(environ={})) == WorkSettings(rules=(), mcp_servers=[])


def test_every_setting_arrives(places: Places) -> None:
    places.put(places.user, FULL)

    assert work_settings(load(environ={})) == WorkSettings(
        sandbox="require",
        files=Limits(3, 0),
        max_file_bytes=2048,
        max_patches=7,
        max_patch_bytes=4096,
        rules=(
            Rule("file-user-1", "user", "allow", "run", "git log *", source="file"),
            Rule("file-user-2", "user", "deny", "read", ".env", source="file"),
        ),
        expiry_s=60,
        allow=("read_file", "grep"),
        deny=("grep",),
        mcp_servers=[{"name": "notes", "command": "npx"}],
        max_seconds=90,
        max_tokens=5000,
        rules_enabled=False,
        rule_paths=(str(places.user.parent / "team.md"),),
        max_rule_tokens=900,
        compaction_target=0.25,
        keep_turns=5,
        fetch=FetchSettings(False, False, 9, 77, ("*.lan",)),
    )


def test_rules_are_numbered_within_their_scope(places: Places) -> None:
    places.put(places.user, 'permissions = {allow = ["*"], deny = ["read(.env)"]}')
    places.put(places.project_file, 'permissions = {allow = ["*"], ask = ["run(make)"], deny = ["edit(a)"]}')
    settings = load(project=str(places.project), environ={}, trusted=True)

    assert [(rule.id, rule.scope, rule.effect) for rule in work_settings(settings).rules] == [
        ("file-user-1", "user", "allow"),
        ("file-user-2", "user", "deny"),
        ("file-project-1", "project", "allow"),
        ("file-project-2", "project", "ask"),
        ("file-project-3", "project", "deny"),
    ]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("write(src/**)", "'write(src/**)' is no rule; write a kind"),
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
        work_settings(load(environ={}))

    assert (caught.value.name, caught.value.action) == ("precondition_failed", "fix_settings")
    assert caught.value.message.startswith(f"{places.user}: `permissions.deny`: {rule!r} is not understood: ")
    assert why in caught.value.message


def test_they_are_made_anew_only_for_settings_that_were_read_anew(places: Places) -> None:
    kept, first, again = KeptWorkSettings(), load(environ={}), load(environ={})

    made = kept.of(None, first)

    assert kept.of(None, first) is made
    assert kept.of("/project", first) is not made
    assert kept.of(None, again) is not made
