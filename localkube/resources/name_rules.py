"""The rules for names, labels and keys; each returns the real server's texts for the problems.

The rules and words are those of apimachinery's `util/validation`.
"""

import re
from collections.abc import Callable, Sequence

NameRule = Callable[[str], Sequence[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_value = re.compile(_VALUE).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch


def _describe_format(description: str, pattern: str, *examples: str) -> str:
    listed_examples = " or ".join(f"'{example}', " for example in examples)
    return f"{description} (e.g. {listed_examples}regex used for validation is '{pattern}')"


def _describe_max_length(limit: int) -> str:
    return f"must be no more than {limit} bytes"


_SUBDOMAIN_MESSAGE = _describe_format(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_LABEL_MESSAGE = _describe_format(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_LABEL_1035_MESSAGE = _describe_format(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, "
    "and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_QUALIFIED_MESSAGE = _describe_format(
    (
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
        "an alphanumeric character"
    ),
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_VALUE_MESSAGE = _describe_format(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY_MESSAGE = _describe_format(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)


def check_subdomain(name: str) -> list[str]:
    """Check a DNS-1123 subdomain: most names. 253 characters, dots allowed."""
    problems = [_describe_max_length(253)] if len(name) > 253 else []
    return problems if _is_subdomain(name) else [*problems, _SUBDOMAIN_MESSAGE]


def check_label(name: str) -> list[str]:
    """Check a DNS-1123 label: namespaces, containers, volumes. 63 characters, no dots."""
    problems = [_describe_max_length(63)] if len(name) > 63 else []
    if _is_label(name):
        return problems
    return [*problems, "must not contain dots" if _is_subdomain(name) else _LABEL_MESSAGE]


def check_label_1035(name: str) -> list[str]:
    """Check a DNS-1035 label: services. 63 characters, starts with a letter."""
    problems = [_describe_max_length(63)] if len(name) > 63 else []
    return problems if _is_label_1035(name) else [*problems, _LABEL_1035_MESSAGE]


def check_path_segment(name: str) -> list[str]:
    """Check what can stand between the slashes of a path.

    It is the only rule for an event's name.
    """
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]


def check_qualified_name(name: str) -> list[str]:
    """Check the key of a label or annotation, a finalizer, or a resource.

    It is an optional prefix of 253 and a name of 63 characters.
    """
    parts = name.split("/")
    if len(parts) > 2:
        return [
            (
                f"a valid label key {_QUALIFIED_MESSAGE} with an optional DNS subdomain prefix and "
                "'/' (e.g. 'example.com/MyName')"
            )
        ]
    problems = []
    if len(parts) == 2:
        problems += [
            f"prefix part {text}"
            for text in (check_subdomain(parts[0]) if parts[0] else ["must be non-empty"])
        ]
    last = parts[-1]
    if not last:
        problems.append("name part must be non-empty")
    elif len(last) > 63:
        problems.append(f"name part {_describe_max_length(63)}")
    return problems if _is_qualified(last) else [*problems, f"name part {_QUALIFIED_MESSAGE}"]


def check_label_value(value: str) -> list[str]:
    problems = [_describe_max_length(63)] if len(value) > 63 else []
    return problems if _is_value(value) else [*problems, _VALUE_MESSAGE]


def check_config_key(key: str) -> list[str]:
    """Check a key of a config map or secret, which becomes a file's name."""
    problems = [_describe_max_length(253)] if len(key) > 253 else []
    if not _is_config_key(key):
        problems.append(_CONFIG_KEY_MESSAGE)
    if key in (".", "..") or key.startswith(".."):
        problems.append(
            f"must not be '{key}'" if key in (".", "..") else "must not start with '..'"
        )
    return problems


def check_environment_name(name: str) -> list[str]:
    """Check the name of an environment variable: any printable ASCII but "="."""
    if all(" " <= character <= "~" and character != "=" for character in name):
        return []
    return [
        (
            "a valid environment variable name must consist only of printable ASCII characters "
            "other than '='"
        )
    ]


def check_port_name(name: str) -> list[str]:
    """Check an IANA service name, as ports have."""
    problems = [_describe_max_length(15)] if len(name) > 15 else []
    if not re.fullmatch("[-a-z0-9]+", name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems
