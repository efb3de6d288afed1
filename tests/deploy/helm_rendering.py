"""The objects of the chart, rendered here: exactly the part of Helm's templates that it uses.

Anything else in a template is an error, so that nothing is taken for rendered that is not.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import yaml

from tests.deploy.rendering import DEPLOY, Object

CHART = DEPLOY / "helm"

_ACTION = re.compile(r"(\s*)\{\{(-?) (.*?) (-?)\}\}(\s*)", re.DOTALL)
_WORD = re.compile(r'\(|\)|\||"[^"]*"|[^\s()|]+')
_FIRST_EXPONENT = 6
"""From how many digits behind the first on Go writes a number with an exponent."""
EXAMPLE_VALUES: Object = {
    "image": {"repository": "registry.example.org/muster"},
    "host": "muster.example.org",
    "ingress": {"tlsSecret": "muster-tls"},
}
"""Values without a default, as the example overlay has them."""


class RefusedValues(Exception):
    """The chart does not take these values: its sentence."""


@dataclass
class Block:
    """Text, an action, or what stands between the action of a block and its end."""

    action: str = ""
    text: str = ""
    children: "list[Block]" = field(default_factory=list)


@dataclass(frozen=True)
class Scope:
    """What a template can name: values, the release, "." and variables."""

    root: Object
    dot: Any
    variables: Object = field(default_factory=dict)


def default_values() -> Object:
    values: Object = yaml.safe_load((CHART / "values.yaml").read_text())
    return values


def render_chart(**changed: Any) -> list[Object]:
    """Render the objects of the chart for the release `muster`, its first in the namespace
    `muster`, with the values of the example and some changed.
    """
    values = _merge(_merge(default_values(), EXAMPLE_VALUES), changed)
    release = {"Namespace": "muster", "Revision": 1, "Name": "muster"}
    root = {"Values": values, "Release": release}
    objects = []
    for path in sorted((CHART / "templates").glob("*.yaml")):
        text = render_template(path.read_text(), root)
        objects += [each for each in yaml.safe_load_all(text) if each is not None]
    return objects


def render_template(text: str, root: Object) -> str:
    blocks = _parse(text)
    return _render(blocks, Scope(root, root))


def _merge(base: Object, changed: Object) -> Object:
    merged = dict(base)
    for name, value in changed.items():
        if value is None and name in base:
            # As with Helm: null takes a default away.
            del merged[name]
            continue
        is_deep = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _merge(merged[name], value) if is_deep else value
    return merged


def _parse(text: str) -> list[Block]:
    stack: list[list[Block]] = [[]]
    for token in _split_template(text):
        keyword = token.action.partition(" ")[0]
        if keyword == "end":
            assert len(stack) > 1, "an end of nothing"
            stack.pop()
            continue
        stack[-1].append(token)
        if keyword in ("if", "with", "range"):
            stack.append(token.children)
    assert len(stack) == 1, "a block without an end"
    return stack[0]


def _split_template(text: str) -> Iterator[Block]:
    at = 0
    for match in _ACTION.finditer(text):
        before, trims_before, action, trims_after, after = match.groups()
        kept_before, kept_after = "" if trims_before else before, "" if trims_after else after
        yield Block(text=text[at : match.start()] + kept_before)
        yield Block(action=action)
        yield Block(text=kept_after)
        at = match.end()
    rest = text[at:]
    assert "{{" not in rest, f"this is not understood: {rest[:80]}"
    yield Block(text=rest)


def _render(blocks: Sequence[Block], scope: Scope) -> str:
    return "".join(_render_block(each, scope) for each in blocks)


def _render_block(block: Block, scope: Scope) -> str:
    if not block.action:
        return block.text
    keyword, _, rest = block.action.partition(" ")
    match keyword:
        case "if":
            return _render(block.children, scope) if _evaluate(rest, scope) else ""
        case "with":
            value = _evaluate(rest, scope)
            inner = Scope(scope.root, value, scope.variables)
            return _render(block.children, inner) if value else ""
        case "range":
            names, _, source = rest.partition(" := ")
            key, _, value_name = names.partition(", ")
            pairs = sorted(_evaluate(source, scope).items())
            return "".join(
                _render(
                    block.children,
                    Scope(scope.root, value, scope.variables | {key: name, value_name: value}),
                )
                for name, value in pairs
            )
    return _to_text(_evaluate(block.action, scope))


def _evaluate(expression: str, scope: Scope) -> Any:
    words = _WORD.findall(expression)
    value = _evaluate_words(words, scope)
    assert not words, f"this is not understood: {expression}"
    return value


def _evaluate_words(words: list[str], scope: Scope) -> Any:
    """Evaluate a pipeline, up to its end or the closing parenthesis around it."""
    value = _evaluate_call(words, scope, [])
    while words and words[0] == "|":
        words.pop(0)
        value = _evaluate_call(words, scope, [value])
    return value


def _evaluate_call(words: list[str], scope: Scope, piped: list[Any]) -> Any:
    head, arguments = words[0], []
    if head in _FUNCTIONS:
        words.pop(0)
        while words and words[0] not in ("|", ")"):
            arguments.append(_evaluate_operand(words, scope))
        return _FUNCTIONS[head](*arguments, *piped)
    assert not piped, f"{head} is no function that the chart may use"
    return _evaluate_operand(words, scope)


def _evaluate_operand(words: list[str], scope: Scope) -> Any:
    word = words.pop(0)
    if word == "(":
        value = _evaluate_words(words, scope)
        assert words.pop(0) == ")"
        return value
    if word.isdigit():
        return int(word)
    if word.startswith('"'):
        return word[1:-1]
    if word == ".":
        return scope.dot
    if word.startswith("$"):
        return scope.variables[word]
    assert (word + ".").startswith((".Values.", ".Release.")), f"{word} is not understood"
    value = scope.dot
    for name in word[1:].split("."):
        if name not in value:
            # A release may have the values of an older chart; what has none here is a mistake.
            assert _has_default(word), f"{word} has no value in values.yaml"
            return None
        value = value[name]
    return value


def _has_default(word: str) -> bool:
    value: Any = {"Values": default_values()}
    for name in word[1:].split("."):
        if name not in value:
            return False
        value = value[name]
    return True


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return {True: "true", False: "false"}[value]
    return _format_number(value) if isinstance(value, int | float) else str(value)


def _format_number(number: float) -> str:
    """Format a number as Go does: those of a file of values are floats there."""
    exact = Decimal(repr(float(number))).normalize()
    exponent = exact.adjusted()
    if -4 <= exponent < _FIRST_EXPONENT:
        return f"{exact:f}"
    return f"{exact.scaleb(-exponent):f}e{exponent:+03d}"


def _find_kind(value: Any) -> str:
    """Return the kind of a value as Go calls it, of those that the chart asks for."""
    if value is None:
        return "invalid"
    if isinstance(value, bool):
        return "bool"
    return "float64" if isinstance(value, int | float) else "string"


def _write_yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=False).rstrip().removesuffix("\n...")


def _indent(spaces: int, text: str) -> str:
    return "\n" + "\n".join(f"{' ' * spaces}{line}" for line in text.splitlines())


def _require_value(sentence: str, value: Any) -> Any:
    if value in (None, ""):
        raise RefusedValues(sentence)
    return value


def _refuse_values(sentence: str) -> Any:
    raise RefusedValues(sentence)


_FUNCTIONS: dict[str, Any] = {
    "and": lambda *values: all(values),
    "fail": _refuse_values,
    "hasKey": lambda values, name: name in values,
    "kindIs": lambda kind, value: _find_kind(value) == kind,
    "ternary": lambda one, other, is_one: one if is_one else other,
    "toJson": json.dumps,
    "has": lambda value, values: value in values,
    "list": lambda *values: list(values),
    "not": lambda value: not value,
    "or": lambda *values: any(values),
    "printf": lambda text, *values: text % values,
    "required": _require_value,
    "quote": lambda value: json.dumps(_to_text(value)),
    "print": lambda *values: "".join(_to_text(each) for each in values),
    "toYaml": _write_yaml,
    "nindent": _indent,
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
}
