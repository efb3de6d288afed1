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
        "workloads": (9, 11),
        "environments": (7, 9),
        "compute resources": (7, 9),
        "data sources": (7, 9),
        "credentials": (8, 12),
    },
    **{
        "templates": (5, 7),
        "policies": (5, 9),
        "projects": (9, 11),
        "departments": (5, 7),
        "node pools": (8, 12),
    },
    **{
        "users": (7, None),
        "access rules": (6, None),
        "roles": (6, 5),
        "service accounts": (6, None),
        "audit": (6, None),
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


@pytest.mark.timeout(300)
@pytest.mark.parametrize("rows", [60, 1000])
def test_every_table_takes_the_queries_that_stand_here(db: None, rows: int) -> None:
    sessions = create_rows(rows)
    taken = {
        name: tuple(_count_queries(sessions[who], address) for who in ("admin", "member"))
        for name, address in TABLES.items()
    }
    assert taken == QUERIES
