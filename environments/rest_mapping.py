"""Assets in the REST API: each part of a body stands for a field of the form.

So one set of rules judges both. A body is parsed into what would have been typed, and an asset is
serialized from what would be typed to make it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from console.typed_forms import TypedValues, build_row_values

Schema = dict[str, Any]
Problems = list[tuple[str, str]]
MAX_LIST_ITEMS = 300


class WrongType(Exception):
    """A value of the wrong type; the text ends a sentence that begins with the value's name."""


@dataclass(frozen=True, slots=True)
class ValueShape:
    """How a field is written in a body.

    `parse` returns it as typed (or raises WrongType), `serialize` is the inverse; None is nothing.
    """

    schema: Schema
    parse: Callable[[str, Any], TypedValues]
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

    def parse_body(
        self, body: Mapping[str, Any], other_places: frozenset[str]
    ) -> tuple[TypedValues, Problems]:
        """Return a body as typed values, and what is wrong with its structure.

        `other_places` are places that the caller parses.
        """
        typed: TypedValues = {}
        problems: Problems = []
        known = {part.place for part in self.parts}
        for place in _list_unknown_places(body, known | other_places):
            problems.append((place, f"{place} is not known here."))
        for part in self.parts:
            value = _get_at(body, part.place)
            if value is None:
                continue
            try:
                typed |= part.shape.parse(part.field, value)
            except WrongType as error:
                problems.append((part.place, f"{part.place} {error}."))
        return typed, problems

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

    @property
    def schema(self) -> Schema:
        """The schema of the parts: {"meta": ..., "spec": ...}."""
        tree: Schema = {"type": "object", "properties": {}}
        for part in self.parts:
            *parents, last = part.place.split(".")
            parent = tree
            for name in parents:
                parent = parent["properties"].setdefault(name, {"type": "object", "properties": {}})
            note = {"writeOnly": True} if part.is_secret else {}
            parent["properties"][last] = part.shape.schema | note
        return tree


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongType("must be a text")
    return value


def _get_first(field: str, typed: TypedValues) -> str:
    values = typed.get(field) or [""]
    return values[0]


def _serialize_text(field: str, typed: TypedValues) -> str | None:
    return _get_first(field, typed) or None


TEXT = ValueShape(
    {"type": "string"}, lambda field, value: {field: [_require_text(value)]}, _serialize_text
)


def _parse_whole(field: str, value: Any) -> TypedValues:
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongType("must be a whole number")
    return {field: [str(value)]}


WHOLE = ValueShape(
    {"type": "integer"},
    _parse_whole,
    lambda field, typed: (
        int(text) if re.fullmatch(r"-?[0-9]+", text := _get_first(field, typed)) else None
    ),
)


def _parse_flag(field: str, value: Any) -> TypedValues:
    if not isinstance(value, bool):
        raise WrongType("must be true or false")
    return {field: ["on"] if value else []}


FLAG = ValueShape(
    {"type": "boolean"}, _parse_flag, lambda field, typed: bool(_get_first(field, typed))
)


def build_flag_shape(true: str, false: str) -> ValueShape:
    """Build the shape of a boolean that is a choice of two in the form."""
    return ValueShape(
        {"type": "boolean"},
        lambda field, value: {field: [true if _parse_flag(field, value)[field] else false]},
        lambda field, typed: _get_first(field, typed) == true,
    )


def _require_number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongType("must be a number")
    return Decimal(str(value))


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
    {"type": "number"},
    lambda field, value: {field: [_format_plain(_require_number(value))]},
    lambda field, typed: _serialize_number(_get_first(field, typed), Decimal(1)),
)
"""CPU cores."""
PORTION = ValueShape(
    {"type": "number"},
    lambda field, value: {field: [_format_plain(_require_number(value) * 100)]},
    lambda field, typed: _serialize_number(_get_first(field, typed), Decimal("0.01")),
)
"""A fraction of a device, which the form has in percent."""


def build_choice_shape(**words: str) -> ValueShape:
    """Build the shape of one of a few words: the API's, each with the form's."""

    def parse(field: str, value: Any) -> TypedValues:
        if _require_text(value) not in words:
            raise WrongType(f"must be one of {', '.join(words)}")
        return {field: [words[value]]}

    api_words = {ours: theirs for theirs, ours in words.items()}
    return ValueShape(
        {"type": "string", "enum": list(words)},
        parse,
        lambda field, typed: api_words.get(_get_first(field, typed)),
    )


def build_flags_shape(**words: str) -> ValueShape:
    """Build the shape of an object of booleans that is a multiple choice in the form."""

    def parse(field: str, value: Any) -> TypedValues:
        if (
            not isinstance(value, Mapping)
            or not all(isinstance(each, bool) for each in value.values())
            or not value.keys() <= words.keys()
        ):
            raise WrongType(f"must be an object of flags: {', '.join(words)}")
        return {field: [ours for theirs, ours in words.items() if value.get(theirs)]}

    properties = {name: {"type": "boolean"} for name in words}
    return ValueShape(
        {"type": "object", "properties": properties},
        parse,
        lambda field, typed: {
            theirs: ours in typed.get(field, ()) for theirs, ours in words.items()
        },
    )


def build_rows_shape(**columns: str) -> ValueShape:
    """Build the shape of a list of objects of texts, which are rows in the form.

    `columns` are the names in the API, each with the form's.
    """

    def parse(field: str, value: Any) -> TypedValues:
        if not isinstance(value, list) or len(value) > MAX_LIST_ITEMS:
            raise WrongType(f"must be a list of at most {MAX_LIST_ITEMS}")
        rows = []
        for item in value:
            if (
                not isinstance(item, Mapping)
                or not item.keys() <= columns.keys()
                or not all(isinstance(text, str) for text in item.values())
            ):
                raise WrongType(f"must be a list of objects with the texts {', '.join(columns)}")
            rows.append({ours: item.get(theirs, "") for theirs, ours in columns.items()})
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

    properties = {name: {"type": "string"} for name in columns}
    return ValueShape(
        {"type": "array", "items": {"type": "object", "properties": properties}}, parse, serialize
    )


def build_serving_shape(frameworks: Sequence[str]) -> ValueShape:
    """Build the shape of what an environment serves.

    {training} is Standard, {distributed, distFramework} is Distributed.
    """

    def parse(field: str, value: Any) -> TypedValues:
        if not isinstance(value, Mapping) or not value.keys() <= {
            "distributed",
            "distFramework",
            "training",
        }:
            raise WrongType("must be an object of distributed, distFramework and training")
        framework = value.get("distFramework") or ""
        if framework and framework not in frameworks:
            raise WrongType(f"has a distFramework that is not one of {', '.join(frameworks)}")
        is_distributed = bool(value.get("distributed") or framework)
        if is_distributed == bool(value.get("training")):
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

    properties = {
        "training": {"type": "boolean"},
        "distributed": {"type": "boolean"},
        "distFramework": {"type": ["string", "null"], "enum": [*frameworks, None]},
    }
    return ValueShape({"type": "object", "properties": properties}, parse, serialize)


def merge_typed(was: TypedValues, given: TypedValues) -> TypedValues:
    """Return the old typed values with the given ones in their place.

    Rows are replaced as a whole.
    """
    replaced_lists = {match[1] for name in given if (match := re.match(r"([a-z_]+)-", name))}
    remaining = {
        name: values
        for name, values in was.items()
        if not any(name.startswith(f"{each}-") for each in replaced_lists)
    }
    return {name: values for name, values in (remaining | given).items() if not name.endswith("-")}


def _get_at(body: Mapping[str, Any], place: str) -> Any:
    value: Any = body
    for name in place.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _set_at(body: dict[str, Any], place: str, value: Any) -> None:
    *parents, last = place.split(".")
    for name in parents:
        body = body.setdefault(name, {})
    body[last] = value


def _list_unknown_places(
    body: Mapping[str, Any], known: frozenset[str] | set[str], prefix: str = ""
) -> Iterator[str]:
    """Yield the places of a body that are in no part."""
    for name, value in body.items():
        place = f"{prefix}{name}"
        if place in known or value is None:
            continue
        if isinstance(value, Mapping) and any(each.startswith(f"{place}.") for each in known):
            yield from _list_unknown_places(value, known, f"{place}.")
        else:
            yield place[:120]
