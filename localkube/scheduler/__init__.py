"""The scheduler: makes gangs of pods, gives them their place on the node and their devices, and
says why some of them wait.

It answers for the default scheduler and for KAI alike, and follows KAI's rules: PodGroups, queues,
shares of GPUs.
"""

from localkube.scheduler.defaults import build_default_priority_classes, build_default_queues
from localkube.scheduler.scheduler import Scheduler

__all__ = ["Scheduler", "build_default_priority_classes", "build_default_queues"]
