"""Policies: rules for the fields of workloads in a scope.

`seams.POLICY_RULES` knows which rules there can be for which field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django import forms
from django.forms import BoundField

from console.rest_bodies import describe_field
from console.typed_forms import TypedValues
from environments import policy_fields, seams
from environments.forms import AssetForm
from environments.kinds.asset_kind import AssetKind
from environments.kinds.columns import build_choice_filter
from environments.models import Asset, Policy
from environments.rest_mapping import (
    BodyPart,
    RestMapping,
    ValueShape,
    WrongType,
    build_choice_shape,
)

MAX_PER_SCOPE = 50
"""Policies of one scope."""


def _build_typed_rules(_: str, value: Mapping[str, Mapping[str, Any]]) -> TypedValues:
    known_fields = {each.name: each for each in policy_fields.list_policy_fields()}
    for name, rule in value.items():
        if name not in known_fields:
            raise WrongType(
                f"has {str(name)[:60]}, which is not a field that a policy can speak of"
            )
        known_attributes = {entry.attribute for entry in known_fields[name].inputs}
        for attribute in rule:
            if attribute not in known_attributes:
                raise WrongType(
                    f"says {str(attribute)[:40]} of {name}, of which can be said "
                    f"{', '.join(sorted(known_attributes))}"
                )
    try:
        # The name without an input says that there are rules, though they may be none.
        return {"rule-": [""], **policy_fields.build_typed_rules(value)}
    except (TypeError, ValueError):
        raise WrongType("cannot be understood") from None


def _serialize_rules(_: str, typed: TypedValues) -> Any:
    def get_typed(name: str) -> Any:
        values = typed.get(name, [])
        return values if len(values) > 1 or _is_multiple_choice(name) else next(iter(values), "")

    return policy_fields.parse_rules(get_typed)


def _is_multiple_choice(name: str) -> bool:
    return any(
        each.build_input_name(entry.attribute) == name
        and entry.kind is seams.InputKind.MULTIPLE_CHOICE
        for each in policy_fields.list_policy_fields()
        for entry in each.inputs
    )


class PolicyRestMapping(RestMapping):
    """A mapping in which inputs of the form are places of the rules."""

    def get_place(self, field: str) -> str:
        for each in policy_fields.list_policy_fields():
            for entry in each.inputs:
                if each.build_input_name(entry.attribute) == field:
                    return f"spec.rules.{each.name}.{entry.attribute}"
        return super().get_place(field)


RULES_SHAPE = ValueShape(
    Annotated[
        dict[str, dict[str, Any]],
        describe_field(problem="must be an object with a rule for each field"),
    ],
    _build_typed_rules,
    _serialize_rules,
)


@dataclass(frozen=True)
class PolicyEntry:
    """A field of workloads with the inputs of its rule."""

    label: str
    about: str
    inputs: Sequence[BoundField]
    has_rule: bool


@dataclass(frozen=True)
class PolicySection:
    """Fields that belong together; `is_open` where one of their rules is set or wrong."""

    title: str
    entries: Sequence[PolicyEntry]
    is_open: bool


class PolicyForm(AssetForm):
    """The form of a policy: the workloads it is for, and an input for each part of each rule."""

    kind = "policy"
    model = Policy
    rest = PolicyRestMapping(
        "policies",
        (
            BodyPart(
                "spec.workloadType",
                "architecture",
                build_choice_shape(all="", distributed="Distributed", training="Standard"),
            ),
            BodyPart("spec.rules", "rules", RULES_SHAPE),
        ),
    )

    architecture = forms.ChoiceField(
        label="For",
        choices=[
            ("", "All workloads"),
            ("Distributed", "Distributed workloads"),
            ("Standard", "Standard workloads"),
        ],
        required=False,
        help_text="Of other workloads its rules say nothing.",
    )

    def __init__(self, data: TypedValues, **more: Any) -> None:
        super().__init__(data, **more)
        self.fields.update(policy_fields.build_form_fields())
        self.fields["name"].help_text = "It is named wherever one of its rules is broken."
        self.fields["scope"].help_text = "It holds there and in everything below."

    @property
    def values(self) -> dict[str, Any]:
        return super().values | {
            "architecture": self.read("architecture", ""),
            "rules": policy_fields.parse_rules(self.read),
        }

    @classmethod
    def build_typed(cls, asset: Asset) -> TypedValues:
        assert isinstance(asset, Policy)
        return {
            "architecture": [asset.architecture],
            **policy_fields.build_typed_rules(asset.rules),
        }

    def find_problems(self) -> seams.Problems:
        return seams.POLICY_RULES.get().find_policy_problems(self.values)

    def validate(self) -> bool:
        """Validate as for every asset, and limit the policies of a scope."""
        if not super().validate():
            return False
        stays = self.changes and self.asset is not None and self.asset.scope == self.asset_scope
        if (
            not stays
            and Policy.objects.at(self.asset_scope)[MAX_PER_SCOPE - 1 : MAX_PER_SCOPE].exists()
        ):
            self.add_error_once(
                "scope",
                (
                    f"There are {MAX_PER_SCOPE} policies there already. Add the rules to one of "
                    "them, or delete one."
                ),
            )
        return not self.has_errors

    @property
    def sections(self) -> Sequence[PolicySection]:
        """The inputs, by section."""
        entries_by_section: dict[str, list[PolicyEntry]] = {}
        for each in policy_fields.list_policy_fields():
            inputs = [self[each.build_input_name(entry.attribute)] for entry in each.inputs]
            says = any(bound.errors or bound.value() for bound in inputs)
            entries_by_section.setdefault(each.section, []).append(
                PolicyEntry(each.label, each.about, inputs, says)
            )
        return [
            PolicySection(title, entries, any(entry.has_rule for entry in entries))
            for title, entries in entries_by_section.items()
        ]

    @property
    def advice(self) -> Sequence[str]:
        """Which rules of the stored policy have no effect beside wider ones."""
        return (
            seams.POLICY_RULES.get().describe_ineffective_rules(self.asset)
            if isinstance(self.asset, Policy) and self.changes
            else ()
        )


POLICY = AssetKind(
    key="policy",
    model=Policy,
    forms={"": PolicyForm},
    path="policies",
    name="policies",
    url="policy",
    noun="policy",
    icon="scale",
    about=(
        "What the fields of workloads must be in a scope: defaults, required, minimum, maximum, "
        "allowed values, locked."
    ),
    fields=("architecture", "rules"),
    filters=(
        build_choice_filter(
            "architecture",
            "For",
            [("Distributed", "Distributed workloads"), ("Standard", "Standard workloads")],
        ),
    ),
    is_counted=False,
    fields_template="environments/_policy_fields.html",
)
