"""Label and field selectors: parsing their text or object form, and matching.

The grammar is that of apimachinery's `labels` and `fields`.
"""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Literal

from localkube.errors import ApiError, bad_request_error

MAX_LENGTH = 16_384
"""Most characters of a selector. A real server is bounded by its request line only."""

Operator = Literal["in", "notin", "exists", "!", "gt", "lt"]

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INT64 = re.compile(r"[+-]?[0-9]{1,19}")

_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character "
    "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_SUBDOMAIN_RULE = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
    "characters, '-' or '.', "
    "and must start and end with an alphanumeric character "
    r"(e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label.

    `notin` also matches an object without the label, as on a real server.
    """

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                return value is not None and self._matches_bound(value)

    def _matches_bound(self, value: str) -> bool:
        if not _INT64.fullmatch(value):
            return False
        (bound,) = self.values
        return int(value) > int(bound) if self.operator == "gt" else int(value) < int(bound)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all match.

    Without any the selector is empty and matches everything.
    """

    requirements: tuple[Requirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Terms of field, value, and whether the field must equal the value or must not."""

    terms: tuple[tuple[str, str, bool], ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.terms

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Return whether all terms match.

        `fields` holds the object's value of each supported field; a missing one counts as "".
        """
        return all((fields.get(name, "") == value) is equal for name, value, equal in self.terms)


def find_key_problem(key: str) -> str:
    """Return what is wrong with a label key, or "".

    The words are apimachinery's (`IsQualifiedName`).
    """
    prefix, slash, name = key.rpartition("/")
    problems = []
    if "/" in prefix:
        return (
            f"a qualified name {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. "
            "'example.com/MyName')"
        )
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash and len(prefix) > 253:
        problems.append("prefix part must be no more than 253 bytes")
    elif slash and not _SUBDOMAIN.fullmatch(prefix):
        problems.append(_SUBDOMAIN_RULE)
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _NAME.fullmatch(name):
        problems.append(f"name part {_NAME_RULE}")
    return "; ".join(problems)


def find_value_problem(value: str) -> str:
    """Return what is wrong with a label value, or "".

    The words are apimachinery's (`IsValidLabelValue`).
    """
    problems = []
    if len(value.encode()) > 63:
        problems.append("must be no more than 63 bytes")
    if value and not _NAME.fullmatch(value):
        problems.append(_VALUE_RULE)
    return "; ".join(problems)


def parse_label_selector(text: str) -> LabelSelector:
    """Parse the text form: `a=b, c!=d, e in (x,y), f notin (z), g, !h, i>1`.

    Raises ApiError 400.
    """
    _check_length(text)
    return LabelSelector(tuple(_LabelSelectorParser(text).parse()))


def parse_field_selector(text: str, supported: Container[str]) -> FieldSelector:
    r"""Parse the text form: `metadata.name=a,status.phase!=Running`.

    `\` escapes a comma, an equals sign and itself. Raises ApiError 400, also for a field that is
    not in `supported`.
    """
    _check_length(text)
    terms = []
    for term in sorted(re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)):
        name, operator, value = _split_term(text, term)
        terms.append((name, _unescape(value), operator != "!="))
    for name, _, _ in terms:
        if name not in supported:
            raise bad_request_error(f"field label not supported: {name}")
    return FieldSelector(tuple(terms))


def _check_length(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise bad_request_error(
            f"the selector has {len(text)} characters, at most {MAX_LENGTH} are allowed"
        )


def _build_requirement(key: str, operator: Operator, values: list[str]) -> Requirement:
    """Build a requirement, its values checked as `labels.NewRequirement` does.

    The messages name places relative to the requirement. Raises ApiError 400.
    """
    problems = []
    if operator in ("in", "notin") and not values:
        problems.append(
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        )
    for index, value in enumerate(sorted(values)):
        if operator in ("gt", "lt") and not _INT64.fullmatch(value):
            problems.append(
                f"values[{index}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the "
                "value must be an integer"
            )
        if problem := find_value_problem(value):
            problems.append(f'values[{index}][{key}]: Invalid value: "{value}": {problem}')
    if problems:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise bad_request_error(f"unable to parse requirement: {text}")
    return Requirement(key, operator, frozenset(values))


_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+|$)")
_SYMBOLS = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">"))
_COMPARISONS: dict[str, Operator] = {
    "=": "in",
    "==": "in",
    "!=": "notin",
    ">": "gt",
    "<": "lt",
    "in": "in",
    "notin": "notin",
}


class _LabelSelectorParser:
    """Recursive descent parser over the tokens of a label selector.

    `labels/selector.go` is the model, its error messages included. The empty token ends the text.
    """

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        self.position = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        if self._peek() == "":
            return requirements
        if self._peek() != "!" and not self._is_word(self._peek()):
            raise bad_request_error(
                f"found '{self._peek()}', expected: !, identifier, or 'end of string'"
            )
        while True:
            requirements.append(self._parse_requirement())
            word = self._next()
            if word == "":
                return requirements
            if word != ",":
                raise bad_request_error(f"found '{word}', expected: ',' or 'end of string'")
            if self._peek() != "!" and not self._is_word(self._peek()):
                raise bad_request_error(f"found '{self._peek()}', expected: identifier after ','")

    def _parse_requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._next()
        if not self._is_word(key):
            raise self._build_error(key, "identifier")
        if problem := find_key_problem(key):
            raise bad_request_error(
                f'unable to parse requirement: <nil>: Invalid value: "{key}": {problem}'
            )
        if absent:
            return Requirement(key, "!")
        if self._peek() in ("", ","):
            return Requirement(key, "exists")
        word = self._next()
        if word not in _COMPARISONS:
            raise self._build_error(word, "in, notin, =, ==, !=, gt, lt")
        values = self._parse_list() if word in ("in", "notin") else [self._parse_value()]
        return _build_requirement(key, _COMPARISONS[word], values)

    def _parse_value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        value = self._next()
        if not self._is_word(value):
            raise self._build_error(value, "identifier")
        return value

    def _parse_list(self) -> list[str]:
        """Parse the values in parentheses, each once.

        Nothing between two commas is the empty value.
        """
        word = self._next()
        if word != "(":
            raise bad_request_error(f"unable to parse requirement: found '{word}' expected: '('")
        if self._peek() == ")":
            self._next()
            return []
        values: set[str] = set()
        while True:
            values.add(self._next() if self._is_word(self._peek()) else "")
            word = self._next()
            if word == ")":
                return sorted(values)
            if word != ",":
                raise self._build_error(word, "',' or ')'")

    def _peek(self) -> str:
        return str(self.tokens[self.position])

    def _next(self) -> str:
        word = self._peek()
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return word

    @staticmethod
    def _is_word(word: str) -> bool:
        return word != "" and word not in _SYMBOLS

    @staticmethod
    def _build_error(token: str, expected: str) -> ApiError:
        return bad_request_error(
            f"unable to parse requirement: found '{token}', expected: {expected}"
        )


def _split_term(text: str, term: str) -> tuple[str, str, str]:
    split = re.match(r"(.*?)(!=|==|=)(.*)", term, re.DOTALL)
    if not split:
        raise bad_request_error(f"invalid selector: '{text}'; can't understand '{term}'")
    name, operator, value = split.groups()
    return name, operator, value


def _unescape(value: str) -> str:
    if "\\" not in value and "=" not in value:
        return value
    wrong = re.search(r"\\(?![\\,=]).?", re.sub(r"\\[\\,=]", "", value), re.DOTALL)
    if wrong:
        raise bad_request_error(f"invalid field selector: invalid escape sequence: {wrong[0]}")
    if "=" in re.sub(r"\\[\\,=]", "", value):
        raise bad_request_error("invalid field selector: unescaped character in value: =")
    return re.sub(r"\\([\\,=])", r"\1", value)
