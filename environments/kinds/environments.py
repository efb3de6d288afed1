"""Environments: images and what they run."""

from django.utils.html import format_html

from environments.forms import EnvironmentForm
from environments.kinds.asset_kind import AssetKind
from environments.kinds.columns import build_choice_filter, build_field_column
from environments.models import FRAMEWORKS, Environment

ENVIRONMENT = AssetKind(
    key="environment",
    model=Environment,
    forms={"": EnvironmentForm},
    path="environments",
    name="environments",
    url="environment",
    noun="environment",
    icon="container",
    about=(
        "An image with what it starts and its variables. A workload copies them when it is "
        "submitted."
    ),
    fields=(
        "image",
        "command",
        "args",
        "working_dir",
        "pull_policy",
        "variables",
        "architecture",
        "framework",
    ),
    columns=(
        build_field_column(
            "image",
            "Image",
            is_sortable=True,
            render=lambda row: format_html('<code class="mu-mono">{}</code>', row.image),
        ),
        build_field_column("serves", "Workload architecture"),
    ),
    filters=(
        build_choice_filter(
            "architecture",
            "Architecture",
            [("Distributed", "Distributed"), ("Standard", "Standard")],
        ),
        build_choice_filter("framework", "Framework", list(FRAMEWORKS.items())),
    ),
    search=("image__icontains",),
    blocked_by=("template",),
    fields_template="environments/_environment_fields.html",
)
