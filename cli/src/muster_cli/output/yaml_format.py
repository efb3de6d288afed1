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
# Objects of answers are a type of their own.
_Dumper.add_multi_representer(dict, yaml.SafeDumper.represent_dict)


def dump_yaml(value: Any) -> str:
    """Return a value as YAML, in the order that it has."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    # What it escapes is within double quotes, where YAML reads it as JSON does.
    return escape_json(text)


class _Loader(yaml.SafeLoader):
    """Reads dates as texts, and refuses an object that has a name twice.

    It also refuses what has more than `largest` characters once each alias is written out: a few
    lines of them are gigabytes.
    """

    def __init__(self, text: str, largest: int) -> None:
        super().__init__(text)
        self._largest = largest
        self._sizes: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if node is None or (is_alias and node in self._sizes):
            return node
        problem = ""
        if is_alias:
            # What it stands for has not ended yet.
            problem = "a value contains itself"
        else:
            self._sizes[node] = self._measure_node(node)
            if self._sizes[node] > self._largest:
                problem = f"with its aliases written out it has more than {self._largest >> 20} MiB"
        if problem:
            raise yaml.composer.ComposerError(problem=problem, problem_mark=node.start_mark)
        return node

    def _measure_node(self, node: yaml.Node) -> int:
        """Return about how many characters a value has as JSON, never more than those."""
        if isinstance(node, yaml.ScalarNode):
            return 1 + len(node.value)
        if isinstance(node, yaml.MappingNode):
            return 1 + sum(self._sizes[key] + self._sizes[value] for key, value in node.value)
        return 1 + sum(self._sizes[each] for each in node.value)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        names = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in names and key.value != "<<":
                raise yaml.composer.ComposerError(
                    problem=f"an object has {key.value!r} twice", problem_mark=key.start_mark
                )
            names.add(key.value)
        return node


# As YAML 1.2 and JSON, which know no dates.
_Loader.yaml_implicit_resolvers = {
    first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_yaml(text: str, largest: int) -> Any:
    """Return the value of a YAML document of at most so many characters. Raises ValueError."""
    try:
        # A text may have characters that YAML has not: the loader looks at once.
        return _Loader(text, largest).get_single_data()
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
