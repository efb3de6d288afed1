"""Environments: what runs."""

from environments.forms import EnvironmentForm
from environments.kinds.columns import field, of_choices
from environments.kinds.recipe import Kind
from environments.models import FRAMEWORKS, Environment

ENVIRONMENT = Kind(
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
        field("image", "Image", sorts=True, template="environments/_image.html"),
        field("serves", "Workload architecture"),
    ),
    filters=(
        of_choices(
            "architecture",
            "Architecture",
            [("Distributed", "Distributed"), ("Standard", "Standard")],
        ),
        of_choices("framework", "Framework", list(FRAMEWORKS.items())),
    ),
    search=("image__icontains",),
    held_by=("template",),
    fields_template="environments/_environment_fields.html",
)
