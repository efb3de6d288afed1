"""Write what the command line takes from the server: its fields, and docs/cli.md.

The fields of a submission come from the catalogue and from the OpenAPI document. With --check
nothing is written: it fails where a file is stale, as `make check` does.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
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
from workloads.api.api_description import build_openapi_document  # noqa: E402
from workloads.specs import Framework  # noqa: E402
from workloads.specs.fields import FIELDS, Field, types  # noqa: E402

DATA_FILE = BASE / "cli" / "src" / "muster_cli" / "data" / "fields.json"
DOCUMENT = BASE / "docs" / "cli.md"
SUBMIT_PATH = "/api/v1/workloads/distributed"

FLAG_NAMES: Mapping[str, tuple[str, ...]] = {
    "setup.environment.image": ("--image", "-i"),
    "setup.environment.variables": ("--env", "-e"),
    "setup.environment.pull_secrets": ("--image-pull-secret",),
    "setup.security.capabilities": ("--capability",),
    "setup.compute.gpus.devices": ("--gpus", "-g"),
    "setup.compute.gpus.portion": ("--gpu-portion",),
    "setup.compute.gpus.memory": ("--gpu-memory",),
    "setup.compute.cpu_request": ("--cpu",),
    "setup.compute.cpu_limit": ("--cpu-limit",),
    "setup.compute.memory_request": ("--memory",),
    "setup.compute.memory_limit": ("--memory-limit",),
    "setup.compute.large_shm": ("--large-shm",),
    "setup.compute.extended": ("--extended-resource",),
    "setup.node_pools": ("--node-pool",),
    "setup.topology": ("--topology",),
    "setup.tolerations": ("--toleration",),
    "workers": ("--workers",),
    "lifecycle.priority": ("--priority",),
    "lifecycle.grace_seconds": ("--grace-period",),
    "lifecycle.preemption_delay": ("--preemption-delay",),
    "lifecycle.auto_delete_seconds": ("--auto-delete",),
    "setup.annotations": ("--annotation",),
    "setup.labels": ("--label", "-l"),
}
"""Shorter flags than the field's name in REST; other fields are called as REST calls them."""
VOLUME_FLAGS = {
    "emptyDirVolume": "--empty-dir",
    "configMapVolume": "--config-map",
    "secretVolume": "--secret",
}
FRAMEWORK_COMMANDS = {Framework.TENSORFLOW: "tensorflow"}
KINDS: Mapping[type[types.FieldType], str] = {
    types.Text: "text",
    types.CommandLine: "text",
    types.Names: "names",
    types.Ids: "text",
    types.Number: "integer",
    types.Flag: "flag",
    types.YesNo: "flag",
    types.Choice: "choice",
    types.Quantity: "text",
    types.Cores: "number",
    types.Portion: "number",
    types.Pairs: "pairs",
    types.TopologyKey: "topology",
}
"""How each type of field is typed on the command line."""
ROW_KINDS = {"Variable": "variables", "ExtendedResource": "resources", "Toleration": "tolerations"}


def build_data() -> dict[str, Any]:
    """Return what the command line knows of the server."""
    schema = build_openapi_document()["paths"][SUBMIT_PATH]["post"]["requestBody"]["content"]
    spec = schema["application/json"]["schema"]["properties"]["spec"]["properties"]
    return {
        "about": "Made by scripts/command_line.py from the server's fields; not changed by hand.",
        "serverVersion": VERSION,
        "frameworks": [
            {
                "command": FRAMEWORK_COMMANDS.get(each, each.value.lower()),
                "value": each.value,
                "label": each.label,
                "master": each.master_name,
            }
            for each in Framework
        ],
        "fields": list(list_fields()),
        "volumes": list(list_volumes(spec["storage"]["properties"])),
    }


def list_fields() -> Iterator[dict[str, Any]]:
    """Yield the fields that have a flag; volumes have their own."""
    for path, field in FIELDS.items():
        if field.rest and path not in ("framework", "setup.volumes"):
            yield describe_field(path, field)


def describe_field(path: str, field: Field) -> dict[str, Any]:
    """Return what the command line needs of a field."""
    kind = field.type
    frameworks = [each.value for each in Framework if field.name in each.options]
    described: dict[str, Any] = {
        "flags": list(FLAG_NAMES.get(path) or [f"--{hyphenate(field.rest.rpartition('.')[2])}"]),
        "place": field.rest,
        "kind": find_kind(kind),
        "label": field.label,
        "help": field.help or field.rest_help,
        "ofPods": field.is_of_pods,
        "architecture": field.architecture.value if field.architecture else "",
        "frameworks": frameworks if any(field.name in each.options for each in Framework) else [],
    }
    if isinstance(kind, types.Choice) and issubclass(kind.options, StrEnum):
        described["choices"] = [each.value for each in kind.options]
    if isinstance(kind, types.Number):
        described |= {"minimum": kind.least, "maximum": kind.most}
    if isinstance(kind, types.Names) and kind.are_objects:
        described["kind"] = "objects"
    return described


def find_kind(kind: types.FieldType) -> str:
    """Return how a field of this type is typed."""
    if type(kind) in KINDS:
        return KINDS[type(kind)]
    if isinstance(kind, types.Rows) and kind.part.__name__ in ROW_KINDS:
        return ROW_KINDS[kind.part.__name__]
    raise SystemExit(f"scripts/command_line.py does not know how a {kind!r} is typed.")


def hyphenate(name: str) -> str:
    """Return a name of REST as a flag: "runAsUid" is "run-as-uid"."""
    return re.sub("(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def list_volumes(storage: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the kinds of volumes, each with its keys; those that do nothing are left out."""
    for name, schema in storage.items():
        if "items" in schema:
            keys = dict(list_keys(schema["items"]["properties"]))
            flag = VOLUME_FLAGS.get(name, f"--{hyphenate(name)}")
            yield {"flag": flag, "place": f"storage.{name}", "keys": keys}


def list_keys(properties: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys of a volume by their paths, with the type of each."""
    for name, schema in properties.items():
        if (above, name) in (("", "exclude"), ("", "name")):
            continue
        if "properties" in schema:
            yield from list_keys(schema["properties"], f"{above}{name}.")
            continue
        kind = schema.get("type", "string")
        kinds = [kind] if isinstance(kind, str) else [each for each in kind if each != "null"]
        yield f"{above}{name}", kinds[0]


def build_files() -> dict[Path, str]:
    """Return the text of each file that is made."""
    return {DATA_FILE: f"{json.dumps(build_data(), indent=1)}\n"}


def write_files() -> None:
    """Write the data file first: the commands that the document describes are made of it."""
    DATA_FILE.write_text(build_files()[DATA_FILE])
    DOCUMENT.write_text(reference.render_reference())


def list_stale() -> list[Path]:
    """Return the files that are not as they would be made now."""
    wanted = build_files() | {DOCUMENT: reference.render_reference()}
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
