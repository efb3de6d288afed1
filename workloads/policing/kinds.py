"""The kinds of values that policies rule: parsed from JSON, described, compared, matched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

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
"""The attributes of a rule, as JSON names them, in the order of the pages."""


@dataclass(frozen=True, slots=True)
class ValueKind:
    """Texts that are compared as they are; the base of all kinds.

    `attributes` are the attributes of a rule that make sense for the kind.
    """

    attributes: ClassVar[frozenset[str]] = frozenset((DEFAULT, REQUIRED, OPTIONS, LOCKED))
    empty: ClassVar[Any] = None
    """The value that means none, at which a lock can keep a field."""

    def parse(self, json_value: object) -> Any:
        """Return the value of what JSON has.

        Raises ValueError with the words that follow the field's name in a sentence.
        """
        if (
            not isinstance(json_value, str)
            or not json_value.strip()
            or len(json_value) > LONGEST_TEXT
        ):
            raise ValueError(f"must be a text of at most {LONGEST_TEXT} characters")
        return json_value.strip()

    def parse_option(self, json_value: object) -> Any:
        return self.parse(json_value)

    def to_json(self, value: Any) -> Any:
        """Return the value as JSON has it."""
        return value

    def describe(self, value: Any) -> str:
        """Describe the value for a sentence."""
        return str(value)

    def comparable(self, value: Any) -> Any:
        """Return what is compared: values are equal where this is."""
        return value

    def matches_option(self, value: Any, option: Any) -> bool:
        """Return whether an option allows a value."""
        return bool(self.comparable(value) == self.comparable(option))

    def intersect_options(self, ones: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
        """Return the options that allow what both lists allow."""
        allowed = {self.comparable(each) for each in others}
        return tuple(each for each in ones if self.comparable(each) in allowed)


@dataclass(frozen=True, slots=True)
class PrefixText(ValueKind):
    """Texts whose options may be prefixes, with a star at the end."""

    def matches_option(self, value: Any, option: Any) -> bool:
        return str(value).startswith(option[:-1]) if option.endswith("*") else bool(value == option)

    def intersect_options(self, ones: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
        # Of two prefixes that overlap, one is always a prefix of the other.
        within = [
            option for option in ones if any(self.matches_option(option, other) for other in others)
        ]
        return tuple(
            dict.fromkeys(
                (
                    *within,
                    *(
                        other
                        for other in others
                        if any(self.matches_option(other, option) for option in ones)
                    ),
                )
            )
        )


@dataclass(frozen=True, slots=True)
class Choice(ValueKind):
    """One of a few words."""

    choices: tuple[tuple[str, str], ...] = ()
    """(value, label) pairs."""

    def parse(self, json_value: object) -> Any:
        values = [value for value, _ in self.choices]
        if json_value not in values:
            raise ValueError(f"must be one of {', '.join(values)}")
        return json_value

    def describe(self, value: Any) -> str:
        return dict(self.choices).get(value, str(value))


@dataclass(frozen=True, slots=True)
class Flag(ValueKind):
    """Yes or no."""

    attributes: ClassVar[frozenset[str]] = frozenset((DEFAULT, LOCKED))

    def parse(self, json_value: object) -> Any:
        if not isinstance(json_value, bool):
            raise ValueError("must be true or false")
        return json_value

    def describe(self, value: Any) -> str:
        return "yes" if value else "no"


@dataclass(frozen=True, slots=True)
class WholeNumber(ValueKind):
    """Whole numbers."""

    attributes: ClassVar[frozenset[str]] = frozenset(ATTRIBUTES)
    largest: int = LARGEST

    def parse(self, json_value: object) -> Any:
        if (
            isinstance(json_value, bool)
            or not isinstance(json_value, int)
            or not 0 <= json_value <= self.largest
        ):
            raise ValueError(f"must be a whole number from 0 to {self.largest:,}")
        return json_value

    def describe(self, value: Any) -> str:
        return f"{value:,}"


@dataclass(frozen=True, slots=True)
class Portion(ValueKind):
    """Parts of a device, above 0 and at most 1; JSON has them as numbers or as texts."""

    attributes: ClassVar[frozenset[str]] = frozenset(ATTRIBUTES) - {STEP}

    def parse(self, json_value: object) -> Any:
        try:
            value = (
                Decimal(str(json_value))
                if isinstance(json_value, int | float | str) and not isinstance(json_value, bool)
                else Decimal("NaN")
            )
        except InvalidOperation:
            value = Decimal("NaN")
        if not value.is_finite() or not 0 < value <= 1 or len(str(json_value)) > 12:
            raise ValueError("must be a number above 0 and at most 1, such as 0.25")
        return value

    def to_json(self, value: Any) -> Any:
        return f"{value.normalize():f}"

    def describe(self, value: Any) -> str:
        return f"{value.normalize():f}"


@dataclass(frozen=True, slots=True)
class Quantity(ValueKind):
    """Kubernetes quantities, compared as amounts: 1Gi is 1024Mi."""

    attributes: ClassVar[frozenset[str]] = frozenset(ATTRIBUTES) - {STEP}

    def parse(self, json_value: object) -> Any:
        text = (
            str(json_value).strip()
            if isinstance(json_value, str | int | float) and not isinstance(json_value, bool)
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

    attributes: ClassVar[frozenset[str]] = frozenset((DEFAULT, LOCKED))
    empty: ClassVar[Any] = ()

    def parse(self, json_value: object) -> Any:
        if not isinstance(json_value, str) or len(json_value) > 8 * LONGEST_TEXT:
            raise ValueError("must be a line of text")
        try:
            return split_command_line(json_value)
        except InvalidCommandLine as error:
            raise ValueError(str(error)) from None

    def to_json(self, value: Any) -> Any:
        return join_command_line(value)

    def describe(self, value: Any) -> str:
        return join_command_line(value) or "the image's own"


@dataclass(frozen=True, slots=True)
class TextList(ValueKind):
    """Several texts; options are those that may be among them.

    `choices` are all possible texts, where that is known.
    """

    choices: tuple[tuple[str, str], ...] = ()
    nothing: str = "none"
    empty: ClassVar[Any] = ()

    def parse(self, json_value: object) -> Any:
        if not isinstance(json_value, list | tuple) or len(json_value) > MOST_OPTIONS:
            raise ValueError(f"must be a list of at most {MOST_OPTIONS} texts")
        return tuple(dict.fromkeys(self.parse_option(each) for each in json_value))

    def parse_option(self, json_value: object) -> Any:
        if (
            not isinstance(json_value, str)
            or not json_value.strip()
            or len(json_value) > LONGEST_TEXT
        ):
            raise ValueError(f"must be texts of at most {LONGEST_TEXT} characters")
        values = [value for value, _ in self.choices]
        if values and json_value not in values:
            raise ValueError(f"must be of {', '.join(values)}")
        return json_value.strip()

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
    """Names with values: variables, labels, annotations.

    `required` lists names. `locked` keeps the values of the default's names.
    """

    attributes: ClassVar[frozenset[str]] = frozenset((DEFAULT, REQUIRED, LOCKED))

    def parse(self, json_value: object) -> Any:
        if not isinstance(json_value, Mapping) or len(json_value) > MOST_OPTIONS:
            raise ValueError(f"must be names with their values, at most {MOST_OPTIONS}")
        return {
            self._parse_name(name): self._parse_value(value) for name, value in json_value.items()
        }

    def parse_names(self, json_value: object) -> tuple[str, ...]:
        """Return the required names."""
        if not isinstance(json_value, list | tuple) or len(json_value) > MOST_OPTIONS:
            raise ValueError(f"must be a list of at most {MOST_OPTIONS} names")
        return tuple(dict.fromkeys(map(self._parse_name, json_value)))

    def describe(self, value: Any) -> str:
        return ", ".join(f"{name}={text}" for name, text in value.items())

    @staticmethod
    def _parse_name(json_value: object) -> str:
        if not isinstance(json_value, str) or not json_value.strip() or len(json_value) > 253:
            raise ValueError("must have names of at most 253 characters")
        return json_value.strip()

    @staticmethod
    def _parse_value(json_value: object) -> str:
        if not isinstance(json_value, str) or len(json_value) > 8 * LONGEST_TEXT:
            raise ValueError("must have texts as values")
        return json_value


def join_listing(words: Sequence[str], word: str = "or") -> str:
    """Join words as "a, b or c"; of many words the first eight."""
    first_words = list(words[:8]) + (["others"] if len(words) > 8 else [])
    return f" {word} ".join(filter(None, (", ".join(first_words[:-1]), *first_words[-1:])))
