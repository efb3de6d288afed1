"""Forms of words that clusters write, each with ours and what would help. Pure."""

import re
from dataclasses import dataclass

LONGEST_DETAIL = 200
"""Characters of a cluster's own words within ours."""


@dataclass(frozen=True, slots=True)
class WordForm:
    """A form of words of a cluster, and ours; `words` may name the groups of the pattern.

    `is_queued` says that what it tells of starts as soon as there is room or quota.
    """

    pattern: re.Pattern[str]
    words: str
    help: str
    is_queued: bool = False

    def describe(self, match: re.Match[str], **more: str) -> str:
        """Return our words for a match of the pattern; `more` goes before its groups.

        A group that took no part is "".
        """
        groups = {name: value or "" for name, value in match.groupdict().items()}
        return self.words.format(**(groups | more))
