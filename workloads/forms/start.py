"""The first step: where, of what kind, and under which name."""

from collections.abc import Iterable, Sequence

from django import forms

from console.typed import Typed, TypedForm
from projects.models import Project
from workloads.specs import Architecture, Configuration, Framework

SCRATCH = "scratch"
ABOUT = {
    Architecture.STANDARD: "One pod at a time, or several alike that know nothing of each other.",
    Architecture.DISTRIBUTED: "Several pods that train together.",
    Configuration.WORKERS_AND_MASTER: "One pod leads: it has rank 0.",
    Configuration.WORKERS_ONLY: "All pods are alike; the first of them has rank 0.",
}


class StartForm(TypedForm):
    """Choices that the cards of the first step show; all of them are native radio buttons and selects."""

    cluster = forms.ChoiceField(label="Cluster", error_messages={"required": "Choose a cluster."})
    project = forms.ChoiceField(
        label="Project",
        help_text="It says whose quota is used and who sees the workload.",
        error_messages={"required": "Choose a project."},
    )
    architecture = forms.ChoiceField(
        label="Workload architecture",
        choices=[(each.value, each.label) for each in Architecture],
        error_messages={"required": "Choose an architecture."},
    )
    framework = forms.ChoiceField(label="Framework", choices=[(each.value, each.label) for each in Framework], required=False)
    configuration = forms.ChoiceField(label="Configuration", choices=[(each.value, each.label) for each in Configuration], required=False)
    template = forms.ChoiceField(label="Template", choices=[(SCRATCH, "Start from scratch")], required=False)
    name = forms.CharField(
        label="Name",
        error_messages={"required": "Give the workload a name."},
        help_text="Lower-case letters, digits and dashes; starts with a letter; at most 50 characters; unique in the project.",
    )

    def __init__(self, data: Typed, *, projects: Sequence[Project], quiet: bool = True) -> None:
        super().__init__(data, quiet=quiet)
        self.projects = {str(project.pk): project for project in projects}
        clusters = {str(project.cluster_id): project.cluster.name for project in projects}
        self.fields["cluster"].choices = list(clusters.items())  # type: ignore[attr-defined]
        self.fields["project"].choices = _grouped(projects, len(clusters) > 1)  # type: ignore[attr-defined]
        refused = "{} that is not there any more, or where you may not launch. Choose another."
        self.fields["cluster"].error_messages["invalid_choice"] = refused.format("This is a cluster")
        self.fields["project"].error_messages["invalid_choice"] = refused.format("This is a project")

    def clean_project(self) -> str:
        chosen = str(self.cleaned_data["project"])
        project = self.projects[chosen]
        if self.cleaned_data.get("cluster", str(project.cluster_id)) != str(project.cluster_id):
            raise forms.ValidationError(f"{project.name} is on cluster {project.cluster.name}. Choose that cluster or another project.")
        return chosen

    @property
    def chosen_project(self) -> Project | None:
        return self.projects.get(self.read("project", ""))

    @property
    def chosen_architecture(self) -> Architecture:
        return Architecture(self.read("architecture") or Architecture.STANDARD)

    @property
    def chosen_framework(self) -> Framework | None:
        """None for a standard workload, which has none, whatever its hidden field says."""
        chosen = self.read("framework") if self.chosen_architecture is Architecture.DISTRIBUTED else ""
        return Framework(chosen) if chosen else None

    @property
    def chosen_configuration(self) -> Configuration:
        chosen = self.read("configuration") if self.chosen_architecture is Architecture.DISTRIBUTED else ""
        return Configuration(chosen) if chosen else Configuration.WORKERS_AND_MASTER

    @property
    def architectures(self) -> Iterable[tuple[Architecture, str]]:
        return [(each, ABOUT[each]) for each in Architecture]

    @property
    def frameworks(self) -> Iterable[Framework]:
        return list(Framework)

    @property
    def configurations(self) -> Iterable[tuple[Configuration, str]]:
        return [(each, ABOUT[each]) for each in Configuration]


def _grouped(projects: Sequence[Project], several: bool) -> list[tuple[str, object]]:
    """Projects as a select's options, below their clusters where there are several."""
    if not several:
        return [(str(project.pk), project.name) for project in projects]
    names = dict.fromkeys(project.cluster.name for project in projects)
    return [(name, [(str(each.pk), each.name) for each in projects if each.cluster.name == name]) for name in names]


def defaults(projects: Sequence[Project], last: int | None) -> Typed:
    """The step before anything is typed: the project used last, else the first one, with its cluster."""
    chosen = next((project for project in projects if project.pk == last), next(iter(projects), None))
    fields = {
        "architecture": Architecture.STANDARD.value,
        "framework": Framework.PYTORCH.value,
        "configuration": Configuration.WORKERS_AND_MASTER.value,
        "template": SCRATCH,
        "name": "",
    }
    if chosen is not None:
        fields |= {"cluster": str(chosen.cluster_id), "project": str(chosen.pk)}
    return {name: [value] for name, value in fields.items()}
