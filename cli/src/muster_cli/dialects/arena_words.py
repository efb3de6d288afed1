"""What Arena calls types and statuses."""

from collections.abc import Mapping
from typing import Any

from muster_cli.errors import UsageProblem

TRAINERS = {
    "PyTorch": "PYTORCHJOB",
    "TF": "TFJOB",
    "MPI": "MPIJOB",
    "XGBoost": "XGBOOSTJOB",
    "JAX": "JAXJOB",
    "Paddle": "PADDLEJOB",
}
"""Each framework of REST as a type; what has none is a JOB."""
_SHORTHANDS = {"py": "pytorchjob", "pytorch": "pytorchjob", "tf": "tfjob", "mpi": "mpijob"}
STATUSES = {
    "Creating": "PENDING",
    "Initializing": "PENDING",
    "Resuming": "PENDING",
    "Pending": "PENDING",
    "Running": "RUNNING",
    "Degraded": "RUNNING",
    "Completed": "SUCCEEDED",
    "Failed": "FAILED",
}
"""Phases of REST; others are shown as they are."""


def get_trainer(workload: Mapping[str, Any]) -> str:
    """Return the type of a workload."""
    return TRAINERS.get(str(workload.get("distributedFramework") or ""), "JOB")


def get_status(workload: Mapping[str, Any]) -> str:
    """Return the status of a workload."""
    phase = str(workload["phase"])
    return STATUSES.get(phase, phase.upper())


def parse_type(text: str) -> str:
    """Return the type that a word means; "" for no word. Raises UsageProblem."""
    name = _SHORTHANDS.get(text.lower(), text.lower()).upper()
    if name and name not in (*TRAINERS.values(), "JOB"):
        type_names = ", ".join(each.lower() for each in TRAINERS.values())
        raise UsageProblem(f"There is no type {text}.", f"There are {type_names} and job.")
    return name


def check_type(workload: Mapping[str, Any], text: str) -> None:
    """Check that a workload is of the type that was typed. Raises UsageProblem."""
    wanted = parse_type(text)
    if wanted and get_trainer(workload) != wanted:
        raise UsageProblem(
            f"{workload['name']} is a {get_trainer(workload).lower()}, and not a {wanted.lower()}.",
            "Leave --type out: a name stands for one workload of a project.",
        )
