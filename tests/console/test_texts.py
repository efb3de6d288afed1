"""Numbers in texts, and words joined in a sentence."""

import pytest

from console.texts import (
    group_thousands,
    is_dns_label,
    is_dns_subdomain,
    join_first,
    join_words,
    parse_number,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("", None),
        ("-1", None),
        ("1.0", None),
        (" 1", None),
        ("1_000", None),
        ("٣", None),
        ("²", None),
        (None, None),
        (5, None),
    ],
)
def test_a_number_is_a_text_of_digits_that_a_column_holds(text: object, number: int | None) -> None:
    assert parse_number(text) == number


def test_a_number_has_no_more_digits_than_its_caller_takes() -> None:
    assert parse_number("999", 3) == 999
    assert parse_number("1000", 3) is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [([], ""), (["a"], "a"), (["a", "b"], "a or b"), (["a", "b", "c"], "a, b or c")],
)
def test_words_are_joined_as_a_sentence_does(words: list[str], sentence: str) -> None:
    assert join_words(words, "or") == sentence


def test_of_many_words_the_first_stand_there_and_how_many_more() -> None:
    assert join_first(["a", "b", "c"], 3) == "a, b, c"
    assert join_first(["a", "b", "c", "d", "e"], 3) == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("text", "is_label", "is_subdomain"),
    [
        ("a", True, True),
        ("team-a1", True, True),
        ("a" * 63, True, True),
        ("a" * 64, False, True),
        ("a.b", False, True),
        ("a" * 254, False, False),
        ("", False, False),
        ("-a", False, False),
        ("a-", False, False),
        ("a..b", False, False),
        ("A", False, False),
        ("a\n", False, False),
        ("a/b", False, False),
    ],
)
def test_names_of_objects_are_those_of_kubernetes(
    text: str, is_label: bool, is_subdomain: bool
) -> None:
    assert is_dns_label(text) is is_label
    assert is_dns_subdomain(text) is is_subdomain


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "None"),
        (999, "999"),
        (1200, "1,200"),
        ("12800.5 GiB", "12,800.5 GiB"),
        ("0.33333", "0.33333"),
        ("1000/20000", "1,000/20,000"),
        ("12,800", "12,800"),
        ("a4096 4096Mi", "a4096 4096Mi"),
        ("-1200", "-1,200"),
    ],
)
def test_long_numbers_have_their_thousands_apart(text: object, words: str) -> None:
    assert group_thousands(text) == words
