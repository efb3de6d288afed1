"""The threads behind `manage.py follow`: every cluster is followed by one process at a time, kind
by kind, into the journal.
"""

from workloads.following.leases import Follower

__all__ = ["Follower"]
