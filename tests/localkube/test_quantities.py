"""Quantities are read and written as Go's `resource.Quantity` does."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube import quantities


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", "1"),
        ("0.5", "0.5"),
        ("500m", "0.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+2", "2"),
        ("-1Ki", "-1024"),
        ("1Gi", str(2**30)),
        ("1.5Gi", str(3 * 2**29)),
        ("1G", "1000000000"),
        ("1E", str(10**18)),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("2e-2", "0.02"),
        ("100n", "1e-7"),
        ("7u", "7e-6"),
        (8, "8"),
        (0.25, "0.25"),
    ],
)
def test_it_reads_every_form(text: str | int | float, value: str) -> None:
    assert quantities.parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "12 gigs",
        "1Gi ",
        "1.2.3",
        "-",
        ".",
        "1i",
        "Gi",
        "0x10",
        "１",
        "1KB",
        "9" * 65,
        True,
    ],
)
def test_it_refuses_what_does_not_look_like_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantities must match|suffix"):
        quantities.parse_quantity(text)


@pytest.mark.parametrize("text", ["1ki", "1mi", "1e", "1e999999999"])
def test_an_unknown_suffix_is_named_as_the_fault(text: str) -> None:
    with pytest.raises(ValueError, match="unable to parse quantity's suffix"):
        quantities.parse_quantity(text)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1000", "1k"),
        (16, "16"),
        ("1500", "1500"),
        ("0.5Gi", "512Mi"),
        ("1.5Gi", "1536Mi"),
        ("100", "100"),
        ("1000Mi", "1000Mi"),
        ("1e3", "1e3"),
        ("12e2", "1200"),
        ("0", "0"),
        ("0Gi", "0"),
        ("512", "512"),
        ("1000m", "1"),
        ("0.1n", "1n"),
        ("1.5", "1500m"),
        ("100Ki", "100Ki"),
        ("1023", "1023"),
        ("0.5Ki", "512"),
        ("-2000", "-2k"),
    ],
)
def test_it_writes_the_canonical_form(given: str | int, stored: str) -> None:
    assert quantities.canonicalize_quantity(given) == stored


@given(st.integers(-(10**15), 10**15), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "e2"]))
def test_the_canonical_form_keeps_the_value(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    canonical = quantities.canonicalize_quantity(text)
    assert quantities.parse_quantity(canonical) == quantities.parse_quantity(text)
    assert quantities.canonicalize_quantity(canonical) == canonical


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        value = quantities.parse_quantity(text)
    except ValueError:
        return
    assert abs(value) <= 2**63


def test_amounts_come_in_the_unit_one_works_with() -> None:
    assert quantities.parse_bytes("1Ki") == 1024
    assert quantities.parse_bytes("0.5") == 1
    assert quantities.parse_count("2") == 2


def test_numbers_become_quantities() -> None:
    assert quantities.format_quantity(0.5) == "500m"
    assert quantities.format_quantity(2**30, binary=True) == "1Gi"
    assert quantities.format_quantity(Decimal(3)) == "3"


def test_a_huge_value_is_bounded_as_in_go() -> None:
    assert quantities.parse_quantity("99999E") == 2**63 - 1
