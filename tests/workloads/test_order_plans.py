"""The orders of the workloads' table by what a workload belongs to, found without reading rows."""

import pytest
from django.db import connection

from console.pagination import build_order
from tests.cast import Cast
from tests.workloads.table_rows import a_workload
from workloads.models import Workload
from workloads.workload_table import TABLE

ORDERS = {column.name: column.order for column in TABLE.columns if column.order}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads the plans of SQLite")
@pytest.mark.parametrize("name", ["project", "-project", "cluster", "department", "-department"])
def test_an_order_by_what_it_belongs_to_reads_an_index_alone(cast: Cast, name: str) -> None:
    """A workload's row is large: to read all of them takes several times as long as to sort."""
    for number in range(300):
        a_workload((cast.team_a, cast.team_b)[number % 2], f"train-{number}")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    order = build_order(name, ORDERS[name.removeprefix("-")], Workload)
    rows = Workload.objects.filter(released_at=None).order_by(*order.keys)
    plan = rows.values_list("pk", flat=True)[:51].explain()
    assert "workloads_workload USING COVERING INDEX workload_newest" in plan, plan
