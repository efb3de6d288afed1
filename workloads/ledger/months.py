"""Months of the ledger, in UTC, as addresses name them: 2026-11. Pure."""

import re
from dataclasses import dataclass
from datetime import date, timedelta

_TEXT = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A month of a year."""

    year: int
    number: int

    def __str__(self) -> str:
        return f"{self.year}-{self.number:02}"

    @property
    def first_day(self) -> date:
        return date(self.year, self.number, 1)

    @property
    def last_day(self) -> date:
        return self.next_month.first_day - timedelta(days=1)

    @property
    def next_month(self) -> "Month":
        return Month(self.year + self.number // 12, self.number % 12 + 1)

    @property
    def previous_month(self) -> "Month":
        return Month(self.year - (self.number == 1), (self.number - 2) % 12 + 1)

    @property
    def label(self) -> str:
        """The month in words: "November 2026"."""
        return f"{self.first_day:%B %Y}"


def parse_month(text: str) -> Month | None:
    """Parse "2026-11"; None for anything else, and before 2000."""
    match = _TEXT.fullmatch(text)
    return Month(int(match[1]), int(match[2])) if match else None


def get_month(day: date) -> Month:
    """Return the month of a day."""
    return Month(day.year, day.month)
