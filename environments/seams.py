"""What `environments` needs of the floor above it (see `console.seams`)."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from django.db.models import QuerySet

from console.seams import Seam
from environments.models import Asset, Policy, Template
from projects.models import Project, User

Problems = Sequence[tuple[str, str]]
"""(field, sentence) pairs; a field such as "variables.1.name" is the second variable's name."""


class AssetUses(Protocol):
    """Which workloads were made from an asset."""

    def count_workloads(self, ids: Sequence[uuid.UUID], user: User) -> Mapping[uuid.UUID, int]: ...
    def list_workloads_using(self, asset_id: uuid.UUID, user: User | None) -> QuerySet[Any]: ...
    def filter_used_in(self, project: Project, ids: QuerySet[Any]) -> QuerySet[Any]: ...


class AssetRules(Protocol):
    """What is right for an asset of a kind; a kind without rules has no problems."""

    def find_problems(self, kind: str, values: Mapping[str, Any]) -> Problems: ...


class TemplateBodies(Protocol):
    """Templates as the REST API has them."""

    def build_template_body(self, template: Template, user: User) -> dict[str, Any]:
        """Return what a template makes, as far as the user may see its assets."""


class InputKind(Enum):
    """How a part of a policy's rule is asked for."""

    CHECKBOX = auto()
    YES_NO = auto()
    CHOICE = auto()
    MULTIPLE_CHOICE = auto()
    TEXT = auto()
    LINES = auto()
    """Texts, one a line."""
    NAMES = auto()
    PAIRS = auto()
    """NAME=value, one a line."""


@dataclass(frozen=True, slots=True)
class RuleInput:
    """One part of a rule for a field.

    `attribute` is its name in JSON, `is_whole` whether its texts are whole numbers there.
    """

    attribute: str
    label: str
    kind: InputKind
    choices: tuple[tuple[str, str], ...] = ()
    is_whole: bool = False
    help_text: str = ""


@dataclass(frozen=True, slots=True)
class PolicyFormField:
    """A field of workloads, with the parts that a rule for it may have."""

    name: str
    label: str
    section: str
    about: str
    inputs: tuple[RuleInput, ...]

    def build_input_name(self, attribute: str) -> str:
        """Return the name of an input in the form."""
        return f"rule-{self.name.replace('.', '_')}-{attribute}"


ComplianceJudge = Callable[[Asset], Sequence[tuple[str, str, str]]]
"""Returns what policies forbid of an asset as it is: (field, sentence, rule) triples."""


class PolicyRules(Protocol):
    """The fields that policies have rules for, and what policies say."""

    def list_policy_fields(self) -> Sequence[PolicyFormField]: ...

    def find_policy_problems(self, values: Mapping[str, Any]) -> Problems:
        """Return what is wrong with a policy, by the input of the form."""

    def describe_ineffective_rules(self, policy: Policy) -> Sequence[str]:
        """Return sentences about rules without effect beside other policies of the scope."""

    def build_compliance_judge(self, project: Project, architecture: str) -> ComplianceJudge:
        """Return a judge of assets for workloads of an architecture in a project. One query."""


ASSET_USES = Seam[AssetUses]("ASSET_USES")
TEMPLATE_BODIES = Seam[TemplateBodies]("TEMPLATE_BODIES")
ASSET_RULES = Seam[AssetRules]("ASSET_RULES")
POLICY_RULES = Seam[PolicyRules]("POLICY_RULES")
