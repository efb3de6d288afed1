"""Every table takes the queries that stand here, with sixty rows as with a thousand, whoever
looks.
"""

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchmarks.list_pages import TABLES
from benchmarks.list_rows import create_rows

QUERIES: dict[str, tuple[int | None, int | None]] = {
    **{
        "workloads": (10, 12),
        "environments": (8, 10),
        "compute resources": (8, 10),
        "data sources": (8, 10),
        "credentials": (9, 13),
    },
    **{
        "templates": (6, 8),
        "policies": (6, 10),
        "projects": (10, 12),
        "departments": (6, 8),
        "node pools": (9, 13),
    },
    **{
        "users": (8, None),
        "access rules": (7, None),
        "roles": (7, 6),
        "service accounts": (7, None),
        "audit": (7, None),
    },
}
"""Of an administrator and of a member of some projects; None for who may not see the table."""


def _count_queries(session: str, address: str) -> int | None:
    """Queries of the page once nothing is to be noted of the session; None for who may not see the
    table.
    """
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = session
    client.get(address)
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(address)
    assert answer.status_code in (200, 403), address
    return len(queries) if answer.status_code == 200 else None


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rows", [60, 1000])
def test_every_table_takes_the_queries_that_stand_here(db: None, rows: int) -> None:
    sessions = create_rows(rows)
    taken = {
        name: tuple(_count_queries(sessions[who], address) for who in ("admin", "member"))
        for name, address in TABLES.items()
    }
    assert taken == QUERIES
