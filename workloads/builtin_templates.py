"""The templates that every installation starts with, in the tenant's scope."""

from dataclasses import dataclass, replace

from django.db import transaction

from environments import template_links
from environments.models import ComputeResource, Environment, Template
from projects.scopes import TENANT
from workloads import asset_rules
from workloads.forms import workload_copies
from workloads.forms.draft_content import TEMPLATE_WORKLOAD_NAME
from workloads.forms.draft_templates import build_template_form
from workloads.specs import (
    Architecture,
    ClaimAccess,
    Compute,
    DataDelivery,
    ElasticSettings,
    Framework,
    NewClaim,
    Setup,
    Spec,
)

CHECKPOINTS = NewClaim(path="/checkpoints", size="1Gi", modes=(ClaimAccess.MANY_WRITE,))
"""One for all pods, wherever they run; it outlives them, and goes with the workload."""


@dataclass(frozen=True)
class BuiltinTemplate:
    """Distributed PyTorch with a GPU for each pod, and checkpoints.

    `environment` is the name of a built-in one, `args` are its arguments.
    """

    description: str
    environment: str
    args: tuple[str, ...]
    workers: int
    elastic: ElasticSettings | None = None
    data_delivery: DataDelivery | None = None


_ELASTIC = ElasticSettings(min_pods=2, max_pods=4)
TEMPLATES = {
    "elastic-training": BuiltinTemplate(
        "2 to 4 pods of a GPU each: goes on with fewer when GPUs are taken back, and grows again",
        "elastic",
        ("--steps", "3000", "--checkpoint", CHECKPOINTS.path),
        workers=3,
        elastic=_ELASTIC,
    ),
    "elastic-pytorch-ddp": BuiltinTemplate(
        "The same with PyTorch DDP under torchrun, for nodes that have torch",
        "pytorch-ddp",
        ("--steps", "3000", "--slow", "0.2", "--checkpoint", CHECKPOINTS.path),
        workers=3,
        elastic=_ELASTIC,
    ),
    "slow-data": BuiltinTemplate(
        "Data that loads five times as slowly as it is trained on: 4 data workers without GPUs "
        "prepare it before the GPUs are taken, and go on beside the training",
        "slow-loader",
        ("--steps", "200", "--batches", "400", "--checkpoint", CHECKPOINTS.path),
        workers=1,
        data_delivery=DataDelivery(
            workers=4, units=5120, compute=Compute(cpu_request="0.1", memory_request="100M")
        ),
    ),
}
COMPUTE = "one-gpu"


def ensure_builtin_templates() -> int:
    """Create the missing built-in templates and return how many; existing ones stay as they are.

    One whose assets are not the built-in ones is left out.
    """
    return sum(_create_missing(name, template) for name, template in TEMPLATES.items())


def _create_missing(name: str, template: BuiltinTemplate) -> bool:
    environment = (
        Environment.objects.at(TENANT).filter(is_built_in=True, name=template.environment).first()
    )
    compute = ComputeResource.objects.at(TENANT).filter(is_built_in=True, name=COMPUTE).first()
    if environment is None or compute is None:
        return False
    values = {
        "description": template.description,
        "architecture": Architecture.DISTRIBUTED.value,
        "framework": Framework.PYTORCH.value,
        "form": _build_form(template, environment, compute),
        "is_built_in": True,
    }
    with transaction.atomic():
        row, is_new = Template.objects.get_or_create(name=name, **TENANT.columns, defaults=values)
        if is_new:
            template_links.update_links(row)
    return is_new


def _build_form(
    template: BuiltinTemplate, environment: Environment, compute: ComputeResource
) -> dict[str, object]:
    runs = replace(asset_rules.build_environment(vars(environment)), args=template.args)
    setup = Setup(runs, asset_rules.build_compute(vars(compute)), volumes=(CHECKPOINTS,))
    spec = Spec(
        name=TEMPLATE_WORKLOAD_NAME,
        project="",
        namespace="",
        queue="",
        setup=setup,
        architecture=Architecture.DISTRIBUTED,
        framework=Framework.PYTORCH,
        workers=template.workers,
        elastic=template.elastic,
        data_delivery=template.data_delivery,
    )
    assets = workload_copies.AvailableAssets([environment], [compute])
    data = workload_copies.build_draft_data(
        spec, project=None, name=spec.name, assets=assets, used={environment.pk, compute.pk}
    )
    names = {str(each.pk): each.name for each in (environment, compute)}
    return build_template_form(data["start"], data["setup"], {}, names)
