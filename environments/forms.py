"""Forms of assets. What is right is decided by `judging`; here are the fields, their words and their place."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar

from django import forms

from console.typed import RowForm, Rows, Typed, TypedForm, as_rows
from environments import judging
from environments.models import Asset, ComputeResource, Environment
from projects.models import Project

EVERYBODY = "everybody"
HUNDRED = Decimal(100)


def words(label: str, help_text: str = "", **more: Any) -> forms.CharField:
    """A line of text that may stay empty: whether it may is for the rules to say."""
    return forms.CharField(label=label, help_text=help_text, required=False, **more)


def lines(label: str, help_text: str = "", **more: Any) -> forms.CharField:
    """The same for what may have several lines, which a one-line field would join."""
    return words(label, help_text, widget=forms.Textarea(attrs={"rows": 1, "spellcheck": "false"}), **more)


def whole() -> forms.NumberInput:
    """A field for whole numbers from 0."""
    return forms.NumberInput(attrs={"min": 0})


def percent(places: int) -> forms.DecimalField:
    """A part of a device with so many decimal places."""
    wrong = "The part of each device must be above 0 and at most 100 %%."
    return forms.DecimalField(
        label="Part of each device, in %",
        min_value=Decimal(1).scaleb(-places),
        max_value=HUNDRED,
        decimal_places=places,
        required=False,
        help_text="From above 0 to 100. 10 is a tenth of a device; others may use the rest.",
        error_messages={"min_value": wrong, "max_value": wrong},
    )


class VariableRow(RowForm):
    """A name and a value."""

    content = ("name", "value")
    name = words("Name")
    value = lines("Value", strip=False)


class ComputeFields(TypedForm):
    """What each pod gets, as it is asked for everywhere."""

    gpu_devices = forms.IntegerField(
        label="GPU devices per pod", required=False, initial=0, widget=whole(), help_text="0 means that no GPU is used."
    )
    gpu_share = forms.ChoiceField(
        label="Of each device",
        choices=[("whole", "The whole device"), ("portion", "A part of it, in %"), ("memory", "Some of its memory")],
        required=False,
        initial="whole",
    )
    gpu_percent = percent(2)
    gpu_memory = words("GPU memory of each device", "A number with a unit, such as 500M or 8Gi.")
    cpu_request = words("CPU request", "Cores such as 0.1 or 2, or thousandths of one such as 500m.", initial="0.1")
    cpu_limit = words("CPU limit", "Empty: no limit.")
    memory_request = words("CPU memory request", "A number with a unit, such as 100M or 1Gi.", initial="100M")
    memory_limit = words("CPU memory limit", "Empty: no limit. A container that goes over its limit is killed.")
    large_shm = forms.BooleanField(
        label="Increase shared memory",
        required=False,
        help_text="More than the usual 64 MB at /dev/shm: data loaders with several processes need it.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        missing = {"portion": "gpu_percent", "memory": "gpu_memory"}.get(cleaned.get("gpu_share") or "")
        if missing and missing not in self.wrong and not cleaned.get(missing):
            self.add_error(missing, "Say how much of each device, or choose the whole device.")
        return cleaned

    @property
    def compute_values(self) -> dict[str, Any]:
        """By the names of the fields of a ComputeResource."""
        share = self.read("gpu_share")
        percent = self.read("gpu_percent")
        texts = ("cpu_request", "cpu_limit", "memory_request", "memory_limit")
        return {
            "gpu_devices": self.read("gpu_devices", 0),
            "gpu_portion": percent / HUNDRED if share == "portion" and percent is not None else None,
            "gpu_memory": self.read("gpu_memory", "") if share == "memory" else "",
            "large_shm": self.read("large_shm", False),
        } | {name: self.read(name, "") for name in texts}


COMPUTE_PLACES = {"gpu_portion": "gpu_percent"}
"""Where the form shows a field of a ComputeResource under another name."""


def typed_compute(values: dict[str, Any]) -> Typed:
    """The values of a ComputeResource as if they had been typed."""
    portion = values["gpu_portion"]
    share = "memory" if values["gpu_memory"] else "whole" if portion is None else "portion"
    percent = "" if portion is None else f"{Decimal(portion) * HUNDRED:f}"
    texts = {name: str(values[name]) for name in ("cpu_request", "cpu_limit", "memory_request", "memory_limit")}
    texts |= {"gpu_devices": str(values["gpu_devices"]), "gpu_share": share, "gpu_memory": values["gpu_memory"]}
    texts["gpu_percent"] = percent.rstrip("0").rstrip(".") if "." in percent else percent
    return {name: [text] for name, text in texts.items()} | ({"large_shm": ["on"]} if values["large_shm"] else {})


class AssetForm(TypedForm):
    """What all assets have. `scopes` are the projects that may own it; `everybody` adds the scope of all."""

    kind: ClassVar[str]
    model: ClassVar[type[Asset]]
    places: ClassVar[dict[str, str]] = {}

    name = forms.CharField(
        label="Name", max_length=63, error_messages={"required": "Give it a name."}, help_text="It is shown on the card that one chooses."
    )
    description = words("Description", max_length=250)
    scope = forms.ChoiceField(
        label="Scope", help_text="Who can see and use it.", error_messages={"invalid_choice": "Choose who can use it."}
    )

    def __init__(self, data: Typed, *, scopes: Sequence[Project], everybody: bool, quiet: bool = True, **more: Any) -> None:
        super().__init__(data, quiet=quiet, **more)
        self.projects = {str(project.pk): project for project in scopes}
        choices = [(key, f"Project {project.name}") for key, project in self.projects.items()]
        self.fields["scope"].choices = [*([(EVERYBODY, "Everybody")] if everybody else []), *choices]  # type: ignore[attr-defined]

    @property
    def project(self) -> Project | None:
        """Whose it is to be; None for everybody's."""
        return self.projects.get(self.read("scope", ""))

    @property
    def values(self) -> dict[str, Any]:
        """By the names of the model's fields, without the scope."""
        return {"name": self.read("name", ""), "description": self.read("description", "")}

    def judged(self) -> bool:
        """Whether nothing is wrong; what is, stands beside its field from now on."""
        self.quiet = False
        if not self.is_wrong:
            for field, text in judging.problems(self.kind, self.values):
                self.blame_asset(self.places.get(field, field), text)
        return not self.is_wrong

    def blame_asset(self, field: str, text: str) -> None:
        """Put a problem beside its field."""
        self.blame(field, text)


class EnvironmentForm(AssetForm):
    kind = "environment"
    model = Environment

    image = forms.CharField(
        label="Image", help_text="As registry.example.com/team/train:1.2", error_messages={"required": "The image must be given."}
    )
    command = lines("Command", "Words are split at spaces, quotes keep them together. Empty: the image's own.")
    args = lines("Arguments", "Split likewise. Empty: the image's own.")
    working_dir = words("Working directory", "Empty: the image's own.")
    pull_policy = forms.ChoiceField(
        label="Image pull policy", choices=[("", "The cluster's default"), *Environment.PullPolicy.choices], required=False
    )
    serves = forms.ChoiceField(
        label="Workload architecture",
        choices=[
            ("Distributed:PyTorch", "Distributed, PyTorch"),
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
    def values(self) -> dict[str, Any]:
        architecture, _, framework = self.read("serves", ":").partition(":")
        rows = [{"name": row.read("name", ""), "value": row.read("value", "")} for row in self.variables.filled]
        texts = {name: self.read(name, "") for name in ("image", "command", "args", "working_dir", "pull_policy")}
        return super().values | texts | {"variables": rows, "architecture": architecture, "framework": framework}

    def blame_asset(self, field: str, text: str) -> None:
        listed, _, rest = field.partition(".")
        if listed != "variables":
            self.blame(field, text)
        elif rest:
            number, _, part = rest.partition(".")
            self.variables.quiet = False
            self.variables.filled[int(number)].blame(part, text)
            self.blame(None, text)
        else:
            self.blame(None, text)


class ComputeResourceForm(AssetForm, ComputeFields):
    kind = "compute"
    model = ComputeResource
    places = COMPUTE_PLACES

    # A tenth of a percent is what the row can hold.
    gpu_percent = percent(1)

    @property
    def values(self) -> dict[str, Any]:
        return super().values | self.compute_values


FORMS: dict[str, type[AssetForm]] = {form.kind: form for form in (EnvironmentForm, ComputeResourceForm)}


def defaults(kind: str, scope: str) -> Typed:
    """A new asset's form before anything is typed."""
    form = FORMS[kind]
    fields = {name: [str(field.initial)] for name, field in form.base_fields.items() if field.initial is not None}
    return fields | {"scope": [scope]}


def typed_asset(asset: Asset) -> Typed:
    """An asset as if it had been typed."""
    shared: Typed = {"name": [asset.name], "description": [asset.description]}
    shared["scope"] = [EVERYBODY if asset.project_id is None else str(asset.project_id)]
    if isinstance(asset, ComputeResource):
        return shared | typed_compute(vars(asset))
    assert isinstance(asset, Environment)
    texts = {name: [str(getattr(asset, name))] for name in ("image", "command", "args", "working_dir", "pull_policy")}
    serves = {"serves": [f"{asset.architecture}:{asset.framework}"]}
    return shared | texts | serves | as_rows("variables", asset.variables)
