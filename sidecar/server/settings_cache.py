"""The effective settings: read once per project, and again when they are written or a project's trust changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import settings as configuration
from ..chat.services.project_settings import ProjectSettings
from ..model.chats import EffectiveConfig
from ..model.failures import Failure
from ..settings import Settings, SettingsError
from ..system import redact, trusted_files
from ..system.launch import ServeOptions
from .settings_conversion import ProjectSettingsCache, chat_defaults


class EffectiveSettings:
    """Settings by project. `options` are those of the command line, which override all files. `on_lapsed` is called
    with a project whose files are no longer those that were trusted.

    Trust lasts while the files that decide what runs are, byte for byte, those that were trusted. Every access
    checks that, so that a change takes effect before anything of it runs.
    """

    def __init__(
        self, options: ServeOptions, on_lapsed: Callable[[str], None] = lambda project: None
    ) -> None:
        self._on_lapsed = on_lapsed
        self._reported_lapses: set[str] = set()
        self._options = options
        self._loaded: dict[str | None, Settings] = {}
        self._project_settings = ProjectSettingsCache()
        self._trusted: dict[str, trusted_files.TrustRecord] = {}

    @property
    def settings_file(self) -> str | None:
        """The file that the command line or the environment names."""
        named = self._options.config or os.environ.get(configuration.CONFIG_VARIABLE)
        return os.path.abspath(named) if named else None

    def for_project(self, project: str | None) -> Settings:
        """The settings of a project; SettingsError when a file of theirs is wrong."""
        trusted = project is not None and self.is_trusted(project)
        if project not in self._loaded:
            options = self._options
            settings = configuration.load(
                config_file=options.config,
                project=project,
                environ=os.environ,
                trusted=trusted,
                command_line={
                    "store.data_dir": options.data_dir,
                    "log.level": options.log_level,
                    "chat_id": options.chat_id,
                },
            )
            # Also the keys of providers that are never used: a command may print the file.
            redact.add_secrets(settings.secrets())
            self._loaded[project] = settings
        return self._loaded[project]

    def require(self, project: str | None) -> Settings:
        """The settings; raises a Failure that says what is wrong with them."""
        try:
            return self.for_project(project)
        except SettingsError as error:
            raise Failure("precondition_failed", str(error), action="fix_settings") from error

    def project_settings(self, project: str | None) -> ProjectSettings:
        """The settings of a project, with its rules parsed."""
        return self._project_settings.for_project(project, self.require(project))

    def defaults(self, project: str | None) -> EffectiveConfig:
        """The default configuration of a chat."""
        return chat_defaults(self.require(project))

    def engine_tables(self) -> Mapping[str, Mapping[str, Any]]:
        """The user's tables `[engines.NAME]`."""
        return self.require(None).engine_agents

    def titles_by_model(self, project: str | None) -> bool:
        try:
            return self.for_project(project).titles == "model"
        except SettingsError:
            return False  # the turn itself has reported the error

    def is_trusted(self, project: str) -> bool:
        """Whether it was trusted, and its files are still the trusted ones."""
        known = self._trusted.get(project)
        if known is None:
            return False
        if trusted_files.matches(project, known):
            # The files are as they were again, for example after a checkout: the trust is back without a
            # question.
            if project in self._reported_lapses:
                self._reported_lapses.discard(project)
                self.forget()
            return True
        if project not in self._reported_lapses:
            self._reported_lapses.add(project)
            self.forget()
            self._on_lapsed(project)
        return False

    def trusts_file(self, project: str, path: str) -> bool:
        """Whether a file of a trusted project, relative to its folder, is as it was when the project was trusted."""
        return self.is_trusted(project) and trusted_files.matches_file(project, self._trusted[project], path)

    def changes(self, project: str) -> list[trusted_files.TrustedChange]:
        """What has changed in the files of a project since it was trusted; nothing when it was not."""
        known = self._trusted.get(project)
        return [] if known is None else trusted_files.changes_since(project, known)

    def trust(self, project: str, files: trusted_files.TrustRecord | None) -> None:
        """Trust a project with these files from now on, or (None) no longer; its settings are read again."""
        self._reported_lapses.discard(project)
        if files is None:
            self._trusted.pop(project, None)
        else:
            self._trusted[project] = files
        self.forget()

    def trust_only(self, projects: Mapping[str, trusted_files.TrustRecord]) -> None:
        self._trusted = dict(projects)
        self._reported_lapses.clear()
        self.forget()

    def distrust(self, projects: Sequence[str] | None) -> None:
        """Stop trusting these projects; None is all of them."""
        gone = self._trusted if projects is None else projects
        self.trust_only({path: files for path, files in self._trusted.items() if path not in gone})

    def forget(self) -> None:
        """Drop everything, so that it is read again on the next use."""
        self._loaded.clear()
