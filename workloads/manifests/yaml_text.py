"""Objects as YAML for people to read and for `kubectl apply -f`."""

import re
from collections.abc import Iterable
from typing import Any

import yaml

from workloads.kube_objects import Object

_BLOCK = re.compile(r"[^\s][ -~\n]*[!-~]\n?")
"""Several lines of plain ASCII: text that a block shows as it is."""

_AMBIGUOUS = re.compile(r"[-+.]?[0-9].*|[yYnN]", re.DOTALL)
"""Texts that some parser takes for a number, a time or a truth value, as kubectl's does with `1e3`
and `y`.
"""

_UNUSUAL = re.compile(r"[^ -~\n\u00a1-\u1fff\u3000-\ud7ff]")
"""Characters that are better escaped than shown."""


class _ReadableDumper(yaml.SafeDumper):
    """Dump keys in order, long texts as blocks, lists indented, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text and _BLOCK.fullmatch(text) and " \n" not in text:
        style = "|"
    elif "\n" in text or _AMBIGUOUS.fullmatch(text) or _UNUSUAL.search(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_ReadableDumper.add_representer(str, _represent_text)


def dump_yaml(objects: Iterable[Object]) -> str:
    """Return all objects in one text, separated by `---`; parsing it gives equal objects."""
    return yaml.dump_all(
        objects, Dumper=_ReadableDumper, sort_keys=False, allow_unicode=True, width=120
    )
