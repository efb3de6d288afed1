"""KAI's published rules hold for the decisions of the pure package, one test for each."""

from collections import Counter

import pytest

from scheduling import Action, decide
from tests.scheduling.descriptions import describe_state
from tests.scheduling.kai_queue_rules import ALLOCATION, RECLAIM, SHARES
from tests.scheduling.kai_rules import Rule
from tests.scheduling.kai_work_rules import CONSOLIDATION, PREEMPTION, PROTECTION, STALE_GANGS
from tests.scheduling.world import build_world

RULES = [*ALLOCATION, *SHARES, *RECLAIM, *PREEMPTION, *CONSOLIDATION, *PROTECTION, *STALE_GANGS]


def test_every_rule_has_its_own_name_and_a_source() -> None:
    names = Counter(rule.name for rule in RULES)
    assert [name for name, count in names.items() if count > 1] == []
    assert [rule.name for rule in RULES if not rule.source.startswith(("docs/", "tests/"))] == []


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_a_rule_of_kai_holds(rule: Rule) -> None:
    world = build_world(rule.build_state(), decide)
    world.settle()
    if rule.seconds:
        world.pass_time(rule.seconds)
        world.settle()
    running = {job.key: job.count_running() for job in world.jobs.values()}
    assert running == rule.list_expected(), describe_state(world.observe())
    evicted = {action.value: world.counts[action.value] for action in Action}
    if rule.evicted or running == {
        gang.key: sum(1 for pod in gang.pods if pod.node) for gang in rule.gangs
    }:
        wanted = dict.fromkeys(evicted, 0) | dict(rule.evicted)
        assert evicted == wanted, describe_state(world.observe())
