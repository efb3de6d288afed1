"""The steps of the wizard, and where each shows a field of a Spec."""

from enum import StrEnum


class Step(StrEnum):
    START = "start"
    SETUP = "setup"
    MASTER = "master"
    REVIEW = "review"

    @property
    def label(self) -> str:
        return {
            "start": "Start",
            "setup": "Workload setup",
            "master": "Master",
            "review": "Review",
        }[self.value]


_FORM_FIELDS = {
    "elastic": "min_workers",
    "elastic.min_workers": "min_workers",
    "elastic.max_workers": "max_workers",
    "elastic.max_restarts": "max_restarts",
    "mpi": "slots",
    "mpi.slots": "slots",
    "mpi.launcher": "launcher",
    "mpi.ssh_path": "ssh_path",
    "namespace": "project",
    "queue": "project",
}
"""The fields of a Spec that the forms show under another name."""
_START_FIELDS = (
    "name",
    "project",
    "namespace",
    "queue",
    "architecture",
    "framework",
    "configuration",
)


def get_step(field: str) -> Step:
    """Return the step that shows a field of a Spec, as `find_problems` names it."""
    if field.partition(".")[0] == "master":
        return Step.MASTER
    return Step.START if field in _START_FIELDS else Step.SETUP


def get_form_field(field: str) -> str:
    """Return the name of the wizard's form field for a field of a Spec."""
    return _FORM_FIELDS.get(field, field).removeprefix("setup.").removeprefix("lifecycle.")
