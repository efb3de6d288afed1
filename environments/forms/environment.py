"""The form of an environment."""

from typing import Any

from django import forms

from console.typed_forms import FormRows, TypedValues, build_row_values
from environments.forms.asset import AssetForm
from environments.forms.fields import VariableRow, lines_field, text_field
from environments.models import FRAMEWORKS, Asset, Environment
from environments.rest_mapping import (
    TEXT,
    BodyPart,
    RestMapping,
    build_choice_shape,
    build_rows_shape,
    build_serving_shape,
)

_TEXT_FIELDS = ("image", "command", "args", "working_dir", "pull_policy")


class EnvironmentForm(AssetForm):
    kind = "environment"
    model = Environment
    rest = RestMapping(
        "environment",
        (
            BodyPart("spec.image", "image", TEXT),
            BodyPart("spec.command", "command", TEXT),
            BodyPart("spec.args", "args", TEXT),
            BodyPart("spec.workingDir", "working_dir", TEXT),
            BodyPart(
                "spec.imagePullPolicy",
                "pull_policy",
                build_choice_shape(**{each.value: each.value for each in Environment.PullPolicy}),
            ),
            BodyPart(
                "spec.environmentVariables",
                "variables",
                build_rows_shape(name="name", value="value"),
            ),
            BodyPart(
                "meta.workloadSupportedTypes", "serves", build_serving_shape(tuple(FRAMEWORKS))
            ),
        ),
    )

    image = forms.CharField(
        label="Image",
        help_text="As registry.example.com/team/train:1.2",
        error_messages={"required": "The image must be given."},
    )
    command = lines_field(
        "Command", "Words are split at spaces, quotes keep them together. Empty: the image's own."
    )
    args = lines_field("Arguments", "Split likewise. Empty: the image's own.")
    working_dir = text_field("Working directory", "Empty: the image's own.")
    pull_policy = forms.ChoiceField(
        label="Image pull policy",
        choices=[("", "The cluster's default"), *Environment.PullPolicy.choices],
        required=False,
    )
    serves = forms.ChoiceField(
        label="Workload architecture",
        choices=[
            *(
                (f"Distributed:{framework}", f"Distributed, {words}")
                for framework, words in FRAMEWORKS.items()
            ),
            ("Distributed:", "Distributed, any framework"),
            ("Standard:", "Standard"),
        ],
        initial="Distributed:PyTorch",
        help_text="An environment serves one architecture.",
    )

    def __init__(self, data: TypedValues, **more: Any) -> None:
        super().__init__(data, **more)
        self.variables = FormRows("variables", VariableRow, data)

    @property
    def rows(self) -> FormRows[Any]:
        return self.variables

    @property
    def values(self) -> dict[str, Any]:
        architecture, _, framework = self.read("serves", ":").partition(":")
        rows = [
            {"name": row.read("name", ""), "value": row.read("value", "")}
            for row in self.variables.filled_rows
        ]
        texts = {name: self.read(name, "") for name in _TEXT_FIELDS}
        return (
            super().values
            | texts
            | {"variables": rows, "architecture": architecture, "framework": framework}
        )

    @classmethod
    def build_typed(cls, asset: Asset) -> TypedValues:
        assert isinstance(asset, Environment)
        texts = {name: [str(getattr(asset, name))] for name in _TEXT_FIELDS}
        return (
            texts
            | {"serves": [f"{asset.architecture}:{asset.framework}"]}
            | build_row_values("variables", asset.variables)
        )
