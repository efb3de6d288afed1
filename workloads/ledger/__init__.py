"""What became of GPU time: its kinds, a pod's time split into them, losses, and costs. Pure."""

from workloads.ledger.amounts import (
    ALLOCATED,
    AMOUNT_NAMES,
    GPU_HOUR,
    KINDS,
    WANTED,
    Amounts,
    Kind,
    add_amounts,
    to_hours,
)
from workloads.ledger.costs import Costs, PriceGroup, sum_costs
from workloads.ledger.losses import Loss, measure_loss, merge_takers, move_loss
from workloads.ledger.months import Month, get_month, parse_month
from workloads.ledger.pod_time import Figure, PodTimes, account_pod, measure_overlap

__all__ = [
    "ALLOCATED",
    "AMOUNT_NAMES",
    "GPU_HOUR",
    "KINDS",
    "WANTED",
    "Amounts",
    "Costs",
    "Figure",
    "Kind",
    "Loss",
    "Month",
    "PodTimes",
    "PriceGroup",
    "account_pod",
    "add_amounts",
    "get_month",
    "measure_loss",
    "measure_overlap",
    "merge_takers",
    "move_loss",
    "parse_month",
    "sum_costs",
    "to_hours",
]
