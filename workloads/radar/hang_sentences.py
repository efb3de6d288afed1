"""Says in a sentence how ranks hang, and how certain that is. Pure."""

from collections.abc import Callable, Sequence

from workloads.quantities import format_ranks
from workloads.radar.evidence import RankEvidence, WorkloadEvidence, format_seconds
from workloads.radar.findings import Certainty
from workloads.radar.silences import Shape, Silence

MOST_NAMED = 5
"""Ranks that a sentence names."""
CERTAINTY = {
    Shape.REPORTED: Certainty.CERTAIN,
    Shape.SEEN_BY_RAS: Certainty.LIKELY,
    Shape.ENDED: Certainty.CERTAIN,
    Shape.ALONE: Certainty.LIKELY,
    Shape.BEHIND: Certainty.CERTAIN,
    Shape.ODD: Certainty.LIKELY,
    Shape.TOGETHER: Certainty.POSSIBLE,
    Shape.START: Certainty.POSSIBLE,
}


def describe_silence(evidence: WorkloadEvidence, silence: Silence) -> str:
    """Say which ranks are silent, for how long, and what the others do meanwhile."""
    return _SENTENCES[silence.shape](evidence, silence)


def name_ranks(ranks: Sequence[RankEvidence]) -> str:
    """Name ranks at the beginning of a sentence, as "Rank 37" or "Ranks 3, 4 and 2 others"."""
    return format_ranks([each.rank for each in ranks], MOST_NAMED).capitalize()


def _describe_reported(evidence: WorkloadEvidence, silence: Silence) -> str:
    lasted = format_seconds(evidence.now - silence.since)
    return (
        f"{name_ranks(silence.ranks)} {_have(silence)} not come to the collective in which others "
        f"wait, as their library said {lasted} ago."
    )


def _describe_ended(evidence: WorkloadEvidence, silence: Silence) -> str:
    lasted = format_seconds(evidence.now - silence.since)
    ended = silence.ranks[0]
    how = ended.end or "its pod ended"
    return (
        f"{name_ranks(silence.ranks)} ended {lasted} ago ({how}), and "
        f"{_count_others(silence)} {_verb(silence, 'wait')} for {_pronoun(silence)}."
    )


def _describe_behind(evidence: WorkloadEvidence, silence: Silence) -> str:
    lasted = format_seconds(evidence.now - silence.since)
    step = max((each.step or 0 for each in silence.others), default=0)
    waits = silence.shape is Shape.BEHIND
    meanwhile = _verb(silence, "wait") if waits else f"{_verb(silence, 'go')} on"
    return (
        f"{name_ranks(silence.ranks)} {_have(silence)} said nothing for {lasted}, while "
        f"{_count_others(silence)} {meanwhile} at step {step:,}."
    )


def _describe_odd(evidence: WorkloadEvidence, silence: Silence) -> str:
    lasted = format_seconds(evidence.now - silence.since)
    step = silence.ranks[0].step or 0
    return (
        f"All ranks have said nothing for {lasted}, since step {step:,}, and rank "
        f"{silence.ranks[0].rank} does something else than the others: they seem to wait for it."
    )


def _describe_together(evidence: WorkloadEvidence, silence: Silence) -> str:
    lasted = format_seconds(evidence.now - silence.since)
    step = max(each.step or 0 for each in silence.ranks)
    if len(silence.ranks) == 1:
        return f"Rank {silence.ranks[0].rank} has said nothing for {lasted}, since step {step:,}."
    return (
        f"All {len(silence.ranks)} ranks have said nothing for {lasted}, since step {step:,}. "
        "Which one the others wait for is not known."
    )


def _describe_start(evidence: WorkloadEvidence, silence: Silence) -> str:
    lasted = format_seconds(evidence.now - silence.since)
    return f"It has said nothing for {lasted}, and computes nothing: it has not begun to train."


def _count_others(silence: Silence) -> str:
    count = len(silence.others)
    return f"rank {silence.others[0].rank}" if count == 1 else f"the {count:,} others"


def _verb(silence: Silence, verb: str) -> str:
    if len(silence.others) != 1:
        return verb
    return "goes" if verb == "go" else f"{verb}s"


def _have(silence: Silence) -> str:
    return "has" if len(silence.ranks) == 1 else "have"


def _pronoun(silence: Silence) -> str:
    return "it" if len(silence.ranks) == 1 else "them"


_SENTENCES: dict[Shape, Callable[[WorkloadEvidence, Silence], str]] = {
    Shape.REPORTED: _describe_reported,
    Shape.SEEN_BY_RAS: _describe_reported,
    Shape.ENDED: _describe_ended,
    Shape.ALONE: _describe_behind,
    Shape.BEHIND: _describe_behind,
    Shape.ODD: _describe_odd,
    Shape.TOGETHER: _describe_together,
    Shape.START: _describe_start,
}
