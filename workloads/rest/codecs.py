"""What becomes of each type of field in a body: its annotation in a struct, and how to convert."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from msgspec import field as struct_field

from console.texts import parse_number
from workloads import quantities
from workloads.rest.parts import PART_BODIES, NameBody, TopologyBody
from workloads.rest.volumes import StorageBody, write_volumes
from workloads.specs import InvalidCommandLine, Volume, join_command_line, split_command_line
from workloads.specs.fields.types import (
    Choice,
    CommandLine,
    Cores,
    FieldType,
    Flag,
    Ids,
    Names,
    Number,
    Portion,
    Quantity,
    Rows,
    Switch,
    Text,
    TopologyKey,
    YesNo,
)

Refuse = Callable[[str], None]
"""Adds a problem of the field, with the words that follow its place in a sentence."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How a field stands in a body.

    `hint` and `default` are those of the struct's attribute. `read` makes the Spec's value of what
    the struct has, or None, which leaves it to the Spec's default; `write` makes what JSON has of
    the Spec's value, or None, which leaves the field out.
    """

    hint: Any
    default: Any
    read: Callable[[Any, Refuse], Any]
    write: Callable[[Any], Any]


def build_codec(kind: FieldType) -> Codec:
    """Build the codec of a type. Rows are converted one by one, as `PART_BODIES` says."""
    match kind:
        case CommandLine():
            return Codec(
                str, "", _read_command_line, lambda words: join_command_line(words) or None
            )
        case Names(are_objects=True):
            return Codec(tuple[NameBody, ...], (), _read_objects, _write_objects)
        case Names():
            return Codec(
                tuple[str, ...], (), _build_names_reader(kind), lambda it: list(it) or None
            )
        case Ids():
            return Codec(str, "", _read_ids, lambda ids: ",".join(map(str, ids)) or None)
        case Number():
            return Codec(int | None, None, _read_unchanged, _build_number_writer(kind))
        case Flag():
            return Codec(bool | None, None, _read_unchanged, lambda is_set: is_set or None)
        case Switch():
            return Codec(bool | None, None, _read_unchanged, lambda is_on: None if is_on else False)
        case YesNo():
            return Codec(bool | None, None, _read_unchanged, _write_unchanged)
        case Choice():
            return Codec(kind.options | None, None, _read_unchanged, lambda it: it and it.value)
        case Cores():
            return Codec(Decimal | None, None, _read_cores, _write_cores)
        case Portion():
            return Codec(
                Decimal | None, None, _read_unchanged, lambda it: None if it is None else float(it)
            )
        case Text() | Quantity():
            return Codec(str, "", lambda text, _: text or None, lambda text: text or None)
        case TopologyKey():
            return Codec(
                TopologyBody | None, None, _read_topology, lambda it: it and TopologyBody.write(it)
            )
        case Rows(part=part) if part is Volume:
            default = struct_field(default_factory=StorageBody)
            return Codec(
                StorageBody, default, _read_unchanged, lambda it: write_volumes(it) or None
            )
        case Rows():
            body: Any = PART_BODIES[kind.part]
            return Codec(tuple[body, ...], (), _read_unchanged, _build_rows_writer(body))
    raise TypeError(f"no body has a field of type {kind!r}")


def format_quantity(number: Decimal) -> str:
    """Return a number as the text of a quantity."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _read_unchanged(value: Any, refuse: Refuse) -> Any:
    return value


def _write_unchanged(value: Any) -> Any:
    return value


def _read_command_line(line: str, refuse: Refuse) -> tuple[str, ...]:
    try:
        return split_command_line(line)
    except InvalidCommandLine as error:
        refuse(str(error))
        return ()


def _read_objects(bodies: Sequence[NameBody], refuse: Refuse) -> tuple[str, ...]:
    return tuple(each.name for each in bodies)


def _write_objects(names: Sequence[str]) -> list[dict[str, str]] | None:
    return [{"name": name} for name in names] or None


def _build_names_reader(kind: Names) -> Callable[[Any, Refuse], tuple[str, ...]]:
    def read_names(names: tuple[str, ...], refuse: Refuse) -> tuple[str, ...]:
        return () if names == (kind.means_none,) else names

    return read_names


def _read_ids(text: str, refuse: Refuse) -> tuple[int, ...]:
    ids = [parse_number(part.strip(), 15) for part in text.split(",") if part.strip()]
    if None in ids:
        refuse("must be whole numbers with commas between them")
        return ()
    return tuple(number for number in ids if number is not None)


def _build_number_writer(kind: Number) -> Callable[[int | None], int | None]:
    def write(number: int | None) -> int | None:
        return None if number == kind.default == 0 else number

    return write


def _read_cores(number: Decimal | None, refuse: Refuse) -> str | None:
    return None if number is None else format_quantity(number)


def _write_cores(quantity: str) -> float | None:
    return float(quantities.parse_quantity(quantity)) if quantity else None


def _read_topology(body: TopologyBody | None, refuse: Refuse) -> Any:
    return body.build_part() if body else None


def _build_rows_writer(body: type[Any]) -> Callable[[Sequence[Any]], list[dict[str, Any]] | None]:
    def write(parts: Sequence[Any]) -> list[dict[str, Any]] | None:
        return [body.write(part, number) for number, part in enumerate(parts, 1)] or None

    return write
