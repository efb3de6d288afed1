"""What would help a workload that waits: changes to it and to what is around it, played forward."""

from workloads.alternatives.answers import AlternativeView, AnswerBoard
from workloads.alternatives.asking import play_question, play_to_end
from workloads.alternatives.questions import CannotAsk, Question, ask_for_draft, ask_for_workload

__all__ = [
    "AlternativeView",
    "AnswerBoard",
    "CannotAsk",
    "Question",
    "ask_for_draft",
    "ask_for_workload",
    "play_question",
    "play_to_end",
]
