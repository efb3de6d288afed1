"""Templates: workloads to start from.

What a template has beside name, description and scope is made by the wizard: `TemplateForm` takes
it as it is (`content`), and `environments/_template_fields.html` shows what can be changed of it on
its own page. Whoever writes a template gives its values to `environments.actions.create` or
`change` (architecture, framework, form, locked): these update the links to the assets that it
names.
"""

from typing import Any

from environments.forms import AssetForm
from environments.kinds.asset_kind import AssetKind
from environments.kinds.columns import build_choice_filter, build_field_column
from environments.models import FRAMEWORKS, Template


class TemplateForm(AssetForm):
    """The form of a template: name, description and scope; the rest stays as it was."""

    kind = "template"
    model = Template

    @property
    def content(self) -> dict[str, Any]:
        """The values that the wizard made, which a copy takes along and a change leaves alone."""
        if isinstance(self.asset, Template):
            return {name: getattr(self.asset, name) for name in TEMPLATE.fields}
        return {}

    @property
    def values(self) -> dict[str, Any]:
        return super().values | self.content

    def validate(self) -> bool:
        if not self.content:
            self.add_error_once(
                None, "A template is made in the wizard: fill it in there, and save it at its end."
            )
        return super().validate()


TEMPLATE = AssetKind(
    key="template",
    model=Template,
    forms={"": TemplateForm},
    path="templates",
    name="templates",
    url="template",
    noun="template",
    icon="bookmark",
    about=(
        "Workloads to start from: the form as somebody filled it in, with the fields that are to "
        "stay as they are."
    ),
    fields=("architecture", "framework", "form", "locked"),
    columns=(
        build_field_column("architecture", "Workload architecture", is_sortable=True),
        build_field_column("framework", "Framework"),
    ),
    filters=(
        build_choice_filter(
            "architecture",
            "Architecture",
            [("Distributed", "Distributed"), ("Standard", "Standard")],
        ),
        build_choice_filter("framework", "Framework", list(FRAMEWORKS.items())),
    ),
    is_counted=False,
    new_url="template-design",
    fields_template="environments/_template_fields.html",
)
