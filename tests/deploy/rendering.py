"""What kubectl makes of the kustomizations, and what a real API server says of such objects."""

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.cluster import ROOT

Object = dict[str, Any]

DEPLOY = ROOT / "deploy"
KUSTOMIZE = DEPLOY / "kustomize"
OVERLAYS = tuple(sorted(path.name for path in (KUSTOMIZE / "overlays").iterdir()))
CONSOLES = ("example", "object-store")
"""The overlays that have a console."""

needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None and os.environ.get("CI") != "true",
    reason="kubectl is not installed",
)


@cache
def render_kustomization(place: str) -> list[Object]:
    """The objects of a directory below deploy/kustomize, as `kubectl kustomize` gives them."""
    done = subprocess.run(
        ["kubectl", "kustomize", str(KUSTOMIZE / place)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def render_with_component(component: str, directory: Path) -> list[Object]:
    """The objects of the example with another component, by an overlay that is written there."""
    example, added = (
        os.path.relpath(KUSTOMIZE / place, directory)
        for place in ("overlays/example", f"components/{component}")
    )
    (directory / "kustomization.yaml").write_text(
        yaml.safe_dump({"resources": [example], "components": [added]})
    )
    return render_kustomization(str(directory))


def of_kind(objects: list[Object], kind: str) -> dict[str, Object]:
    """Those of a kind, by name."""
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


def pod_specs(objects: list[Object]) -> dict[str, Object]:
    """Every pod template's spec, by the name of what makes the pods."""
    makers = of_kind(objects, "Deployment") | of_kind(objects, "Job")
    return {name: each["spec"]["template"]["spec"] for name, each in makers.items()}


def problems(obj: Object) -> list[str]:
    """What a strict API server would not take of an object: fields it does not know, and values of
    another type.
    """
    known = _schemas()
    name = known["kinds"][f"{obj['apiVersion']}/{obj['kind']}"]
    found = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": known["$defs"]}).iter_errors(
        obj
    )
    return [
        (
            f"{obj['kind']} {obj['metadata']['name']}: {'.'.join(map(str, each.path))}: "
            f"{each.message[:200]}"
        )
        for each in found
    ]


@cache
def _schemas() -> Object:
    schemas: Object = json.loads((Path(__file__).parent / "data" / "schemas.json").read_text())
    return schemas
