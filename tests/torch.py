"""The interpreter whose torch the tests use; torch is in no lock file, so it has an environment of
its own.
"""

import os
import subprocess
import sys

import pytest

TORCH = os.environ.get("MUSTER_TORCH_PYTHON", sys.executable)
HAS_TORCH = (
    subprocess.run([TORCH, "-c", "import torch"], capture_output=True, check=False).returncode == 0
)

needs_torch = pytest.mark.skipif(
    not HAS_TORCH,
    reason=(
        f"{TORCH} cannot import torch; MUSTER_TORCH_PYTHON names an interpreter that can (.ci/run "
        "makes one)"
    ),
)
