"""What a sign of failure is: a pattern for lines, its meaning, and how much it says. Pure."""

import re
from dataclasses import dataclass
from enum import IntEnum

from workloads.diagnosis.causes import FailureCause


class Weight(IntEnum):
    """How little a line says about why its pod ended; of several lines the lowest counts."""

    OWN = 0
    """It names the failure."""
    VAGUE = 1
    """Something of this pod failed, and another line may say what."""
    ECHO = 2
    """It rather tells of another pod's failure."""
    AFTERMATH = 3
    """It follows any failure."""
    LAUNCHER = 4
    """It only says that a process failed."""


@dataclass(frozen=True, slots=True)
class FailureSign:
    """A pattern for a line in lower case, its meaning in words, and what would help."""

    cause: FailureCause
    pattern: re.Pattern[str]
    words: str
    help: str
    weight: Weight = Weight.OWN


def build_sign(
    cause: FailureCause, pattern: str, words: str, help: str, weight: Weight = Weight.OWN
) -> FailureSign:
    """Return a sign; its pattern is searched in lines in lower case."""
    return FailureSign(cause, re.compile(pattern), words, help, weight)
