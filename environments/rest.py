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

from console.typed import Typed, as_rows

Schema = dict[str, Any]
Problems = list[tuple[str, str]]
LONGEST_LIST = 300


class Unfit(Exception):
    """A value that is of the wrong type: the end of a sentence that begins with its name."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a field is written in a body: `read` gives it as typed (or Unfit), `show` the other way;
    None is nothing.
    """

    schema: Schema
    read: Callable[[str, Any], Typed]
    show: Callable[[str, Typed], Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A place in a body ("spec.claimInfo.size") and the field of the form that it stands for."""

    place: str
    field: str
    shape: Shape
    is_secret: bool = False
    """It can be written, and is never shown."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Where assets of a form are in the API, below /api/v1/asset/, and what their bodies have
    beside the meta data of all.
    """

    path: str
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        """As addresses and operations are called."""
        return self.path.replace("/", "-")

    def read(self, body: Mapping[str, Any], others: frozenset[str]) -> tuple[Typed, Problems]:
        """What a body says as typed, and what is wrong with its shape. `others` are places that
        somebody else reads.
        """
        found: Typed = {}
        problems: Problems = []
        known = {part.place for part in self.parts}
        for place in _unknown(body, known | others):
            problems.append((place, f"{place} is not known here."))
        for part in self.parts:
            value = _at(body, part.place)
            if value is None:
                continue
            try:
                found |= part.shape.read(part.field, value)
            except Unfit as error:
                problems.append((part.place, f"{part.place} {error}."))
        return found, problems

    def shown(self, typed: Typed) -> dict[str, Any]:
        """The parts of a body that these typed values make, without what is secret."""
        body: dict[str, Any] = {"spec": {}}
        for part in self.parts:
            if not part.is_secret:
                _put(body, part.place, part.shape.show(part.field, typed))
        return body

    def place_of(self, field: str) -> str:
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


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unfit("must be a text")
    return value


def _first(field: str, typed: Typed) -> str:
    values = typed.get(field) or [""]
    return values[0]


def _show_text(field: str, typed: Typed) -> str | None:
    return _first(field, typed) or None


TEXT = Shape({"type": "string"}, lambda field, value: {field: [_text(value)]}, _show_text)


def _read_whole(field: str, value: Any) -> Typed:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Unfit("must be a whole number")
    return {field: [str(value)]}


WHOLE = Shape(
    {"type": "integer"},
    _read_whole,
    lambda field, typed: (
        int(text) if re.fullmatch(r"-?[0-9]+", text := _first(field, typed)) else None
    ),
)


def _read_flag(field: str, value: Any) -> Typed:
    if not isinstance(value, bool):
        raise Unfit("must be true or false")
    return {field: ["on"] if value else []}


FLAG = Shape({"type": "boolean"}, _read_flag, lambda field, typed: bool(_first(field, typed)))


def flag(true: str, false: str) -> Shape:
    """A yes or no that is a choice of two in the form."""
    return Shape(
        {"type": "boolean"},
        lambda field, value: {field: [true if _read_flag(field, value)[field] else false]},
        lambda field, typed: _first(field, typed) == true,
    )


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unfit("must be a number")
    return Decimal(str(value))


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _show_number(text: str, factor: Decimal) -> float | int | str | None:
    milli = text.endswith("m")
    try:
        number = Decimal(text.removesuffix("m")) * (Decimal("0.001") if milli else 1) * factor
    except InvalidOperation:
        return text or None
    return int(number) if number == number.to_integral_value() else float(number)


cores = Shape(
    {"type": "number"},
    lambda field, value: {field: [_plain(_number(value))]},
    lambda field, typed: _show_number(_first(field, typed), Decimal(1)),
)
"""CPU cores."""
portion = Shape(
    {"type": "number"},
    lambda field, value: {field: [_plain(_number(value) * 100)]},
    lambda field, typed: _show_number(_first(field, typed), Decimal("0.01")),
)
"""A part of a device, which the form has in percent."""


def choice(**words: str) -> Shape:
    """One of a few words of the API, each with the form's."""

    def read(field: str, value: Any) -> Typed:
        if _text(value) not in words:
            raise Unfit(f"must be one of {', '.join(words)}")
        return {field: [words[value]]}

    back = {ours: theirs for theirs, ours in words.items()}
    return Shape(
        {"type": "string", "enum": list(words)},
        read,
        lambda field, typed: back.get(_first(field, typed)),
    )


def flags(**words: str) -> Shape:
    """An object of flags that are several choices in the form."""

    def read(field: str, value: Any) -> Typed:
        if (
            not isinstance(value, Mapping)
            or not all(isinstance(each, bool) for each in value.values())
            or not value.keys() <= words.keys()
        ):
            raise Unfit(f"must be an object of flags: {', '.join(words)}")
        return {field: [ours for theirs, ours in words.items() if value.get(theirs)]}

    properties = {name: {"type": "boolean"} for name in words}
    return Shape(
        {"type": "object", "properties": properties},
        read,
        lambda field, typed: {
            theirs: ours in typed.get(field, ()) for theirs, ours in words.items()
        },
    )


def row_list(**columns: str) -> Shape:
    """A list of objects of texts, which are rows in the form; the columns' names in the API and in
    the form.
    """

    def read(field: str, value: Any) -> Typed:
        if not isinstance(value, list) or len(value) > LONGEST_LIST:
            raise Unfit(f"must be a list of at most {LONGEST_LIST}")
        rows = []
        for each in value:
            if (
                not isinstance(each, Mapping)
                or not each.keys() <= columns.keys()
                or not all(isinstance(it, str) for it in each.values())
            ):
                raise Unfit(f"must be a list of objects with the texts {', '.join(columns)}")
            rows.append({ours: each.get(theirs, "") for theirs, ours in columns.items()})
        # An empty list takes all rows away, so that they have to be named.
        return as_rows(field, rows) or {f"{field}-": []}

    def show(field: str, typed: Typed) -> list[dict[str, str]]:
        numbers = sorted(
            {
                int(match[1])
                for name in typed
                if (match := re.match(rf"{re.escape(field)}-([0-9]+)-", name))
            }
        )
        return [
            {theirs: _first(f"{field}-{number}-{ours}", typed) for theirs, ours in columns.items()}
            for number in numbers
        ]

    properties = {name: {"type": "string"} for name in columns}
    return Shape(
        {"type": "array", "items": {"type": "object", "properties": properties}}, read, show
    )


def serving(frameworks: Sequence[str]) -> Shape:
    """What an environment serves: {training} is Standard, {distributed, distFramework} is
    Distributed.
    """

    def read(field: str, value: Any) -> Typed:
        if not isinstance(value, Mapping) or not value.keys() <= {
            "distributed",
            "distFramework",
            "training",
        }:
            raise Unfit("must be an object of distributed, distFramework and training")
        framework = value.get("distFramework") or ""
        if framework and framework not in frameworks:
            raise Unfit(f"has a distFramework that is not one of {', '.join(frameworks)}")
        is_distributed = bool(value.get("distributed") or framework)
        if is_distributed == bool(value.get("training")):
            raise Unfit(
                "must have one of training and distributed: an environment serves one architecture"
            )
        return {field: [f"Distributed:{framework}" if is_distributed else "Standard:"]}

    def show(field: str, typed: Typed) -> dict[str, Any]:
        architecture, _, framework = _first(field, typed).partition(":")
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
    return Shape({"type": "object", "properties": properties}, read, show)


def merged(was: Typed, given: Typed) -> Typed:
    """What was typed with what is given in its place; rows are given as a whole."""
    lists = {match[1] for name in given if (match := re.match(r"([a-z_]+)-", name))}
    kept = {
        name: values
        for name, values in was.items()
        if not any(name.startswith(f"{each}-") for each in lists)
    }
    return {name: values for name, values in (kept | given).items() if not name.endswith("-")}


def _at(body: Mapping[str, Any], place: str) -> Any:
    here: Any = body
    for name in place.split("."):
        if not isinstance(here, Mapping):
            return None
        here = here.get(name)
    return here


def _put(body: dict[str, Any], place: str, value: Any) -> None:
    *above, last = place.split(".")
    for name in above:
        body = body.setdefault(name, {})
    body[last] = value


def _unknown(
    body: Mapping[str, Any], known: frozenset[str] | set[str], prefix: str = ""
) -> Iterator[str]:
    """The places of a body that nobody reads."""
    for name, value in body.items():
        place = f"{prefix}{name}"
        if place in known or value is None:
            continue
        if isinstance(value, Mapping) and any(each.startswith(f"{place}.") for each in known):
            yield from _unknown(value, known, f"{place}.")
        else:
            yield place[:120]
