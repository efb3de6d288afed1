"""The threads behind `manage.py follow`, which record every cluster in the journal.

One process at a time follows a cluster, kind by kind.
"""

from workloads.following.follower import Follower

__all__ = ["Follower"]
