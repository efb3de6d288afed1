"""What pages and the REST API read. Every function takes rows or a user, reads a bounded number of
rows, and changes nothing.
"""

from workloads.queries.changes import Changes, changes, position
from workloads.queries.explaining import Explained, diagnosis_of
from workloads.queries.history import HistoryFilter, history
from workloads.queries.pods import MOST as MOST_PODS
from workloads.queries.pods import pods_of
from workloads.queries.rooms import rooms
from workloads.queries.table import NEWEST, ORDERS, in_projects, rows_for_table, workloads_for

__all__ = [
    "MOST_PODS",
    "NEWEST",
    "ORDERS",
    "Changes",
    "Explained",
    "HistoryFilter",
    "changes",
    "diagnosis_of",
    "history",
    "in_projects",
    "pods_of",
    "position",
    "rooms",
    "rows_for_table",
    "workloads_for",
]
