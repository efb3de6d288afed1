"""Builds `data/` from the upstream CRD files: `python -m localkube.schemas.build
DIRECTORY_OF_CRDS`.

Descriptions are dropped. The pod template that every training kind embeds is kept once, in
`pod-spec.json`, and referred to. To carry another kind, add its line to KINDS and run this again.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).parent / "data"

KINDS = {
    "pytorchjobs": "kubeflow.org_v1_pytorchjobs.yaml",
    "tfjobs": "kubeflow.org_v1_tfjobs.yaml",
    "xgboostjobs": "kubeflow.org_v1_xgboostjobs.yaml",
    "jaxjobs": "kubeflow.org_v1_jaxjobs.yaml",
    "paddlejobs": "kubeflow.org_v1_paddlejobs.yaml",
    "mpijobs": "kubeflow.org_v2beta1_mpijobs.yaml",
    "queues": "scheduling.run.ai_v2_queues.yaml",
    "podgroups": "scheduling.run.ai_v2alpha2_podgroups.yaml",
}
"""Plural name to upstream file.

Of MPIJob a cluster serves one of two, the training operator's v1 or this one.
"""

POD_SPEC_SOURCE = (
    "kubeflow.org_v1_pytorchjobs.yaml",
    ("spec", "pytorchReplicaSpecs", "*", "template", "spec"),
)
"""The place from which the one pod spec is taken; "*" stands for the values of a map."""

REFERENCE_KEY = "$ref"


def read_crd(path: Path) -> dict[str, Any]:
    crd: dict[str, Any] = yaml.load(path.read_text(), yaml.CSafeLoader)
    return crd


def strip_descriptions(node: Any) -> Any:
    """Return a copy without descriptions.

    A property that is called `description` stays: its value is a schema and no text.
    """
    if isinstance(node, dict):
        return {
            key: strip_descriptions(value)
            for key, value in node.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [strip_descriptions(item) for item in node] if isinstance(node, list) else node


def extract_schema(crd: dict[str, Any]) -> dict[str, Any]:
    stripped: dict[str, Any] = strip_descriptions(
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    )
    return stripped


def replace_pod_spec(node: Any, shared: dict[str, Any]) -> Any:
    """Return a copy with references to the shared pod spec.

    Every part that equals it is replaced.
    """
    if node == shared:
        return {REFERENCE_KEY: "pod-spec"}
    if isinstance(node, dict):
        return {key: replace_pod_spec(value, shared) for key, value in node.items()}
    return [replace_pod_spec(item, shared) for item in node] if isinstance(node, list) else node


def build_definition(crd: dict[str, Any]) -> dict[str, Any]:
    """Build what the registry needs to know of a kind, without its schema."""
    spec, version = crd["spec"], crd["spec"]["versions"][0]
    return {
        "group": spec["group"],
        "version": version["name"],
        "scope": spec["scope"],
        "names": spec["names"],
        "columns": strip_descriptions(version.get("additionalPrinterColumns", [])),
        "subresources": version.get("subresources", {}),
    }


def extract_pod_spec(directory: Path) -> dict[str, Any]:
    name, path = POD_SPEC_SOURCE
    node = extract_schema(read_crd(directory / name))
    for step in path:
        node = node["additionalProperties"] if step == "*" else node["properties"][step]
    return node


def write_json(directory: Path, name: str, content: Any) -> None:
    (directory / f"{name}.json").write_text(
        json.dumps(content, separators=(",", ":"), sort_keys=True) + "\n"
    )


def main(directory: Path, destination: Path = DATA) -> None:
    """Write every data file. `directory` holds the upstream files that KINDS names."""
    shared = extract_pod_spec(directory)
    write_json(destination, "pod-spec", shared)
    crds = {plural: read_crd(directory / name) for plural, name in KINDS.items()}
    for plural, crd in crds.items():
        write_json(destination, plural, replace_pod_spec(extract_schema(crd), shared))
    write_json(
        destination, "definitions", {plural: build_definition(crd) for plural, crd in crds.items()}
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m localkube.schemas.build DIRECTORY_OF_CRDS")
    main(Path(sys.argv[1]))
