"""Reading of a JSON body field by field.

Each field is of its type or refused by name; fields that were not read are refused as unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from workloads.kube_objects import clean_text

MAX_NUMBER = 10**15
"""The largest number that a submission may have."""

Choice = TypeVar("Choice", bound=StrEnum)


class BodyReport:
    """The problems of a body, and the origin of each field of the Spec in it."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []
        self._origins: dict[str, str] = {}
        self._given: set[str] = set()
        self._objects: list[BodyFields] = []

    def add_problem(self, place: str, text: str) -> None:
        """Add a problem at a path of the body.

        `text` follows the field's name in a sentence ("must ...").
        """
        self.problems.append((place, f"{place or 'The body'} {text}."))

    def track_object(self, fields: "BodyFields") -> None:
        self._objects.append(fields)

    def record_origin(self, spec_path: str, body_path: str, *, is_given: bool = False) -> None:
        self._origins[spec_path] = body_path
        if is_given:
            self._given.add(spec_path)

    @property
    def given_fields(self) -> frozenset[str]:
        """Return the fields of the Spec that have a value in the body."""
        return frozenset(self._given)

    def get_body_path(self, spec_path: str) -> str:
        """Return the field of the body from which a field of the Spec was read.

        That of its nearest parent where it was not read itself.
        """
        while spec_path:
            if spec_path in self._origins:
                return self._origins[spec_path]
            spec_path = spec_path.rpartition(".")[0]
        return "spec"

    def refuse_unread_fields(self) -> None:
        """Refuse the fields that were not read."""
        for fields in self._objects:
            fields.refuse_unread()


class BodyFields:
    """One object of a body. Null is as good as missing.

    `spec_field` names the field of the Spec that a value becomes: below this object's own path in
    the Spec, or with a leading slash from the Spec's root.
    """

    def __init__(self, value: object, path: str, spec_path: str, report: BodyReport) -> None:
        self._body_path = path
        self._spec_path = spec_path
        self._report = report
        self._read_names: set[str] = set()
        self._values: Mapping[str, Any] = {}
        if isinstance(value, Mapping):
            self._values = {str(name): each for name, each in value.items() if each is not None}
        else:
            report.add_problem(path, "must be a JSON object")
        report.track_object(self)

    def has(self, name: str) -> bool:
        """Tell whether a field is given, without reading it."""
        return name in self._values

    def is_number(self, name: str) -> bool:
        """Tell whether a given field is a number, without reading it."""
        value = self._values.get(name)
        return isinstance(value, int | float) and not isinstance(value, bool)

    def get_spec_path(self, spec_field: str) -> str:
        """Return the whole path in the Spec of a field below this object's path."""
        return self._join_spec_path(spec_field)

    def record_origin(self, name: str, spec_field: str) -> None:
        """Make a field answer for a part of the Spec that several fields make.

        Problems of the part as a whole are then shown at this field.
        """
        self._report.record_origin(self._join_spec_path(spec_field), self._join_body_path(name))

    def refuse(self, name: str, text: str) -> None:
        """Add a problem of a field. `text` follows the field's name: "must ..."."""
        self._report.add_problem(self._join_body_path(name), text)

    def read_text(self, name: str, spec_field: str = "") -> str:
        value = self._read_value(name, spec_field)
        if value is None or isinstance(value, str):
            return value or ""
        self.refuse(name, "must be a text")
        return ""

    def read_integer(self, name: str, spec_field: str = "") -> int | None:
        value = self._read_value(name, spec_field)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(name, "must be a whole number")
        elif abs(value) > MAX_NUMBER:
            self.refuse(name, "is too large")
        else:
            return value
        return None

    def read_decimal(self, name: str, spec_field: str = "") -> Decimal | None:
        value = self._read_value(name, spec_field)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(name, "must be a number")
        # Not `>`: NaN compares false with everything, and is refused this way.
        elif not abs(value) <= MAX_NUMBER:
            self.refuse(name, "is too large")
        else:
            # By its digits: 0.1 becomes 0.1, and not the 55 digits of the nearest float.
            return Decimal(repr(value))
        return None

    def read_flag(self, name: str, spec_field: str = "") -> bool | None:
        value = self._read_value(name, spec_field)
        if value is None or isinstance(value, bool):
            return value
        self.refuse(name, "must be true or false")
        return None

    def read_choice(self, name: str, choices: type[Choice], spec_field: str = "") -> Choice | None:
        value = self._read_value(name, spec_field)
        if value is None:
            return None
        if isinstance(value, str) and value in choices.__members__.values():
            return choices(value)
        self.refuse(name, f"must be one of {', '.join(choices)}")
        return None

    def read_texts(self, name: str, spec_field: str = "") -> tuple[str, ...]:
        value = self._read_value(name, spec_field)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(value)
        self.refuse(name, "must be a list of texts")
        return ()

    def read_object(self, name: str, spec_field: str = "") -> "BodyFields":
        """Return an object inside this one; an empty one where there is none."""
        value = self._read_value(name, spec_field)
        return BodyFields(
            {} if value is None else value,
            self._join_body_path(name),
            self._join_spec_path(spec_field),
            self._report,
        )

    def read_objects(
        self, name: str, spec_field: str = "", start: int = 0
    ) -> Iterator["BodyFields"]:
        """Yield the objects of a list, as items of the Spec's list counted from `start`.

        Nulls are left out, and so are objects with `exclude`.
        """
        value = self._read_value(name, spec_field)
        if value is None:
            return
        if not isinstance(value, list):
            self.refuse(name, "must be a list of objects")
            return
        number = start
        for index, item in enumerate(value):
            if item is None:
                continue
            path, spec_path = (
                f"{self._join_body_path(name)}.{index}",
                f"{self._join_spec_path(spec_field)}.{number}",
            )
            fields = BodyFields(item, path, spec_path, self._report)
            if fields.read_flag("exclude"):
                fields.ignore_rest()
                continue
            self._report.record_origin(spec_path, path)
            number += 1
            yield fields

    def refuse_unsupported(
        self, reason: str = "is not supported by this version", **harmless: Sequence[Any]
    ) -> None:
        """Refuse fields that this version does not support.

        Each has the values that are accepted since they request nothing.
        """
        for name, values in harmless.items():
            value = self._read_value(name)
            # Types are compared too, since in Python 0 == False and 1 == True.
            if (
                value is not None
                and value not in ("", [], {})
                and not any(value == each and type(value) is type(each) for each in values)
            ):
                self.refuse(name, reason)

    def ignore_rest(self) -> None:
        self._read_names.update(self._values)

    def refuse_unread(self) -> None:
        for name in sorted(self._values.keys() - self._read_names):
            self._report.add_problem(
                self._join_body_path(clean_text(name, 60)), "is not a field that this version knows"
            )

    def _read_value(self, name: str, spec_field: str = "") -> Any:
        self._read_names.add(name)
        if spec_field:
            self._report.record_origin(
                self._join_spec_path(spec_field),
                self._join_body_path(name),
                is_given=name in self._values,
            )
        return self._values.get(name)

    def _join_body_path(self, name: str) -> str:
        return f"{self._body_path}.{name}" if self._body_path else name

    def _join_spec_path(self, spec_field: str) -> str:
        if spec_field.startswith("/"):
            return spec_field[1:]
        return ".".join(filter(None, (self._spec_path, spec_field)))
