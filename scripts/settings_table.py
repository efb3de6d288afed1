"""Writes docs/settings.md from console/options.py: every variable, its default, what it is for."""

import sys
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BASE))

from console.options import PREFIX, Options  # noqa: E402 - the path comes first

DOCUMENT = BASE / "docs" / "settings.md"
HEAD = """# Settings

All settings are environment variables, read once when a process starts. None has to be set to run
`make up`. What cannot be understood is refused with the variable's name. `MUSTER_PRODUCTION=1` asks
for more: see [production.md](production.md).

| variable | default | what it is for |
|---|---|---|
"""
FOOT = """
Sizes are bytes. Switches are `1` or `0`. `DATA_DIR` is the value of `MUSTER_DATA_DIR`.

This table is made from `console/options.py` by `python scripts/settings_table.py`.
"""


def document() -> str:
    """The text of docs/settings.md."""
    lines = []
    for name, field in Options.model_fields.items():
        default = field.default
        preset = (
            ""
            if default in ("", None)
            else f"`{int(default) if isinstance(default, bool) else default}`"
        )
        description = (field.description or "").replace("|", "\\|")
        lines.append(
            f"| `{PREFIX}{name.upper()}` | {preset} | {description[:1].upper()}{description[1:]} |"
        )
    return HEAD + "\n".join(lines) + "\n" + FOOT


if __name__ == "__main__":
    DOCUMENT.write_text(document())
