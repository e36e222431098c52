from __future__ import annotations

from operator import attrgetter

import pytest

from sidecar.settings import KEYS, Settings, SettingsError, load, read_scope
from sidecar.settings.keys import TABLES
from sidecar.settings.known import NAMED_TABLES

from .conftest import Places


def test_without_files_every_value_is_the_default(places: Places) -> None:
    assert load(environ={}).values_and_layers() == {
        "model": (None, "default"),
        "engine": ("native", "default"),
        "mode": ("ask", "default"),
        "sandbox": ("auto", "default"),
        "titles": ("words", "default"),
        "chat_id": (None, "default"),
        "session.retention_days": (0, "default"),
        "session.sent_days": (90, "default"),
        "session.max_steps": (50, "default"),
        "session.max_seconds": (0.0, "default"),
        "session.max_tokens": (0, "default"),
        "session.snapshot_interval": (10, "default"),
        "session.max_snapshots": (10, "default"),
        "permissions.allow": ((), "default"),
        "permissions.ask": ((), "default"),
        "permissions.deny": ((), "default"),
        "permissions.expiry": (0.0, "default"),
        "tools.allow": ((), "default"),
        "tools.deny": ((), "default"),
        "tools.environment": ((), "default"),
        "tools.readable": ((), "default"),
        "tools.max_processes": (2048, "default"),
        "tools.max_memory_bytes": (0, "default"),
        "tools.max_tmp_bytes": (1024 * 1024 * 1024, "default"),
        "open_files.max_recent": (25, "default"),
        "open_files.max_pinned": (10, "default"),
        "open_files.max_file_bytes": (1024 * 1024, "default"),
        "patches.max_entries": (20, "default"),
        "patches.max_bytes": (200 * 1024, "default"),
        "context.per_file": (2000, "default"),
        "context.open_files": (8000, "default"),
        "context.diffs": (4000, "default"),
        "context.git_diff": (3000, "default"),
        "context.retrieval": (2000, "default"),
        "context.rules": (4000, "default"),
        "context.output_reserve": (0, "default"),
        "context.gates.open_files": ("auto", "default"),
        "context.gates.patches": ("auto", "default"),
        "context.gates.git_diff": ("auto", "default"),
        "context.gates.retrieval": ("auto", "default"),
        "compaction.enabled": (True, "default"),
        "compaction.background": (0.8, "default"),
        "compaction.blocking": (0.95, "default"),
        "compaction.target": (0.4, "default"),
        "compaction.keep_turns": (2, "default"),
        "rules.enabled": (True, "default"),
        "rules.paths": ((), "default"),
        "hooks.enabled": (True, "default"),
        "hooks.claude_settings": (False, "default"),
        "hooks.paths": ((), "default"),
        "routing.big_reads": ("on", "default"),
        "routing.big_reads_bytes": (65536, "default"),
        "routing.fetches": ("on", "default"),
        "routing.noisy_commands": ("on", "default"),
        "routing.noisy_programs": ((), "default"),
        "routing.long_listings": ("on", "default"),
        "routing.long_listings_max": (100, "default"),
        "index.enabled": (True, "default"),
        "index.inline_max": (2 * 1024, "default"),
        "index.max_output_size": (64 * 1024 * 1024, "default"),
        "index.preview_tail_lines": (50, "default"),
        "index.chunk_bytes": (4 * 1024, "default"),
        "index.retrieval_limit": (5, "default"),
        "index.retention_days": (90, "default"),
        "index.max_bytes": (2 * 1024 * 1024 * 1024, "default"),
        "fetch.enabled": (True, "default"),
        "fetch.cache_enabled": (True, "default"),
        "fetch.cache_ttl": (3600.0, "default"),
        "fetch.cache_max_bytes": (256 * 1024 * 1024, "default"),
        "fetch.allow_private": ((), "default"),
        "adapters.auto_detect": (True, "default"),
        "adapters.default": (None, "default"),
        "adapters.log_level": ("info", "default"),
        "project.files": (False, "default"),
        "log.level": ("warn", "default"),
        "log.file": (None, "default"),
        "store.data_dir": (str(places.data), "default"),
        "store.busy_timeout": (10.0, "default"),
    }


def test_each_later_layer_wins_over_the_one_before(places: Places) -> None:
    origins: list[str] = []

    def model() -> str | None:
        settings = load(
            config_file=named, project=project, environ=environ, command_line=options, trusted=True
        )
        origins.append(settings.origin("model"))
        return settings.model

    named, project, environ, options = None, None, {}, {}
    models = [model()]
    places.put(places.user, 'model = "a:user"')
    models.append(model())
    places.put(places.project_file, 'model = "a:project"')
    project = str(places.project)
    models.append(model())
    named = str(places.put(places.other, 'model = "a:file"'))
    models.append(model())
    environ = {"SIDECAR_MODEL": "a:environment"}
    models.append(model())
    options = {"model": "a:option"}
    models.append(model())

    assert models == [None, "a:user", "a:project", "a:file", "a:environment", "a:option"]
    assert origins == ["default", "user", "project", "file", "environment", "command line"]


def test_layers_add_up_key_by_key(places: Places) -> None:
    places.put(places.user, 'permissions = {deny = ["run(rm *)"], expiry = 30}\n')
    places.put(places.project_file, 'permissions = {deny = ["run(mv *)"]}\n')

    values = load(project=str(places.project), environ={}).values_and_layers()

    assert (values["permissions.deny"][0], values["permissions.expiry"][0]) == (
        ("run(rm *)", "run(mv *)"),
        30,
    )


def test_the_environment_sets_model_data_folder_and_chat(places: Places) -> None:
    environ = {"SIDECAR_MODEL": "a:b", "SIDECAR_DATA_DIR": ":memory:", "SIDECAR_CHAT_ID": "tab-7"}

    settings = load(environ=environ)

    assert (settings.model, settings.store.data_dir, settings.chat_id) == ("a:b", ":memory:", "tab-7")


def test_an_empty_variable_and_an_option_of_none_set_nothing(places: Places) -> None:
    settings = load(environ={"SIDECAR_MODEL": "", "SIDECAR_CONFIG": ""}, command_line={"model": None})

    assert settings.origin("model") == "default"


def test_the_named_file_goes_before_the_one_of_the_environment(places: Places) -> None:
    places.put(places.other, 'model = "a:named"')
    ignored = places.put(places.root / "ignored.toml", 'model = "a:ignored"')

    settings = load(config_file=str(places.other), environ={"SIDECAR_CONFIG": str(ignored)})

    assert settings.model == "a:named"


@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_named_file_that_is_absent_is_an_error(places: Places, by: str) -> None:
    path = str(places.other)
    with pytest.raises(SettingsError) as caught:
        load(config_file=path if by == "option" else None, environ={"SIDECAR_CONFIG": path})

    assert str(caught.value) == f"{path}: there is no such file. Correct `--config` or SIDECAR_CONFIG"


def test_paths_in_a_file_are_seen_from_its_folder(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(places.root / "home"))
    monkeypatch.setenv("USERPROFILE", str(places.root / "home"))
    places.put(places.user, '[store]\ndata_dir = "here"\n[log]\nfile = "~/log.txt"\n')

    settings = load(environ={})

    assert settings.store.data_dir == str(places.user.parent / "here")
    assert settings.log.file == str(places.root / "home" / "log.txt")


def test_paths_in_the_environment_are_seen_from_the_working_folder(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places.root)

    assert load(environ={"SIDECAR_DATA_DIR": "here"}).store.data_dir == str(places.root / "here")


def test_a_bad_variable_is_named(places: Places) -> None:
    with pytest.raises(
        SettingsError, match=r"`model`: SIDECAR_MODEL: expected text that is not empty, found"
    ):
        load(environ={"SIDECAR_MODEL": "\udc80"})


def test_a_bad_option_is_named(places: Places) -> None:
    with pytest.raises(SettingsError) as caught:
        load(environ={}, command_line={"titles": "wrods"})

    assert str(caught.value) == (
        '`titles`: command line: expected one of "words", "model", found "wrods". Did you mean `words`?'
    )


def test_an_unknown_option_is_refused(places: Places) -> None:
    with pytest.raises(
        SettingsError, match=r"`log\.levle`: there is no such setting\. Did you mean `log\.level`"
    ):
        load(environ={}, command_line={"log.levle": "warn"})


@pytest.mark.parametrize("name", [key.name for key in KEYS.values() if key.project == "never"])
def test_a_project_may_not_set_what_holds_for_all(places: Places, name: str) -> None:
    value = {"integer": "1", "seconds": "1"}.get(KEYS[name].kind, '"warn"')
    places.put(places.project_file, f"{name} = {value}\n")

    with pytest.raises(SettingsError) as caught:
        load(project=str(places.project), environ={})

    assert str(caught.value) == (
        f"{places.project_file}, line 1: `{name}`: a project's file may not set this: "
        f"it belongs to the user and holds for every project. Set it in the user's config.toml"
    )


def test_an_untrusted_project_chooses_neither_mode_nor_model(places: Places) -> None:
    places.put(places.project_file, 'mode = "auto"\nmodel = "a:b"\n')

    settings = load(project=str(places.project), environ={})

    assert (settings.mode, settings.model) == ("ask", None)
    assert settings.warnings == tuple(
        f"{places.project_file}: `{key}` is ignored until the project is trusted (`project/trust`)"
        for key in ("mode", "model")
    )


def test_a_trusted_project_sets_the_mode(places: Places) -> None:
    places.put(places.project_file, 'mode = "auto"\n')

    settings = load(project=str(places.project), environ={}, trusted=True)

    assert (settings.mode, settings.origin("mode"), settings.warnings) == ("auto", "project", ())


def test_a_scope_shows_its_own_file_only(places: Places) -> None:
    places.put(places.user, 'model = "a:user"\n[store]\ndata_dir = "here"\n')
    places.put(places.project_file, 'tools.deny = ["run_command"]\n')

    user, project = read_scope("user"), read_scope("project", str(places.project))

    assert (user.path, user.values) == (str(places.user), {"model": "a:user", "store.data_dir": "here"})
    assert (project.path, project.values) == (str(places.project_file), {"tools.deny": ["run_command"]})


def test_a_project_scope_needs_the_project(places: Places) -> None:
    with pytest.raises(SettingsError, match="need the project's path"):
        read_scope("project")


def test_the_version_follows_the_bytes_of_every_file(places: Places) -> None:
    def version() -> str:
        return load(project=str(places.project), environ={}).version

    versions = [version()]
    for path, text in [(places.user, ""), (places.project_file, ""), (places.user, "# said\n")]:
        places.put(path, text)
        versions.append(version())

    assert len(set(versions)) == 4
    assert version() == versions[-1]


def test_settings_do_not_change(places: Places) -> None:
    settings = load(environ={})

    with pytest.raises(AttributeError, match="do not change"):
        settings.session.max_steps = 3
    assert settings == load(environ={})
    assert settings != load(environ={"SIDECAR_MODEL": "a:b"})


def test_every_key_of_the_table_is_an_attribute_and_the_reverse(places: Places) -> None:
    settings = load(environ={})
    groups = {name: attrgetter(name)(settings) for name in TABLES}
    found = {f"{group}.{name}" for group, held in groups.items() for name in held.names()}
    own = set(Settings.names()) - {"_layers", "_rules", "version", "warnings"}
    own -= {tables.member for tables in NAMED_TABLES.values()}

    assert (found | own) - set(groups) == set(KEYS)
