"""The form of an environment."""

from typing import Any

from django import forms

from console.typed import Rows, Typed, as_rows
from environments.forms.asset import AssetForm
from environments.forms.fields import VariableRow, lines, words
from environments.models import FRAMEWORKS, Asset, Environment
from environments.rest import TEXT, Part, Rest, choice, row_list, serving

_TEXTS = ("image", "command", "args", "working_dir", "pull_policy")


class EnvironmentForm(AssetForm):
    kind = "environment"
    model = Environment
    rest = Rest(
        "environment",
        (
            Part("spec.image", "image", TEXT),
            Part("spec.command", "command", TEXT),
            Part("spec.args", "args", TEXT),
            Part("spec.workingDir", "working_dir", TEXT),
            Part(
                "spec.imagePullPolicy",
                "pull_policy",
                choice(**{each.value: each.value for each in Environment.PullPolicy}),
            ),
            Part("spec.environmentVariables", "variables", row_list(name="name", value="value")),
            Part("meta.workloadSupportedTypes", "serves", serving(tuple(FRAMEWORKS))),
        ),
    )

    image = forms.CharField(
        label="Image",
        help_text="As registry.example.com/team/train:1.2",
        error_messages={"required": "The image must be given."},
    )
    command = lines(
        "Command", "Words are split at spaces, quotes keep them together. Empty: the image's own."
    )
    args = lines("Arguments", "Split likewise. Empty: the image's own.")
    working_dir = words("Working directory", "Empty: the image's own.")
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

    def __init__(self, data: Typed, **more: Any) -> None:
        super().__init__(data, **more)
        self.variables = Rows("variables", VariableRow, data)

    @property
    def rows(self) -> Rows[Any]:
        return self.variables

    @property
    def values(self) -> dict[str, Any]:
        architecture, _, framework = self.read("serves", ":").partition(":")
        rows = [
            {"name": row.read("name", ""), "value": row.read("value", "")}
            for row in self.variables.filled
        ]
        texts = {name: self.read(name, "") for name in _TEXTS}
        return (
            super().values
            | texts
            | {"variables": rows, "architecture": architecture, "framework": framework}
        )

    @classmethod
    def typed_of(cls, asset: Asset) -> Typed:
        assert isinstance(asset, Environment)
        texts = {name: [str(getattr(asset, name))] for name in _TEXTS}
        return (
            texts
            | {"serves": [f"{asset.architecture}:{asset.framework}"]}
            | as_rows("variables", asset.variables)
        )
