"""The types of the fields of REST bodies, as msgspec sees them: their words and their bounds."""

from typing import Any

from msgspec import inspect

MAX_NUMBER = 10**15
"""The largest number of a field without bounds of its own."""

ARRAYS = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
CHOICES = (inspect.BoolType, inspect.EnumType, inspect.LiteralType)
NUMBERS = (inspect.IntType, inspect.FloatType, inspect.DecimalType)


def unwrap_type(shape: inspect.Type) -> tuple[inspect.Type, dict[str, Any]]:
    """Return a type without annotations and without null, and what the annotations say."""
    if isinstance(shape, inspect.Metadata):
        inner, extra = unwrap_type(shape.type)
        return inner, {**extra, **(shape.extra or {})}
    if isinstance(shape, inspect.UnionType):
        others = tuple(each for each in shape.types if not isinstance(each, inspect.NoneType))
        return unwrap_type(others[0]) if len(others) == 1 else (inspect.UnionType(others), {})
    return shape, {}


def has_bounds(shape: inspect.Type) -> bool:
    if isinstance(shape, inspect.IntType | inspect.FloatType):
        return shape.ge is not None or shape.le is not None
    return isinstance(shape, inspect.StrType) and shape.max_length is not None


def name_type(shape: inspect.Type) -> str:
    """Return the words for the values of a type."""
    match shape:
        case inspect.StrType(max_length=int(most)):
            return f"a text of at most {most} characters"
        case inspect.IntType(ge=int(least), le=int(most)):
            return f"a whole number from {least} to {most}"
        case inspect.StrType():
            return "a text"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType() | inspect.DecimalType():
            return "a number"
        case inspect.BoolType():
            return "true or false"
        case inspect.EnumType():
            return f"one of {', '.join(str(each.value) for each in shape.cls)}"
        case inspect.LiteralType():
            return f"one of {', '.join(map(str, shape.values))}"
        case inspect.UnionType():
            return " or ".join(name_type(unwrap_type(each)[0]) for each in shape.types)
        case inspect.StructType() | inspect.DictType():
            return "a JSON object"
    if isinstance(shape, ARRAYS):
        return f"a list{_name_items(unwrap_type(shape.item_type)[0])}"
    return "of another type"


def _name_items(shape: inspect.Type) -> str:
    match shape:
        case inspect.StrType():
            return " of texts"
        case inspect.IntType():
            return " of whole numbers"
        case inspect.StructType() | inspect.DictType():
            return " of objects"
    return ""


def is_too_large(shape: inspect.Type, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    shapes = shape.types if isinstance(shape, inspect.UnionType) else (shape,)
    numeric = [each for each in shapes if isinstance(each, NUMBERS)]
    if isinstance(value, float):
        numeric = [each for each in numeric if not isinstance(each, inspect.IntType)]
    is_bounded = any(has_bounds(each) for each in numeric)
    # Not `>`: NaN compares false with everything, and is refused this way.
    return bool(numeric) and not is_bounded and not abs(value) <= MAX_NUMBER


def is_of_length(shape: inspect.Type, length: int) -> bool:
    assert isinstance(shape, ARRAYS)
    most = length if shape.max_length is None else shape.max_length
    return (shape.min_length or 0) <= length <= most
