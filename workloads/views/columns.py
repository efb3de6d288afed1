"""The columns of the table: their titles, their orders, and which are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest

from workloads.queries import NEWEST, ORDERS

COOKIE = "muster_cols"
COOKIE_SECONDS = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Column:
    """`key` names it in the address; `sort` is the name of its order there."""

    key: str
    title: str
    sort: str = ""


COLUMNS = (
    Column("name", "Workload", "name"),
    Column("type", "Type"),
    Column("status", "Status", "status"),
    Column("project", "Project", "project"),
    Column("by", "Submitted by"),
    Column("preemptible", "Preemptible"),
    Column("pods", "Running/requested pods"),
    Column("request", "GPU request"),
    Column("allocation", "GPU allocation"),
    Column("created", "Created", "created"),
    Column("runtime", "Runtime"),
)
FIXED = "name"
"""The column that is always shown: it leads to the details."""
OPTIONAL = tuple(column.key for column in COLUMNS if column.key != FIXED)


@dataclass(frozen=True, slots=True)
class ColumnHead:
    """A column as a page shows it.

    `href` sorts by it; `direction` is "ascending", "descending" or "" as aria-sort says it.
    """

    column: Column
    is_shown: bool
    href: str
    direction: str


def parse_columns(request: HttpRequest) -> tuple[str, ...]:
    """Return the keys of the columns to show.

    As the address says (cols=a,b), else as the cookie remembers, else all.
    """
    given = request.GET.getlist("cols")
    keys = ",".join(given) if given else request.COOKIES.get(COOKIE, "")
    if not keys:
        return OPTIONAL
    wanted = frozenset(keys[:400].split(","))
    return tuple(key for key in OPTIONAL if key in wanted)


def build_heads(shown_keys: Sequence[str], sort: str, links: Mapping[str, str]) -> list[ColumnHead]:
    """Build the heads of all columns; `links` has the address for each order."""
    heads = []
    for column in COLUMNS:
        direction = (
            {column.sort: "ascending", f"-{column.sort}": "descending"}.get(sort, "")
            if column.sort
            else ""
        )
        # Time is asked for the newest first, words from A.
        first, second = (
            ("-created", "created") if column.key == "created" else (column.sort, f"-{column.sort}")
        )
        href = links.get(second if sort == first else first, "") if column.sort else ""
        heads.append(
            ColumnHead(column, column.key == FIXED or column.key in shown_keys, href, direction)
        )
    return heads


def parse_order_name(request: HttpRequest) -> str:
    """Return the order that the address asks for, else newest first."""
    name = request.GET.get("sort", "")
    return name if name in ORDERS else NEWEST.name
