"""YAML, read and written. PyYAML takes long to import: this module is imported where it is used."""

import re
from typing import Any

import yaml

from muster_cli.output.terminal import escape_json

_NUMBER = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0o[0-7]+", re.ASCII
)
"""What YAML 1.2 reads as a number. PyYAML knows 1.1, and would leave 1e3 and 0o17 bare."""
_ESCAPED = re.compile("[\x85\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Line ends that PyYAML folds into spaces, and what turns the order of a line around."""


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if _ESCAPED.search(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    elif _NUMBER.fullmatch(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump_yaml(value: Any) -> str:
    """Return a value as YAML, in the order that it has."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    # What it escapes is within double quotes, where YAML reads it as JSON does.
    return escape_json(text)


def load_yaml(text: str) -> Any:
    """Return the value of a YAML document. Raises ValueError."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
