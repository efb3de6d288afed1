"""A draft as the steps of the wizard: what was typed into each, the Spec that they make together,
and which step a problem belongs to.
"""

import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from clusters.capabilities import UNKNOWN, Capabilities
from console.typed import Typed, TypedForm
from environments.models import ComputeResource, DataSource, Environment, Template
from projects.access import actionable
from projects.models import Project, User
from projects.permissions import Entity, Verb
from workloads import journal, placing
from workloads.asset_uses import TEMPLATE, Used, credentials_of, used
from workloads.forms import locks, policed
from workloads.forms import setup as setup_step
from workloads.forms import start as start_step
from workloads.forms.counts import SPECIAL
from workloads.forms.inwords import kind_in_words
from workloads.forms.master import MasterForm
from workloads.forms.offered import Offered
from workloads.forms.setup import SetupForm
from workloads.forms.sources import CHOSEN
from workloads.forms.start import StartForm
from workloads.forms.steps import Step, place_of, step_of
from workloads.forms.templating import MAKING, Applied, Missing, form_of, missing
from workloads.manifests import refusals
from workloads.models import Workload
from workloads.policies import InForce, in_force
from workloads.policing import NOTHING, Merged, completed
from workloads.specs import (
    PLAIN_MPI,
    UNCHANGED,
    Architecture,
    Configuration,
    Framework,
    Problem,
    Setup,
    Spec,
    problems,
)
from workloads.specs import Environment as SpecEnvironment

UNNAMED = "template"
"""The name of the workload that a template is judged as."""


def with_special(typed: Typed, before: Typed) -> Typed:
    """What was typed into the setup, with what was typed before into fields that the workload
    chosen now does not have.
    """
    return {name: values for name, values in before.items() if name in SPECIAL} | typed


class Filling:
    """What is in a draft, for the one who fills it in. Forms are quiet until `judge` makes them
    speak.
    """

    def __init__(self, data: Mapping[str, Any], user: User) -> None:
        self.data = data
        self.user = user
        self._judged: dict[Step, bool] = {}
        self.free_name = ""
        """A name to offer instead of one that is taken."""

    def typed(self, step: Step) -> Typed:
        """What was typed into a step, its defaults where nothing was; and of what a policy or its
        template locks, the values there.
        """
        typed, template = self._typed(step), self.template
        if template is not None:
            keep = {
                Step.START: locks.in_start,
                Step.SETUP: locks.in_setup,
                Step.MASTER: locks.in_master,
            }[step]
            typed = keep(
                typed, template.typed(step), template.locked if step is Step.START else self.locked
            )
        # A policy goes before a template, which may be older.
        return policed.kept(typed, self.merged) if step is Step.SETUP else typed

    def _typed(self, step: Step) -> Typed:
        if step in self.data:
            stored: Typed = self.data[step]
            return stored
        if step is Step.START:
            last = (
                Workload.objects.filter(submitted_by=self.user)
                .order_by("-created_at")
                .values_list("project_id", flat=True)
                .first()
            )
            return start_step.defaults(self.projects, last)
        return (
            setup_step.defaults()
            | setup_step.preselected(self.project)
            | policed.prefilled(self.merged)
            if step is Step.SETUP
            else {}
        )

    @cached_property
    def _policies(self) -> InForce | None:
        """Those of the chosen project. A template is judged where it is used."""
        return in_force(self.project) if self.project and self.making is None else None

    @cached_property
    def merged(self) -> Merged:
        """What policies want of the chosen kind of workload."""
        return self._policies.merged(self.start.chosen_architecture) if self._policies else NOTHING

    @cached_property
    def template(self) -> Applied | None:
        """The template that was filled in."""
        return Applied.read(self.data)

    @property
    def making(self) -> Mapping[str, Any] | None:
        """What is known of the template that the draft is to become; None where it becomes a
        workload.
        """
        return self.data.get(MAKING)

    @cached_property
    def projects(self) -> Sequence[Project]:
        """Where the user may launch; for a template, where they may look at what it is made of."""
        making = self.making is not None
        found = (
            Project.objects.visible_to(self.user)
            if making
            else actionable(self.user, Verb.CREATE, Entity.WORKLOADS)
        )
        return list(found.select_related("cluster").order_by("name"))

    @cached_property
    def start(self) -> StartForm:
        form = StartForm(
            self.typed(Step.START),
            projects=self.projects,
            templates=self._templates,
            is_template=self.making is not None,
        )
        if self.template is not None:
            locks.mark(form, self.template.locked, self.template.note)
        return form

    @cached_property
    def _templates(self) -> Sequence[Template]:
        """Those for use in the project that is chosen."""
        chosen = (self.typed(Step.START).get("project") or [""])[-1]
        project = next((each for each in self.projects if str(each.pk) == chosen), None)
        if project is None or self.making is not None:
            return []
        return Offered(project).templates

    @property
    def project(self) -> Project | None:
        return self.start.chosen_project

    @cached_property
    def missing(self) -> Sequence[Missing]:
        """What the template chooses and nobody can: it has to be chosen anew."""
        if self.template is None or self.project is None:
            return []
        there = {
            "environment_choice": self._environments,
            "compute_choice": self.offered.resources,
            CHOSEN: self.offered.sources,
        }
        return missing(
            self.template,
            {key: {str(each.pk) for each in rows} for key, rows in there.items()},
            self.project,
            self._names,
        )

    def _names(self, key: str, chosen: Sequence[str]) -> Mapping[str, str]:
        """What those of these assets are called that the one who fills it in may see, by their
        ids.
        """
        model: Any = {
            "environment_choice": Environment,
            "compute_choice": ComputeResource,
            CHOSEN: DataSource,
        }[key]
        rows = model.objects.visible_to(self.user).filter(
            pk__in=[each for each in chosen if _is_id(each)]
        )
        return {str(pk): name for pk, name in rows.values_list("pk", "name")}

    @cached_property
    def locked(self) -> Sequence[str]:
        """What the template locks. A choice that cannot be had is open."""
        gone = {each.key for each in self.missing}
        return [key for key in self.template.locked if key not in gone] if self.template else []

    @cached_property
    def setup(self) -> SetupForm:
        form = self._setup()
        policed.judge_cards(self._environments, self.offered.resources, self.merged)
        policed.mark(form, self.merged)
        if self.template is not None:
            locks.mark(form, self.locked, self.template.note)
        return form

    def _setup(self) -> SetupForm:
        return SetupForm(
            self.typed(Step.SETUP),
            environments=self._environments,
            resources=self.offered.resources,
            sources=self.offered.sources,
            credentials=self.offered.credentials,
            framework=self.start.chosen_framework,
            configuration=self.start.chosen_configuration,
            storage_classes=self.offered.storage_classes,
        )

    @cached_property
    def offered(self) -> Offered:
        """The assets to choose among in the chosen project."""
        return Offered(self.project, seen_by=self.user if self.making is not None else None)

    @cached_property
    def _environments(self) -> Sequence[Environment]:
        return self.offered.environments(
            self.start.chosen_architecture, self.start.chosen_framework
        )

    @cached_property
    def master(self) -> MasterForm:
        workers, classes = self.setup.setup, self.offered.storage_classes
        form = MasterForm(
            self.typed(Step.MASTER),
            workers,
            storage_classes=classes,
            credentials=self.offered.credentials,
        )
        policed.mark(form, self.merged, locks=False)
        if self.template is not None:
            form.lock(locks.of_master(self.locked), self.template.note)
        return form

    @property
    def used(self) -> Sequence[Used]:
        """The assets that were chosen, as they are now, and the template that was filled in."""
        form = self.setup
        environment = form.environments.get(form.read("environment_choice", ""))
        size = form.resources.get(form.read("compute_choice", ""))
        found = [
            used(each) for each in (environment, size, *form.chosen_sources) if each is not None
        ]
        if self.template is not None:
            found.append(
                Used(
                    TEMPLATE, uuid.UUID(self.template.id), self.template.name, self.template.version
                )
            )
        return found

    @property
    def form_of_template(self) -> dict[str, Any]:
        """What a template of this draft keeps."""
        assert self.project is not None
        named = [
            each
            for each in (*self.used, *credentials_of(self.spec(), self.project))
            if each.kind != TEMPLATE
        ]
        names = {str(each.asset): each.name for each in named}
        master = self.typed(Step.MASTER) if self.has_master else {}
        return form_of(self.typed(Step.START), self.typed(Step.SETUP), master, names)

    @property
    def capabilities(self) -> Capabilities:
        """What the chosen project's cluster can do."""
        return self.project.cluster.can if self.project else UNKNOWN

    @property
    def is_distributed(self) -> bool:
        return self.start.chosen_architecture is Architecture.DISTRIBUTED

    @property
    def has_master(self) -> bool:
        return (
            self.is_distributed
            and self.start.chosen_configuration is Configuration.WORKERS_AND_MASTER
        )

    @property
    def steps(self) -> list[Step]:
        return [step for step in Step if step is not Step.MASTER or self.has_master]

    @property
    def leader(self) -> str:
        """What the chosen framework calls its master."""
        framework = self.start.chosen_framework
        return framework.master if framework else "master"

    @property
    def about_rank_0(self) -> str:
        """What volumes that rank 0 alone may write to mean for the chosen framework; "" where there
        are no ranks.
        """
        framework = self.start.chosen_framework
        if framework is None:
            return ""
        if framework in (Framework.MPI, Framework.JAX):
            return (
                f"“Writable by rank 0 only” cannot be had with {framework.label}, whose workers "
                "are all alike."
            )
        first = self.leader if self.has_master else "first worker"
        return (
            f"With “Writable by rank 0 only” the {first} writes and every other pod reads: none "
            "overwrites another's files."
        )

    @property
    def words_of_kind(self) -> str:
        """The kind of workload that is chosen: "Distributed, PyTorch, Workers only"."""
        return kind_in_words(
            self.start.chosen_architecture,
            self.start.chosen_framework,
            self.start.chosen_configuration,
        )

    def label(self, step: Step) -> str:
        """The step's name, with the framework's own word."""
        return self.leader.capitalize() if step is Step.MASTER else step.label

    def form(self, step: Step) -> TypedForm:
        forms: dict[Step, TypedForm] = {
            Step.START: self.start,
            Step.SETUP: self.setup,
            Step.MASTER: self.master,
        }
        return forms[step]

    def spec(self, *, until: Step = Step.REVIEW) -> Spec:
        """What the steps before `until`, and it, make; values that could not be read are left at
        their defaults.
        """
        start, project = self.start, self.project
        head: dict[str, Any] = {
            "name": start.read("name", "") if self.making is None else UNNAMED,
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
        spec = Spec(
            **head,
            setup=setup.setup,
            workers=setup.read("workers", 1),
            elastic=setup.elastic if self.is_distributed else None,
            parameter_servers=setup.read("parameter_servers", 0),
            mpi=setup.mpi if "slots" in setup.fields else PLAIN_MPI,
            runs=setup.read("runs", 1),
            parallelism=setup.read("parallelism", 1),
            lifecycle=setup.lifecycle,
            master=changes,
        )
        return completed(spec, self.merged) if until is Step.REVIEW else spec

    def judge(self, step: Step) -> bool:
        """Whether nothing is wrong with a step (before review); what is, stands beside its field
        from now on.
        """
        if step not in self._judged:
            form = self.form(step)
            self._loud(form)
            for problem in problems(self.spec(until=step)):
                if step_of(problem.field) is step:
                    self.blame(problem)
            self._held(step)
            if step is Step.START and not form.is_wrong:
                self._check_name()
            self._judged[step] = not self._is_wrong(form)
        return self._judged[step]

    def _held(self, step: Step) -> None:
        """Put what policies do not allow of a step beside its fields."""
        form = None if step is Step.START else self.setup
        for field, text in policed.issues(self.spec(until=step), self.merged, form):
            if step_of(field) is step:
                self.blame(Problem(field, text))

    def refused(self, step: Step) -> bool:
        """Whether the chosen cluster cannot do what a step asks for in which nothing else is wrong:
        that stands beside its field then.
        """
        spec = self.spec(until=step)
        found = (
            []
            if problems(spec)
            else [each for each in self._refusals(spec) if step_of(each.field) is step]
        )
        for problem in found:
            self.blame(problem)
        return bool(found)

    def _refusals(self, spec: Spec) -> Sequence[Problem]:
        placed = placing.problems(spec, self.project) if self.project else ()
        return [*refusals(spec, self.capabilities), *placed]

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
            form.blame(place_of(problem.field), problem.text)
        elif step is Step.SETUP:
            self.setup.blame_path(place_of(problem.field), problem.text)
        else:
            self.master.blame_path(problem.field.removeprefix("master."), problem.text)
        return step

    def name_taken(self, text: str) -> None:
        """Say so beside the name, and offer a free one."""
        self._loud(self.start)
        self.start.blame("name", text)
        if self.project is not None:
            self.free_name = journal.free_name(
                self.project, self.start.read("name", "") or self.typed(Step.START)["name"][0]
            )

    def _check_name(self) -> None:
        if self.making is not None:
            return
        name, project = self.start.read("name"), self.project
        if (
            project
            and Workload.objects.filter(project=project, name=name, released_at=None).exists()
        ):
            self.name_taken(f"The name {name} is taken in project {project.name}. Choose another.")

    def _loud(self, form: TypedForm, quiet: bool = False) -> None:
        if isinstance(form, SetupForm | MasterForm):
            form.speak(quiet)
        else:
            form.quiet = quiet

    def _is_wrong(self, form: TypedForm) -> bool:
        return form.has_errors if isinstance(form, SetupForm | MasterForm) else form.is_wrong


def _is_id(text: str) -> bool:
    """A template that was written by hand may choose anything."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
