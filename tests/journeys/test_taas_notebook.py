"""The tutorial `examples/taas.ipynb` in a real Jupyter kernel, on an embedded cluster."""

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.cluster import ROOT
from tests.delivery.kernel import execute_notebook
from tests.installation import Installation, eventually
from tests.rest import Program

pytestmark = pytest.mark.timeout(900)

PASSWORD = "correct horse battery"


def count_gpus(program: Program) -> float:
    """Return how many GPUs Muster knows of."""
    nodes = program.ask("GET", "/nodes")["nodes"]
    return float(sum(each["gpuInfo"]["gpuCount"] for each in nodes))


def test_the_tutorial_trains_on_data_workers(tmp_path: Path) -> None:
    read: Any = nbformat.read  # the package does not say its types
    notebook = read(ROOT / "examples/taas.ipynb", as_version=4)
    options = {"localkube_gpus": 4, "admin_password": PASSWORD}
    with Installation(tmp_path / "var", **options).migrated() as muster:
        program = Program(muster.url, PASSWORD)
        variables = {
            "MUSTER_SERVER": muster.url,
            "MUSTER_TOKEN": program.token,
            "MUSTER_PROJECT": "team-a",
        }
        (tmp_path / "notebook").mkdir()
        eventually(lambda: count_gpus(program) == 4)
        outputs = execute_notebook(notebook, tmp_path / "notebook", variables, allow_errors=True)
        workloads = program.ask("GET", "/workloads")["workloads"]
    _, _, _, local, trained, exit_code, pragma = outputs
    assert "step 3 y =" in local
    assert "trained: 3.0 1.0" in trained, trained
    assert "step 20 y =" in trained
    assert exit_code == "0", trained
    assert "trained from the pragma" in pragma, pragma
    assert {each["phase"] for each in workloads} == {"Completed"}
    assert not [each for each in outputs if program.token in each]
