"""The fields that policies can rule, in the order and sections of the pages. Pure."""

from collections.abc import Callable, Mapping

from workloads.policing.fields import PolicyField
from workloads.policing.kinds import (
    LARGEST,
    Choice,
    CommandLine,
    Flag,
    Pairs,
    Portion,
    PrefixText,
    Quantity,
    TextList,
    ValueKind,
    WholeNumber,
)
from workloads.specs import Pair, Variable, Volume
from workloads.specs.fields import FIELDS, PolicyData, PolicySection, types

_KINDS: Mapping[type, Callable[[PolicyData], ValueKind]] = {
    types.Text: lambda _: PrefixText(),
    types.CommandLine: lambda _: CommandLine(),
    types.Names: lambda policy: TextList(policy.choices, policy.nothing),
    types.Number: lambda policy: WholeNumber(policy.largest or LARGEST),
    types.Flag: lambda _: Flag(),
    types.Switch: lambda _: Flag(),
    types.YesNo: lambda _: Flag(),
    types.Quantity: lambda _: Quantity(),
    types.Cores: lambda _: Quantity(),
    types.Portion: lambda _: Portion(),
    Pair: lambda _: Pairs(),
    Variable: lambda _: Pairs(),
    Volume: lambda policy: TextList(policy.choices, policy.nothing),
}
"""What builds the kind of a field's values, by its type or, of rows, by their class."""


def _build_kind(type_: types.FieldType, policy: PolicyData) -> ValueKind:
    if isinstance(type_, types.Choice):
        return Choice(
            tuple((each.value, getattr(each, "label", each.value)) for each in type_.options)
        )
    return _KINDS[type_.part if isinstance(type_, types.Rows) else type(type_)](policy)


def _list_fields(section: PolicySection) -> list[PolicyField]:
    return [
        PolicyField(field, field.policy, _build_kind(field.type, field.policy))
        for field in FIELDS.values()
        if field.policy is not None and field.policy.section is section
    ]


CATALOGUE: Mapping[str, PolicyField] = {
    each.name: each for section in PolicySection for each in _list_fields(section)
}
"""By the names that rules have in JSON."""
