"""The schemas of training kinds that localkube does not serve, and what the real ones find wrong
with an object.

`python -m tests.workloads.crds DIRECTORY` makes the data from the upstream CRD files, descriptions
dropped.
"""

import copy
import gzip
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from localkube import schemas
from localkube.schemas import build
from localkube.schemas.notation import OBJECT_META

DATA = Path(__file__).parent / "data"
OTHERS: Mapping[str, str] = {
    "kubeflow.org/v1/MPIJob": "kubeflow.org_v1_mpijobs.yaml",
    "trainer.kubeflow.org/v1alpha1/TrainJob": "trainer.kubeflow.org_v1alpha1_trainjobs.yaml",
}


def load_schema(api_version: str, kind: str) -> schemas.Schema:
    """Load the schema of a kind: localkube's, or one of the OTHERS."""
    if f"{api_version}/{kind}" in OTHERS:
        return _load_other_schema(f"{api_version}/{kind}")
    return schemas.load_schema(
        "persistentvolumeclaims" if kind == "PersistentVolumeClaim" else f"{kind.lower()}s"
    )


def find_schema_problems(obj: Mapping[str, Any]) -> list[Any]:
    """What is unknown, missing or wrong in an object by its real schema; [] for one that a strict
    server takes.
    """
    found = load_schema(obj["apiVersion"], obj["kind"])
    checked = copy.deepcopy(dict(obj))
    return [
        *found.prune(checked),
        *found.validate(checked),
        *([] if checked == obj else ["something was dropped"]),
    ]


def load_stripped_schema(directory: Path, kind: str) -> Any:
    """Load a kind's schema from its upstream file, without descriptions."""
    return build.extract_schema(build.read_crd(directory / OTHERS[kind]))


def path_of(kind: str) -> Path:
    return DATA / f"schema-{kind.replace('/', '-').lower()}.json.gz"


@cache
def _load_other_schema(kind: str) -> schemas.Schema:
    root = json.loads(gzip.decompress(path_of(kind).read_bytes()))
    root["properties"]["metadata"] = OBJECT_META
    return schemas.Schema(root, custom=True)


if __name__ == "__main__":
    for each in OTHERS:
        text = json.dumps(
            load_stripped_schema(Path(sys.argv[1]), each), separators=(",", ":"), sort_keys=True
        )
        path_of(each).write_bytes(gzip.compress(text.encode(), mtime=0))
