"""What the key and the value of a label may be, by the rules of Kubernetes. Pure."""

import re

_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
LONGEST = 63
LONGEST_DOMAIN = 253
_WORDS = (
    f"at most {LONGEST} letters, digits, dashes, underscores and dots, starting and ending with a "
    "letter or digit"
)


def wrong_key(text: str) -> str:
    """What is wrong with the key of a label, in a sentence; "" for nothing."""
    prefix, slash, name = text.rpartition("/")
    if slash and (len(prefix) > LONGEST_DOMAIN or not _DOMAIN.fullmatch(prefix)):
        return "Before the slash there must be a domain in lower case, as in example.com/pool."
    if len(name) > LONGEST or not _QUALIFIED.fullmatch(name):
        return f"The key must have {_WORDS}; a domain and a slash may come before it."
    return ""


def wrong_value(text: str) -> str:
    """The same for a value, which may be empty."""
    return (
        ""
        if not text or (len(text) <= LONGEST and _QUALIFIED.fullmatch(text))
        else f"The value must have {_WORDS}, or be empty."
    )
