"""What the key and the value of a label may be, by the rules of Kubernetes. Pure."""

import re

from console.texts import is_dns_subdomain

_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
MAX_LENGTH = 63
_ALLOWED_CHARACTERS = (
    f"at most {MAX_LENGTH} letters, digits, dashes, underscores and dots, starting and ending with "
    "a letter or digit"
)


def describe_key_problem(text: str) -> str:
    """Return what is wrong with the key of a label, in a sentence; "" for nothing."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return "Before the slash there must be a domain in lower case, as in example.com/pool."
    if len(name) > MAX_LENGTH or not _QUALIFIED.fullmatch(name):
        return f"The key must have {_ALLOWED_CHARACTERS}; a domain and a slash may come before it."
    return ""


def describe_value_problem(text: str) -> str:
    """Return what is wrong with the value of a label, in a sentence; "" for nothing. It may be
    empty.
    """
    return (
        ""
        if not text or (len(text) <= MAX_LENGTH and _QUALIFIED.fullmatch(text))
        else f"The value must have {_ALLOWED_CHARACTERS}, or be empty."
    )
