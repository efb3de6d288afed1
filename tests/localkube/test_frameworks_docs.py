"""The jobs in docs/frameworks.md are jobs that the operators of the embedded cluster take."""

import re

import pytest
import yaml

from localkube import resources, schemas
from localkube.controllers import framework, mpi_spec
from localkube.controllers.jax import Jax
from localkube.controllers.paddle import Paddle
from localkube.controllers.pytorch import PyTorch
from localkube.controllers.tensorflow import TensorFlow
from localkube.controllers.xgboost import XGBoost
from localkube.kubelet import images
from localkube.metadata import Object
from tests.cluster import ROOT

TEXT = (ROOT / "docs/frameworks.md").read_text()
JOBS: list[Object] = [
    yaml.safe_load(block)
    for block in re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
]
FRAMEWORKS: tuple[framework.Framework, ...] = (PyTorch(), TensorFlow(), XGBoost(), Jax(), Paddle())


def problems(job: Object) -> list[str]:
    if job["kind"] == "MPIJob":
        mpi_job = framework.parse_training_job(mpi_spec.Mpi(), job)
        return list(mpi_spec.find_problems(mpi_job))
    own = next(each for each in FRAMEWORKS if each.resource.kind == job["kind"])
    return list(framework.find_problems(own, framework.parse_training_job(own, job)))


def test_there_is_an_example_of_every_kind() -> None:
    assert {job["kind"] for job in JOBS} == {
        "PyTorchJob",
        "TFJob",
        "XGBoostJob",
        "JAXJob",
        "PaddleJob",
        "MPIJob",
    }


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job["metadata"]["name"])
def test_an_example_is_a_job(job: Object) -> None:
    resource = resources.find_by_kind(job["apiVersion"], job["kind"])
    assert resource is not None
    schema = schemas.load_schema(resource.schema)
    assert schema.prune(job) == []
    assert schema.validate(job) == []
    assert problems(job) == []
    (replicas,) = (each for name, each in job["spec"].items() if name.endswith("ReplicaSpecs"))
    for replica in replicas.values():
        for container in replica["template"]["spec"]["containers"]:
            assert "command" in container or container["image"] in images.load_catalog()
