"""The arguments of tools: described as JSON Schema, and read with every bound checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster_cli.errors import UsageProblem

LONGEST_TEXT = 500
LARGEST_OBJECT = 64_000
"""Characters of an object that is written as JSON."""
SHOWN_CHARACTERS = 80

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool: its type in JSON Schema, what it means, and its bounds."""

    name: str
    type: str
    description: str
    is_required: bool = False
    default: Any = None
    choices: Sequence[str] = ()
    least: int = 0
    most: int = 0

    def describe(self) -> Schema:
        """Return the argument as JSON Schema."""
        schema: Schema = {"type": self.type, "description": self.description}
        if self.type == "string":
            schema["maxLength"] = LONGEST_TEXT
        if self.type == "integer":
            schema |= {"minimum": self.least, "maximum": self.most}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.default is not None:
            schema["default"] = self.default
        return schema

    def parse_value(self, value: Any) -> Any:
        """Return a value of the argument's type. Raises UsageProblem."""
        match self.type:
            case "string":
                return self._parse_text(value)
            case "integer":
                return self._parse_integer(value)
            case "boolean" if isinstance(value, bool):
                return value
            case "object" if isinstance(value, Mapping):
                if len(str(value)) > LARGEST_OBJECT:
                    raise UsageProblem(
                        f"'{self.name}' is too large: it has more than {LARGEST_OBJECT:,} "
                        "characters."
                    )
                return value
        article = "an" if self.type[0] in "aeiou" else "a"
        raise UsageProblem(f"'{self.name}' is {article} {self.type}, and not {_cut_value(value)}.")

    def _parse_text(self, value: Any) -> str:
        if not isinstance(value, str):
            raise UsageProblem(f"'{self.name}' is a text, and not {_cut_value(value)}.")
        if len(value) > LONGEST_TEXT or not value.isprintable():
            raise UsageProblem(
                f"'{self.name}' is one line of at most {LONGEST_TEXT} characters that can be shown."
            )
        if self.choices and value not in self.choices:
            raise UsageProblem(
                f"'{self.name}' is none of the values that there are: {_cut_value(value)}.",
                f"It is one of {', '.join(self.choices)}.",
            )
        return value

    def _parse_integer(self, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageProblem(f"'{self.name}' is a whole number, and not {_cut_value(value)}.")
        if not self.least <= value <= self.most:
            raise UsageProblem(
                f"'{self.name}' lies between {self.least} and {self.most:,}: {_cut_value(value)} "
                "does not."
            )
        return value


def _cut_value(value: Any) -> str:
    """Return a value for a sentence, in few characters that can be shown."""
    # The digits of a huge number are too many to be written at all.
    text = "such a number" if isinstance(value, int) and abs(value) > 10**20 else repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def build_schema(parameters: Sequence[Parameter]) -> Schema:
    """Return the schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {each.name: each.describe() for each in parameters},
        "required": [each.name for each in parameters if each.is_required],
        "additionalProperties": False,
    }


def parse_arguments(
    parameters: Sequence[Parameter], arguments: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return a value for each parameter, its default where none is given. Raises UsageProblem."""
    arguments = arguments or {}
    names = [each.name for each in parameters]
    unknown = [name for name in arguments if name not in names]
    if unknown:
        raise UsageProblem(
            f"There is no argument {_cut_value(unknown[0])}.",
            f"There are {', '.join(names)}." if names else "There are none.",
        )
    values: dict[str, Any] = {}
    for each in parameters:
        value = arguments.get(each.name)
        if value is not None:
            values[each.name] = each.parse_value(value)
        elif each.is_required:
            raise UsageProblem(f"'{each.name}' is missing: {each.description}")
        else:
            values[each.name] = each.default
    return values
