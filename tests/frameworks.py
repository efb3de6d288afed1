"""The environment with the training frameworks. They are large and in no lock file, so `make
test-frameworks` makes it and names it.
"""

import os
from pathlib import Path

import pytest

PYTHON = os.environ.get("MUSTER_FRAMEWORKS_PYTHON", "")
"""An interpreter that has what requirements-frameworks.txt names."""

MPIRUN = str(Path(PYTHON).parent / "mpirun")

needs_frameworks = pytest.mark.skipif(
    not PYTHON, reason="the training frameworks are not installed: make test-frameworks does it"
)
