"""Policies: what a workload's fields must be in a scope. What can be said of which field,
`policy_fields` knows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms import BoundField

from console.typed import Typed
from environments import policy_fields
from environments.forms import AssetForm
from environments.kinds.columns import of_choices
from environments.kinds.recipe import Kind
from environments.models import Asset, Policy
from environments.rest import Part, Rest, Shape, Unfit, choice

MOST_OF_SCOPE = 50
"""Policies of one scope."""


def _read_rules(_: str, value: Any) -> Typed:
    if not isinstance(value, Mapping):
        raise Unfit("must be an object with a rule for each field")
    known = {each.name: each for each in policy_fields.speakable()}
    for name, rule in value.items():
        if name not in known:
            raise Unfit(f"has {str(name)[:60]}, which is not a field that a policy can speak of")
        if not isinstance(rule, Mapping):
            raise Unfit(f"must have an object for {name}")
        said = {entry.attribute for entry in known[name].inputs}
        for attribute in rule:
            if attribute not in said:
                raise Unfit(
                    f"says {str(attribute)[:40]} of {name}, of which can be said "
                    f"{', '.join(sorted(said))}"
                )
    try:
        # The name without an input says that there are rules, though they may be none.
        return {"rule-": [""], **policy_fields.typed_rules(value)}
    except (TypeError, ValueError):
        raise Unfit("cannot be understood") from None


def _show_rules(_: str, typed: Typed) -> Any:
    def read(name: str) -> Any:
        values = typed.get(name, [])
        return values if len(values) > 1 or _is_several(name) else next(iter(values), "")

    return policy_fields.rules_of(read)


def _is_several(name: str) -> bool:
    return any(
        each.typed_name(entry.attribute) == name and entry.way == policy_fields.SEVERAL
        for each in policy_fields.speakable()
        for entry in each.inputs
    )


class PolicyRest(Rest):
    """Inputs of the form are places of the rules."""

    def place_of(self, field: str) -> str:
        for each in policy_fields.speakable():
            for entry in each.inputs:
                if each.typed_name(entry.attribute) == field:
                    return f"spec.rules.{each.name}.{entry.attribute}"
        return super().place_of(field)


RULES = Shape(
    {"type": "object", "additionalProperties": {"type": "object"}}, _read_rules, _show_rules
)


@dataclass(frozen=True)
class Entry:
    """A field of workloads with the inputs of its rule."""

    label: str
    about: str
    inputs: Sequence[BoundField]
    says: bool


@dataclass(frozen=True)
class Section:
    """Fields that belong together; `is_open` where a rule of theirs says something or is wrong."""

    title: str
    entries: Sequence[Entry]
    is_open: bool


class PolicyForm(AssetForm):
    """Which workloads it is for, and the rules: an input for each thing that can be said of each
    field.
    """

    kind = "policy"
    model = Policy
    rest = PolicyRest(
        "policies",
        (
            Part(
                "spec.workloadType",
                "architecture",
                choice(all="", distributed="Distributed", training="Standard"),
            ),
            Part("spec.rules", "rules", RULES),
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

    def __init__(self, data: Typed, **more: Any) -> None:
        super().__init__(data, **more)
        self.fields.update(policy_fields.form_fields())
        self.fields["name"].help_text = "It is named wherever one of its rules is broken."
        self.fields["scope"].help_text = "It holds there and in everything below."

    @property
    def values(self) -> dict[str, Any]:
        return super().values | {
            "architecture": self.read("architecture", ""),
            "rules": policy_fields.rules_of(self.read),
        }

    @classmethod
    def typed_of(cls, asset: Asset) -> Typed:
        assert isinstance(asset, Policy)
        return {"architecture": [asset.architecture], **policy_fields.typed_rules(asset.rules)}

    def judged(self) -> bool:
        """As for every asset; and a scope has room for so many only."""
        if not super().judged():
            return False
        stays = self.changes and self.asset is not None and self.asset.scope == self.asset_scope
        if (
            not stays
            and Policy.objects.at(self.asset_scope)[MOST_OF_SCOPE - 1 : MOST_OF_SCOPE].exists()
        ):
            self.blame(
                "scope",
                (
                    f"There are {MOST_OF_SCOPE} policies there already. Add the rules to one of "
                    "them, or delete one."
                ),
            )
        return not self.is_wrong

    @property
    def sections(self) -> Sequence[Section]:
        """The inputs, by section."""
        found: dict[str, list[Entry]] = {}
        for each in policy_fields.speakable():
            inputs = [self[each.typed_name(entry.attribute)] for entry in each.inputs]
            says = any(bound.errors or bound.value() for bound in inputs)
            found.setdefault(each.section, []).append(Entry(each.label, each.about, inputs, says))
        return [
            Section(title, entries, any(entry.says for entry in entries))
            for title, entries in found.items()
        ]

    @property
    def advice(self) -> Sequence[str]:
        """What of the stored policy has no effect beside wider ones."""
        return (
            policy_fields.advice(self.asset)
            if isinstance(self.asset, Policy) and self.changes
            else ()
        )


POLICY = Kind(
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
        of_choices(
            "architecture",
            "For",
            [("Distributed", "Distributed workloads"), ("Standard", "Standard workloads")],
        ),
    ),
    is_counted=False,
    fields_template="environments/_policy_fields.html",
)
