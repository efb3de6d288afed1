"""What lists show and filter of a spec, as columns of a workload's row. Pure."""

from decimal import Decimal
from typing import Any

from workloads.specs.command_lines import join_command_line
from workloads.specs.spec import Spec

MAX_CORES = Decimal(10**8)
MAX_BYTES = Decimal(1 << 62)
MAX_PODS = (1 << 31) - 1
MAX_LINE_CHARS = 500
"""Characters that are kept of a command line, and of the names of node pools."""
MAX_LABEL_CHARS = 1000
SEPARATOR = ", "


def summarize_spec(spec: Spec) -> dict[str, Any]:
    """Return the fields of a workload's row that repeat its spec; long ones are cut.

    The image, command line and labels are those of the workers; CPU and memory are those of data
    workers too.
    """
    setup, totals = spec.setup, spec.overall_totals
    words = (*setup.environment.command, *setup.environment.args)
    labels = SEPARATOR.join(f"{each.key}={each.value}" for each in setup.labels)
    return {
        "image": _cut_text(setup.environment.image_reference, 512),
        "command": _cut_text(join_command_line(words), MAX_LINE_CHARS),
        "node_pools": _cut_text(SEPARATOR.join(setup.node_pools), MAX_LINE_CHARS),
        "labels": _cut_text(labels, MAX_LABEL_CHARS),
        "cpu_requested": min(totals.cpu, MAX_CORES).quantize(Decimal("0.001")),
        "memory_requested": int(min(totals.memory, MAX_BYTES)),
        "min_pods": min(spec.elastic.min_pods, MAX_PODS) if spec.elastic else None,
        "max_pods": min(spec.elastic.max_pods, MAX_PODS) if spec.elastic else None,
        "data_workers": spec.data_delivery.workers if spec.data_delivery else None,
    }


def _cut_text(text: str, most: int) -> str:
    """Return a text without null bytes, which databases refuse, cut where it is too long."""
    text = text.replace("\x00", "")
    return text if len(text) <= most else f"{text[: most - 1]}…"
