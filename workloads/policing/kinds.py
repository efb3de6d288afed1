"""The kinds of values that a policy speaks of: how one is read from JSON, told in words, compared,
and matched with options.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from workloads import quantities
from workloads.specs import InvalidCommandLine, join_command_line, split_command_line

LONGEST_TEXT = 512
LARGEST = 10**15
MOST_OPTIONS = 200
DEFAULT, REQUIRED, LEAST, MOST, STEP, OPTIONS, LOCKED = (
    "default",
    "required",
    "min",
    "max",
    "step",
    "options",
    "locked",
)
ATTRIBUTES = (DEFAULT, REQUIRED, LEAST, MOST, STEP, OPTIONS, LOCKED)
"""What a rule may say of a field, as JSON has it, in the order in which pages show it."""
RANGE = frozenset((LEAST, MOST))


@dataclass(frozen=True, slots=True)
class ValueKind:
    """Texts that are compared as they are; the base of all kinds. `has` are the attributes that
    make sense.
    """

    has: frozenset[str] = frozenset((DEFAULT, REQUIRED, OPTIONS, LOCKED))
    empty: Any = None
    """The value that is none, where a lock can keep a field at it."""

    def parse(self, given: object) -> Any:
        """The value of what JSON has. Raises ValueError with what follows the field's name in a
        sentence.
        """
        if not isinstance(given, str) or not given.strip() or len(given) > LONGEST_TEXT:
            raise ValueError(f"must be a text of at most {LONGEST_TEXT} characters")
        return given.strip()

    def parse_option(self, given: object) -> Any:
        return self.parse(given)

    def to_json(self, value: Any) -> Any:
        """As JSON has it."""
        return value

    def describe(self, value: Any) -> str:
        """For a sentence."""
        return str(value)

    def comparable(self, value: Any) -> Any:
        """What is compared: equal amounts are equal values."""
        return value

    def matches_option(self, value: Any, option: Any) -> bool:
        """Whether a value is what an option allows."""
        return bool(self.comparable(value) == self.comparable(option))

    def intersect_options(self, ones: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
        """The options that allow what both lists allow."""
        known = {self.comparable(each) for each in others}
        return tuple(each for each in ones if self.comparable(each) in known)


@dataclass(frozen=True, slots=True)
class PrefixText(ValueKind):
    """Texts whose options may be prefixes, with a star at the end."""

    def matches_option(self, value: Any, option: Any) -> bool:
        return str(value).startswith(option[:-1]) if option.endswith("*") else bool(value == option)

    def intersect_options(self, ones: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
        # Of two that overlap one is within the other, as beginnings are.
        within = [one for one in ones if any(self.matches_option(one, other) for other in others)]
        return tuple(
            dict.fromkeys(
                (
                    *within,
                    *(
                        other
                        for other in others
                        if any(self.matches_option(other, one) for one in ones)
                    ),
                )
            )
        )


@dataclass(frozen=True, slots=True)
class Choice(ValueKind):
    """One of a few words."""

    choices: tuple[tuple[str, str], ...] = ()
    """(value, label) pairs."""

    def parse(self, given: object) -> Any:
        known = [value for value, _ in self.choices]
        if given not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return given

    def describe(self, value: Any) -> str:
        return dict(self.choices).get(value, str(value))


@dataclass(frozen=True, slots=True)
class Flag(ValueKind):
    """Yes or no."""

    has: frozenset[str] = frozenset((DEFAULT, LOCKED))

    def parse(self, given: object) -> Any:
        if not isinstance(given, bool):
            raise ValueError("must be true or false")
        return given

    def describe(self, value: Any) -> str:
        return "yes" if value else "no"


@dataclass(frozen=True, slots=True)
class WholeNumber(ValueKind):
    """Whole numbers."""

    has: frozenset[str] = frozenset(ATTRIBUTES)
    largest: int = LARGEST

    def parse(self, given: object) -> Any:
        if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= self.largest:
            raise ValueError(f"must be a whole number from 0 to {self.largest:,}")
        return given

    def describe(self, value: Any) -> str:
        return f"{value:,}"


@dataclass(frozen=True, slots=True)
class Portion(ValueKind):
    """Parts of a device, above 0 and at most 1; JSON has them as numbers, or as texts."""

    has: frozenset[str] = frozenset(ATTRIBUTES) - {STEP}

    def parse(self, given: object) -> Any:
        try:
            value = (
                Decimal(str(given))
                if isinstance(given, int | float | str) and not isinstance(given, bool)
                else Decimal("NaN")
            )
        except InvalidOperation:
            value = Decimal("NaN")
        if not value.is_finite() or not 0 < value <= 1 or len(str(given)) > 12:
            raise ValueError("must be a number above 0 and at most 1, such as 0.25")
        return value

    def to_json(self, value: Any) -> Any:
        return f"{value.normalize():f}"

    def describe(self, value: Any) -> str:
        return f"{value.normalize():f}"


@dataclass(frozen=True, slots=True)
class Quantity(ValueKind):
    """Kubernetes quantities, compared as amounts: 1Gi is 1024Mi."""

    has: frozenset[str] = frozenset(ATTRIBUTES) - {STEP}

    def parse(self, given: object) -> Any:
        text = (
            str(given).strip()
            if isinstance(given, str | int | float) and not isinstance(given, bool)
            else ""
        )
        try:
            quantities.parse_quantity(text)
        except ValueError:
            raise ValueError("must be a quantity such as 500m, 2 or 8Gi") from None
        return text

    def comparable(self, value: Any) -> Any:
        return quantities.parse_quantity(value)


@dataclass(frozen=True, slots=True)
class CommandLine(ValueKind):
    """A command or arguments: one line, split as a shell does."""

    has: frozenset[str] = frozenset((DEFAULT, LOCKED))
    empty: Any = ()

    def parse(self, given: object) -> Any:
        if not isinstance(given, str) or len(given) > 8 * LONGEST_TEXT:
            raise ValueError("must be a line of text")
        try:
            return split_command_line(given)
        except InvalidCommandLine as error:
            raise ValueError(str(error)) from None

    def to_json(self, value: Any) -> Any:
        return join_command_line(value)

    def describe(self, value: Any) -> str:
        return join_command_line(value) or "the image's own"


@dataclass(frozen=True, slots=True)
class TextList(ValueKind):
    """Several texts; options are those that may be among them. `choices` are all that there can be,
    where that is known.
    """

    choices: tuple[tuple[str, str], ...] = ()
    nothing: str = "none"
    empty: Any = ()

    def parse(self, given: object) -> Any:
        if not isinstance(given, list | tuple) or len(given) > MOST_OPTIONS:
            raise ValueError(f"must be a list of at most {MOST_OPTIONS} texts")
        return tuple(dict.fromkeys(self.parse_option(each) for each in given))

    def parse_option(self, given: object) -> Any:
        if not isinstance(given, str) or not given.strip() or len(given) > LONGEST_TEXT:
            raise ValueError(f"must be texts of at most {LONGEST_TEXT} characters")
        known = [value for value, _ in self.choices]
        if known and given not in known:
            raise ValueError(f"must be of {', '.join(known)}")
        return given.strip()

    def to_json(self, value: Any) -> Any:
        return list(value)

    def describe(self, value: Any) -> str:
        if isinstance(value, str):
            return dict(self.choices).get(value, value)
        return ", ".join(map(self.describe, value)) or self.nothing

    def comparable(self, value: Any) -> Any:
        return value if isinstance(value, str) else frozenset(value)


@dataclass(frozen=True, slots=True)
class Pairs(ValueKind):
    """Names with values: variables, labels, annotations. `required` lists names; locked, the names
    of the default keep its values.
    """

    has: frozenset[str] = frozenset((DEFAULT, REQUIRED, LOCKED))

    def parse(self, given: object) -> Any:
        if not isinstance(given, Mapping) or len(given) > MOST_OPTIONS:
            raise ValueError(f"must be names with their values, at most {MOST_OPTIONS}")
        return {self._parse_name(name): self._parse_value(value) for name, value in given.items()}

    def parse_names(self, given: object) -> tuple[str, ...]:
        """The names that must be there."""
        if not isinstance(given, list | tuple) or len(given) > MOST_OPTIONS:
            raise ValueError(f"must be a list of at most {MOST_OPTIONS} names")
        return tuple(dict.fromkeys(map(self._parse_name, given)))

    def describe(self, value: Any) -> str:
        return ", ".join(f"{name}={text}" for name, text in value.items())

    @staticmethod
    def _parse_name(given: object) -> str:
        if not isinstance(given, str) or not given.strip() or len(given) > 253:
            raise ValueError("must have names of at most 253 characters")
        return given.strip()

    @staticmethod
    def _parse_value(given: object) -> str:
        if not isinstance(given, str) or len(given) > 8 * LONGEST_TEXT:
            raise ValueError("must have texts as values")
        return given


def join_listing(words: Sequence[str], word: str = "or") -> str:
    """ "a, b or c"; of many the first few."""
    shown = list(words[:8]) + (["others"] if len(words) > 8 else [])
    return f" {word} ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
