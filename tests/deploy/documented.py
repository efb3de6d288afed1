"""What docs/production.md tells people to type."""

import re

from tests.cluster import ROOT

PRODUCTION = ROOT / "docs" / "production.md"


def blocks(heading: str) -> list[str]:
    """The shell blocks below a heading, up to the next one."""
    _, there, rest = PRODUCTION.read_text().partition(f"\n{heading}\n")
    assert there, f"docs/production.md has no heading {heading}"
    section = re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(r"^( *)```sh\n(.*?)^ *```$", section, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]
