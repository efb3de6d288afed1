"""Answers that a language model can read: texts and lists are cut until the whole is small."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from muster_cli.errors import CliError, drop_invisible

LARGEST_ANSWER = 60_000
"""Characters of an answer as JSON."""
DEEPEST = 12
_BOUNDS = (
    (LARGEST_ANSWER, 1000),
    (2000, 200),
    (1000, 100),
    (300, 50),
    (150, 20),
    (80, 5),
)
"""The longest text and the longest list, tried one pair after the other; the first cuts no text
that fits.
"""


def write_answer(value: Mapping[str, Any]) -> str:
    """Return a value as JSON of at most LARGEST_ANSWER characters, cut where it has to be.

    `shortened` says that something was cut. Characters that cannot be seen are left out of texts:
    a person who reads along shall see what the model does. Raises CliError where even that is too
    large.
    """
    for longest_text, longest_list in _BOUNDS:
        cut = _Cut(longest_text, longest_list)
        bounded = cut.shorten(value)
        if cut.has_cut:
            bounded["shortened"] = "Long texts and lists are cut: ask for less."
        text = json.dumps(bounded, ensure_ascii=False, indent=1)
        if len(text) <= LARGEST_ANSWER:
            return text
    raise CliError("The answer is too large to be read here.", "Ask for less at once.")


class _Cut:
    """Shortens what is longer than its bounds, and knows whether it had to."""

    def __init__(self, longest_text: int, longest_list: int) -> None:
        self._longest_text = longest_text
        self._longest_list = longest_list
        self.has_cut = False

    def shorten(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self._cut_text(value)
        if not isinstance(value, Mapping | list):
            return value
        if depth >= DEEPEST:
            self.has_cut = True
            return "…"
        if len(value) > self._longest_list:
            self.has_cut = True
        if isinstance(value, list):
            return [self.shorten(each, depth + 1) for each in value[: self._longest_list]]
        return {
            self._cut_text(str(name)): self.shorten(each, depth + 1)
            for name, each in islice(value.items(), self._longest_list)
        }

    def _cut_text(self, text: str) -> str:
        if len(text) > self._longest_text:
            self.has_cut = True
            text = f"{text[: self._longest_text]}…"
        return drop_invisible(text)
