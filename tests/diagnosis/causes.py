"""The catalogue of causes for which workloads wait or fail, each with the sentence about it."""

from collections.abc import Sequence

from tests.diagnosis.end_causes import BY_END
from tests.diagnosis.failing_causes import BY_LINE
from tests.diagnosis.injected import InjectedCause
from tests.diagnosis.node_causes import CLAIMS, NODES
from tests.diagnosis.queue_causes import KUEUE, QUEUES
from tests.diagnosis.start_causes import PODS, STARTS

WAITING: Sequence[InjectedCause] = (*QUEUES, *KUEUE, *NODES, *CLAIMS, *PODS, *STARTS)
FAILING: Sequence[InjectedCause] = (*BY_LINE, *BY_END)
