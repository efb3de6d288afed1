"""How fields of the catalogue are typed: their form fields, and values from and to what is typed.

One table has an entry for each type, another a row form for each class of rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

from django import forms

from console.typed_forms import FormRows, RowForm, TypedForm, TypedValues, build_row_values
from environments.forms import HUNDRED
from workloads.forms.row_forms import (
    AnnotationRow,
    ExtendedResourceRow,
    PairRow,
    TolerationRow,
    VariableRow,
    VolumeRow,
)
from workloads.specs import (
    ExtendedResource,
    Pair,
    Setup,
    Spec,
    Toleration,
    Topology,
    Variable,
    Volume,
    join_command_line,
    split_command_line,
)
from workloads.specs.fields import FIELDS, Field, get_value, types

YES_NO_CHOICES = (("", "As the image and the cluster have it"), ("yes", "Yes"), ("no", "No"))
OFF = "no"
SWITCH_CHOICES = (("", "Yes"), (OFF, "No"))
"""Nothing typed is Yes, so that drafts and templates from before the field have it, too."""
REQUIRED = "required"
_YES_NO_VALUES = {"": None, "yes": True, "no": False}
_YES_NO_WORDS = {value: word for word, value in _YES_NO_VALUES.items()}


class SplitField(forms.CharField):
    """A text whose value are its parts.

    `split` raises ValueError with the words that follow the label in a sentence.
    """

    def __init__(self, *, split: Callable[[str], tuple[Any, ...]], **more: Any) -> None:
        super().__init__(**more)
        self._split = split

    def to_python(self, value: Any) -> Any:
        try:
            return self._split(super().to_python(value) or "")
        except ValueError as error:
            raise forms.ValidationError(f"{self.label} {error}.") from error

    def run_validators(self, value: Any) -> None:
        # CharField's validators expect a text; `specs` checks the parts.
        return None


def _split_ids(text: str) -> tuple[int, ...]:
    ids = text.replace(",", " ").split()
    if not all(each.isdecimal() and each.isascii() and len(each) < 12 for each in ids):
        raise ValueError("must be whole numbers, separated by spaces")
    return tuple(map(int, ids))


def _list_number_options(type_: Any) -> dict[str, Any]:
    return {
        "required": bool(type_.required),
        "max_value": type_.most_typed,
        # Only a hint for browsers: `specs` checks the bounds, in words of its own.
        "widget": forms.NumberInput(attrs={"min": type_.least}),
        "error_messages": {"required": type_.required, "max_value": type_.too_large},
    }


def _list_choice_options(type_: Any) -> dict[str, Any]:
    empty = [("", type_.empty)] if type_.empty else []
    choices = [(each.value, _get_option_label(each)) for each in type_.options]
    return {"required": type_.is_required, "choices": [*empty, *choices]}


def _get_option_label(option: Any) -> str:
    return str(getattr(option, "label", option.value[0].upper() + option.value[1:]))


def _build_strictness_field() -> forms.ChoiceField:
    choices = [
        ("", "Preferred: apart rather than not at all"),
        (REQUIRED, "Required: it waits until they can be together"),
    ]
    return forms.ChoiceField(label="How strictly", choices=choices, required=False)


def _parse_topology(_type: Any, key: str | None, strictness: str | None) -> Topology | None:
    if not key and not strictness:
        return None
    return Topology(key or "", strictness == REQUIRED)


def _format_topology(_type: Any, topology: Topology | None) -> tuple[str, str]:
    if topology is None:
        return "", ""
    return topology.key, REQUIRED if topology.required else ""


def _parse_names(type_: Any, text: str | None) -> tuple[str, ...]:
    text = (text or "").replace(",", " ")
    return tuple((text.upper() if type_.is_upper else text).split())


def _format_number(type_: Any, number: int | None) -> str:
    # A 0 that nobody has to give is an empty field.
    return "" if number is None or number == type_.default == 0 else str(number)


def _format_percent(_type: Any, portion: Decimal | None) -> str:
    if portion is None:
        return ""
    percent = f"{portion * HUNDRED:f}"
    return percent.rstrip("0").rstrip(".") if "." in percent else percent


@dataclass(frozen=True, slots=True)
class FormType:
    """How a type of fields is typed.

    `form_field` is the class of its form field, and `options` are what that is given beside label
    and help; further form fields come after it. `parse` makes the Spec's value of what these
    cleaned. `format` makes the text that is typed for a value, a tuple for several form fields, and
    None for a box that is not ticked. All are given the type first.
    """

    form_field: type[forms.Field] = forms.CharField
    options: Callable[[Any], Mapping[str, Any]] = lambda _type: {}
    further: Callable[[], tuple[forms.Field, ...]] = tuple
    parse: Callable[..., Any] = lambda _type, cleaned, *_: cleaned
    format: Callable[[Any, Any], str | tuple[str, ...] | None] = lambda _type, value: str(
        value or ""
    )

    def build_form_fields(self, field: Field) -> tuple[forms.Field, ...]:
        options = {"required": False} | dict(self.options(field.type))
        first = self.form_field(label=field.label, help_text=field.help, **options)
        return (first, *self.further())


FORM_TYPES: Mapping[type[types.FieldType], FormType] = {
    types.Text: FormType(),
    types.CommandLine: FormType(
        SplitField,
        lambda _: {
            "split": split_command_line,
            "widget": forms.Textarea(attrs={"rows": 1, "spellcheck": "false"}),
        },
        format=lambda _, words: join_command_line(words),
    ),
    types.Names: FormType(parse=_parse_names, format=lambda _, names: " ".join(names)),
    types.Ids: FormType(
        SplitField, lambda _: {"split": _split_ids}, format=lambda _, ids: " ".join(map(str, ids))
    ),
    types.Number: FormType(forms.IntegerField, _list_number_options, format=_format_number),
    types.Flag: FormType(
        forms.BooleanField,
        parse=lambda _, is_ticked: is_ticked or None,
        format=lambda _, flag: "on" if flag else None,
    ),
    types.Switch: FormType(
        forms.ChoiceField,
        lambda _: {"choices": SWITCH_CHOICES},
        parse=lambda _, word: False if word == OFF else None,
        format=lambda _, is_on: "" if is_on else OFF,
    ),
    types.YesNo: FormType(
        forms.ChoiceField,
        lambda _: {"choices": YES_NO_CHOICES},
        parse=lambda _, word: _YES_NO_VALUES[word or ""],
        format=lambda _, answer: _YES_NO_WORDS[answer],
    ),
    types.Choice: FormType(
        forms.ChoiceField,
        _list_choice_options,
        parse=lambda type_, value: type_.options(value) if value else None,
    ),
    types.Quantity: FormType(),
    types.Cores: FormType(),
    types.Portion: FormType(
        forms.DecimalField,
        parse=lambda _, percent: None if percent is None else percent / HUNDRED,
        format=_format_percent,
    ),
    types.TopologyKey: FormType(
        further=lambda: (_build_strictness_field(),), parse=_parse_topology, format=_format_topology
    ),
}
ROW_FORMS: Mapping[type, type[RowForm]] = {
    Variable: VariableRow,
    ExtendedResource: ExtendedResourceRow,
    Pair: PairRow,
    Toleration: TolerationRow,
    Volume: VolumeRow,
}
"""The row forms by the parts of a Spec that they make."""


def get_row_form(type_: types.Rows) -> Any:
    """Return the form of a row of this type."""
    if isinstance(type_, types.Pairs) and type_.has_any_text:
        return AnnotationRow
    return ROW_FORMS[type_.part]


def build_form_fields(fields: Iterable[Field]) -> dict[str, forms.Field]:
    """Return the form fields of these fields, by their names; rows have none."""
    return {
        name: form_field
        for field in fields
        if not isinstance(field.type, types.Rows)
        for name, form_field in zip(
            field.form_names,
            FORM_TYPES[type(field.type)].build_form_fields(field),
            strict=True,
        )
    }


def read_value(form: TypedForm, rows: Mapping[str, FormRows[Any]], field: Field) -> Any:
    """Return the value that a form gives for a field; None where it gives none."""
    if isinstance(field.type, types.Rows):
        filled = rows[field.name].filled_rows if field.name in rows else ()
        return tuple(row.build_part() for row in filled) or None
    cleaned = [form.read(name) for name in field.form_names]
    value = FORM_TYPES[type(field.type)].parse(field.type, *cleaned)
    return None if value in ("", ()) else value


def build_field_values(field: Field, value: Any) -> TypedValues:
    """Return a value of a field as it would be typed."""
    if isinstance(field.type, types.Rows):
        return build_row_values(field.name, map(get_row_form(field.type).build_texts, value))
    texts = FORM_TYPES[type(field.type)].format(field.type, value)
    if isinstance(texts, tuple):
        return {name: [text] for name, text in zip(field.form_names, texts, strict=True)}
    return {field.form_names[0]: [] if texts is None else [texts]}


def build_typed_values(part: Setup | Spec, fields: Iterable[Field]) -> TypedValues:
    """Return the values of these fields as they would be typed; what is not ticked is left out."""
    typed: TypedValues = {}
    for field in fields:
        path = field.pod_path if isinstance(part, Setup) else field.path
        typed |= build_field_values(field, get_value(part, path))
    return {name: values for name, values in typed.items() if values}


def build_default_values(fields: Iterable[Field]) -> TypedValues:
    """Return what is typed where nobody chose: defaults, and the first of required choices."""
    defaults: TypedValues = {}
    for field in fields:
        match field.type:
            case types.Number(default=int() as default):
                defaults |= build_field_values(field, default)
            case types.Choice(is_required=True, options=options):
                defaults |= build_field_values(field, next(iter(options)))
    return defaults


@dataclass(frozen=True)
class FormNames:
    """The names of the form fields of some fields, those of their rows by how they begin."""

    fields: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.fields or name.startswith(self.prefixes)


def list_form_names(fields: Iterable[Field]) -> FormNames:
    """Return the names that the form fields of these fields have."""
    singles: list[str] = []
    prefixes: list[str] = []
    for field in fields:
        if isinstance(field.type, types.Rows):
            prefixes.append(f"{field.name}-")
        else:
            singles.extend(field.form_names)
    return FormNames(tuple(singles), tuple(prefixes))


def find_field(path: str) -> tuple[Field | None, str]:
    """Return the field at or above a path of a Spec, and the rest of the path.

    A path above fields is that of the first of them; None where there is none.
    """
    above = path
    while above:
        if above in FIELDS:
            return FIELDS[above], path[len(above) + 1 :]
        above = above.rpartition(".")[0]
    below = (each for each in FIELDS.values() if each.path.startswith(f"{path}."))
    return next(below, None), ""


def build_blocks(
    bound_fields: Iterable[forms.BoundField],
) -> Sequence[tuple[str, Sequence[forms.BoundField]]]:
    """Return form fields in blocks, each with its style sheet class; checkboxes come last.

    A text of several lines stands alone, without a class.
    """

    def get_css(bound: forms.BoundField) -> str:
        match bound.field.widget:
            case forms.CheckboxInput():
                return "mw-checks"
            case forms.Textarea():
                return ""
        return "mw-grid"

    ordered = sorted(bound_fields, key=lambda bound: get_css(bound) == "mw-checks")
    return [(css, list(block)) for css, block in groupby(ordered, get_css)]
