"""A workload that waits for the node that another one holds."""

import pytest

from tests.cast import Cast
from tests.workloads.waiting_rows import add_node, add_workload
from workloads.models import Workload


@pytest.fixture
def waiting(cast: Cast) -> Workload:
    """Create a workload that waits for the only GPU, which the workload `holder` uses."""
    add_node(cast, gpus=1)
    add_workload(cast.team_b, "holder", node="node-1")
    return add_workload(cast.team_a, "waits", by=cast.bob)
