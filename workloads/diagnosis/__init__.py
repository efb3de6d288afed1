"""Why a workload waits and why it failed, each in a sentence. Pure functions over the cluster's
objects and the ends of logs.
"""

from workloads.diagnosis.failing import why_failed
from workloads.diagnosis.loglines import find_clue
from workloads.diagnosis.result import Diagnosis
from workloads.diagnosis.room import Amounts, NodeRoom
from workloads.diagnosis.waiting import why_waiting

__all__ = ["Amounts", "Diagnosis", "NodeRoom", "find_clue", "why_failed", "why_waiting"]
