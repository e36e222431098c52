"""Earlier prompts: step through them and search them. Pure: knows neither keys nor the screen."""

from __future__ import annotations


class PromptHistory:
    def __init__(self) -> None:
        self._texts: list[str] = []
        self._at: int | None = None
        self._unsent = ""

    def add(self, text: str) -> None:
        """Add a prompt as the latest one; stepping starts again."""
        self._at = None
        if text.strip() and self._texts[-1:] != [text]:
            self._texts.append(text)

    def earlier(self, present: str) -> str:
        """Return the prompt before this one, which is kept if it was not sent yet."""
        if self._at is None:
            self._unsent, self._at = present, len(self._texts)
        self._at = max(0, self._at - 1)
        return self._texts[self._at] if self._texts else present

    def later(self, present: str) -> str:
        """Return the prompt after this one; in the end the one that was not sent yet."""
        if self._at is None:
            return present
        self._at += 1
        if self._at < len(self._texts):
            return self._texts[self._at]
        self._at = None
        return self._unsent

    def search(self, part: str, skip: int = 0) -> str | None:
        """Return the latest prompt with this part; `skip` skips so many of the different ones."""
        found = [text for text in dict.fromkeys(reversed(self._texts)) if part in text]
        return found[skip] if part and skip < len(found) else None
