"""A draft as the steps of the wizard: what was typed into each, the Spec that they make together, and which step a problem belongs to."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any

from console.typed import Typed, TypedForm
from environments.models import ComputeResource, Environment
from projects.access import Action, actionable
from projects.models import Project, User
from workloads import journal
from workloads.forms import setup as setup_step
from workloads.forms import start as start_step
from workloads.forms.master import MasterForm
from workloads.forms.setup import SetupForm
from workloads.forms.start import StartForm
from workloads.models import Workload
from workloads.specs import UNCHANGED, Architecture, Configuration, Problem, Setup, Spec, problems
from workloads.specs import Environment as SpecEnvironment

MOST_CARDS = 500
"""Assets that one page offers."""


class Step(StrEnum):
    START = "start"
    SETUP = "setup"
    MASTER = "master"
    REVIEW = "review"

    @property
    def label(self) -> str:
        return {"start": "Start", "setup": "Workload setup", "master": "Master", "review": "Review"}[self.value]


_PLACES = {
    "elastic": "min_workers",
    "elastic.min_workers": "min_workers",
    "elastic.max_workers": "max_workers",
    "namespace": "project",
    "queue": "project",
}
"""Where the forms show a field of a Spec under another name."""
_START = ("name", "project", "namespace", "queue", "architecture", "framework", "configuration")


def step_of(field: str) -> Step:
    """The step that shows a field of a Spec, as `problems` names it."""
    if field.partition(".")[0] == "master":
        return Step.MASTER
    return Step.START if field in _START else Step.SETUP


class Filling:
    """What is in a draft, for the one who fills it in. Forms are quiet until `judge` makes them speak."""

    def __init__(self, data: Mapping[str, Any], user: User) -> None:
        self.data = data
        self.user = user
        self._judged: dict[Step, bool] = {}
        self.free_name = ""
        """A name to offer instead of one that is taken."""

    def typed(self, step: Step) -> Typed:
        """What was typed into a step; its defaults where nothing was."""
        if step in self.data:
            stored: Typed = self.data[step]
            return stored
        if step is Step.START:
            last = Workload.objects.filter(submitted_by=self.user).order_by("-created_at").values_list("project_id", flat=True).first()
            return start_step.defaults(self.projects, last)
        return setup_step.defaults() if step is Step.SETUP else {}

    @cached_property
    def projects(self) -> Sequence[Project]:
        """Where the user may launch."""
        return list(actionable(self.user, Action.SUBMIT).select_related("cluster").order_by("name"))

    @cached_property
    def start(self) -> StartForm:
        return StartForm(self.typed(Step.START), projects=self.projects)

    @property
    def project(self) -> Project | None:
        return self.start.chosen_project

    @cached_property
    def setup(self) -> SetupForm:
        return SetupForm(
            self.typed(Step.SETUP),
            environments=self._environments(),
            resources=list(self._assets(ComputeResource)[:MOST_CARDS]),
            distributed=self.is_distributed,
        )

    def _environments(self) -> Sequence[Environment]:
        fitting = self._assets(Environment).filter(architecture=self.start.chosen_architecture.value)
        if self.start.chosen_framework is not None:
            fitting = fitting.filter(framework__in=("", self.start.chosen_framework.value))
        return list(fitting[:MOST_CARDS])

    def _assets(self, model: Any) -> Any:
        """Everybody's and the chosen project's."""
        chosen = [self.project.pk] if self.project else []
        rows = model.objects.visible_to(self.user).select_related("project").order_by("name", "id")
        return rows.filter(project=None) | rows.filter(project__in=chosen)

    @cached_property
    def master(self) -> MasterForm:
        return MasterForm(self.typed(Step.MASTER), self.setup.setup)

    @property
    def is_distributed(self) -> bool:
        return self.start.chosen_architecture is Architecture.DISTRIBUTED

    @property
    def has_master(self) -> bool:
        return self.is_distributed and self.start.chosen_configuration is Configuration.WORKERS_AND_MASTER

    @property
    def steps(self) -> list[Step]:
        return [step for step in Step if step is not Step.MASTER or self.has_master]

    def form(self, step: Step) -> TypedForm:
        forms: dict[Step, TypedForm] = {Step.START: self.start, Step.SETUP: self.setup, Step.MASTER: self.master}
        return forms[step]

    def spec(self, *, until: Step = Step.REVIEW) -> Spec:
        """What the steps before `until`, and it, make; values that could not be read are left at their defaults."""
        start, project = self.start, self.project
        head = {
            "name": start.read("name", ""),
            "project": project.name if project else "none",
            "namespace": project.namespace if project else "none",
            "queue": project.queue if project else "none",
            "architecture": start.chosen_architecture,
            "framework": start.chosen_framework,
            "configuration": start.chosen_configuration,
        }
        if until is Step.START:
            return Spec(**head, setup=Setup(SpecEnvironment(setup_step.NOT_CHOSEN)))
        setup = self.setup
        changes = self.master.changes if self.has_master and until is not Step.SETUP else UNCHANGED
        return Spec(
            **head,
            setup=setup.setup,
            workers=setup.read("workers", 1),
            elastic=setup.elastic if self.is_distributed else None,
            runs=setup.read("runs", 1),
            parallelism=setup.read("parallelism", 1),
            lifecycle=setup.lifecycle,
            master=changes,
        )

    def judge(self, step: Step) -> bool:
        """Whether nothing is wrong with a step (before review); what is, stands beside its field from now on."""
        if step not in self._judged:
            form = self.form(step)
            self._loud(form)
            for problem in problems(self.spec(until=step)):
                if step_of(problem.field) is step:
                    self.blame(problem)
            if step is Step.START and not form.is_wrong:
                self._check_name()
            self._judged[step] = not self._is_wrong(form)
        return self._judged[step]

    def hush(self, step: Step) -> None:
        """Show a step without its errors again."""
        self._loud(self.form(step), quiet=True)

    def first_wrong(self, before: Step) -> Step | None:
        """The first step before this one with anything wrong."""
        steps = self.steps
        earlier = steps[: steps.index(before)] if before in steps else steps[:-1]
        return next((step for step in earlier if not self.judge(step)), None)

    def blame(self, problem: Problem) -> Step:
        """Put a problem beside its field; the step that shows it."""
        step = step_of(problem.field)
        step = step if step in self.steps else Step.START
        form = self.form(step)
        self._loud(form)
        if step is Step.START:
            form.blame(_PLACES.get(problem.field, problem.field), problem.text)
        elif step is Step.SETUP:
            self.setup.blame_path(_setup_path(problem.field), problem.text)
        else:
            self.master.blame_path(problem.field.removeprefix("master."), problem.text)
        return step

    def name_taken(self, text: str) -> None:
        """Say so beside the name, and offer a free one."""
        self._loud(self.start)
        self.start.blame("name", text)
        if self.project is not None:
            self.free_name = journal.free_name(self.project, self.start.read("name", "") or self.typed(Step.START)["name"][0])

    def _check_name(self) -> None:
        name, project = self.start.read("name"), self.project
        if project and Workload.objects.filter(project=project, name=name, released_at=None).exists():
            self.name_taken(f"The name {name} is taken in project {project.name}. Choose another.")

    def _loud(self, form: TypedForm, quiet: bool = False) -> None:
        if isinstance(form, SetupForm | MasterForm):
            form.speak(quiet)
        else:
            form.quiet = quiet

    def _is_wrong(self, form: TypedForm) -> bool:
        return form.has_errors if isinstance(form, SetupForm | MasterForm) else form.is_wrong


def _setup_path(field: str) -> str:
    field = _PLACES.get(field, field)
    return field.removeprefix("setup.").removeprefix("lifecycle.")
