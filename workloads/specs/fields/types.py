"""The types of a workload's fields, as plain data: bounds, choices, words for an empty value.

Each reader of the catalogue has one table from these types to what it makes of them: a
form field, a part of a REST body, a policy's kind of value, a phrase.
"""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class FieldType:
    """The base of all types."""


@dataclass(frozen=True, slots=True)
class Text(FieldType):
    """A line of text; "" is none."""


@dataclass(frozen=True, slots=True)
class CommandLine(FieldType):
    """Words that are typed and sent as one line, split as a shell does; () is none."""


@dataclass(frozen=True, slots=True)
class Names(FieldType):
    """Names that are typed with spaces between them; () is none.

    In a REST body they are a list of texts, or of objects with a `name` where `are_objects`.
    """

    are_objects: bool = False
    is_upper: bool = False
    """Whether they are in capitals, however they are typed."""
    means_none: str = ""
    """A name that, sent alone, asks for nothing."""


@dataclass(frozen=True, slots=True)
class Ids(FieldType):
    """Whole numbers that are typed, and sent in one text, with commas between them; () is none."""


@dataclass(frozen=True, slots=True)
class Number(FieldType):
    """A whole number from `least` to `most`; None where none is given, or the `default`.

    `required` is the sentence for a page on which it is left empty; "" where it may be. Pages take
    at most `most_typed`, and say `too_large` of more. `noun` is what it counts, where Details say
    that: "time".
    """

    least: int = 0
    most: int = 2**31 - 1
    default: int | None = None
    required: str = ""
    most_typed: int | None = None
    too_large: str = ""
    noun: str = ""


@dataclass(frozen=True, slots=True)
class Flag(FieldType):
    """True or False; nothing given is False."""


@dataclass(frozen=True, slots=True)
class Switch(FieldType):
    """True or False; nothing given is True.

    Pages have a choice of two: a box that is not ticked is not sent, and could not be told from
    one that an older draft or template lacks.
    """


@dataclass(frozen=True, slots=True)
class YesNo(FieldType):
    """True, False, or None, which leaves it to the image and the cluster."""


@dataclass(frozen=True, slots=True)
class Choice(FieldType):
    """A member of an enum, or None where it is left to what `empty` names.

    Pages always send one where it `is_required`, at first the first of them.
    """

    options: type[StrEnum]
    empty: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Quantity(FieldType):
    """A Kubernetes quantity as text; "" is none."""


@dataclass(frozen=True, slots=True)
class Cores(Quantity):
    """A quantity of CPU cores, which a REST body has as a number."""


@dataclass(frozen=True, slots=True)
class Portion(FieldType):
    """A part of a GPU, above 0 and at most 1, or None; pages have it in percent."""


@dataclass(frozen=True, slots=True)
class Rows(FieldType):
    """Any number of these parts of a Spec, each in a row of its own; () is none.

    `add` are the words of the button that adds one.
    """

    part: type
    add: str


@dataclass(frozen=True, slots=True)
class Pairs(Rows):
    """Rows of a key and a value, which a policy can preset and require; `noun` names one of them.

    A value is a label's value, or any text where `has_any_text`. Where they are labels of nodes
    (`are_of_nodes`), keys are those that nodes may have, and not those that may be set.
    """

    noun: str
    has_any_text: bool = False
    are_of_nodes: bool = False


@dataclass(frozen=True, slots=True)
class TopologyKey(FieldType):
    """A node label by which pods are kept together, and whether that is required; or None."""
