"""YAML as Kubernetes reads and writes it: plain JSON values only, and times stay text.

Aliases cannot grow a document beyond a budget. Values are built from the parser's events with a
stack of our own: PyYAML's composer recurses in C and crashes on deep nesting.
"""

import copy
import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_NODES = 200_000
"""Most values in one document, aliases counted at each use.

A few kB of nested aliases would otherwise become gigabytes.
"""
CHARACTERS_PER_VALUE = 64
"""A text, or a key, counts once more for each so many characters.

An alias of a long text is short, too: a thousand of them would be a gigabyte once encoded.
"""
MAX_DEPTH = 200

_STRING_TAG = "tag:yaml.org,2002:str"
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*|0[0-7_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?\Z")
_TRUE = ("yes", "on", "true")
_FALSE = ("no", "off", "false")
_NULL = ("", "~", "null", "Null", "NULL")


class BadYaml(Exception):
    """A text that is no single YAML document of plain values; the message says why."""


def parse_yaml(text: bytes) -> Any:
    """Parse one document; return None for an empty one. Raises BadYaml."""
    reader = _DocumentBuilder()
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            reader.handle_event(event)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadYaml(str(error)) from error
    return reader.root


def dump_yaml(value: Any) -> bytes:
    """Encode a value in block style, keys in their order.

    `kubectl -o yaml` shows an object so.
    """
    text: bytes = yaml.dump(
        value, Dumper=yaml.CSafeDumper, encoding="utf-8", sort_keys=False, allow_unicode=True
    )
    return text


@dataclass(slots=True)
class _OpenCollection:
    """A collection whose end has not been parsed.

    `size` counts the values in it, as MAX_NODES does; `key` is the mapping's key that waits for a
    value.
    """

    value: Any
    anchor: str | None
    line: int
    size: int = 1
    key: str | None = None
    merges: list[Any] = field(default_factory=list)


class _DocumentBuilder:
    """Builds a document's value from the parser's events."""

    def __init__(self) -> None:
        self.root: Any = None
        self._documents = 0
        self._values_left = MAX_NODES
        self._stack: list[_OpenCollection] = []
        self._anchors: dict[str, tuple[Any, int]] = {}

    def handle_event(self, event: yaml.Event) -> None:
        """Handle the parser's next event. Raises BadYaml."""
        if isinstance(event, yaml.ScalarEvent):
            self._add_scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            if len(self._stack) >= MAX_DEPTH:
                raise BadYaml(f"document is nested more than {MAX_DEPTH} levels deep")
            if (
                self._stack
                and isinstance(self._stack[-1].value, dict)
                and self._stack[-1].key is None
            ):
                raise BadYaml(f"line {_get_line_number(event)}: a key must be plain text")
            self._spend_budget(1)
            value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._stack.append(_OpenCollection(value, event.anchor, _get_line_number(event)))
        elif isinstance(event, yaml.CollectionEndEvent):
            closed = self._stack.pop()
            self._add_value(_merge_maps(closed), closed.size, closed.anchor, closed.line)
        elif isinstance(event, yaml.AliasEvent):
            anchor = str(event.anchor)
            if anchor not in self._anchors:
                raise BadYaml(
                    f"line {_get_line_number(event)}: unknown anchor '{anchor[:64]}' referenced"
                )
            shared, size = self._anchors[anchor]
            self._spend_budget(size)
            self._add_value(copy.deepcopy(shared), size, None, _get_line_number(event))
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise BadYaml("expected a single document in the stream but found another document")

    def _add_scalar(self, event: yaml.ScalarEvent) -> None:
        line = _get_line_number(event)
        top = self._stack[-1] if self._stack else None
        size = len(event.value) // CHARACTERS_PER_VALUE
        if top is not None and isinstance(top.value, dict) and top.key is None:
            if event.value in top.value:
                raise BadYaml(f'line {line}: key "{event.value[:64]}" already set in map')
            top.key = event.value
            top.size += size
            self._spend_budget(size)
            return
        is_plain = event.style in (None, "") and event.tag != _STRING_TAG
        self._spend_budget(1 + size)
        self._add_value(
            _parse_plain_scalar(event.value) if is_plain else event.value,
            1 + size,
            event.anchor,
            line,
        )

    def _add_value(self, value: Any, size: int, anchor: str | None, line: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = value, size
        if not self._stack:
            self.root = value
            return
        top = self._stack[-1]
        top.size += size
        if isinstance(top.value, list):
            top.value.append(value)
            return
        assert top.key is not None
        key, top.key = top.key, None
        if key == "<<":
            sources = value if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                raise BadYaml(
                    f"line {line}: map merge requires map or sequence of maps as the value"
                )
            top.merges += sources
        else:
            top.value[key] = value

    def _spend_budget(self, size: int) -> None:
        self._values_left -= size
        if self._values_left < 0:
            raise BadYaml(
                f"document contains more than {MAX_NODES} values, a text counted once for every "
                f"{CHARACTERS_PER_VALUE} characters"
            )


def _merge_maps(collection: _OpenCollection) -> Any:
    """Return the value of a collection with what is merged into it.

    Its own keys come before those of any source, and a source's before those of a later one.
    """
    if not collection.merges:
        return collection.value
    merged: dict[str, Any] = {}
    # Into one map: a new map for each source would cost their number squared.
    for source in (*reversed(collection.merges), collection.value):
        merged.update(source)
    return merged


def _get_line_number(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _parse_plain_scalar(text: str) -> Any:
    """Parse an unquoted scalar by the rules of YAML 1.1 without times and base-60 numbers.

    Go's reader has the same rules. Raises BadYaml.
    """
    if text in _NULL:
        return None
    if text.lower() in _TRUE or text.lower() in _FALSE:
        return text.lower() in _TRUE
    if _INTEGER.match(text):
        return _parse_integer(text.replace("_", ""))
    if _FLOAT.match(text):
        number = float(text.replace("_", ""))
        if math.isinf(number):
            raise BadYaml(f"number out of range: {text[:64]}")
        return int(number) if number.is_integer() and abs(number) < 2**63 else number
    return text


def _parse_integer(text: str) -> int:
    digits = text.lstrip("+-")
    if len(digits) > 64:
        raise BadYaml(f"number out of range: {text[:64]}...")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        text = text.replace("0", "0o", 1)
    return int(text, 0)
