"""Nobody waits for ever because the scheduler is busy with those for whom there is no help."""

from scheduling import Action, decide
from tests.scheduling.builders import NOW, make_gang, make_node, make_queue, make_shape, make_state
from tests.scheduling.judge import find_breaches

NODES = 30


def test_a_gang_that_others_can_help_is_served_behind_many_that_nobody_can() -> None:
    """Half of each node is guaranteed work: whoever wants a whole node evicts others in vain."""
    nodes = [make_node(f"n{number}", 8) for number in range(NODES)]
    queues = [
        make_queue("fixed", quota=4 * NODES),
        make_queue("greedy", quota=0, weight=0),
        make_queue("large", quota=8 * NODES),
        make_queue("small", quota=1),
    ]
    gangs = []
    for number in range(NODES):
        on = [f"n{number}"]
        gangs.append(make_gang(f"fixed-{number}", "fixed", 4, on=on, priority=100))
        gangs += [make_gang(f"greedy-{number}-{n}", "greedy", on=on) for n in range(4)]
    for number in range(40):
        shape = make_shape(8, cpu=1 + number)
        gangs.append(make_gang(f"large-{number}", "large", shape=shape, created_at=NOW - 900))
    gangs.append(make_gang("small", "small", created_at=NOW))
    state = make_state(nodes, queues, gangs)
    decision = decide(state)
    assert find_breaches(state, decision) == []
    served = {each.for_gang: each.action for each in decision.evictions}
    assert served == {"small": Action.RECLAIM}


def test_searches_pass_over_a_bounded_number_of_protected_gangs() -> None:
    """Whoever finds victims near is served; who would pass over very many waits for their end."""
    count, searches = 1200, 20
    nodes = [make_node(f"n{number}", 8) for number in range(count // 8 + 1)]
    queues = [
        make_queue("greedy", weight=0, reclaim_min_runtime=7200),
        make_queue("large", quota=1000),
        make_queue("far", quota=1),
        make_queue("near", quota=1),
    ]
    gangs = [
        make_gang(f"greedy-{number}", "greedy", on=[f"n{number // 8}"]) for number in range(count)
    ]
    last = nodes[-1].name
    gangs.append(
        make_gang("old", "greedy", on=[last], created_at=NOW - 9000, started_at=NOW - 9000)
    )
    gangs.append(make_gang("fixed", "large", 6, on=[last], priority=100))
    gangs.append(make_gang("low", "near", on=[last], priority=40))
    for number in range(searches):
        shape = make_shape(8, cpu=1 + number)
        gangs.append(make_gang(f"large-{number}", "large", shape=shape, created_at=NOW - 900))
    gangs += [make_gang(each, each, created_at=NOW) for each in ("far", "near")]
    state = make_state(nodes, queues, gangs)
    decision = decide(state)
    assert {each.for_gang: each.pod for each in decision.evictions} == {"near": "low-0"}
    assert decision.decide_again_at == NOW + 3600

    few = [each for each in gangs if not each.key.startswith("large-")]
    served = {each.for_gang: each.pod for each in decide(make_state(nodes, queues, few)).evictions}
    assert served == {"far": "old-0", "near": "low-0"}
