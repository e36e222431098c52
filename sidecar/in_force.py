"""The settings in force: read once for each project, and anew when they are written or a project's trust changes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from . import settings as configuration
from .chat.desk import WorkSettings
from .model.failures import Failure
from .providers.registry import AUTO
from .settings import Settings, SettingsError
from .system.launch import ServeOptions
from .work_settings import KeptWorkSettings, chat_defaults


class InForce:
    """`options` are the command line's words, which go before all files."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._kept: dict[str | None, Settings] = {}
        self._work = KeptWorkSettings()
        self._trusted: set[str] = set()

    def of(self, project: str | None) -> Settings:
        """The settings of a project; SettingsError when a file of theirs is wrong."""
        if project not in self._kept:
            options = self._options
            self._kept[project] = configuration.load(
                config_file=options.config,
                project=project,
                environ=os.environ,
                trusted=project in self._trusted,
                command_line={
                    "store.data_dir": options.data_dir,
                    "log.level": options.log_level,
                    "chat_id": options.chat_id,
                },
            )
        return self._kept[project]

    def checked(self, project: str | None) -> Settings:
        """The settings; a failure says what is wrong with them."""
        try:
            return self.of(project)
        except SettingsError as error:
            raise Failure("precondition_failed", str(error), action="fix_settings") from error

    def work(self, project: str | None) -> WorkSettings:
        """What the settings say about tools."""
        return self._work.of(project, self.checked(project))

    def defaults(self, project: str | None) -> dict[str, Any]:
        """What a chat's configuration starts from."""
        settings = self.checked(project)
        return {
            "model": settings.model or AUTO,
            "engine": settings.engine,
            "mode": settings.mode,
            "maxSteps": settings.session.max_steps,
            **chat_defaults(settings),
        }

    def titles_by_model(self, project: str | None) -> bool:
        try:
            return self.of(project).titles == "model"
        except SettingsError:
            return False  # the turn itself has told what is wrong

    def is_trusted(self, project: str) -> bool:
        return project in self._trusted

    def trust(self, project: str, trusted: bool) -> None:
        """A project is trusted from now on, or no more: its settings are read anew."""
        (self._trusted.add if trusted else self._trusted.discard)(project)
        self.forget()

    def trust_only(self, projects: Iterable[str]) -> None:
        self._trusted = set(projects)
        self.forget()

    def distrust(self, projects: Sequence[str] | None) -> None:
        """These projects are trusted no more; None is all of them."""
        self.trust_only(() if projects is None else self._trusted - set(projects))

    def forget(self) -> None:
        """Read everything anew when it is next asked for."""
        self._kept.clear()
