"""Validation of the data workers of a workload."""

from collections.abc import Iterator

from workloads.specs import value_rules
from workloads.specs.choices import ClaimAccess, Framework
from workloads.specs.fields import FIELDS, get_value
from workloads.specs.fields.delivery import OPTION
from workloads.specs.fields.types import Number
from workloads.specs.pod_problems import check_compute
from workloads.specs.pod_setup import Gpus, NewClaim, Volume
from workloads.specs.problem_reports import FieldProblem, report_problem
from workloads.specs.spec import Spec

SPILL_PATH = "/muster-delivery"
"""Where data workers keep prepared units that their memory does not hold."""


def check_data_delivery(spec: Spec) -> Iterator[FieldProblem]:
    """Check the data workers of a spec, where it has any.

    Their names need no check: what "-data-0" and the like add to a name leaves room for more.
    """
    delivery = spec.data_delivery
    if delivery is None:
        return
    if spec.framework is not None and OPTION not in spec.framework.options:
        owners = [each.label for each in Framework if OPTION in each.options]
        yield (
            "data_delivery",
            "Data workers",
            f"are for {', '.join(owners)} and standard workloads: processes of "
            f"{spec.framework.label} are not told their rank in a way that data workers know",
        )
    if not spec.is_distributed and spec.runs > 1:
        yield (
            "data_delivery",
            "Data workers",
            "serve one training: the number of runs must be 1",
        )
    for field in FIELDS.values():
        if field.option == OPTION and isinstance(field.type, Number):
            value = get_value(spec, field.path)
            yield from report_problem(
                field.path,
                field.subject,
                value_rules.check_count(value, field.type.least, field.type.most),
            )
    if delivery.image:
        yield from report_problem(
            "data_delivery.image",
            "The image of the data workers",
            value_rules.check_image(delivery.image),
        )
    compute = delivery.compute
    if compute.gpus != Gpus() or compute.extended:
        yield (
            "data_delivery.compute",
            "The compute of data workers",
            "can be CPU and memory only: they are there so that GPUs do not wait",
        )
        return
    for name, title, text in check_compute(compute):
        yield f"data_delivery.compute.{name}", f"For the data workers: {_lower_first(title)}", text
    for index, volume in enumerate(spec.setup.volumes):
        if isinstance(volume, NewClaim) and not volume.ephemeral and not _is_shared(volume):
            yield (
                f"setup.volumes.{index}.modes",
                f"The access of volume {index + 1}",
                "must let several nodes mount it, as ReadWriteMany does: data workers run on other "
                "nodes than the training, which would wait for the volume for ever",
            )
    volumes = (*spec.setup.volumes, *spec.master_setup.volumes)
    if any(_covers_spill_path(each) for each in volumes):
        yield (
            "setup.volumes",
            "The path of a volume",
            f"must not be {SPILL_PATH}: data workers keep what they prepared there",
        )


def _is_shared(claim: NewClaim) -> bool:
    return any(mode is not ClaimAccess.ONE_NODE for mode in claim.modes)


def _lower_first(title: str) -> str:
    return f"{title[0].lower()}{title[1:]}"


def _covers_spill_path(volume: Volume) -> bool:
    return f"{value_rules.normalize_path(volume.path)}/".startswith(f"{SPILL_PATH}/")
