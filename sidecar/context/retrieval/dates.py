"""Finds the dates that a prompt names: "on 8 May 2023", "in May", "last Tuesday", "vor zwei Wochen", "上个月".
Pure, without a clock: relative dates count from the day of the chat's newest message."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import msgspec

from .lists import word_lists

READ_CHARACTERS = 4000
"""Of a prompt: dates in text pasted after that are not part of the question."""

MAX_AGO = 4000
"""The largest number of days, weeks or months that is counted back."""

_ISO = re.compile(r"\b(\d{4})-(\d{1,2})(?:-(\d{1,2}))?\b")
_WIDE = re.compile(r"(?:(\d{4}) ?年 ?)?(\d{1,2}) ?月(?! ?前)(?: ?(\d{1,2}) ?[日号])?")
_WORD = re.compile(r"[^\W_]+")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th|er|º)?$")
_YEAR = re.compile(r"(?:19|20|21)\d\d$")
_DATE_FILLERS = frozenset(("of", "the", "de", "del", "le", "der", "den"))


class DateSpan(msgspec.Struct, frozen=True):
    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1


def day_of(ts: int) -> date:
    """Return the day of a time in milliseconds since 1970."""
    try:
        return datetime.fromtimestamp(ts / 1000, UTC).date()
    except (OverflowError, ValueError, OSError):
        return date(1970, 1, 1)


def named_dates(prompt: str, newest: int) -> list[DateSpan]:
    """Return the named days that are not after the end of the chat."""
    text = prompt[:READ_CHARACTERS].lower()
    today = day_of(newest)
    found = [*_iso(text, today), *_months(text, today), *_relative(text, today), *_ago(text, today)]
    return list(dict.fromkeys(found))


def _iso(text: str, today: date) -> Iterator[DateSpan]:
    for match in [*_ISO.finditer(text), *_WIDE.finditer(text)]:
        year, month, day = match.groups()
        yield from _span(year, int(month), day, today)


def _months(text: str, today: date) -> Iterator[DateSpan]:
    words = [word for word in _WORD.findall(text) if word not in _DATE_FILLERS or word == "of"]
    for at, word in enumerate(words):
        month = _month_names().get(word)
        if month is None:
            continue
        before = [other for other in words[max(0, at - 3) : at][::-1] if other != "of"][:1]
        after = words[at + 1 : at + 3]
        days = [m.group(1) for other in (*before, *after[:1]) if (m := _DAY.match(other))]
        years = [other for other in after if _YEAR.match(other)][:1]
        sure = word not in word_lists().unsure_months or words[at - 1 : at] == ["of"]
        if days or years or sure or (before and before[0] in word_lists().before_month):
            yield from _span(years[0] if years else None, month, days[0] if days else None, today)


def _span(year: str | None, month: int, day: str | None, today: date) -> Iterator[DateSpan]:
    """Return a day or a month. Without a year it is the last one that is not after the end of the chat."""
    try:
        first = date(int(year) if year else today.year, month, int(day or 1))
        if not year and first > today:
            first = first.replace(year=first.year - 1)
    except ValueError:
        return
    yield DateSpan(first, first if day else _end_of_month(first))


def _relative(text: str, today: date) -> Iterator[DateSpan]:
    monday = today - timedelta(days=today.weekday())
    month = today.replace(day=1)
    known = {
        "today": DateSpan(today, today),
        "yesterday": DateSpan(today - timedelta(1), today - timedelta(1)),
        "this week": DateSpan(monday, today),
        "last week": DateSpan(monday - timedelta(7), monday - timedelta(1)),
        "this month": DateSpan(month, today),
        "last month": DateSpan((month - timedelta(1)).replace(day=1), month - timedelta(1)),
    }
    for name, span in known.items():
        if any(_holds(text, phrase) for phrase in word_lists().relative[name]):
            yield span
    for names in word_lists().weekdays.values():
        for number, name in enumerate(names):
            if _holds(text, name):
                day = today - timedelta((today.weekday() - number) % 7 or 7)
                yield DateSpan(day, day)


def _ago(text: str, today: date) -> Iterator[DateSpan]:
    for unit, patterns in word_lists().ago.items():
        for pattern in patterns:
            for match in re.finditer(pattern, text):
                count = int(
                    _numbers().get(match.group(1), match.group(1)) if _is_number(match.group(1)) else 0
                )
                if 0 < count <= MAX_AGO:
                    yield _span_ago(unit, count, today)


def _span_ago(unit: str, count: int, today: date) -> DateSpan:
    """Return the span of "count units ago". Nobody counts weeks and months exactly, so it includes some days
    on both sides."""
    days = count * {"days": 1, "weeks": 7, "months": 30}[unit]
    slack = {"days": 0, "weeks": 3, "months": 15}[unit]
    day = today - timedelta(min(days, today.toordinal() - slack - 1))
    return DateSpan(day - timedelta(slack), day + timedelta(slack))


def _is_number(word: str) -> bool:
    return word in _numbers() or (word.isdecimal() and len(word) < 5)


def _holds(text: str, phrase: str) -> bool:
    at = text.find(phrase)
    if at < 0 or not phrase.isascii():
        return at >= 0
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None


def _end_of_month(first: date) -> date:
    following = first.replace(day=28) + timedelta(4)
    return following - timedelta(following.day)


@functools.cache
def _month_names() -> dict[str, int]:
    return {
        name: number
        for names in word_lists().months.values()
        for number, month in enumerate(names, 1)
        for name in month.split()
    }


@functools.cache
def _numbers() -> dict[str, str]:
    return {word: number for number, words in word_lists().numbers.items() for word in words}
