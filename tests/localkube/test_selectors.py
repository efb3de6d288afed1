"""Selectors: what they match and what is refused, in a real server's words."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube import selectors
from localkube.errors import ApiError


def expect_refusal(text: str) -> str:
    with pytest.raises(ApiError) as refused:
        selectors.parse_label_selector(text)
    assert refused.value.code == 400
    return refused.value.message


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a = b , c != d", {"a": "b"}, True),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a in (x, y)", {"a": "y"}, True),
        ("a in (x,)", {"a": ""}, True),
        ("a notin (x,y)", {}, True),
        ("a notin (x,y)", {"a": "x"}, False),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("!a,b", {"b": "1"}, True),
        ("a=", {"a": ""}, True),
        ("a=,b", {"b": ""}, False),
        ("a>1", {"a": "2"}, True),
        ("a<1", {"a": "x"}, False),
        ("in in (in,notin)", {"in": "notin"}, True),
        ("example.com/a-b_c.d=1", {"example.com/a-b_c.d": "1"}, True),
    ],
)
def test_a_label_selector_matches(text: str, labels: dict[str, str], matches: bool) -> None:
    assert selectors.parse_label_selector(text).matches(labels) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a=b,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
    ],
)
def test_a_malformed_selector_is_refused_as_a_real_server_does(text: str, message: str) -> None:
    assert expect_refusal(text) == message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("-a=b", '<nil>: Invalid value: "-a": name part must consist of alphanumeric characters'),
        ("a/b/c", '<nil>: Invalid value: "a/b/c": a qualified name must consist of'),
        ("/a", "prefix part must be non-empty"),
        (f"{'a' * 64}=b", "name part must be no more than 63 bytes"),
        (
            f"a={'b' * 64}",
            f'values[0][a]: Invalid value: "{"b" * 64}": must be no more than 63 bytes',
        ),
        (
            "a=-b",
            (
                'values[0][a]: Invalid value: "-b": a valid label must be an empty string or '
                "consist of"
            ),
        ),
        ("a in ()", "for 'in', 'notin' operators, values set can't be empty"),
        ("a>x", "the value must be an integer"),
    ],
)
def test_a_bad_key_or_value_is_refused(text: str, part: str) -> None:
    assert part in expect_refusal(text)


def test_an_endless_selector_is_refused_before_it_is_read() -> None:
    assert "at most 16384" in expect_refusal("a=b," * 10_000)


@given(st.text(alphabet="ab=!,() \tin<>/-\\", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (
        selectors.parse_label_selector,
        lambda given: selectors.parse_field_selector(given, {"a", "b"}),
    ):
        with contextlib.suppress(ApiError):
            parse(text).matches({"a": "b"})


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,5}", fullmatch=True),
        st.from_regex(r"[a-z0-9]{0,5}", fullmatch=True),
        max_size=5,
    )
)
def test_the_selector_of_all_its_labels_matches_an_object(labels: dict[str, str]) -> None:
    assert selectors.parse_label_selector(
        ",".join(f"{key}={value}" for key, value in labels.items())
    ).matches(labels)


def test_a_field_selector_matches_all_of_its_terms() -> None:
    selector = selectors.parse_field_selector(
        "metadata.name=a,status.phase!=Running", {"metadata.name", "status.phase"}
    )
    assert selector.matches({"metadata.name": "a", "status.phase": "Failed"})
    assert not selector.matches({"metadata.name": "a", "status.phase": "Running"})
    assert selector.matches({"metadata.name": "a"})


def test_a_field_value_may_escape_commas_and_equals_signs() -> None:
    selector = selectors.parse_field_selector(r"reason==a\,b\=c\\", {"reason"})
    assert selector.matches({"reason": "a,b=c\\"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spec.foo=bar", "field label not supported: spec.foo"),
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: ="),
        (r"metadata.name=\x", r"invalid field selector: invalid escape sequence: \x"),
    ],
)
def test_a_bad_field_selector_is_refused(text: str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        selectors.parse_field_selector(text, {"metadata.name"})
    assert (refused.value.code, refused.value.message) == (400, message)
