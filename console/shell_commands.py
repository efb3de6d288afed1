"""Shell commands for people to paste: words are quoted, and documents keep to themselves."""

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CreationCalls:
    """What makes a row once more; `secrets` are the places of the body that stay empty."""

    rest: str
    command: str
    secrets: tuple[str, ...] = ()


_UNSAFE_IN_DOCUMENTS = re.compile(r"[^ -~\n]|!")
_END = "EOF"


def is_typable(text: str) -> bool:
    """Tell whether a terminal takes a text as it is: a control character would act on it."""
    return text.isprintable()


def quote_word(word: str) -> str:
    """Return one word as a shell reads it back, whatever is in it."""
    # zsh takes an unquoted =ls for the path of ls.
    return f"'{word}'" if word.startswith("=") and "'" not in word else shlex.quote(word)


def quote_words(words: Iterable[str]) -> str:
    return " ".join(map(quote_word, words))


def format_document(value: Any) -> str:
    """Return a value as JSON that can be pasted into a shell.

    What a terminal would obey is escaped, and so is "!", which bash takes for its history.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _UNSAFE_IN_DOCUMENTS.sub(_escape_character, text)


def _escape_character(match: re.Match[str]) -> str:
    character = match[0]
    if character == "!":
        return "\\u0021"
    return character if character.isprintable() else json.dumps(character)[1:-1]


def build_command(groups: Iterable[Sequence[str]], document: Any = None) -> str:
    """Return a command, a line for each group of words.

    A document becomes its standard input; a line of JSON is never the word that ends it.
    """
    command = " \\\n  ".join(map(quote_words, groups))
    if document is None:
        return command
    return f"{command} <<'{_END}'\n{format_document(document)}\n{_END}"


def build_curl(address: str, body: Any) -> str:
    """Return a POST to an address, which is already quoted; TOKEN is the shell's variable."""
    lines = (
        f"curl -X POST {address}",
        '-H "Authorization: Bearer $TOKEN"',
        "-H 'Content-Type: application/json'",
        f"-d {shlex.quote(format_document(body))}",
    )
    return " \\\n  ".join(lines)
