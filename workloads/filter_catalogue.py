"""What workloads are filtered by, column by column: the page, its live rows, CSV and REST.

The values of a filter of the page are in `workloads.filters`, fields of REST in
`projects.api.filtering`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from console.table_filters import Filter
from projects.api.filtering import (
    Field,
    choice_field,
    flag_field,
    id_field,
    moment_field,
    number_field,
    ordered_field,
    text_field,
    uuid_field,
    whole_number_field,
)
from workloads import filters, quantities
from workloads.phases import FOREIGN_PHASES, PHASES, list_statuses
from workloads.specs import Architecture, Framework
from workloads.specs.choices import Priority
from workloads.states import Status

ARCHITECTURES = {
    "Distributed": Architecture.DISTRIBUTED.value,
    "Training": Architecture.STANDARD.value,
}
"""The types of REST."""
FOREIGN_TYPES = ("Workspace", "Inference", "DistributedInference")
"""Types of Run:ai that no workload has here."""
FOREIGN_PRIORITIES = ("inference", "build", "interactive-preemptible", "train")
"""Priority classes of Run:ai's earlier versions."""
_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class ColumnFilters:
    """What rows are filtered by for one column: filters of the page, and fields of REST by name.

    REST sorts by its fields, too.
    """

    page: tuple[Filter, ...] = ()
    rest: Mapping[str, Field] = field(default_factory=dict)


def _bytes_field(column: str) -> Field:
    return ordered_field(column, _parse_bytes, "a quantity as 16Gi")


def _parse_bytes(text: str) -> Decimal:
    amount = quantities.parse_quantity(text)
    # Rows have whole bytes, and no driver takes a number with an enormous exponent.
    if amount > 1 << 62 or (amount and amount.adjusted() < -3):
        raise ValueError(text)
    return amount


CATALOGUE: Mapping[str, ColumnFilters] = {
    # The page searches by name.
    "name": ColumnFilters(rest={"name": text_field("name")}),
    "status": ColumnFilters(
        (
            Filter(
                "status",
                "Status",
                lambda _: [
                    (each.value, each.label) for each in Status if each is not Status.DELETING
                ],
                filters.filter_by_status,
                kind="choices",
                check=frozenset(Status).__contains__,
            ),
            Filter(
                "look",
                "Needs a look",
                lambda _: [("1", "Yes")],
                filters.filter_by_look,
                is_more=True,
            ),
        ),
        {
            "phase": choice_field(
                "status",
                {phase: list_statuses(phase) for phase in PHASES},
                foreign=FOREIGN_PHASES,
            ),
            "phaseUpdatedAt": moment_field("status_at"),
        },
    ),
    "project": ColumnFilters(
        (
            Filter(
                "project",
                "Project",
                filters.list_project_choices,
                filters.filter_by_project,
                kind="choices",
                check=filters.is_project,
                name_values=filters.name_projects,
            ),
        ),
        {"projectId": id_field("project_id"), "projectName": text_field("project__name")},
    ),
    "type": ColumnFilters(
        (
            Filter(
                "framework",
                "Framework",
                lambda _: list(filters.FRAMEWORKS.items()),
                filters.filter_by_framework,
                kind="choices",
                check=filters.FRAMEWORKS.__contains__,
            ),
            Filter(
                "architecture",
                "Architecture",
                lambda _: [(each.value, each.value) for each in Architecture],
                lambda rows, value: rows.filter(architecture=value),
                check=frozenset(Architecture).__contains__,
                is_more=True,
            ),
        ),
        {
            "type": choice_field("architecture", ARCHITECTURES, foreign=FOREIGN_TYPES),
            # A standard workload has none.
            "distributedFramework": choice_field("framework", ("", *Framework)),
        },
    ),
    "by": ColumnFilters(
        (
            Filter(
                "by",
                "Submitted by",
                filters.list_submitter_choices,
                filters.filter_by_submitter,
                kind="text",
            ),
        ),
        {"submittedBy": text_field("submitted_by__username")},
    ),
    "cluster": ColumnFilters(
        (filters.build_text_filter("cluster", "Cluster", "cluster__name"),),
        {"clusterId": uuid_field("cluster_id"), "clusterName": text_field("cluster__name")},
    ),
    "department": ColumnFilters(
        (filters.build_text_filter("department", "Department", "project__department__name"),),
        {
            "departmentId": id_field("project__department_id"),
            "departmentName": text_field("project__department__name"),
        },
    ),
    "node_pool": ColumnFilters(
        (filters.build_text_filter("node_pool", "Node pool", "node_pools"),),
        {"nodepool": text_field("node_pools")},
    ),
    "priority": ColumnFilters(
        (
            Filter(
                "priority",
                "Priority",
                lambda _: [(each.value, each.label) for each in Priority],
                lambda rows, value: rows.filter(priority=value),
                check=frozenset(Priority).__contains__,
                is_more=True,
            ),
        ),
        {"priorityClassName": choice_field("priority", Priority, foreign=FOREIGN_PRIORITIES)},
    ),
    "preemptible": ColumnFilters(
        (
            Filter(
                "preemptible",
                "Preemptible",
                lambda _: (("yes", "Yes"), ("no", "No")),
                lambda rows, value: rows.filter(preemptible=value == "yes"),
                is_more=True,
            ),
        ),
        {"preemptible": flag_field("preemptible")},
    ),
    "image": ColumnFilters(
        (filters.build_text_filter("image", "Image", "image"),), {"image": text_field("image")}
    ),
    "labels": ColumnFilters(
        (filters.build_text_filter("label", "Label", "labels"),), {"labels": text_field("labels")}
    ),
    "command": ColumnFilters(
        (filters.build_text_filter("command", "Command", "command"),),
        {"command": text_field("command")},
    ),
    "pods": ColumnFilters(
        filters.build_number_filters("pods", "Requested pods", "requested_pods"),
        {
            "requestedPods": whole_number_field("requested_pods"),
            "runningPods": whole_number_field("running_pods"),
        },
    ),
    "min_pods": ColumnFilters(
        filters.build_number_filters("min_pods", "Minimum of pods", "min_pods"),
        {"minPods": whole_number_field("min_pods")},
    ),
    "max_pods": ColumnFilters(
        filters.build_number_filters("max_pods", "Maximum of pods", "max_pods"),
        {"maxPods": whole_number_field("max_pods")},
    ),
    "request": ColumnFilters(
        filters.build_number_filters("gpus", "GPU request", "gpus_requested"),
        {
            "requestedGPU": number_field("gpus_requested"),
            "requestedGPUMemoryMib": whole_number_field("gpu_memory_requested"),
        },
    ),
    "allocation": ColumnFilters(
        filters.build_number_filters("gpus_allocated", "GPU allocation", "gpus_allocated"),
        {"allocatedGPU": number_field("gpus_allocated")},
    ),
    "cpu_request": ColumnFilters(
        filters.build_number_filters("cpu", "CPU request", "cpu_requested"),
        {"requestedCPU": number_field("cpu_requested")},
    ),
    "cpu_allocation": ColumnFilters(
        filters.build_number_filters("cpu_allocated", "CPU allocation", "cpu_allocated"),
        {"allocatedCPU": number_field("cpu_allocated")},
    ),
    "memory_request": ColumnFilters(
        filters.build_number_filters("memory", "Memory request (GiB)", "memory_requested", _GIB),
        {"requestedMemory": _bytes_field("memory_requested")},
    ),
    "memory_allocation": ColumnFilters(
        filters.build_number_filters(
            "memory_allocated", "Memory allocation (GiB)", "memory_allocated", _GIB
        ),
        {"allocatedMemory": _bytes_field("memory_allocated")},
    ),
    "created": ColumnFilters(
        (
            Filter(
                "age",
                "Created",
                lambda _: [(key, words) for key, (words, _) in filters.AGES.items()],
                filters.filter_by_age,
                check=filters.AGES.__contains__,
                any_words="Created any time",
            ),
            *filters.build_day_filters("created", "Created", "created_at"),
        ),
        {"createdAt": moment_field("created_at")},
    ),
    "likely_start": ColumnFilters(
        (
            Filter(
                "starts",
                "Likely start",
                lambda _: [(key, words) for key, (words, _) in filters.LIKELY_STARTS.items()],
                filters.filter_by_likely_start,
                check=filters.LIKELY_STARTS.__contains__,
                is_more=True,
            ),
        ),
        {"likelyStartAt": moment_field("likely_start_at", filters.HAVING_LIKELY_START)},
    ),
    "started": ColumnFilters(
        filters.build_day_filters("started", "Started", "started_at"),
        {"startedAt": moment_field("started_at")},
    ),
    "ended": ColumnFilters(
        filters.build_day_filters("ended", "Ended", "ended_at"),
        {"completedAt": moment_field("ended_at")},
    ),
    "attempt": ColumnFilters(
        filters.build_number_filters("attempt", "Attempt", "attempt"),
        {"attempt": whole_number_field("attempt")},
    ),
}
"""By the column's name; the page shows its filters in this order: pairs come last."""

PAGE_FILTERS = (
    Filter(
        filters.DELETED,
        "Deleted",
        lambda _: (),
        filters.filter_by_deleted,
        kind="view",
        check=lambda value: value == "1",
    ),
    *(each for column in CATALOGUE.values() for each in column.page),
)
REST_FIELDS: Mapping[str, Field] = {
    **{name: each for column in CATALOGUE.values() for name, each in column.rest.items()},
    "deletedAt": moment_field("deleted_at"),
}
