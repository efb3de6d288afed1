"""Assets in the REST API: each part of a body stands for a field of the form.

So one set of rules judges both. A body is read into what would have been typed, and an asset is
serialized from what would be typed to make it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from console.rest_bodies import Body, Reading, RestBody, build_body_type, describe_field
from console.typed_forms import TypedValues, build_row_values

MAX_LIST_ITEMS = 300


class WrongType(Exception):
    """A value that cannot be typed; the text ends a sentence that begins with the value's name."""


@dataclass(frozen=True, slots=True)
class ValueShape:
    """How a field is written in a body.

    `build_typed` returns a value of the type as typed (or raises WrongType), `serialize` is the
    inverse; None is nothing.
    """

    type_hint: Any
    build_typed: Callable[[str, Any], TypedValues]
    serialize: Callable[[str, TypedValues], Any]


@dataclass(frozen=True, slots=True)
class BodyPart:
    """A place in a body ("spec.claimInfo.size") and the form field that it stands for."""

    place: str
    field: str
    shape: ValueShape
    is_secret: bool = False
    """It can be written, and is never shown."""


@dataclass(frozen=True, slots=True)
class RestMapping:
    """The path of a form's assets below /api/v1/asset/, and the parts of their bodies.

    The parts are those beside the meta data that all assets have.
    """

    path: str
    parts: tuple[BodyPart, ...]

    @property
    def name(self) -> str:
        """The name in URL names and operation ids."""
        return self.path.replace("/", "-")

    def build_body_type(self, base: type[Body], meta_base: type[msgspec.Struct]) -> type[Body]:
        """Build the struct of the bodies: the parts beside the fields that all assets have."""
        tree: dict[str, Any] = {"meta": {}, "spec": {}}
        for part in self.parts:
            hint = part.shape.type_hint | None
            note = Meta(extra_json_schema={"writeOnly": True})
            _set_at(tree, part.place, Annotated[hint, note] if part.is_secret else hint)
        meta = build_body_type("Meta", tree["meta"], meta_base)
        spec = build_body_type("Spec", tree["spec"], RestBody)
        return build_body_type("Asset", {"meta": meta, "spec": spec}, base)

    def build_typed(self, reading: Reading[Any]) -> TypedValues:
        """Return what was read as typed values; what is wrong is added to the reading."""
        typed: TypedValues = {}
        for part in self.parts:
            value = attrgetter(part.place)(reading.value)
            if value is None:
                continue
            try:
                typed |= part.shape.build_typed(part.field, value)
            except WrongType as error:
                reading.refuse(part.place, str(error))
        return typed

    def serialize_body(self, typed: TypedValues) -> dict[str, Any]:
        """Return the parts of a body that these typed values make, without secrets."""
        body: dict[str, Any] = {"spec": {}}
        for part in self.parts:
            if not part.is_secret:
                _set_at(body, part.place, part.shape.serialize(part.field, typed))
        return body

    def get_place(self, field: str) -> str:
        """Return the place of a form field, or of a field of its rows ("variables.1.name")."""
        name, dot, rest = field.partition(".")
        place = next(
            (part.place for part in self.parts if part.field == name),
            f"meta.{name}" if name else "",
        )
        return f"{place}{dot}{rest}"


def _get_first(field: str, typed: TypedValues) -> str:
    values = typed.get(field) or [""]
    return values[0]


def _serialize_text(field: str, typed: TypedValues) -> str | None:
    return _get_first(field, typed) or None


TEXT = ValueShape(str, lambda field, value: {field: [value]}, _serialize_text)
WHOLE = ValueShape(
    int,
    lambda field, value: {field: [str(value)]},
    lambda field, typed: (
        int(text) if re.fullmatch(r"-?[0-9]+", text := _get_first(field, typed)) else None
    ),
)


FLAG = ValueShape(
    bool,
    lambda field, value: {field: ["on"] if value else []},
    lambda field, typed: bool(_get_first(field, typed)),
)


def build_flag_shape(true: str, false: str) -> ValueShape:
    """Build the shape of a boolean that is a choice of two in the form."""
    return ValueShape(
        bool,
        lambda field, value: {field: [true if value else false]},
        lambda field, typed: _get_first(field, typed) == true,
    )


def _format_plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _serialize_number(text: str, factor: Decimal) -> float | int | str | None:
    milli = text.endswith("m")
    try:
        number = Decimal(text.removesuffix("m")) * (Decimal("0.001") if milli else 1) * factor
    except InvalidOperation:
        return text or None
    return int(number) if number == number.to_integral_value() else float(number)


CORES = ValueShape(
    Decimal,
    lambda field, value: {field: [_format_plain(value)]},
    lambda field, typed: _serialize_number(_get_first(field, typed), Decimal(1)),
)
"""CPU cores."""
PORTION = ValueShape(
    Decimal,
    lambda field, value: {field: [_format_plain(value * 100)]},
    lambda field, typed: _serialize_number(_get_first(field, typed), Decimal("0.01")),
)
"""A fraction of a device, which the form has in percent."""


def build_choice_shape(**words: str) -> ValueShape:
    """Build the shape of one of a few words: the API's, each with the form's."""
    choice = Literal.__getitem__(tuple(words))
    api_words = {ours: theirs for theirs, ours in words.items()}
    return ValueShape(
        Annotated[choice, describe_field(problem=f"must be one of {', '.join(words)}")],
        lambda field, value: {field: [words[value]]},
        lambda field, typed: api_words.get(_get_first(field, typed)),
    )


def build_flags_shape(**words: str) -> ValueShape:
    """Build the shape of an object of booleans that is a multiple choice in the form."""
    flags = msgspec.defstruct(
        "Flags" + "".join(words),
        [(name, bool, False) for name in words],
        forbid_unknown_fields=True,
    )
    return ValueShape(
        Annotated[flags, describe_field(problem=f"must be an object of flags: {', '.join(words)}")],
        lambda field, value: {
            field: [ours for theirs, ours in words.items() if getattr(value, theirs)]
        },
        lambda field, typed: {
            theirs: ours in typed.get(field, ()) for theirs, ours in words.items()
        },
    )


def build_rows_shape(**columns: str) -> ValueShape:
    """Build the shape of a list of objects of texts, which are rows in the form.

    `columns` are the names in the API, each with the form's.
    """

    row_type = msgspec.defstruct(
        "Row" + "".join(columns), [(name, str, "") for name in columns], forbid_unknown_fields=True
    )
    problem = (
        f"must be a list of at most {MAX_LIST_ITEMS} objects with the texts {', '.join(columns)}"
    )

    def build_typed(field: str, value: Any) -> TypedValues:
        rows = [{ours: getattr(row, theirs) for theirs, ours in columns.items()} for row in value]
        # An empty list takes all rows away, so that they have to be named.
        return build_row_values(field, rows) or {f"{field}-": []}

    def serialize(field: str, typed: TypedValues) -> list[dict[str, str]]:
        numbers = sorted(
            {
                int(match[1])
                for name in typed
                if (match := re.match(rf"{re.escape(field)}-([0-9]+)-", name))
            }
        )
        return [
            {
                theirs: _get_first(f"{field}-{number}-{ours}", typed)
                for theirs, ours in columns.items()
            }
            for number in numbers
        ]

    rows_type = Annotated[list[row_type], Meta(max_length=MAX_LIST_ITEMS)]  # type: ignore[valid-type]
    return ValueShape(Annotated[rows_type, describe_field(problem=problem)], build_typed, serialize)


class ServingBody(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What an environment serves."""

    training: bool | None = None
    distributed: bool | None = None
    dist_framework: str | None = None


def build_serving_shape(frameworks: Sequence[str]) -> ValueShape:
    """Build the shape of what an environment serves.

    {training} is Standard, {distributed, distFramework} is Distributed.
    """

    def build_typed(field: str, value: ServingBody) -> TypedValues:
        framework = value.dist_framework or ""
        if framework and framework not in frameworks:
            raise WrongType(f"has a distFramework that is not one of {', '.join(frameworks)}")
        is_distributed = bool(value.distributed or framework)
        if is_distributed == bool(value.training):
            raise WrongType(
                "must have one of training and distributed: an environment serves one architecture"
            )
        return {field: [f"Distributed:{framework}" if is_distributed else "Standard:"]}

    def serialize(field: str, typed: TypedValues) -> dict[str, Any]:
        architecture, _, framework = _get_first(field, typed).partition(":")
        is_distributed = architecture == "Distributed"
        return {
            "training": not is_distributed,
            "distributed": is_distributed,
            "distFramework": framework or None,
        }

    problem = "must be an object of distributed, distFramework and training"
    return ValueShape(
        Annotated[ServingBody, describe_field(problem=problem)], build_typed, serialize
    )


def merge_typed(was: TypedValues, changes: TypedValues) -> TypedValues:
    """Return the old typed values with the given ones in their place.

    Rows are replaced as a whole.
    """
    replaced_lists = {match[1] for name in changes if (match := re.match(r"([a-z_]+)-", name))}
    remaining = {
        name: values
        for name, values in was.items()
        if not any(name.startswith(f"{each}-") for each in replaced_lists)
    }
    return {
        name: values for name, values in (remaining | changes).items() if not name.endswith("-")
    }


def _set_at(body: dict[str, Any], place: str, value: Any) -> None:
    *parents, last = place.split(".")
    for name in parents:
        body = body.setdefault(name, {})
    body[last] = value
