"""KAI's rules of workloads: preemption, consolidation, protection by time, stale gangs."""

from fractions import Fraction
from typing import Any

from scheduling import Gang, Preemptibility
from tests.scheduling.builders import NOW, make_gang, make_node, make_queue, make_shape
from tests.scheduling.kai_rules import Rule

HALF = Fraction(1, 2)
SEMI = Preemptibility.SEMI_PREEMPTIBLE
ONE_QUEUE = [make_queue("a", quota=2)]

PREEMPTION = [
    Rule(
        "higher priority evicts lower in the same queue",
        "docs/priority/README.md, Example",
        [make_node("n", 2)],
        [make_queue("a", quota=1, limit=1)],
        [make_gang("train", "a", on=["n"]), make_gang("build", "a", priority=100)],
        {"train": 0, "build": 1},
        {"preempt": 1},
    ),
    Rule(
        "equal priority evicts nobody",
        "docs/scheduling-deep-dive/README.md, Preemption Rules",
        [make_node("n", 1)],
        [make_queue("a", quota=1)],
        [make_gang("first", "a", on=["n"]), make_gang("second", "a")],
        {"second": 0},
    ),
    Rule(
        "non-preemptible work is immune to preemption",
        "docs/scheduling-deep-dive/README.md, What Preemption Cannot Do",
        [make_node("n", 1)],
        [make_queue("a", quota=2)],
        [
            make_gang("build", "a", on=["n"], priority=100),
            make_gang("inference", "a", priority=125),
        ],
        {"inference": 0},
    ),
    Rule(
        "preemption never crosses queues",
        "docs/scheduling-deep-dive/README.md, What Preemption Cannot Do",
        [make_node("n", 1)],
        [make_queue("a", quota=1), make_queue("b", quota=0, weight=0)],
        [make_gang("train", "a", on=["n"]), make_gang("high", "b", priority=75)],
        {"high": 0},
    ),
    Rule(
        "preemptible work of higher priority preempts too",
        "docs/priority/README.md, Priority Classes",
        [make_node("n", 1)],
        [make_queue("a", quota=0)],
        [make_gang("train", "a", on=["n"]), make_gang("build", "a", priority=75)],
        {"train": 0, "build": 1},
        {"preempt": 1},
    ),
    Rule(
        "as few are evicted as are needed",
        "tests/preempt/preempt_test.go",
        [make_node("n", 2)],
        ONE_QUEUE,
        [
            make_gang("part0", "a", on=["n"], shape=make_shape(part=HALF), created_at=NOW - 90),
            make_gang("part1", "a", on=["n"], shape=make_shape(part=HALF), created_at=NOW - 80),
            make_gang("whole", "a", on=["n"], created_at=NOW - 70),
            make_gang("build", "a", priority=100),
        ],
        {"part0": 1, "part1": 1, "whole": 0, "build": 1},
        {"preempt": 1},
    ),
    Rule(
        "a large preemptor evicts all that it needs",
        "tests/preempt/preempt_test.go",
        [make_node("n", 4)],
        [make_queue("a", quota=4)],
        [
            make_gang("one", "a", on=["n"]),
            make_gang("two", "a", 2, on=["n"]),
            make_gang("three", "a", on=["n"]),
            make_gang("build", "a", 4, priority=100),
        ],
        {"one": 0, "two": 0, "three": 0, "build": 1},
        {"preempt": 3},
    ),
    Rule(
        "nobody is evicted for work that no node can hold",
        "tests/preempt/preempt_test.go",
        [make_node("n", 2), make_node("m", 2)],
        [make_queue("a", quota=4)],
        [
            make_gang("one", "a", on=["n"]),
            make_gang("two", "a", 2, on=["m"]),
            make_gang("three", "a", on=["n"]),
            make_gang("build", "a", 4, priority=100),
        ],
        {"build": 0},
    ),
    Rule(
        "nobody is evicted for non-preemptible work beyond the quota",
        "tests/preempt/preempt_test.go; docs/scheduling-deep-dive/README.md, What happens when",
        [make_node("n", 4)],
        [make_queue("a", quota=3)],
        [
            make_gang("one", "a", on=["n"]),
            make_gang("two", "a", 2, on=["n"]),
            make_gang("three", "a", on=["n"]),
            make_gang("build", "a", 4, priority=100),
        ],
        {"build": 0},
    ),
    Rule(
        "where nothing waits nothing is evicted",
        "tests/preempt/preempt_test.go",
        [make_node("n", 4)],
        [make_queue("a", quota=3)],
        [make_gang("train", "a", on=["n"]), make_gang("build", "a", 2, on=["n"], priority=100)],
        {},
    ),
    Rule(
        "a gang preempts for all its pods together",
        "tests/preempt/preemptGang_test.go",
        [make_node("n", 2)],
        ONE_QUEUE,
        [make_gang("train", "a", 2, on=["n"]), make_gang("gang", "a", pods=2, priority=100)],
        {"train": 0, "gang": 2},
        {"preempt": 1},
    ),
    Rule(
        "a begun gang preempts only for the pods that it lacks",
        "tests/preempt/preemptGang_test.go",
        [make_node("n", 3)],
        ONE_QUEUE,
        [
            make_gang("train0", "a", on=["n"], created_at=NOW - 90),
            make_gang("train1", "a", on=["n"], created_at=NOW - 80),
            make_gang("gang", "a", on=["n"], pods=2, priority=100),
        ],
        {"train0": 1, "train1": 0, "gang": 2},
        {"preempt": 1},
    ),
    Rule(
        "a rigid gang is evicted whole though one pod would do",
        "tests/preempt/preemptGang_test.go; docs/elastic/README.md",
        [make_node("n", 2)],
        [make_queue("a", quota=1)],
        [make_gang("gang", "a", on=["n", "n"]), make_gang("build", "a", priority=100)],
        {"gang": 0, "build": 1},
        {"preempt": 2},
    ),
    Rule(
        "a part of a device is preempted for a whole one",
        "tests/preempt/preemptFractional_test.go",
        [make_node("n", 2)],
        ONE_QUEUE,
        [
            make_gang("whole", "a", on=["n"], created_at=NOW - 90),
            make_gang("part", "a", on=["n"], shape=make_shape(part=HALF), created_at=NOW - 80),
            make_gang("build", "a", priority=100),
        ],
        {"whole": 1, "part": 0, "build": 1},
        {"preempt": 1},
    ),
    Rule(
        "of a gang of which one pod leaves already only the other is evicted",
        "tests/preempt/preempt_test.go",
        [make_node("n", 2)],
        [make_queue("a", quota=2)],
        [
            make_gang("mixed", "a", on=["n", "n"], leaving=1, minimum=1),
            make_gang("build", "a", pods=2, priority=100),
        ],
        {"mixed": 0, "build": 2},
        {"preempt": 1},
    ),
]

CONSOLIDATION = [
    Rule(
        "scattered work moves together to let in what needs a whole node",
        "tests/consolidation/consolidation_test.go; docs/scheduling-deep-dive/README.md, Cycle",
        [make_node("n", 2), make_node("m", 2)],
        [make_queue("a", quota=1)],
        [
            make_gang("one", "a", on=["n"]),
            make_gang("two", "a", on=["m"]),
            make_gang("large", "a", 2, created_at=NOW),
        ],
        {"one": 1, "two": 1, "large": 1},
        {"consolidate": 1},
    ),
    Rule(
        "non-preemptible work is not moved",
        "tests/consolidation/consolidation_test.go",
        [make_node("n", 2), make_node("m", 2)],
        [make_queue("a", quota=4)],
        [
            make_gang("one", "a", on=["n"], priority=100),
            make_gang("two", "a", on=["m"], priority=100),
            make_gang("large", "a", 2),
        ],
        {"large": 0},
    ),
    Rule(
        "nothing is moved that would not find a place again",
        "docs/scheduling-deep-dive/README.md, The Scheduling Cycle",
        [make_node("n", 2), make_node("m", 2)],
        [make_queue("a", quota=4)],
        [
            make_gang("one", "a", on=["n"]),
            make_gang("two", "a", 2, on=["m"]),
            make_gang("large", "a", 2, created_at=NOW),
        ],
        {"large": 0},
    ),
    Rule(
        "a gang is moved whole, and runs again",
        "tests/consolidation/consolidationGang_test.go",
        [make_node("n", 3), make_node("m", 3)],
        [make_queue("a", quota=1)],
        [
            make_gang("gang", "a", on=["n", "n", "m"], created_at=NOW - 90),
            make_gang("large", "a", 3, created_at=NOW),
        ],
        {"gang": 3, "large": 1},
    ),
    Rule(
        "a part of a device moves beside another to set a whole one free",
        "tests/consolidation/consolidationFractional_test.go",
        [make_node("n", 1), make_node("m", 1)],
        [make_queue("a", quota=2)],
        [
            make_gang("one", "a", on=["n"], shape=make_shape(part=HALF)),
            make_gang("two", "a", on=["m"], shape=make_shape(part=HALF)),
            make_gang("whole", "a", created_at=NOW),
        ],
        {"one": 1, "two": 1, "whole": 1},
        {"consolidate": 1},
    ),
]

PROTECTION = [
    Rule(
        "a minimum run time protects from reclaim until it is over",
        "docs/plugins/minruntime.md",
        [make_node("n", 1)],
        [make_queue("a", quota=0, reclaim_min_runtime=600), make_queue("b", quota=1)],
        [make_gang("young", "a", on=["n"], started_at=NOW - 300), make_gang("mine", "b")],
        {"mine": 0},
    ),
    Rule(
        "after the minimum run time work is reclaimed",
        "docs/plugins/minruntime.md",
        [make_node("n", 1)],
        [make_queue("a", quota=0, reclaim_min_runtime=600), make_queue("b", quota=1)],
        [make_gang("young", "a", on=["n"], started_at=NOW - 300), make_gang("mine", "b")],
        {"young": 0, "mine": 1},
        {"reclaim": 1},
        seconds=301,
    ),
    Rule(
        "a minimum run time protects from preemption until it is over",
        "docs/plugins/minruntime.md",
        [make_node("n", 1)],
        [make_queue("a", quota=1, preempt_min_runtime=600)],
        [
            make_gang("young", "a", on=["n"], started_at=NOW - 300),
            make_gang("build", "a", priority=100),
        ],
        {"build": 0},
    ),
    Rule(
        "the minimum run time of reclaim does not protect from preemption",
        "docs/plugins/minruntime.md, Configuration Parameters",
        [make_node("n", 1)],
        [make_queue("a", quota=1, reclaim_min_runtime=600)],
        [
            make_gang("young", "a", on=["n"], started_at=NOW - 300),
            make_gang("build", "a", priority=100),
        ],
        {"young": 0, "build": 1},
        {"preempt": 1},
    ),
    Rule(
        "a minimum run time protects the minimum of a gang, not its surplus",
        "docs/plugins/minruntime.md, Elastic Jobs Handling",
        [make_node("n", 3)],
        [make_queue("a", quota=0, reclaim_min_runtime=600), make_queue("b", quota=3)],
        [
            make_gang("elastic", "a", on=["n", "n", "n"], minimum=2, started_at=NOW - 300),
            make_gang("mine", "b", pods=2, minimum=1),
        ],
        {"elastic": 2, "mine": 1},
        {"reclaim": 1},
    ),
    Rule(
        "a department's minimum run time protects from other departments",
        "docs/plugins/minruntime.md, Resolution Methods (LCA)",
        [make_node("n", 1)],
        [
            make_queue("d1", quota=0, reclaim_min_runtime=600),
            make_queue("d2", quota=1),
            make_queue("a", "d1", quota=0),
            make_queue("b", "d2", quota=1),
        ],
        [make_gang("young", "a", on=["n"], started_at=NOW - 300), make_gang("mine", "b")],
        {"mine": 0},
    ),
    Rule(
        "within its delay work takes nothing from others",
        "docs/preemption-delay/README.md, Behavior",
        [make_node("n", 1)],
        [make_queue("a", quota=0), make_queue("b", quota=1)],
        [
            make_gang("train", "a", on=["n"]),
            make_gang("mine", "b", created_at=NOW - 10, preemption_delay=60),
        ],
        {"mine": 0},
    ),
    Rule(
        "after its delay work takes what it may",
        "docs/preemption-delay/README.md, Behavior",
        [make_node("n", 1)],
        [make_queue("a", quota=0), make_queue("b", quota=1)],
        [
            make_gang("train", "a", on=["n"]),
            make_gang("mine", "b", created_at=NOW - 10, preemption_delay=60),
        ],
        {"train": 0, "mine": 1},
        {"reclaim": 1},
        seconds=51,
    ),
    Rule(
        "a delay does not keep work from free room",
        "docs/preemption-delay/README.md, Behavior",
        [make_node("n", 1)],
        [make_queue("b", quota=1)],
        [make_gang("mine", "b", created_at=NOW - 10, preemption_delay=60)],
        {"mine": 1},
    ),
    Rule(
        "the minimum of a semi-preemptible gang is not preempted, its surplus is",
        "docs/developer/designs/semi-preemptible/README.md, Overview",
        [make_node("n", 3)],
        [make_queue("a", quota=3)],
        [
            make_gang("semi", "a", on=["n", "n", "n"], minimum=2, preemptibility=SEMI),
            make_gang("build0", "a", priority=100, created_at=NOW - 20),
            make_gang("build1", "a", priority=100, created_at=NOW - 10),
        ],
        {"semi": 2, "build0": 1, "build1": 0},
        {"preempt": 1},
    ),
    Rule(
        "the minimum of a semi-preemptible gang has to be within the quota",
        "docs/developer/designs/semi-preemptible/README.md, Quota Requirements",
        [make_node("n", 4)],
        [make_queue("a", quota=1)],
        [make_gang("semi", "a", pods=4, minimum=2, preemptibility=SEMI)],
        {"semi": 0},
    ),
    Rule(
        "the surplus of a semi-preemptible gang may go over the quota",
        "docs/developer/designs/semi-preemptible/README.md, Quota Requirements",
        [make_node("n", 4)],
        [make_queue("a", quota=2)],
        [make_gang("semi", "a", pods=4, minimum=2, preemptibility=SEMI)],
        {"semi": 4},
    ),
    Rule(
        "the minimum of a semi-preemptible gang stays where its quota shrinks below it",
        "docs/developer/designs/semi-preemptible/README.md, Quota Scale-Down",
        [make_node("n", 3)],
        [make_queue("a", quota=0), make_queue("b", quota=3)],
        [
            make_gang("semi", "a", on=["n", "n", "n"], minimum=2, preemptibility=SEMI),
            make_gang("mine", "b", pods=3, minimum=1),
        ],
        {"semi": 2, "mine": 1},
        {"reclaim": 1},
    ),
]


def make_stale_gang(**others: Any) -> Gang:
    """Return a gang that began with two pods and has run with one for two minutes."""
    given = {"pods": 2, "started_at": NOW - 3600, "stale_since": NOW - 120, **others}
    return make_gang("stale", "a", on=["n"], **given)


def make_stale_rule(name: str, source: str, gang: Gang, left: int) -> Rule:
    """Return a rule of a full node on which a stale gang runs beside another."""
    other = make_gang("other", "a", on=["n"], priority=100)
    queues = [make_queue("a", quota=2)]
    evicted = {"stalegangeviction": 1 - left}
    return Rule(name, source, [make_node("n", 2)], queues, [gang, other], {"stale": left}, evicted)


STALE_GANGS = [
    make_stale_rule(
        "a gang that runs with too few pods for longer than its grace is evicted whole",
        "docs/staleness-grace-period/README.md; tests/stalegangeviction/stalegangeviction_test.go",
        make_stale_gang(),
        0,
    ),
    make_stale_rule(
        "within its grace a gang with too few pods runs on",
        "docs/staleness-grace-period/README.md, Behavior",
        make_stale_gang(stale_since=NOW - 30),
        1,
    ),
    make_stale_rule(
        "the grace of a gang may be longer",
        "docs/staleness-grace-period/README.md, API",
        make_stale_gang(staleness_grace=300.0),
        1,
    ),
    make_stale_rule(
        "without any grace a gang with too few pods is evicted at once",
        "tests/stalegangeviction/stalegangeviction_test.go",
        make_stale_gang(stale_since=NOW, staleness_grace=0.0),
        0,
    ),
    make_stale_rule(
        "a negative grace keeps a gang for ever",
        "docs/staleness-grace-period/README.md, API",
        make_stale_gang(staleness_grace=-1.0),
        1,
    ),
    make_stale_rule(
        "a gang whose other pod succeeded is not stale",
        "docs/staleness-grace-period/README.md, Behavior",
        make_stale_gang(pods=1, minimum=2, succeeded=1),
        1,
    ),
]
