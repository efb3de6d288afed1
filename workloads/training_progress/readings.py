"""What one line of a log tells of training, as bounded numbers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

LARGEST_COUNT = 10**15
"""The largest step or epoch that is believed."""
LARGEST_NUMBER = 1e15
LONGEST_NUMBER = 40
"""Characters of a number that are parsed."""


class Metric(StrEnum):
    """What a pattern reads: the names of its groups."""

    STEP = "step"
    TOTAL = "total"
    EPOCH = "epoch"
    EPOCHS = "epochs"
    LOSS = "loss"
    SAMPLES_PER_SECOND = "samples_per_second"
    LEARNING_RATE = "learning_rate"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a line tells; None is what it does not tell.

    `is_of_epoch` says that step and total count within an epoch, which is number `first_epoch` for
    the first one (None: not known). `has_bad_loss` says that the loss is not a finite number.
    """

    pattern: str
    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    epochs: int | None = None
    loss: float | None = None
    has_bad_loss: bool = False
    samples_per_second: float | None = None
    learning_rate: float | None = None
    is_of_epoch: bool = False
    first_epoch: int | None = None


def parse_count(text: str | None) -> int | None:
    """Parse a whole number, commas between its thousands allowed; None where it is none."""
    digits = (text or "").replace(",", "")
    if not digits.isdecimal() or not digits.isascii() or len(digits) > LONGEST_NUMBER:
        return None
    number = int(digits)
    return number if number <= LARGEST_COUNT else None


def parse_number(text: str | None) -> float | None:
    """Parse any number, infinite ones and NaN too; None where it is none."""
    if text is None or len(text) > LONGEST_NUMBER:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def keep_sane(number: float | None, *, is_negative_allowed: bool = False) -> float | None:
    """Return the number unless it is infinite, not a number, absurd, or negative."""
    if number is None or not math.isfinite(number) or abs(number) > LARGEST_NUMBER:
        return None
    return number if is_negative_allowed or number >= 0 else None


def build_reading(
    pattern: str,
    texts: Mapping[str, str],
    *,
    is_of_epoch: bool = False,
    first_epoch: int | None = None,
) -> Reading | None:
    """Build a reading of the texts of its metrics; None where none of them is a number."""
    step, total = parse_count(texts.get(Metric.STEP)), parse_count(texts.get(Metric.TOTAL))
    if total is not None and (total == 0 or (step is not None and step > total)):
        total = None
    epoch = keep_sane(parse_number(texts.get(Metric.EPOCH)))
    epochs = parse_count(texts.get(Metric.EPOCHS))
    if epochs is not None and (epochs == 0 or (epoch is not None and epoch > epochs)):
        epochs = None
    stated_loss = parse_number(texts.get(Metric.LOSS))
    loss = keep_sane(stated_loss, is_negative_allowed=True)
    samples = keep_sane(parse_number(texts.get(Metric.SAMPLES_PER_SECOND)))
    rate = keep_sane(parse_number(texts.get(Metric.LEARNING_RATE)))
    has_bad_loss = stated_loss is not None and loss is None
    figures = (step, total, epoch, epochs, loss, samples, rate)
    if all(each is None for each in figures) and not has_bad_loss:
        return None
    return Reading(pattern, *figures[:5], has_bad_loss, samples, rate, is_of_epoch, first_epoch)
