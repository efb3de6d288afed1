"""What a draft of the wizard holds: what was typed, the forms of its steps, and their Spec."""

import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from django.db.models import Prefetch

from clusters.capabilities import UNKNOWN, Capabilities
from clusters.models import Cluster
from console.typed_forms import TypedForm, TypedValues
from environments.models import Asset, ComputeResource, DataSource, Environment, Template
from projects.access import list_permitted_projects
from projects.models import Project, User
from projects.permissions import Entity, Verb
from workloads.asset_references import AssetReference
from workloads.asset_uses import (
    TEMPLATE,
    build_asset_reference,
    load_named_credentials,
)
from workloads.forms import setup_form as setup_step
from workloads.forms import start_form as start_step
from workloads.forms import template_locks, wizard_policies
from workloads.forms.draft_templates import (
    NEW_TEMPLATE,
    AppliedTemplate,
    MissingAsset,
    build_template_form,
    find_missing_assets,
)
from workloads.forms.master_form import MasterForm
from workloads.forms.project_assets import ProjectAssets
from workloads.forms.setup_descriptions import describe_kind
from workloads.forms.setup_form import SetupForm
from workloads.forms.source_fields import DATA_SOURCES_FIELD
from workloads.forms.start_form import StartForm
from workloads.forms.steps import Step
from workloads.forms.workload_form import KIND_SPECIFIC_NAMES
from workloads.models import Workload
from workloads.policies import PoliciesInForce, load_for_project
from workloads.policing import NO_POLICIES, MergedPolicies, complete_spec
from workloads.specs import (
    UNCHANGED,
    Architecture,
    Configuration,
    MasterChanges,
    Setup,
    Spec,
)
from workloads.specs import Environment as SpecEnvironment
from workloads.specs.building import build_part

TEMPLATE_WORKLOAD_NAME = "template"
"""The name of the workload as which a template is validated."""


def keep_other_kinds(sent: TypedValues, before: TypedValues) -> TypedValues:
    """Return the sent values of the setup, with earlier values that are hidden now.

    Those are the values of fields that the chosen kind of workload does not have.
    """
    return {name: values for name, values in before.items() if name in KIND_SPECIFIC_NAMES} | sent


class DraftContent:
    """The content of a draft, as the user who fills it in sees it."""

    def __init__(self, data: Mapping[str, Any], user: User) -> None:
        self.data = data
        self.user = user

    def get_values(self, step: Step) -> TypedValues:
        """Return the typed values of a step, or its defaults where nothing was typed.

        Values that a policy or the template locks take the place of typed ones.
        """
        values, template = self._get_unlocked_values(step), self.template
        if template is not None:
            # Which assets are missing, whose choice is open, shows only after the first step.
            locked = template.locked if step is Step.START else self.locked_keys
            values = template_locks.lock_values(step, values, template.get_values(step), locked)
        # Policies are applied last: a template may be older than they are.
        return (
            wizard_policies.apply_policy_locks(values, self.merged_policies)
            if step is Step.SETUP
            else values
        )

    def _get_unlocked_values(self, step: Step) -> TypedValues:
        if step in self.data:
            stored: TypedValues = self.data[step]
            return stored
        if step is Step.START:
            last_project_id = (
                Workload.objects.filter(submitted_by=self.user)
                .order_by("-created_at")
                .values_list("project_id", flat=True)
                .first()
            )
            return start_step.build_start_defaults(self.projects, last_project_id)
        if step is not Step.SETUP:
            return {}
        return (
            setup_step.build_setup_defaults()
            | setup_step.build_project_defaults(self.project)
            | wizard_policies.build_policy_defaults(self.merged_policies)
        )

    @cached_property
    def policies(self) -> PoliciesInForce | None:
        """Return the policies in force in the chosen project.

        None for a template, which is judged where it is used.
        """
        return (
            load_for_project(self.project) if self.project and self.new_template is None else None
        )

    @cached_property
    def merged_policies(self) -> MergedPolicies:
        """Return the merged policies for the chosen kind of workload."""
        return self.policies.merge(self.start.chosen_architecture) if self.policies else NO_POLICIES

    @cached_property
    def template(self) -> AppliedTemplate | None:
        """Return the template that was filled in, or None."""
        return AppliedTemplate.from_draft(self.data)

    @property
    def new_template(self) -> Mapping[str, Any] | None:
        """Return the data of the template that the draft is to become.

        None where it becomes a workload.
        """
        return self.data.get(NEW_TEMPLATE)

    @cached_property
    def projects(self) -> Sequence[Project]:
        """Return the projects where the user may launch, with the fields that choosing needs.

        For a template: those that the user may see.
        """
        is_template = self.new_template is not None
        rows = (
            Project.objects.visible_to(self.user)
            if is_template
            else list_permitted_projects(self.user, Verb.CREATE, Entity.WORKLOADS)
        )
        # Each cluster is loaded once, not with each of its projects; a launch loads its kubeconfig.
        # Its permissions are as long, and nothing here asks for them.
        clusters = Prefetch("cluster", Cluster.objects.defer("kubeconfig", "permissions"))
        fields = ("name", "cluster", "department", "namespace", "queue")
        return list(rows.only(*fields).prefetch_related(clusters).order_by("name"))

    @cached_property
    def start(self) -> StartForm:
        form = StartForm(
            self.get_values(Step.START),
            projects=self.projects,
            templates=self._templates,
            is_template=self.new_template is not None,
        )
        if self.template is not None:
            template_locks.mark_locked_fields(form, self.template.locked, self.template.note)
        return form

    @cached_property
    def _templates(self) -> Sequence[Template]:
        """Return the templates available in the chosen project."""
        chosen = (self.get_values(Step.START).get("project") or [""])[-1]
        project = start_step.find_project(self.projects, chosen)
        if project is None or self.new_template is not None:
            return []
        return ProjectAssets(project).templates

    @cached_property
    def project(self) -> Project | None:
        """Return the chosen project with all of its fields."""
        project = self.start.chosen_project
        if project is not None and (missing := project.get_deferred_fields()):
            project.refresh_from_db(fields=missing)
        return project

    @cached_property
    def missing_assets(self) -> Sequence[MissingAsset]:
        """Return the assets that the template chooses and that are not available.

        Each has to be chosen anew.
        """
        if self.template is None or self.project is None:
            return []
        return find_missing_assets(
            self.template, self.available_ids, self.project, self._load_asset_names
        )

    @property
    def available_ids(self) -> Mapping[str, set[str]]:
        """Return the ids of the assets to choose from, by the field that chooses them."""
        available: dict[str, Sequence[Asset]] = {
            "environment_choice": self._environments,
            "compute_choice": self.project_assets.resources,
            DATA_SOURCES_FIELD: self.project_assets.sources,
        }
        return {key: {str(each.pk) for each in rows} for key, rows in available.items()}

    def _load_asset_names(self, key: str, chosen: Sequence[str]) -> Mapping[str, str]:
        """Return the names, by id, of those of these assets that the user may see."""
        model: Any = {
            "environment_choice": Environment,
            "compute_choice": ComputeResource,
            DATA_SOURCES_FIELD: DataSource,
        }[key]
        rows = model.objects.visible_to(self.user).filter(
            pk__in=[each for each in chosen if _is_uuid(each)]
        )
        return {str(pk): name for pk, name in rows.values_list("pk", "name")}

    @cached_property
    def locked_keys(self) -> Sequence[str]:
        """Return the keys of what the template locks. The choice of a missing asset is open."""
        missing_fields = {each.key for each in self.missing_assets}
        return (
            [key for key in self.template.locked if key not in missing_fields]
            if self.template
            else []
        )

    @cached_property
    def setup(self) -> SetupForm:
        form = self._build_setup_form()
        wizard_policies.mark_forbidden_cards(
            self._environments, self.project_assets.resources, self.merged_policies
        )
        wizard_policies.mark_policy_limits(form, self.merged_policies)
        if self.template is not None:
            template_locks.mark_locked_fields(form, self.locked_keys, self.template.note)
        return form

    def _build_setup_form(self) -> SetupForm:
        return SetupForm(
            self.get_values(Step.SETUP),
            environments=self._environments,
            resources=self.project_assets.resources,
            sources=self.project_assets.sources,
            credentials=self.project_assets.credentials,
            framework=self.start.chosen_framework,
            configuration=self.start.chosen_configuration,
            storage_classes=self.project_assets.storage_classes,
        )

    @cached_property
    def project_assets(self) -> ProjectAssets:
        """Return the assets to choose from in the chosen project."""
        return ProjectAssets(
            self.project, visible_to=self.user if self.new_template is not None else None
        )

    @cached_property
    def _environments(self) -> Sequence[Environment]:
        return self.project_assets.environments(
            self.start.chosen_architecture, self.start.chosen_framework
        )

    @cached_property
    def master(self) -> MasterForm:
        workers, classes = self.setup.setup, self.project_assets.storage_classes
        form = MasterForm(
            self.get_values(Step.MASTER),
            workers,
            storage_classes=classes,
            credentials=self.project_assets.credentials,
        )
        wizard_policies.mark_policy_limits(form, self.merged_policies, disable_locked=False)
        if self.template is not None:
            form.lock_keys(
                template_locks.list_locked_master_keys(self.locked_keys), self.template.note
            )
        return form

    @property
    def used_assets(self) -> Sequence[AssetReference]:
        """Return references to the chosen assets and to the template that was filled in."""
        form = self.setup
        environment = form.environments.get(form.read("environment_choice", ""))
        size = form.resources.get(form.read("compute_choice", ""))
        references = [
            build_asset_reference(each)
            for each in (environment, size, *form.chosen_sources)
            if each is not None
        ]
        if self.template is not None:
            references.append(
                AssetReference(
                    TEMPLATE, uuid.UUID(self.template.id), self.template.name, self.template.version
                )
            )
        return references

    @property
    def template_form_data(self) -> dict[str, Any]:
        """Return the form that a template of this draft stores."""
        assert self.project is not None
        named = [
            each
            for each in (
                *self.used_assets,
                *load_named_credentials(self.build_spec(), self.project),
            )
            if each.kind != TEMPLATE
        ]
        names = {str(each.asset): each.name for each in named}
        master = self.get_values(Step.MASTER) if self.has_master else {}
        return build_template_form(
            self.get_values(Step.START), self.get_values(Step.SETUP), master, names
        )

    @property
    def capabilities(self) -> Capabilities:
        """Return the capabilities of the chosen project's cluster."""
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
    def master_name(self) -> str:
        """Return what the chosen framework calls its master."""
        framework = self.start.chosen_framework
        return framework.master_name if framework else "master"

    @property
    def rank_0_note(self) -> str:
        """Explain volumes that only rank 0 may write to, for the chosen framework.

        "" where there are no ranks.
        """
        framework = self.start.chosen_framework
        if framework is None:
            return ""
        if not framework.adapter.can_set_rank_0_apart(has_master=self.has_master):
            return (
                f"“Writable by rank 0 only” cannot be had with {framework.label}, whose workers "
                "are all alike."
            )
        first = self.master_name if self.has_master else "first worker"
        return (
            f"With “Writable by rank 0 only” the {first} writes and every other pod reads: none "
            "overwrites another's files."
        )

    @property
    def kind_label(self) -> str:
        """Describe the chosen kind of workload: "Distributed, PyTorch, Workers only"."""
        return describe_kind(
            self.start.chosen_architecture,
            self.start.chosen_framework,
            self.start.chosen_configuration,
        )

    def get_step_label(self, step: Step) -> str:
        """Return the step's name, with the framework's own word for the master."""
        return self.master_name.capitalize() if step is Step.MASTER else step.label

    def get_form(self, step: Step) -> TypedForm:
        forms: dict[Step, TypedForm] = {
            Step.START: self.start,
            Step.SETUP: self.setup,
            Step.MASTER: self.master,
        }
        return forms[step]

    def build_spec(self, *, last_step: Step = Step.REVIEW) -> Spec:
        """Return the Spec that the steps up to and including `last_step` make.

        Values that could not be parsed are left at their defaults.
        """
        start, project = self.start, self.project
        basics: dict[str, Any] = {
            "name": start.read("name", "") if self.new_template is None else TEMPLATE_WORKLOAD_NAME,
            "project": project.name if project else "none",
            "namespace": project.namespace if project else "none",
            "queue": project.queue if project else "none",
            "architecture": start.chosen_architecture,
            "framework": start.chosen_framework,
            "configuration": start.chosen_configuration,
        }
        if last_step is Step.START:
            return Spec(**basics, setup=Setup(SpecEnvironment(setup_step.NOT_CHOSEN)))
        setup = {"setup": self.setup.setup, "master": self._build_changes(last_step)}
        spec = build_part(Spec, basics | setup | self.setup.workload_values)
        return complete_spec(spec, self.merged_policies) if last_step is Step.REVIEW else spec

    def _build_changes(self, last_step: Step) -> MasterChanges:
        """Return in what the master differs, as the steps up to `last_step` say.

        A total of GPUs counts the master's, so in the setup step these are taken from the next.
        """
        if not self.has_master:
            return UNCHANGED
        if last_step is not Step.SETUP:
            return self.master.changes
        if self.setup.read("total_gpus") is None or "gpus" not in self.master.changes.changes:
            return UNCHANGED
        return MasterChanges(gpus=self.master.changes.changes["gpus"])


def _is_uuid(text: str) -> bool:
    """Tell whether a text is a UUID. A template written by hand may choose anything."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
