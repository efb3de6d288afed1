"""What the catalogue says of one field of a workload."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from workloads.specs.choices import Architecture
from workloads.specs.fields.types import FieldType


class Place(StrEnum):
    """Where the wizard shows a field: in a step, or in a section of the setup step."""

    START = "start"
    ENVIRONMENT = "environment"
    SECURITY = "security"
    COMPUTE = "compute"
    NODES = "nodes"
    NUMBERS = "numbers"
    DELIVERY = "delivery"
    DATA = "data"
    GENERAL = "general"
    RADAR = "radar"


class PolicySection(StrEnum):
    """The sections of a policy's page, in their order."""

    COUNT = "Kind and number of pods"
    ENVIRONMENT = "Environment"
    COMPUTE = "Compute resource"
    PLACE = "Nodes"
    DATA = "Data and metadata"
    LIFE = "Lifecycle"
    SECURITY = "Security"


class FactSection(StrEnum):
    """The sections of Details, in their order."""

    WORKLOAD = "Workload"
    ENVIRONMENT = "Environment"
    COMPUTE = "Compute resources of each pod"
    DELIVERY = "Data workers"
    STORAGE = "Storage"
    PLACEMENT = "Placement and labels"
    LIFECYCLE = "Lifecycle"
    RADAR = "Radar"
    SECURITY = "Security"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyData:
    """How policies rule a field.

    `value` is the path of what results from the field, where that is not its value: a limit without
    a request is a request. An `is_implied` field always has a value; `given` are the paths of which
    one shows that it was chosen. `is_open` fields are unlimited without a value, so that a limit
    makes them required. `attributes` are those of a rule that make sense, where they are fewer than
    the type's; `is_preset` tells whether a default can be set.
    """

    section: PolicySection
    name: str = ""
    """Its name in rules, where that is not the end of its path."""
    label: str = ""
    value: str = ""
    is_open: bool = False
    is_implied: bool = False
    given: tuple[str, ...] = ()
    attributes: frozenset[str] | None = None
    is_preset: bool = True
    about: str = ""
    nothing: str = "none"
    """What an empty list is called."""
    choices: tuple[tuple[str, str], ...] = ()
    largest: int | None = None
    is_in_rest: bool = True
    """Whether Run:ai's API has a word for its rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a workload.

    `path` is its place in a Spec; below "setup." each kind of pod has one of its own. `rest` is its
    place in the `spec` of a REST body, and `rest_help` what the API's description says of it.
    """

    path: str
    label: str
    type: FieldType
    place: Place
    help: str = ""
    rest: str = ""
    rest_help: str = ""
    rest_value: str = ""
    """The path of what a body has, where that is not its value."""
    title: str = ""
    """A shorter label, for locks and the master's step; of fields together the first one's."""
    subject: str = ""
    """How a sentence about a problem begins: "The backoff limit"."""
    form: tuple[str, ...] = ()
    """The names of its form fields; () for the last part of the path."""
    lock: str = ""
    """The lock of templates that holds it, where that has another name."""
    fact: str = ""
    """Its name in Details, where that is not the label; fields of one name are one fact."""
    fact_section: FactSection | None = None
    fact_value: str = ""
    """The path of what Details show, where that is not its value."""
    phrase: str = "{}"
    """How Details say its value."""
    policy: PolicyData | None = None
    architecture: Architecture | None = None
    """The only architecture that has it."""
    option: str = ""
    """The option of frameworks that have it, where that is not its name."""

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def form_names(self) -> tuple[str, ...]:
        return self.form or (self.name,)

    @property
    def short_label(self) -> str:
        return self.title or self.label

    @property
    def is_of_pods(self) -> bool:
        """Tell whether each kind of pod has one of its own."""
        return self.path.startswith("setup.")

    @property
    def pod_path(self) -> str:
        """Return the path below the Setup of one kind of pod."""
        return self.path.removeprefix("setup.")

    @property
    def master_key(self) -> str:
        """Return what of the master it belongs to: "security" for "setup.security.uid"."""
        below = self.pod_path.removeprefix("environment.").removeprefix("compute.")
        return below.partition(".")[0] if self.is_of_pods else ""

    @property
    def option_key(self) -> str:
        """Return the option of frameworks that have it, where not all do."""
        return self.option or self.name

    @property
    def lock_key(self) -> str:
        return self.lock or self.name


def get_value(source: Any, path: str) -> Any:
    """Return the value at a path of a Spec or Setup; None below what is None."""
    for name in path.split("."):
        source = None if source is None else getattr(source, name)
    return source
