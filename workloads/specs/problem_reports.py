"""What the rules of a Spec have in common: a problem with its field, and lists that repeat."""

from collections.abc import Iterable, Iterator, Sequence

MAX_LIST_ITEMS = 256
"""The most variables, arguments, labels and so on, of each kind."""

FieldProblem = tuple[str, str, str]
"""A field's path, its title, and what is wrong with it.

The title begins a sentence that the problem ends ("must ...").
"""


def report_problem(field: str, title: str, problem: str) -> Iterator[FieldProblem]:
    """Yield a problem of a field, unless the rule returned ""."""
    if problem:
        yield field, title, problem


def check_length(
    field: str, noun: str, items: Sequence[object], maximum: int = MAX_LIST_ITEMS
) -> Iterator[FieldProblem]:
    """Yield a problem where a list has more items than the maximum."""
    if len(items) > maximum:
        yield field, f"The number of {noun}", f"must be at most {maximum}"


def check_unique(
    field: str, noun: str, values: Sequence[str], part: str = ""
) -> Iterator[FieldProblem]:
    """Yield a problem for each value that is given more than once."""
    earlier_values: set[str] = set()
    for index, value in enumerate(values):
        if value in earlier_values:
            yield (
                f"{field}.{index}.{part}".rstrip("."),
                f"The {noun} {value[:80]}",
                "must be given once only",
            )
        earlier_values.add(value)


def prefix_fields(prefix: str, problems: Iterable[FieldProblem]) -> Iterator[FieldProblem]:
    """Yield the problems with a prefix before each field's path."""
    return ((prefix + field, title, text) for field, title, text in problems)
