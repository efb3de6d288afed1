"""Bodies of the REST API as msgspec structs: read with all their problems at once.

A struct says which fields a body has, of which type, with which bounds and in which words; the
reader here and the OpenAPI document (`console.rest_schemas`) are made from it. Null is as good as
missing, save for a field whose default is UNSET.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import NODEFAULT, UNSET, inspect, structs

from console.errors import Invalid
from console.rest_types import (
    ARRAYS,
    CHOICES,
    has_bounds,
    is_of_length,
    is_too_large,
    name_type,
    unwrap_type,
)

HIDDEN = "x-hidden"
"""The entry of a field's schema that keeps the field out of the OpenAPI document."""
MAX_PROBLEMS = 100
"""Problems of one body that are named: a body may have a million wrong items."""
MAX_UNKNOWN = 20
"""Unknown fields of one object that are named."""
MAX_NAME_CHARS = 60
"""Characters of an unknown field's name in a problem."""

Body = TypeVar("Body", bound=msgspec.Struct)
Problem = tuple[str, str]
"""A path of the body, and a sentence."""
DescribeUnknown = Callable[[str, str, Sequence[str]], Problem]
"""From an object's path, an unknown name in it and the known ones to the problem."""

_PROBLEM = "problem"
_UNSUPPORTED = "unsupported"


class RestBody(msgspec.Struct, rename="camel"):
    """The base of objects that are read field by field; other structs are judged as a whole.

    Unknown fields are refused where a class has `forbid_unknown_fields`.
    """


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Why a field cannot be used, and the values of it that request nothing."""

    reason: str
    harmless: tuple[Any, ...]

    def accepts(self, value: Any) -> bool:
        # Types are compared too, since in Python 0 == False and 1 == True.
        return value in ("", [], {}) or any(
            value == each and type(value) is type(each) for each in self.harmless
        )


def describe_field(description: str = "", *, problem: str = "", **schema: Any) -> msgspec.Meta:
    """Build the annotation of a field: its description, and further entries of its schema.

    The `problem` ("must be ...") is said of every wrong value and of a missing one; of a list, also
    where an item is no object. One that begins with a capital letter is a sentence of its own.
    """
    return msgspec.Meta(
        description=description or None,
        extra={_PROBLEM: problem} if problem else None,
        extra_json_schema=schema or None,
    )


def mark_unsupported(
    *harmless: Any, reason: str = "is not supported by this version"
) -> msgspec.Meta:
    """Build the annotation of a field that is refused, save with a value that requests nothing.

    The value is not kept, and the field is not in the document.
    """
    return msgspec.Meta(
        extra={_UNSUPPORTED: Unsupported(reason, harmless)}, extra_json_schema={HIDDEN: True}
    )


READ_ONLY = msgspec.Meta(extra={_UNSUPPORTED: None}, extra_json_schema={HIDDEN: True})
"""The annotation of a field of answers, which a body may repeat; nobody looks at it."""


@dataclass(slots=True)
class Reading(Generic[Body]):
    """What a body says, and everything that is wrong with it.

    Where something is wrong, `value` has the field's default in its place, or an empty value.
    """

    value: Body
    problems: list[Problem]
    given: set[str]
    """The paths of the body at which there is a value."""
    kept_indexes: dict[str, list[int]]
    """Which items of a list of the body are in the value's list."""

    def refuse(self, place: str, text: str) -> None:
        """Add a problem at a path of the body. `text` follows the path in a sentence."""
        self.problems.append((place, build_sentence(place, text)))

    def get_body_path(self, path: str) -> str:
        """Return the path in the body of a path in the value: items that were left out count."""
        body_path = ""
        for part in path.split("."):
            indexes = self.kept_indexes.get(body_path)
            is_item = indexes is not None and part.isdigit() and int(part) < len(indexes)
            body_path = _join(body_path, str(indexes[int(part)]) if indexes and is_item else part)
        return body_path

    def require_valid(self) -> Body:
        """Return the value. Raises Invalid with all problems."""
        if self.problems:
            raise Invalid(self.problems)
        return self.value


def read_body(
    body_type: type[Body], data: object, describe_unknown: DescribeUnknown | None = None
) -> Reading[Body]:
    """Read a body as a struct; what is wrong with it stands in the reading.

    Problems are in the order of the fields, those of unknown fields last.
    """
    reader = _BodyReader(describe_unknown or _describe_unknown)
    value = reader.read_struct(body_type, data, "")
    return Reading(
        value, reader.problems + reader.unknown_problems, reader.given, reader.kept_indexes
    )


def parse_body(
    body_type: type[Body], data: object, describe_unknown: DescribeUnknown | None = None
) -> Body:
    """Parse a body. Raises Invalid with everything that is wrong with it."""
    return read_body(body_type, data, describe_unknown).require_valid()


def build_body_type(name: str, fields: Mapping[str, Any], base: type[Body]) -> type[Body]:
    """Build a struct by the REST names of its fields, none of which is required.

    A field that is a mapping is an object inside it. The OpenAPI document needs another `name` for
    each struct of a body.
    """
    built: list[tuple[str, Any, Any]] = []
    for field_name, hint in fields.items():
        if isinstance(hint, Mapping):
            hint = build_body_type(name + field_name, hint, RestBody)
        is_object = isinstance(hint, type) and issubclass(hint, RestBody)
        default = msgspec.field(default_factory=hint) if is_object else None
        built.append((field_name, hint, default))
    struct = msgspec.defstruct(name, built, bases=(base,), forbid_unknown_fields=True)
    assert issubclass(struct, base)
    return struct


def build_sentence(place: str, text: str) -> str:
    """Return a problem as a sentence that begins with its place."""
    sentence = f"{text.removesuffix('.')}."
    return sentence if text[:1].isupper() else f"{place or 'The body'} {sentence}"


@dataclass(frozen=True, slots=True)
class _BodyField:
    """A field of a struct, as the reader needs it."""

    name: str
    rest_name: str
    type_hint: Any
    shape: inspect.Type
    problem: str
    """What is said of a wrong value."""
    missing: str
    """What is said where there is no value; "" where none is needed."""
    inner: type[RestBody] | None
    """The struct that is read field by field: the value's, or that of a list's items."""
    has_own_words: bool
    is_unused: bool
    """Whether the value is not kept."""
    takes_null: bool
    """Whether null is another value than none."""
    unsupported: Unsupported | None
    default: Callable[[], Any]


@dataclass(slots=True)
class _BodyReader:
    """The walk through one body."""

    describe_unknown: DescribeUnknown
    problems: list[Problem] = field(default_factory=list)
    unknown_problems: list[Problem] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    kept_indexes: dict[str, list[int]] = field(default_factory=dict)

    def read_struct(
        self, body_type: type[Body], data: object, path: str, problem: str = "must be a JSON object"
    ) -> Body:
        fields = _list_fields(body_type)
        if not isinstance(data, Mapping):
            self._refuse(path, problem)
            return _build_empty(body_type)
        values = {str(name): value for name, value in data.items()}
        if body_type.__struct_config__.forbid_unknown_fields:
            self._refuse_unknown(values, fields, path)
        return body_type(
            **{
                each.name: None
                if each.takes_null and values.get(each.rest_name, 0) is None
                else self._read_field(each, values.get(each.rest_name), path)
                for each in fields
            }
        )

    def _read_field(self, field: _BodyField, value: Any, parent: str) -> Any:
        path = _join(parent, field.rest_name)
        if value is None:
            if field.missing:
                self._refuse(path, field.missing)
            return field.default()
        self.given.add(path)
        if field.is_unused:
            if field.unsupported is not None and not field.unsupported.accepts(value):
                self._refuse(path, field.unsupported.reason)
            return field.default()
        if field.inner is None:
            return self._read_leaf(field, value, path)
        if isinstance(field.shape, ARRAYS):
            return self._read_structs(field, field.inner, value, path)
        return self.read_struct(field.inner, value, path, field.problem)

    def _read_structs(
        self, field: _BodyField, item_type: type[msgspec.Struct], value: Any, path: str
    ) -> Any:
        """Read a list of objects, without nulls and without those that exclude themselves."""
        can_exclude = any(each.rest_name == "exclude" for each in _list_fields(item_type))
        indexes = [
            index
            for index, item in enumerate(value if isinstance(value, list) else ())
            if item is not None
            and not (can_exclude and isinstance(item, Mapping) and item.get("exclude") is True)
        ]
        has_other_items = not all(isinstance(value[each], Mapping) for each in indexes)
        if (
            not isinstance(value, list)
            or not is_of_length(field.shape, len(indexes))
            or (field.has_own_words and has_other_items)
        ):
            self._refuse(path, field.problem)
            return field.default()
        self.kept_indexes[path] = indexes
        self.given.update(f"{path}.{index}" for index in indexes)
        items = [self.read_struct(item_type, value[each], f"{path}.{each}") for each in indexes]
        return items if isinstance(field.shape, inspect.ListType) else tuple(items)

    def _read_leaf(self, field: _BodyField, value: Any, path: str) -> Any:
        problem = field.problem
        if not field.has_own_words and is_too_large(field.shape, value):
            problem = "is too large"
        # msgspec would take a text for a number with digits.
        elif not (isinstance(value, str) and isinstance(field.shape, inspect.DecimalType)):
            with suppress(msgspec.ValidationError, UnicodeEncodeError):
                return msgspec.convert(value, field.type_hint)
        self._refuse(path, problem)
        return field.default()

    def _refuse(self, path: str, text: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append((path, build_sentence(path, text)))

    def _refuse_unknown(
        self, values: Mapping[str, Any], fields: Sequence[_BodyField], path: str
    ) -> None:
        field_names = sorted(each.rest_name for each in fields if not each.is_unused)
        unknown = {name for name, value in values.items() if value is not None}
        for name in sorted(unknown - {each.rest_name for each in fields})[:MAX_UNKNOWN]:
            if len(self.unknown_problems) < MAX_PROBLEMS:
                self.unknown_problems.append(self.describe_unknown(path, name, field_names))


def _describe_unknown(path: str, name: str, field_names: Sequence[str]) -> Problem:
    place = _join(path, clean_name(name))
    return place, build_sentence(place, "is not a field that this version knows")


def clean_name(name: str, max_chars: int = MAX_NAME_CHARS) -> str:
    """Return the name of a field as a problem can show it: printable, and cut to a length."""
    cleaned = "".join(filter(str.isprintable, name[: 4 * max_chars])).strip()
    return cleaned if len(cleaned) <= max_chars else f"{cleaned[: max_chars - 1]}…"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def _list_fields(body_type: type[msgspec.Struct]) -> tuple[_BodyField, ...]:
    return tuple(_build_field(each) for each in structs.fields(body_type))


def _build_field(info: structs.FieldInfo) -> _BodyField:
    shape, extra = unwrap_type(inspect.type_info(info.type))
    problem = extra.get(_PROBLEM) or f"must be {name_type(shape)}"
    says_enough = _PROBLEM in extra or has_bounds(shape) or isinstance(shape, CHOICES)
    return _BodyField(
        name=info.name,
        rest_name=info.encode_name,
        type_hint=info.type,
        shape=shape,
        problem=problem,
        missing=(problem if says_enough else "must be given") if info.required else "",
        inner=_find_inner_struct(shape),
        has_own_words=_PROBLEM in extra,
        is_unused=_UNSUPPORTED in extra,
        takes_null=info.default is UNSET,
        unsupported=extra.get(_UNSUPPORTED),
        default=_build_default(info, shape),
    )


def _find_inner_struct(shape: inspect.Type) -> type[RestBody] | None:
    item = unwrap_type(shape.item_type)[0] if isinstance(shape, ARRAYS) else shape
    if isinstance(item, inspect.StructType) and issubclass(item.cls, RestBody):
        return item.cls
    return None


def _build_default(info: structs.FieldInfo, shape: inspect.Type) -> Callable[[], Any]:
    """Return the function that makes a field's default, or what stands for a missing value."""
    if info.default_factory is not NODEFAULT:
        factory: Callable[[], Any] = info.default_factory
        return factory
    if info.default is not NODEFAULT:
        return lambda: info.default
    if isinstance(shape, inspect.StructType):
        return partial(_build_empty, shape.cls)
    empty: Any = (
        "" if isinstance(shape, inspect.StrType) else () if isinstance(shape, ARRAYS) else None
    )
    return lambda: empty


def _build_empty(body_type: type[Body]) -> Body:
    return body_type(**{each.name: each.default() for each in _list_fields(body_type)})
