"""Write what the command line takes from the server, and its documents: cli.md and dialects.md.

The flags of a submission come from `workloads.rest.submit_flags`. With --check
nothing is written: it fails where a file is stale, as `make check` does.
"""

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

BASE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BASE), str(BASE / "cli" / "src")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

import django  # noqa: E402 - the path comes first

django.setup()

from console import VERSION  # noqa: E402
from muster_cli import reference  # noqa: E402
from muster_cli.dialects import reference as dialects_reference  # noqa: E402
from workloads.rest.submit_flags import (  # noqa: E402
    FieldFlag,
    get_command,
    list_field_flags,
    list_volume_flags,
)
from workloads.specs import Framework  # noqa: E402
from workloads.specs.fields import types  # noqa: E402

DATA_FILE = BASE / "cli" / "src" / "muster_cli" / "data" / "fields.json"
DOCUMENTS = {
    BASE / "docs" / "cli.md": reference.render_reference,
    BASE / "docs" / "dialects.md": dialects_reference.render_reference,
}


def build_data() -> dict[str, Any]:
    """Return what the command line knows of the server."""
    return {
        "about": "Made by scripts/command_line.py from the server's fields; not changed by hand.",
        "serverVersion": VERSION,
        "frameworks": [
            {
                "command": get_command(each),
                "value": each.value,
                "label": each.label,
                "master": each.master_name,
            }
            for each in Framework
        ],
        "fields": [describe_field(each) for each in list_field_flags()],
        "volumes": [
            {"flag": each.flag, "place": each.place, "keys": each.keys}
            for each in list_volume_flags()
        ],
    }


def describe_field(flag: FieldFlag) -> dict[str, Any]:
    """Return what the command line needs of a field."""
    field, kind = flag.field, flag.field.type
    described: dict[str, Any] = {
        "flags": list(flag.flags),
        "place": flag.place,
        "kind": flag.kind,
        "label": field.label,
        "help": field.help or field.rest_help,
        "ofPods": field.is_of_pods,
        "architecture": field.architecture.value if field.architecture else "",
        "frameworks": [each.value for each in flag.frameworks],
    }
    if isinstance(kind, types.Choice) and issubclass(kind.options, StrEnum):
        described["choices"] = [each.value for each in kind.options]
    if isinstance(kind, types.Number):
        described |= {"minimum": kind.least, "maximum": kind.most}
    return described


def build_files() -> dict[Path, str]:
    """Return the text of each file that is made."""
    return {DATA_FILE: f"{json.dumps(build_data(), indent=1)}\n"}


def write_files() -> None:
    """Write the data file first: the commands that the documents describe are made of it."""
    DATA_FILE.write_text(build_files()[DATA_FILE])
    for path, render in DOCUMENTS.items():
        path.write_text(render())


def list_stale() -> list[Path]:
    """Return the files that are not as they would be made now."""
    wanted = build_files() | {path: render() for path, render in DOCUMENTS.items()}
    return [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]


def main() -> int:
    """Write the files, or with --check say which are stale."""
    if "--check" not in sys.argv[1:]:
        write_files()
        return 0
    stale = list_stale()
    for path in stale:
        print(f"{path.relative_to(BASE)} is stale: run `python scripts/command_line.py`.")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
