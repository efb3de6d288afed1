"""Makes tests/deploy/data/schemas.json: what the API server of KUBECONFIG says of the kinds in
deploy/.

Descriptions are dropped, and with them defaults and extensions: only what a strict check needs is
kept.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "tests" / "deploy" / "data"
KINDS = {
    "api/v1": (
        "ConfigMap",
        "Namespace",
        "PersistentVolumeClaim",
        "Secret",
        "Service",
        "ServiceAccount",
    ),
    "apis/apps/v1": ("Deployment",),
    "apis/batch/v1": ("Job",),
    "apis/networking.k8s.io/v1": ("Ingress", "NetworkPolicy"),
    "apis/policy/v1": ("PodDisruptionBudget",),
    "apis/rbac.authorization.k8s.io/v1": ("ClusterRole", "ClusterRoleBinding"),
    "apis/scheduling.k8s.io/v1": ("PriorityClass",),
}
KEPT = (
    "type",
    "format",
    "enum",
    "items",
    "properties",
    "additionalProperties",
    "required",
    "allOf",
    "oneOf",
    "$ref",
    "maxLength",
    "pattern",
)
PREFIX = "#/components/schemas/"


def fetch_raw(*path: str) -> dict[str, Any]:
    process = subprocess.run(
        ["kubectl", "get", "--raw", *path], capture_output=True, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def strip_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with what a check needs; an object with named properties takes no others."""
    stripped_schema: dict[str, Any] = {}
    for key in KEPT:
        if key not in schema:
            continue
        value = schema[key]
        if key == "properties":
            stripped_schema[key] = {name: strip_schema(each) for name, each in value.items()}
            stripped_schema["additionalProperties"] = False
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            stripped_schema[key] = strip_schema(value)
        elif key in ("allOf", "oneOf"):
            stripped_schema[key] = [strip_schema(each) for each in value]
        elif key == "$ref":
            stripped_schema[key] = "#/$defs/" + value.removeprefix(PREFIX)
        else:
            stripped_schema[key] = value
    return stripped_schema


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(PREFIX)
            else:
                yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def main() -> None:
    definitions: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for place, wanted in KINDS.items():
        schemas = fetch_raw(f"/openapi/v3/{place}")["components"]["schemas"]
        definitions |= schemas
        for name, schema in schemas.items():
            for each in schema.get("x-kubernetes-group-version-kind", ()):
                version = f"{each['group']}/{each['version']}".removeprefix("/")
                if each["kind"] in wanted and name.endswith(f".{each['kind']}"):
                    kinds[f"{version}/{each['kind']}"] = name
    needed: dict[str, Any] = {}
    waiting = list(kinds.values())
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = strip_schema(definitions[name])
            waiting += references(definitions[name])
    content = {"version": fetch_raw("/version")["gitVersion"], "kinds": kinds, "$defs": needed}
    (DATA / "schemas.json").write_text(
        json.dumps(content, separators=(",", ":"), sort_keys=True) + "\n"
    )


if __name__ == "__main__":
    main()
