"""The scheduler: groups pods into gangs, gives them a node and devices, and reports why some wait.

It answers for the default scheduler and for KAI alike, and follows KAI's rules: PodGroups, queues,
shares of GPUs.
"""

from localkube.scheduler.defaults import build_default_priority_classes, build_default_queues
from localkube.scheduler.scheduler import Scheduler

__all__ = ["Scheduler", "build_default_priority_classes", "build_default_queues"]
