"""The outcome of a check, and its sentence."""

import datetime
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The outcome of a check, the worst first; the value is the kind of notice that shows it."""

    NEVER = "danger"
    """It cannot start as the cluster and the quota are, even if nothing else ran."""
    WARNS = "warning"
    UNKNOWN = "info"
    FITS = "success"


@dataclass(frozen=True, slots=True)
class FitCheck:
    """One finding as a sentence.

    `seen_at` is the age of the data it rests on; None for our own bookkeeping, or for nothing.
    """

    verdict: Verdict
    text: str
    seen_at: datetime.datetime | None = None
