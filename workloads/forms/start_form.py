"""The first step: where the workload runs, its kind, and its name."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms

from clusters.models import Cluster
from console.form_widgets import SuggestingInput
from console.typed_forms import TypedForm, TypedValues
from environments.models import Template
from projects.models import Project
from workloads.forms.setup_descriptions import describe_configuration, describe_kind
from workloads.manifests import describe_unavailable
from workloads.specs import Architecture, Configuration, Framework

SCRATCH = "scratch"
MAX_OPTIONS = 100
"""Projects that the step offers to choose from; of more, one types the name."""
ARCHITECTURE_NOTES = {
    Architecture.STANDARD: "One pod at a time, or several alike that know nothing of each other.",
    Architecture.DISTRIBUTED: "Several pods that train together.",
}


@dataclass(frozen=True)
class FrameworkAnswer:
    """Why some clusters do not run a framework."""

    clusters: Sequence[str]
    text: str
    has_chosen_cluster: bool


@dataclass(frozen=True)
class FrameworkCard:
    """A framework to choose, with the answers of the clusters that do not run it.

    A chosen framework stays enabled, so that the step can say what is wrong with it.
    """

    framework: Framework
    answers: Sequence[FrameworkAnswer]
    is_chosen: bool

    @property
    def is_disabled(self) -> bool:
        return not self.is_chosen and any(answer.has_chosen_cluster for answer in self.answers)


@dataclass(frozen=True)
class ConfigurationCard:
    """A configuration, in the words of each framework that has more than one."""

    configuration: Configuration
    titles: Sequence[tuple[Framework, str]]
    notes: Sequence[tuple[Framework, str]]


class SelectWithDisabledOptions(forms.Select):
    """A select some of whose options are disabled.

    The selected option stays enabled: a browser does not send a disabled one, and the choice would
    be lost.
    """

    disabled_values: frozenset[str] = frozenset()

    def create_option(
        self, name: str, value: Any, label: Any, selected: bool, *more: Any, **named: Any
    ) -> dict[str, Any]:
        option = super().create_option(name, value, label, selected, *more, **named)
        if str(value) in self.disabled_values and not selected:
            option["attrs"]["disabled"] = True
        return option


class StartForm(TypedForm):
    """The choices of the first step. Its cards are native radio buttons and selects."""

    cluster = forms.ChoiceField(
        label="Cluster",
        widget=SelectWithDisabledOptions,
        error_messages={"required": "Choose a cluster."},
    )
    project = forms.ChoiceField(
        label="Project",
        widget=SelectWithDisabledOptions,
        help_text="It says whose quota is used and who sees the workload.",
        error_messages={"required": "Choose a project."},
    )
    architecture = forms.ChoiceField(
        label="Workload architecture",
        choices=[(each.value, each.label) for each in Architecture],
        error_messages={"required": "Choose an architecture."},
    )
    framework = forms.ChoiceField(
        label="Framework", choices=[(each.value, each.label) for each in Framework], required=False
    )
    configuration = forms.ChoiceField(
        label="Configuration",
        choices=[(each.value, each.label) for each in Configuration],
        required=False,
    )
    template = forms.ChoiceField(
        label="Template",
        choices=[(SCRATCH, "Start from scratch")],
        required=False,
        error_messages={
            "invalid_choice": (
                "That template is not there any more, or not for use in this project. Choose "
                "another, or none."
            )
        },
    )
    name = forms.CharField(
        label="Name",
        error_messages={"required": "Give the workload a name."},
        help_text=(
            "Lower-case letters, digits and dashes; starts with a letter; at most 50 characters; "
            "unique in the project."
        ),
    )

    def __init__(
        self,
        data: TypedValues,
        *,
        projects: Sequence[Project],
        templates: Sequence[Template] = (),
        is_template: bool = False,
        quiet: bool = True,
    ) -> None:
        super().__init__(data, quiet=quiet)
        self.templates = {str(each.pk): each for each in templates}
        if is_template:
            # A template has neither a name of a workload nor a template.
            del self.fields["name"], self.fields["template"]
        else:
            self.fields["template"].choices = [  # type: ignore[attr-defined]
                (SCRATCH, "Start from scratch"),
                *((key, template.name) for key, template in self.templates.items()),
            ]
        self.projects = {str(project.pk): project for project in projects}
        self.clusters = {str(project.cluster_id): project.cluster for project in projects}
        self.fields["cluster"].choices = [  # type: ignore[attr-defined]
            (key, _build_cluster_label(cluster)) for key, cluster in self.clusters.items()
        ]
        if len(projects) > MAX_OPTIONS:
            self.fields["project"] = _build_typed_project_field(self._suggest_projects())
            self.fields["project"].prepare_value = self._name_project  # type: ignore[method-assign]
        else:
            choices = _build_project_choices(projects, len(self.clusters) > 1)
            self.fields["project"].choices = choices  # type: ignore[attr-defined]
        disabled = frozenset(
            key for key, cluster in self.clusters.items() if not cluster.is_enabled
        )
        self.fields["cluster"].widget.disabled_values = disabled
        self.fields["project"].widget.disabled_values = frozenset(
            key for key, project in self.projects.items() if str(project.cluster_id) in disabled
        )
        message = "{} that is not there any more, or where you may not launch. Choose another."
        self.fields["cluster"].error_messages["invalid_choice"] = message.format(
            "This is a cluster"
        )
        self.fields["project"].error_messages["invalid_choice"] = message.format(
            "This is a project"
        )

    def clean_cluster(self) -> str:
        chosen = str(self.cleaned_data["cluster"])
        if not self.clusters[chosen].is_enabled:
            raise forms.ValidationError(
                f"The cluster {self.clusters[chosen].name} is disabled: nothing is launched "
                "there. Choose another."
            )
        return chosen

    def clean_project(self) -> str:
        typed = str(self.cleaned_data["project"])
        project = find_project(list(self.projects.values()), typed)
        if project is None:
            raise forms.ValidationError(
                f"You may launch in no project that is called {typed}. Type the whole name."
            )
        if self.cleaned_data.get("cluster", str(project.cluster_id)) != str(project.cluster_id):
            raise forms.ValidationError(
                f"{project.name} is on cluster {project.cluster.name}. Choose that cluster or "
                "another project."
            )
        return str(project.pk)

    def _name_project(self, value: Any) -> Any:
        """Return what the control shows for a stored value: the name, or what was typed."""
        project = self.projects.get(str(value))
        return value if project is None else project.name

    def _suggest_projects(self) -> Sequence[str]:
        """Return names to type, those of the chosen cluster first."""
        cluster = str(self["cluster"].value() or "")
        usable = [each for each in self.projects.values() if each.cluster.is_enabled]
        usable.sort(key=lambda each: str(each.cluster_id) != cluster)
        return [each.name for each in usable[:MAX_OPTIONS]]

    def clean_template(self) -> str:
        chosen = str(self.cleaned_data["template"] or SCRATCH)
        template = self.templates.get(chosen)
        if template is not None and not self._fits_choices(template):
            raise forms.ValidationError(
                f"The template {template.name} is for {describe_template_kind(template)}. Choose "
                "that above, or another template."
            )
        return chosen

    def _fits_choices(self, template: Template) -> bool:
        if self.cleaned_data.get("architecture") != template.architecture:
            return False
        return (
            template.architecture != Architecture.DISTRIBUTED.value
            or self.cleaned_data.get("framework") == template.framework
        )

    @property
    def chosen_template(self) -> Template | None:
        return self.templates.get(self.read("template", ""))

    @property
    def chosen_card(self) -> str:
        """Return the value of the chosen card: "scratch", or a template's key."""
        value = str(self["template"].value() or SCRATCH)
        return value if value in self.templates else SCRATCH

    @property
    def template_cards(self) -> Sequence[tuple[str, Template, str]]:
        """Return each template with its key and a description of what it is for."""
        return [
            (key, template, describe_template_kind(template))
            for key, template in self.templates.items()
        ]

    @property
    def chosen_project(self) -> Project | None:
        return self.projects.get(self.read("project", ""))

    @property
    def chosen_cluster(self) -> Cluster | None:
        """Return the cluster whose answers the page shows, whether it can be used or not."""
        return self.clusters.get(str(self["cluster"].value() or ""))

    @property
    def chosen_architecture(self) -> Architecture:
        return Architecture(self.read("architecture") or Architecture.STANDARD)

    @property
    def chosen_framework(self) -> Framework | None:
        """Return the chosen framework; None for a standard workload.

        A standard workload has none, whatever its hidden field says.
        """
        chosen = (
            self.read("framework") if self.chosen_architecture is Architecture.DISTRIBUTED else ""
        )
        return Framework(chosen) if chosen else None

    @property
    def chosen_configuration(self) -> Configuration:
        """Return the chosen configuration.

        Ignore the configuration of hidden cards; a framework with one configuration always uses it.
        """
        chosen = (
            self.read("configuration")
            if self.chosen_architecture is Architecture.DISTRIBUTED
            else ""
        )
        wanted = Configuration(chosen) if chosen else Configuration.WORKERS_AND_MASTER
        framework = self.chosen_framework
        return (
            wanted
            if framework is None or wanted in framework.configurations
            else framework.configurations[0]
        )

    @property
    def architectures(self) -> Iterable[tuple[Architecture, str]]:
        return [(each, ARCHITECTURE_NOTES[each]) for each in Architecture]

    @property
    def frameworks(self) -> Sequence[FrameworkCard]:
        chosen, chosen_value = str(self["cluster"].value() or ""), self["framework"].value()
        capabilities = {key: cluster.can for key, cluster in self.clusters.items()}

        def build_answers(framework: Framework) -> Sequence[FrameworkAnswer]:
            clusters_by_text: dict[str, list[str]] = defaultdict(list)
            for key, can in capabilities.items():
                if text := describe_unavailable(framework, can):
                    clusters_by_text[text].append(key)
            return [
                FrameworkAnswer(keys, text, chosen in keys)
                for text, keys in clusters_by_text.items()
            ]

        return [
            FrameworkCard(each, build_answers(each), each.value == chosen_value)
            for each in Framework
        ]

    @property
    def configurations(self) -> Sequence[ConfigurationCard]:
        with_choice = [framework for framework in Framework if len(framework.configurations) > 1]

        def describe(framework: Framework, configuration: Configuration) -> str:
            if configuration is Configuration.WORKERS_ONLY:
                return "All pods are alike; the first of them has rank 0."
            return f"One pod, the {framework.master_name}, leads: it has rank 0."

        return [
            ConfigurationCard(
                configuration,
                [
                    (framework, describe_configuration(configuration, framework))
                    for framework in with_choice
                ],
                [(framework, describe(framework, configuration)) for framework in with_choice],
            )
            for configuration in Configuration
        ]

    @property
    def framework_notes(self) -> Mapping[Framework, str]:
        return {each: each.adapter.note for each in Framework if each.adapter.note}


def find_project(projects: Sequence[Project], value: str) -> Project | None:
    """Find one of these projects by its key or, where it is typed, by its name."""
    name = " ".join(value.split())
    return next((each for each in projects if str(each.pk) == value), None) or next(
        (each for each in projects if each.name == name), None
    )


def describe_template_kind(template: Template) -> str:
    """Describe the workloads that a template is for: "Distributed, PyTorch, Workers only"."""
    if template.architecture != Architecture.DISTRIBUTED.value:
        return Architecture.STANDARD.label
    framework = (
        Framework(template.framework)
        if template.framework in Framework.__members__.values()
        else None
    )
    value = (template.form.get("start", {}).get("configuration") or [""])[0]
    configuration = Configuration(value) if value in Configuration.__members__.values() else None
    return describe_kind(Architecture.DISTRIBUTED, framework, configuration)


def _build_typed_project_field(suggestions: Sequence[str]) -> forms.CharField:
    return forms.CharField(
        label="Project",
        widget=SuggestingInput(suggestions, placeholder="The project's name"),
        help_text=(
            "It says whose quota is used and who sees the workload. There are too many to list: "
            "type the name."
        ),
        error_messages={"required": "Type the name of a project."},
    )


def _build_cluster_label(cluster: Cluster) -> str:
    return cluster.name if cluster.is_enabled else f"{cluster.name} (disabled)"


def _build_project_choices(
    projects: Sequence[Project], by_cluster: bool
) -> list[tuple[str, object]]:
    """Return projects as options of a select; with `by_cluster`, grouped by cluster."""
    if not by_cluster:
        return [(str(project.pk), project.name) for project in projects]
    clusters = {project.cluster_id: project.cluster for project in projects}
    return [
        (
            _build_cluster_label(cluster),
            [(str(each.pk), each.name) for each in projects if each.cluster_id == key],
        )
        for key, cluster in clusters.items()
    ]


def build_start_defaults(projects: Sequence[Project], last: int | None) -> TypedValues:
    """Return the values of the step before anything is typed.

    The project is the one used last, else the first one; on a cluster that is not disabled if there
    is one.
    """
    usable = [project for project in projects if project.cluster.is_enabled] or projects
    chosen = next((project for project in usable if project.pk == last), next(iter(usable), None))
    fields = {
        "architecture": Architecture.STANDARD.value,
        "framework": next(iter(Framework)).value,
        "configuration": Configuration.WORKERS_AND_MASTER.value,
        "template": SCRATCH,
        "name": "",
    }
    if chosen is not None:
        fields |= {"cluster": str(chosen.cluster_id), "project": str(chosen.pk)}
    return {name: [value] for name, value in fields.items()}
