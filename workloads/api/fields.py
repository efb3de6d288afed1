"""Reads a JSON body field by field: each is of its type or refused by name, and what nobody has
read is refused as unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from workloads.observed import plain

LARGEST = 10**15
"""No number of a submission is larger."""

Choice = TypeVar("Choice", bound=StrEnum)


class Findings:
    """What is wrong with a body so far, and where in it each part of the Spec comes from."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []
        self._places: dict[str, str] = {}
        self._said: set[str] = set()
        self._opened: list[Fields] = []

    def add(self, place: str, text: str) -> None:
        """`text` follows the field's name in a sentence ("must ...")."""
        self.problems.append((place, f"{place or 'The body'} {text}."))

    def opened(self, fields: "Fields") -> None:
        self._opened.append(fields)

    def came_from(self, target: str, place: str, *, is_said: bool = False) -> None:
        self._places[target] = place
        if is_said:
            self._said.add(target)

    @property
    def said(self) -> frozenset[str]:
        """The fields of the Spec that have a value in the body."""
        return frozenset(self._said)

    def place_of(self, target: str) -> str:
        """The field of the body that a field of the Spec was read from; that of its nearest parent
        where it was not read itself.
        """
        while target:
            if target in self._places:
                return self._places[target]
            target = target.rpartition(".")[0]
        return "spec"

    def finish(self) -> None:
        """Refuse what nobody has read."""
        for fields in self._opened:
            fields.refuse_unread()


class Fields:
    """One object of a body. Null is as good as missing.

    `into` is the field of the Spec that a value becomes: below `target`, or with a slash before it,
    of the whole Spec.
    """

    def __init__(self, value: object, place: str, target: str, findings: Findings) -> None:
        self._place = place
        self._target = target
        self._findings = findings
        self._read: set[str] = set()
        self._values: Mapping[str, Any] = {}
        if isinstance(value, Mapping):
            self._values = {str(name): each for name, each in value.items() if each is not None}
        else:
            findings.add(place, "must be a JSON object")
        findings.opened(self)

    def has(self, name: str) -> bool:
        """Whether something is given, without reading it."""
        return name in self._values

    def is_number(self, name: str) -> bool:
        """Whether what is given is a number, without reading it."""
        value = self._values.get(name)
        return isinstance(value, int | float) and not isinstance(value, bool)

    def target_of(self, into: str) -> str:
        """The whole path in the Spec of a field below this object's target."""
        return self._join(into)

    def stands_for(self, name: str, into: str) -> None:
        """Where several fields make a part of the Spec: its problems as a whole are this
        field's.
        """
        self._findings.came_from(self._join(into), self._at(name))

    def refuse(self, name: str, text: str) -> None:
        """`text` follows the field's name: "must ..."."""
        self._findings.add(self._at(name), text)

    def text(self, name: str, into: str = "") -> str:
        value = self._take(name, into)
        if value is None or isinstance(value, str):
            return value or ""
        self.refuse(name, "must be a text")
        return ""

    def whole(self, name: str, into: str = "") -> int | None:
        value = self._take(name, into)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(name, "must be a whole number")
        elif abs(value) > LARGEST:
            self.refuse(name, "is too large")
        else:
            return value
        return None

    def number(self, name: str, into: str = "") -> Decimal | None:
        value = self._take(name, into)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(name, "must be a number")
        elif not abs(value) <= LARGEST:
            self.refuse(name, "is too large")
        else:
            return Decimal(repr(value))
        return None

    def flag(self, name: str, into: str = "") -> bool | None:
        value = self._take(name, into)
        if value is None or isinstance(value, bool):
            return value
        self.refuse(name, "must be true or false")
        return None

    def choice(self, name: str, choices: type[Choice], into: str = "") -> Choice | None:
        value = self._take(name, into)
        if value is None:
            return None
        if isinstance(value, str) and value in choices.__members__.values():
            return choices(value)
        self.refuse(name, f"must be one of {', '.join(choices)}")
        return None

    def texts(self, name: str, into: str = "") -> tuple[str, ...]:
        value = self._take(name, into)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(value)
        self.refuse(name, "must be a list of texts")
        return ()

    def inner(self, name: str, into: str = "") -> "Fields":
        """An object inside this one; an empty one where there is none."""
        value = self._take(name, into)
        return Fields(
            {} if value is None else value, self._at(name), self._join(into), self._findings
        )

    def each(self, name: str, into: str = "", start: int = 0) -> Iterator["Fields"]:
        """The objects of a list, as the Spec's `into`, counted from `start`. Those that say
        `exclude` are left out, as nulls are.
        """
        value = self._take(name, into)
        if value is None:
            return
        if not isinstance(value, list):
            self.refuse(name, "must be a list of objects")
            return
        number = start
        for index, item in enumerate(value):
            if item is None:
                continue
            place, target = f"{self._at(name)}.{index}", f"{self._join(into)}.{number}"
            fields = Fields(item, place, target, self._findings)
            if fields.flag("exclude"):
                fields.ignore_rest()
                continue
            self._findings.came_from(target, place)
            number += 1
            yield fields

    def unsupported(
        self, why: str = "is not supported by this version", **harmless: Sequence[Any]
    ) -> None:
        """Fields that this version cannot heed, each with the values that ask for nothing."""
        for name, values in harmless.items():
            value = self._take(name)
            if (
                value is not None
                and value not in ("", [], {})
                and not any(value == each and type(value) is type(each) for each in values)
            ):
                self.refuse(name, why)

    def ignore_rest(self) -> None:
        self._read.update(self._values)

    def refuse_unread(self) -> None:
        for name in sorted(self._values.keys() - self._read):
            self._findings.add(self._at(plain(name, 60)), "is not a field that this version knows")

    def _take(self, name: str, into: str = "") -> Any:
        self._read.add(name)
        if into:
            self._findings.came_from(self._join(into), self._at(name), is_said=name in self._values)
        return self._values.get(name)

    def _at(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name

    def _join(self, into: str) -> str:
        return into[1:] if into.startswith("/") else ".".join(filter(None, (self._target, into)))
