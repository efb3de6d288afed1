"""Until when the minimum of a running gang is protected (KAI `docs/plugins/minruntime.md`)."""

from collections.abc import Iterable

from scheduling.decision import Action
from scheduling.gangs import GangBook
from scheduling.queues import Queues
from scheduling.reclaim_rules import ReclaimRules
from scheduling.state import Queue


def find_protection_end(
    queues: Queues, rules: ReclaimRules, action: Action, taker: GangBook, victim: GangBook
) -> float:
    """Return until when a gang keeps its minimum, in seconds; 0 when nothing protects it.

    Preemption is bounded by the nearest queue that says something, from the victim's own upwards;
    reclaim by the nearest from the one where the ways of both part (KAI's `lca`).
    """
    if victim.started_at is None:
        return 0.0
    chain = queues.get_chain(victim.queue)
    if action is Action.PREEMPT:
        seconds = _find_first(queue.preempt_min_runtime for queue in chain)
    elif action is Action.RECLAIM:
        parted = rules.find_parting(taker.queue, victim.queue).givers[-1]
        seconds = _find_first(queue.reclaim_min_runtime for queue in _climb_from(chain, parted))
    else:
        return 0.0
    return victim.started_at + seconds


def _find_first(values: Iterable[float]) -> float:
    return next((value for value in values if value > 0), 0.0)


def _climb_from(chain: Iterable[Queue], start: Queue) -> Iterable[Queue]:
    """Return the queues of a chain from one of them upwards."""
    queues = list(chain)
    return queues[queues.index(start) :]
