"""Assets as the REST API has them: each part of a body stands for a field of the form, so that one
set of rules judges both.

A body is read into what would have been typed, and an asset is shown from what would be typed to
make it.
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
    """A value that is of the wrong type: the end of a sentence that begins with its name."""


@dataclass(frozen=True, slots=True)
class ValueShape:
    """How a field is written in a body: `read` gives it as typed (or Unfit), `show` the other way;
    None is nothing.
    """

    schema: Schema
    parse: Callable[[str, Any], TypedValues]
    serialize: Callable[[str, TypedValues], Any]


@dataclass(frozen=True, slots=True)
class BodyPart:
    """A place in a body ("spec.claimInfo.size") and the field of the form that it stands for."""

    place: str
    field: str
    shape: ValueShape
    is_secret: bool = False
    """It can be written, and is never shown."""


@dataclass(frozen=True, slots=True)
class RestMapping:
    """Where assets of a form are in the API, below /api/v1/asset/, and what their bodies have
    beside the meta data of all.
    """

    path: str
    parts: tuple[BodyPart, ...]

    @property
    def name(self) -> str:
        """As addresses and operations are called."""
        return self.path.replace("/", "-")

    def parse_body(
        self, body: Mapping[str, Any], other_places: frozenset[str]
    ) -> tuple[TypedValues, Problems]:
        """What a body says as typed, and what is wrong with its shape. `others` are places that
        somebody else reads.
        """
        found: TypedValues = {}
        problems: Problems = []
        known = {part.place for part in self.parts}
        for place in _list_unknown_places(body, known | other_places):
            problems.append((place, f"{place} is not known here."))
        for part in self.parts:
            value = _get_at(body, part.place)
            if value is None:
                continue
            try:
                found |= part.shape.parse(part.field, value)
            except WrongType as error:
                problems.append((part.place, f"{part.place} {error}."))
        return found, problems

    def serialize_body(self, typed: TypedValues) -> dict[str, Any]:
        """The parts of a body that these typed values make, without what is secret."""
        body: dict[str, Any] = {"spec": {}}
        for part in self.parts:
            if not part.is_secret:
                _set_at(body, part.place, part.shape.serialize(part.field, typed))
        return body

    def get_place(self, field: str) -> str:
        """The place of a field of the form, or of its rows ("variables.1.name")."""
        listed, dot, rest = field.partition(".")
        place = next(
            (part.place for part in self.parts if part.field == listed),
            f"meta.{listed}" if listed else "",
        )
        return f"{place}{dot}{rest}"

    @property
    def schema(self) -> Schema:
        """The schema of what stands beside `name` and the like: {"meta": ..., "spec": ...}."""
        tree: Schema = {"type": "object", "properties": {}}
        for part in self.parts:
            *above, last = part.place.split(".")
            here = tree
            for name in above:
                here = here["properties"].setdefault(name, {"type": "object", "properties": {}})
            note = {"writeOnly": True} if part.is_secret else {}
            here["properties"][last] = part.shape.schema | note
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
    """A yes or no that is a choice of two in the form."""
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
"""A part of a device, which the form has in percent."""


def build_choice_shape(**words: str) -> ValueShape:
    """One of a few words of the API, each with the form's."""

    def read(field: str, value: Any) -> TypedValues:
        if _require_text(value) not in words:
            raise WrongType(f"must be one of {', '.join(words)}")
        return {field: [words[value]]}

    back = {ours: theirs for theirs, ours in words.items()}
    return ValueShape(
        {"type": "string", "enum": list(words)},
        read,
        lambda field, typed: back.get(_get_first(field, typed)),
    )


def build_flags_shape(**words: str) -> ValueShape:
    """An object of flags that are several choices in the form."""

    def read(field: str, value: Any) -> TypedValues:
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
        read,
        lambda field, typed: {
            theirs: ours in typed.get(field, ()) for theirs, ours in words.items()
        },
    )


def build_rows_shape(**columns: str) -> ValueShape:
    """A list of objects of texts, which are rows in the form; the columns' names in the API and in
    the form.
    """

    def read(field: str, value: Any) -> TypedValues:
        if not isinstance(value, list) or len(value) > MAX_LIST_ITEMS:
            raise WrongType(f"must be a list of at most {MAX_LIST_ITEMS}")
        rows = []
        for each in value:
            if (
                not isinstance(each, Mapping)
                or not each.keys() <= columns.keys()
                or not all(isinstance(it, str) for it in each.values())
            ):
                raise WrongType(f"must be a list of objects with the texts {', '.join(columns)}")
            rows.append({ours: each.get(theirs, "") for theirs, ours in columns.items()})
        # An empty list takes all rows away, so that they have to be named.
        return build_row_values(field, rows) or {f"{field}-": []}

    def show(field: str, typed: TypedValues) -> list[dict[str, str]]:
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
        {"type": "array", "items": {"type": "object", "properties": properties}}, read, show
    )


def build_serving_shape(frameworks: Sequence[str]) -> ValueShape:
    """What an environment serves: {training} is Standard, {distributed, distFramework} is
    Distributed.
    """

    def read(field: str, value: Any) -> TypedValues:
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

    def show(field: str, typed: TypedValues) -> dict[str, Any]:
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
    return ValueShape({"type": "object", "properties": properties}, read, show)


def merge_typed(was: TypedValues, given: TypedValues) -> TypedValues:
    """What was typed with what is given in its place; rows are given as a whole."""
    lists = {match[1] for name in given if (match := re.match(r"([a-z_]+)-", name))}
    kept = {
        name: values
        for name, values in was.items()
        if not any(name.startswith(f"{each}-") for each in lists)
    }
    return {name: values for name, values in (kept | given).items() if not name.endswith("-")}


def _get_at(body: Mapping[str, Any], place: str) -> Any:
    here: Any = body
    for name in place.split("."):
        if not isinstance(here, Mapping):
            return None
        here = here.get(name)
    return here


def _set_at(body: dict[str, Any], place: str, value: Any) -> None:
    *above, last = place.split(".")
    for name in above:
        body = body.setdefault(name, {})
    body[last] = value


def _list_unknown_places(
    body: Mapping[str, Any], known: frozenset[str] | set[str], prefix: str = ""
) -> Iterator[str]:
    """The places of a body that nobody reads."""
    for name, value in body.items():
        place = f"{prefix}{name}"
        if place in known or value is None:
            continue
        if isinstance(value, Mapping) and any(each.startswith(f"{place}.") for each in known):
            yield from _list_unknown_places(value, known, f"{place}.")
        else:
            yield place[:120]
