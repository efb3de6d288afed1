"""The answer of a diagnosis, and what several of them say."""

from dataclasses import dataclass

from workloads.diagnosis.causes import Confidence, FailureCause

LOOK_INTO_LOG = "Look into its log."
STARTS_BY_ITSELF = "It starts by itself as soon as there is room."


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One sentence with numbers, and one about what would help.

    The rest is there when it applies: the pod and container it is about, and the line of its log
    that started the failure, with its index among the given lines; of a failure its cause, the rank
    that caused it where that is known, and how sure it is; of a workload that waits for its turn
    its place in its project's queue. All of it may hold words of a pod or of the cluster: text,
    bounded, to be escaped where it is shown.
    """

    sentence: str
    help: str = ""
    pod: str = ""
    container: str = ""
    line: str = ""
    line_index: int | None = None
    cause: FailureCause | None = None
    rank: int | None = None
    confidence: Confidence | None = None
    is_queued: bool = False
    """Whether it starts once others give back what they use: then its turn matters."""
    position: int | None = None
    queue_length: int | None = None


def build_sentence(*parts: str) -> str:
    """Join the parts with spaces into a sentence of one line with a capital and a full stop."""
    # A cluster's words may have several lines.
    text = " ".join(" ".join(parts).split())
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?…" else ".")
