"""The answer to "why?"."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One sentence with numbers, and one about what would help.

    The rest is there when it applies: the pod and container it is about, and the line of its log
    that started it, with its place among the lines that were given. All of it may hold words of a
    pod or of the cluster: text, bounded, to be escaped where it is shown.
    """

    sentence: str
    help: str = ""
    pod: str = ""
    container: str = ""
    line: str = ""
    line_index: int | None = None


def build_sentence(*parts: str) -> str:
    """The parts as one sentence: joined with spaces, a capital at the start and a stop at the
    end.
    """
    text = " ".join(part for part in parts if part).strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?…" else ".")
