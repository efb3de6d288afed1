"""The scheduler: makes gangs of pods, gives them their place on the node and their devices, and
says why some of them wait.

It answers for the default scheduler and for KAI alike, and follows KAI's rules: PodGroups, queues,
shares of GPUs.
"""

from localkube.scheduler.controller import Scheduler
from localkube.scheduler.defaults import default_priority_classes, default_queues

__all__ = ["Scheduler", "default_priority_classes", "default_queues"]
