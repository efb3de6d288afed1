"""Label matchers that choose one cluster's series in a Prometheus which has those of several."""

import re
from typing import Final

MAX_MATCHERS: Final = 250
"""Characters."""
# Neither quotes nor backslashes are in a value, so that none ends its string, or the selector.
_MATCHER = r'(?!__)[A-Za-z_][A-Za-z0-9_]*[ ]*=~?[ ]*"[ !#-\[\]-~]*"'
_MATCHERS: Final = re.compile(rf"{_MATCHER}(?:[ ]*,[ ]*{_MATCHER})*", re.ASCII)
_PARTS: Final = re.compile(r'([A-Za-z0-9_]+)[ ]*(=~?)[ ]*("[^"]*")(?:[ ]*,[ ]*)?', re.ASCII)
_BRACE: Final = re.compile(r"\{(\}?)")


def parse_matchers(text: str) -> str:
    """Return matchers as queries have them: name="value" or name=~"pattern", with commas.

    Raises ValueError.
    """
    text = text.strip()
    if len(text) > MAX_MATCHERS:
        raise ValueError(f"Give at most {MAX_MATCHERS} characters.")
    if text and not _MATCHERS.fullmatch(text):
        raise ValueError(
            'Write name="value", or name=~"pattern", with commas between several. A value has no '
            "quotes and no backslashes."
        )
    return ",".join(map("".join, _PARTS.findall(text)))


def add_matchers(query: str, matchers: str) -> str:
    """Return the query with these matchers in each of its selectors, all of which have braces."""
    if not matchers:
        return query
    return _BRACE.sub(lambda brace: f"{{{matchers}{brace[1] or ','}", query)
