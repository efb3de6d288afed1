"""The fields of a Job's spec that only an Indexed Job may have.

The rules are those of batch/validation `validateJobSpec` and `validateSuccessPolicy`.
"""

from typing import Any

from localkube.errors import Cause, required_cause
from localkube.resources.causes import invalid_value_cause, too_long_cause, too_many_cause

MAX_INDEXED = 100_000
"""The most completions and parallel pods of an Indexed Job."""

MAX_SUCCESS_RULES = 20
MAX_INDEXES_TEXT = 64 << 10
INDEXED_ONLY_FIELDS = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")


def check_completions(spec: dict[str, Any]) -> list[Cause]:
    """Return the problems of the completions and the parallelism of an Indexed Job."""
    if spec.get("completionMode") != "Indexed":
        return []
    if spec.get("completions") is None:
        return [required_cause("spec.completions", "when completion mode is Indexed")]
    # A real server bounds the parallelism alone, and its controller the completions with it.
    return [
        invalid_value_cause(
            f"spec.{part}",
            spec[part],
            f"must be less than or equal to {MAX_INDEXED} when completion mode is Indexed",
        )
        for part in ("parallelism", "completions")
        if isinstance(spec.get(part), int) and spec[part] > MAX_INDEXED
    ]


def check_index_fields(spec: dict[str, Any]) -> list[Cause]:
    """Return the problems of the limits per index and of the success policy."""
    causes = []
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        causes.append(
            required_cause("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
        )
    if spec.get("completionMode") != "Indexed":
        return causes + [
            invalid_value_cause(f"spec.{part}", spec[part], "requires indexed completion mode")
            for part in INDEXED_ONLY_FIELDS
            if spec.get(part) is not None
        ]
    completions, most_failed = spec.get("completions"), spec.get("maxFailedIndexes")
    if completions is None:
        return causes
    if most_failed is not None and most_failed > completions:
        text = "must be less than or equal to completions"
        causes.append(invalid_value_cause("spec.maxFailedIndexes", most_failed, text))
    if spec.get("successPolicy") is not None:
        causes += _check_success_policy(spec["successPolicy"], completions)
    return causes


def _check_success_policy(policy: dict[str, Any], completions: int) -> list[Cause]:
    rules, field = policy.get("rules") or [], "spec.successPolicy.rules"
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        return [required_cause(field, text)]
    if len(rules) > MAX_SUCCESS_RULES:
        return [too_many_cause(field, len(rules), MAX_SUCCESS_RULES)]
    return [
        cause
        for number, rule in enumerate(rules)
        for cause in _check_success_rule(rule or {}, completions, f"{field}[{number}]")
    ]


def _check_success_rule(rule: dict[str, Any], completions: int, field: str) -> list[Cause]:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        text = "at least one of succeededCount or succeededIndexes must be specified"
        return [required_cause(field, text)]
    causes: list[Cause] = []
    total = completions
    if indexes is not None:
        at = f"{field}.succeededIndexes"
        if len(indexes) > MAX_INDEXES_TEXT:
            return [too_long_cause(at, MAX_INDEXES_TEXT)]
        try:
            total = _count_indexes(indexes, completions)
        except ValueError as error:
            text = f"error parsing succeededIndexes: {error}"
            return [invalid_value_cause(at, indexes, text)]
    if count is None:
        return causes
    at = f"{field}.succeededCount"
    if count < 0:
        causes.append(invalid_value_cause(at, count, "must be greater than or equal to 0"))
    bounds = [(completions, "the number of specified completions")]
    if indexes is not None:
        bounds.append((total, "the number of indexes in the specified succeededIndexes field"))
    causes += [
        invalid_value_cause(at, count, f"must be less than or equal to {most} ({name})")
        for most, name in bounds
        if count > most
    ]
    return causes


def _count_indexes(text: str, completions: int) -> int:
    """Return how many indexes a text like "0,2-4" names.

    Raises ValueError, worded as the real server words it.
    """
    total, previous = 0, -1
    for part in text.split(",") if text else ():
        ends = [_read_index(end, completions) for end in part.split("-", 2)[:2]]
        if part.count("-") > 1:
            raise ValueError(
                f'the fragment "{part}" violates the requirement that an index interval can have '
                "at most two parts separated by '-'"
            )
        for index in ends:
            if index <= previous:
                raise ValueError(f"non-increasing order, previous: {previous}, current: {index}")
            previous = index
        total += ends[-1] - ends[0] + 1
    return total


def _read_index(text: str, completions: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if len(text) > 9 or int(text) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(text)
