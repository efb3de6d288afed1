"""Texts that people and programs send, and texts for them: numbers, names, words in a sentence."""

import re
from collections.abc import Sequence

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LONG_WHOLE_NUMBER = re.compile(r"(?<![\w.,])[0-9]{4,18}(?!\w)", re.ASCII)
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def parse_number(text: object, max_digits: int = 18) -> int | None:
    """Return the whole number that a text of digits is; None for anything else.

    Numbers of 18 digits fit into every column of a database.
    """
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= max_digits:
        return int(text)
    return None


def group_thousands(text: object) -> str:
    """Return a text with a comma between the thousands of its numbers: "12,800.5 GiB"."""
    return _LONG_WHOLE_NUMBER.sub(lambda number: f"{int(number[0]):,}", str(text))


def is_dns_label(text: str) -> bool:
    """Return whether a namespace can have this name (RFC 1123)."""
    return _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Return whether an object of Kubernetes can have this name (RFC 1123)."""
    return len(text) <= 253 and _DNS_SUBDOMAIN.fullmatch(text) is not None


def join_words(words: Sequence[str], conjunction: str = "and") -> str:
    """Join words as a sentence does: "one, two and three"."""
    return f" {conjunction} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def join_first(words: Sequence[str], most: int = 5) -> str:
    """Join the first words, and say how many more there are: "one, two and 3 more"."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
