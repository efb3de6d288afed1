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
    ElasticSettings,
    Framework,
    NewClaim,
    Setup,
    Spec,
)

CHECKPOINTS = NewClaim(path="/checkpoints", size="1Gi", modes=(ClaimAccess.MANY_WRITE,))
"""One for all pods, wherever they run; it outlives them, and goes with the workload."""


@dataclass(frozen=True)
class ElasticTemplate:
    """Elastic PyTorch with a GPU for each pod, and checkpoints: its built-in environment, and the
    arguments of that.
    """

    description: str
    environment: str
    args: tuple[str, ...]


TEMPLATES = {
    "elastic-training": ElasticTemplate(
        "2 to 4 pods of a GPU each: goes on with fewer when GPUs are taken back, and grows again",
        "elastic",
        ("--steps", "3000", "--checkpoint", CHECKPOINTS.path),
    ),
    "elastic-pytorch-ddp": ElasticTemplate(
        "The same with PyTorch DDP under torchrun, for nodes that have torch",
        "pytorch-ddp",
        ("--steps", "3000", "--slow", "0.2", "--checkpoint", CHECKPOINTS.path),
    ),
}
COMPUTE = "one-gpu"


def ensure_builtin_templates() -> int:
    """Create the missing built-in templates and return how many; existing ones stay as they are.

    One whose assets are not the built-in ones is left out.
    """
    return sum(_create_missing(name, template) for name, template in TEMPLATES.items())


def _create_missing(name: str, template: ElasticTemplate) -> bool:
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
    template: ElasticTemplate, environment: Environment, compute: ComputeResource
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
        workers=3,
        elastic=ElasticSettings(min_pods=2, max_pods=4),
    )
    assets = workload_copies.AvailableAssets([environment], [compute])
    data = workload_copies.build_draft_data(
        spec, project=None, name=spec.name, assets=assets, used={environment.pk, compute.pk}
    )
    names = {str(each.pk): each.name for each in (environment, compute)}
    return build_template_form(data["start"], data["setup"], {}, names)
