"""The steps of the wizard, and where each shows a field of a Spec."""

from dataclasses import dataclass
from enum import StrEnum

from workloads.specs.fields import FIELDS, Place


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


@dataclass(frozen=True)
class Section:
    """A section of the setup step with its title there and, if it has another, of the master's."""

    key: str
    title: str
    places: tuple[Place, ...]
    master_title: str = ""


SECTIONS = (
    Section("environment", "What runs", (Place.ENVIRONMENT, Place.SECURITY), "Environment"),
    Section("compute", "What it gets", (Place.COMPUTE, Place.NODES), "Compute resource"),
    Section("numbers", "How many", (Place.NUMBERS,)),
    Section("delivery", "Data workers", (Place.DELIVERY,)),
    Section("data", "Data & storage", (Place.DATA,)),
    Section("general", "General", (Place.GENERAL,)),
    Section("radar", "Radar", (Place.RADAR,)),
)
_FORM_FIELDS = {"namespace": "project", "queue": "project"}
"""The fields of a Spec that the first step shows under another name."""
_START_FIELDS = (
    "name",
    "project",
    *_FORM_FIELDS,
    *(each.path for each in FIELDS.values() if each.place is Place.START),
)


def get_step(field: str) -> Step:
    """Return the step that shows a field of a Spec, as `find_problems` names it."""
    if field.partition(".")[0] == "master":
        return Step.MASTER
    return Step.START if field in _START_FIELDS else Step.SETUP


def get_start_field(field: str) -> str:
    """Return the name of the first step's form field for a field of a Spec."""
    return _FORM_FIELDS.get(field, field)
