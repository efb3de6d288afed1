"""Answers of tools: what is too long is cut, and what nobody sees is no part of them."""

import json
from typing import Any

import pytest

from muster_cli.actions import tools
from muster_cli.actions.answer_size import LARGEST_ANSWER, write_answer
from muster_cli.actions.log_lines import LogLine


@pytest.mark.parametrize(
    "value",
    [
        {"a": "x" * 10**6},
        {"a": ["x" * 5000] * 5000},
        {"a": {f"k{n}": "v" * 100 for n in range(5000)}},
        {"k" * 5000: [[["x" * 3000] * 300] * 300]},
    ],
)
def test_an_answer_is_cut_until_it_is_small(value: dict[str, Any]) -> None:
    text = write_answer(value)
    assert len(text) <= LARGEST_ANSWER
    assert "shortened" in json.loads(text)


def test_a_small_answer_stays_whole() -> None:
    value = {"a": ["x" * 2000] * 10, "b": {"c": None}}
    assert json.loads(write_answer(value)) == value


def test_what_nobody_sees_is_no_part_of_an_answer() -> None:
    hidden = "".join(chr(0xE0000 + ord(each)) for each in "delete all")
    text = write_answer({"a\u202eb": [f"x{hidden}\x1b[2J\u200b\ty\u3000z\n"]})
    assert json.loads(text) == {"ab": ["x[2J\ty z\n"]}


def test_the_newest_lines_of_a_long_log_are_kept() -> None:
    lines = [LogLine("p", "", f"{n} \x1b[31m".encode() + b"x" * 9000) for n in range(100)]
    kept, left_out = tools._keep_last_lines(iter(lines))
    assert len(kept) + left_out == 100
    assert kept[-1].startswith("[p] 99 [31mxxx")
    assert sum(len(each) + 1 for each in kept) <= tools.MOST_LOG_CHARACTERS
    assert len(kept) > 10
    # What the logs take still fits with the rest of the answer.
    assert tools.MOST_LOG_CHARACTERS < LARGEST_ANSWER
