"""The forms of a project, which is a place on a cluster."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from django import forms
from django.db import IntegrityError, transaction
from django.shortcuts import get_object_or_404

from clusters import connections
from clusters.models import Cluster, NodePool
from clusters.project_names import (
    DEPARTMENT_QUEUE_PREFIX,
    NAME_VALIDATOR,
    NAMESPACE_HELP,
    build_clash,
    build_namespace_name,
)
from clusters.project_places import (
    CREATE_PROJECTS,
    DELETE_PROJECTS,
    MAX_OPTIONS,
    TypedPoolsField,
    find_node_pools,
    list_clusters_for_new_project,
    list_departments_for_project,
    list_node_pools,
)
from console import edit_conflicts
from console.errors import Clash, NotAllowed
from console.form_widgets import SuggestingInput
from console.texts import is_dns_label, join_first
from projects import access, audit, quotas, seams
from projects.models import Department, Project, User
from projects.permissions import Entity, Permission, Verb
from projects.quotas import GibField, SharesForm, make_amount_field
from projects.scopes import TENANT, cluster_scope, department_scope, project_scope

PREEMPTIBLE, NON_PREEMPTIBLE = "preemptible", "non-preemptible"


class ProjectChangeForm(SharesForm):
    """The fields of a project that `user` may change. `row` is the project; None for a new one."""

    department = forms.CharField(max_length=40)
    cpu_limit = make_amount_field("CPU limit", "Cores that it may hold at most.", 3, "0.001")
    memory_limit = make_amount_field(
        "Memory limit (GiB)", "Memory that it may hold at most.", None, "0.01", GibField
    )
    node_pools = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Those that its workloads may use. None chosen: all of the cluster's.",
    )
    default_preemptibility = forms.ChoiceField(
        label="Preemptibility of a workload that says nothing",
        required=False,
        choices=[(PREEMPTIBLE, "Preemptible"), (NON_PREEMPTIBLE, "Non-preemptible")],
        help_text="Non-preemptible work starts only within the quota, and is not interrupted.",
    )
    field_order: Sequence[str] = (
        *(
            "name",
            "description",
            "department",
            "cluster",
            "namespace",
            "gpu_quota",
            "gpu_limit",
            "over_quota_weight",
        ),
        *(
            "cpu_quota",
            "cpu_limit",
            "memory_quota",
            "memory_limit",
            "node_pools",
            "default_preemptibility",
        ),
    )

    def __init__(self, *args: Any, user: User, row: Project | None = None, **kwargs: Any) -> None:
        super().__init__(*args, row=row, **kwargs)
        self.user = user
        self._offer_departments()
        self._offer_pools()

    def _offer_pools(self) -> None:
        rows = list_node_pools(self.clusters)
        pools, field = list(rows[: MAX_OPTIONS + 1]), self.fields["node_pools"]
        if len(pools) > MAX_OPTIONS:
            self.fields["node_pools"] = TypedPoolsField(
                rows, help_text=f"{field.help_text} There are too many to list: type the names."
            )
            return
        several = len({pool.cluster_id for pool in pools}) > 1
        field.choices = [  # type: ignore[attr-defined]
            (str(pool.pk), f"{pool.name} ({pool.cluster.name})" if several else pool.name)
            for pool in pools
        ]
        if not pools:
            field.help_text = "There is none: its workloads may use every node."

    def _offer_departments(self) -> None:
        names = self.department_names
        if self.can_make_departments:
            self.fields["department"].widget = forms.TextInput(
                {"list": "departments", "autocomplete": "off", "maxlength": "40"}
            )
            help_text = (
                "Projects of one department share its quota. A new name makes a new department."
            )
        elif len(self.departments) > MAX_OPTIONS:
            self.fields["department"].widget = SuggestingInput(
                names, placeholder="The department's name", maxlength="40"
            )
            help_text = (
                "Projects of one department share its quota. There are too many to list: type the "
                "name."
            )
        else:
            self.fields["department"].widget = forms.Select(
                choices=[(name, name) for name in names]
            )
            help_text = "Projects of one department share its quota."
        self.fields["department"].help_text = help_text

    @cached_property
    def clusters(self) -> Sequence[Cluster]:
        """The clusters on which the project may be: its own, once it has one."""
        return [self.row.cluster]

    @cached_property
    def can_make_departments(self) -> bool:
        return access.is_permitted(self.user, Verb.CREATE, Entity.DEPARTMENTS, TENANT)

    @cached_property
    def departments(self) -> Sequence[Department]:
        """The first departments in which the user may make projects, and the project's own."""
        return list(list_departments_for_project(self.user, self.row)[: MAX_OPTIONS + 1])

    @property
    def department_names(self) -> Sequence[str]:
        """The names that the field offers or suggests."""
        return list(dict.fromkeys(each.name for each in self.departments))[:MAX_OPTIONS]

    def clean_department(self) -> str:
        return " ".join(str(self.cleaned_data["department"]).replace("\x00", "").split())

    def clean(self) -> dict[str, Any]:
        cleaned_data = super().clean()
        if name := cleaned_data.get("department"):
            self._check_department(name, cleaned_data)
        cluster = self._find_cluster(cleaned_data)
        pools, unknown = find_node_pools(self.clusters, cluster, cleaned_data.get("node_pools", ()))
        cleaned_data["node_pools"] = [str(pool.pk) for pool in pools]
        foreign_pools = [
            *(pool.name for pool in pools if cluster is not None and pool.cluster_id != cluster.pk),
            *(text[:40] for text in unknown),
        ]
        if foreign_pools and cluster is not None:
            self.add_error(
                "node_pools",
                (
                    f"{join_first(foreign_pools)}: not a node pool of the cluster {cluster.name}. "
                    "Choose among that one's."
                ),
            )
        return cleaned_data

    def _check_department(self, name: str, cleaned_data: Mapping[str, Any]) -> None:
        department = list_departments_for_project(self.user, self.row).filter(name=name).first()
        if (
            department is None
            and self._may_create_department(cleaned_data)
            and not Department.objects.there().filter(name=name).exists()
        ):
            return
        # A department that the user may not see gets the text of one that does not exist.
        if department is None or not self._may_use_department(department, cleaned_data):
            text = f"There is no department {name} in which you may make projects."
            names = ", ".join(self.department_names[:5])
            where = (
                f"You may in {names}."
                if names
                else access.describe_refusal(self.user, CREATE_PROJECTS, TENANT)
            )
            self.add_error("department", f"{text} {where}")
            return
        if self.row is not None and not self._may_move(self.row, department):
            self.add_error("department", _describe_takeover(self.row, department))
            return
        for field, wrong in quotas.find_laxer_limits(cleaned_data, department):
            self.add_error(field, wrong)

    def _may_use_department(self, department: Department, cleaned_data: Mapping[str, Any]) -> bool:
        if self.row is not None and self.row.department_id == department.pk:
            return True
        cluster = self._find_cluster(cleaned_data)
        above = [department_scope(department), *([cluster_scope(cluster.pk)] if cluster else [])]
        return any(self.user.rights.may(CREATE_PROJECTS, scope) for scope in above)

    def _may_move(self, project: Project, department: Department) -> bool:
        """Return whether the user may take a project to a department, and gains nothing by it.

        Who may do more there would else do it in the project, to all that runs in it
        (docs/access.md).
        """
        if project.department_id == department.pk:
            return True
        rights = self.user.rights
        above = (department_scope(project.department), cluster_scope(project.cluster_id))
        may_take = any(rights.may(DELETE_PROJECTS, scope) for scope in above)
        gained = rights.permissions_in(department_scope(department))
        return may_take and gained <= rights.permissions_in(project_scope(project))

    def _may_create_department(self, cleaned_data: Mapping[str, Any]) -> bool:
        """Return whether the project may be in a new department. Only its cluster is above
        it then.
        """
        cluster = self._find_cluster(cleaned_data)
        return self.can_make_departments and (
            cluster is None or self.user.rights.may(CREATE_PROJECTS, cluster_scope(cluster.pk))
        )

    def _find_cluster(self, cleaned_data: Mapping[str, Any]) -> Cluster | None:
        return self.row.cluster if self.row is not None else cleaned_data.get("cluster")

    @staticmethod
    def values(project: Project) -> dict[str, Any]:
        """Return the form's values of a project."""
        return quotas.initial_values(project) | {
            "department": project.department.name,
            "node_pools": [
                str(pk) for pk in project.node_pools.order_by("name").values_list("pk", flat=True)
            ],
            "default_preemptibility": PREEMPTIBLE
            if project.default_preemptible
            else NON_PREEMPTIBLE,
        }

    def save(self, edited_version: int | None = None) -> Project:
        """Save the project as the form says. Raises Clash, ChangedMeanwhile and Http404.

        `edited_version` is the version that the user started from. Clash: the name or the namespace
        is in use.
        """
        assert self.row is not None
        with transaction.atomic():
            rows = (
                Project.objects.there()
                .select_related("department", "cluster")
                .select_for_update(of=("self",))
            )
            row: Project = get_object_or_404(rows, pk=self.row.pk)
            edit_conflicts.check_version(row.version, edited_version, f"Project {row.name}")
            values_before, old_department = describe_for_audit(row), row.department
            columns_before = edit_conflicts.get_edited_columns(row)
            self._set_fields(row)
            if row.department != old_department:
                self._require_credentials_kept(row, old_department)
            self._set_pools(row)
            before, after = audit.select_changes(values_before, describe_for_audit(row))
            if not after and edit_conflicts.get_edited_columns(row) == columns_before:
                return row
            row.version += 1
            row.save(update_fields=_CHANGED_COLUMNS)
            scope = project_scope(row)
            audit.record(
                audit.Event.UPDATE,
                "project",
                by=self.user,
                id=row.pk,
                name=row.name,
                scope=scope,
                before=before,
                after=after,
            )
        return row

    def _require_credentials_kept(self, project: Project, old_department: Department) -> None:
        """Raise Clash where the project's pods would lose credentials of their old department."""
        if lost_credentials := seams.SCOPE_ASSETS.get().describe_lost_credentials(
            project, old_department.pk, self.user
        ):
            text = (
                f"{project.name} cannot go to another department: its workloads and data sources "
                f"use credentials of {old_department.name}: {lost_credentials}."
            )
            raise Clash(
                f"{text} Make them everybody's, or take them out of these, first.",
                field="department",
            )

    def _set_fields(self, project: Project) -> None:
        self.fill_row(project)
        project.default_preemptible = self.cleaned_data["default_preemptibility"] != NON_PREEMPTIBLE
        name = self.cleaned_data["department"]
        # Locked, so that it is not deleted before this is committed.
        departments = Department.objects.there().select_for_update(no_key=True)
        department = departments.filter(name=name).first()
        is_new = self.row is None
        if department is not None and not (is_new or self._may_move(project, department)):
            # It went to another department since the form was checked.
            raise NotAllowed(_describe_takeover(project, department))
        if department is None:
            access.require(self.user, Verb.CREATE, Entity.DEPARTMENTS)
            try:
                # A savepoint: PostgreSQL refuses all further queries of a transaction after an
                # error.
                with transaction.atomic():
                    department = Department.objects.create(name=name)
            except IntegrityError:
                raise Clash(
                    f"Somebody else made a department {name} a moment ago. Save again to put the "
                    "project there, or choose another name.",
                    field="department",
                ) from None
            audit_values = {"name": name}
            audit.record(
                audit.Event.CREATE,
                "department",
                by=self.user,
                id=department.pk,
                name=name,
                scope=department_scope(department),
                after=audit_values,
            )
        project.department = department

    def _set_pools(self, project: Project) -> None:
        """Set the node pools. Raises Clash where one was deleted since the form was checked."""
        keys = list(map(int, self.cleaned_data["node_pools"]))
        # Locked, so that none is deleted before this is committed.
        pools = NodePool.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk")
        if len(pools.values_list("pk", flat=True)) < len(keys):
            raise Clash(
                "One of the node pools was deleted a moment ago. Choose among those that are left.",
                field="node_pools",
            )
        project.node_pools.set(keys)


def _describe_takeover(project: Project, department: Department) -> str:
    return (
        f"You cannot move {project.name} to {department.name}: you may not delete projects in "
        f"{project.department.name}, or may do more in {department.name} than in {project.name}. "
        "Ask a system administrator to move it."
    )


_CHANGED_COLUMNS = [
    *(
        "description",
        "department",
        "gpu_quota",
        "gpu_limit",
        "over_quota_weight",
        "cpu_quota",
        "cpu_limit",
        "memory_quota",
        "memory_limit",
    ),
    *("time_limit_seconds", "idle_limit_seconds", "default_preemptible", "version"),
]


class ProjectForm(ProjectChangeForm):
    """The form of a new project. Its Queue follows from its name, and so does its namespace unless
    one is named; they are fixed.
    """

    name = forms.CharField(
        max_length=40,
        validators=[NAME_VALIDATOR],
        widget=forms.TextInput({"autocomplete": "off", "autocapitalize": "none"}),
        help_text="Lower-case letters, digits and dashes; at most 40 characters.",
    )
    cluster = forms.ModelChoiceField(Cluster.objects.none(), empty_label=None)
    namespace = forms.CharField(
        label="Existing namespace",
        required=False,
        max_length=63,
        widget=forms.TextInput({"autocomplete": "off", "autocapitalize": "none"}),
        help_text=NAMESPACE_HELP,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["gpu_quota"].initial = self.fields["over_quota_weight"].initial = 1
        self.fields[("cluster")].queryset = list_clusters_for_new_project(self.user)  # type: ignore[attr-defined]

    @cached_property
    def clusters(self) -> Sequence[Cluster]:
        return list(list_clusters_for_new_project(self.user))

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if Project.objects.there().filter(name=name).exists():
            raise forms.ValidationError(
                "There is a project of this name already. Choose another name."
            )
        if name.startswith(DEPARTMENT_QUEUE_PREFIX):
            raise forms.ValidationError(
                f"Names that begin with {DEPARTMENT_QUEUE_PREFIX} are those of departments' "
                "Queues. Choose another name."
            )
        if build_namespace_name(name) in connections.own_namespaces():
            raise forms.ValidationError(
                f"The namespace {build_namespace_name(name)} would be its own, and Muster runs "
                "there. Choose another name."
            )
        return name

    def clean_namespace(self) -> str:
        name: str = self.cleaned_data["namespace"].strip()
        if name and not is_dns_label(name):
            raise forms.ValidationError(
                "A namespace has lower-case letters, digits and dashes, and no dash at either end."
            )
        if name.startswith("kube-"):
            raise forms.ValidationError(
                "The namespaces that begin with kube- are the cluster's own. Choose another one."
            )
        if name in connections.own_namespaces():
            raise forms.ValidationError(
                f"The namespace {name} is Muster's own: its keys are there. Choose another one, "
                "or leave it empty."
            )
        return name

    def clean(self) -> dict[str, Any]:
        cleaned_data = super().clean()
        cluster = cleaned_data.get("cluster")
        if (
            cleaned_data.get("namespace")
            and cluster is not None
            and not access.is_permitted(
                self.user, Verb.EDIT, Entity.CLUSTERS, cluster_scope(cluster.pk)
            )
        ):
            refusal = access.describe_refusal(
                self.user, Permission(Entity.CLUSTERS, Verb.EDIT), cluster_scope(cluster.pk)
            )
            reason = (
                "Who has a project in a namespace reads the Secrets that are in it, so to name one "
                "takes the permission to edit clusters."
            )
            self.add_error(
                "namespace",
                f"{reason} {refusal} Or leave it empty: Muster then makes one for the project.",
            )
        return cleaned_data

    def save(self, edited_version: int | None = None) -> Project:
        name, namespace = self.cleaned_data["name"], self.cleaned_data["namespace"]
        project = Project(
            name=name,
            queue=name,
            namespace=namespace or build_namespace_name(name),
            is_namespace_adopted=bool(namespace),
            cluster=self.cleaned_data["cluster"],
        )
        try:
            with transaction.atomic():
                # The lock fences `actions.remove`, which disables the cluster before it deletes
                # the projects that it finds there.
                if (
                    not Cluster.objects.in_use()
                    .select_for_update()
                    .filter(pk=project.cluster_id)
                    .exists()
                ):
                    raise Clash(
                        "The cluster was removed or disabled meanwhile. Choose another one.",
                        field="cluster",
                    )
                self._set_fields(project)
                project.save(force_insert=True)
                self._set_pools(project)
                scope, after = (
                    project_scope(project),
                    describe_for_audit(project)
                    | {"cluster": project.cluster.name, "namespace": project.namespace},
                )
                audit.record(
                    audit.Event.CREATE,
                    "project",
                    by=self.user,
                    id=project.pk,
                    name=name,
                    scope=scope,
                    after=after,
                )
        except IntegrityError:
            raise build_clash(project) from None
        return project


def describe_for_audit(project: Project) -> dict[str, Any]:
    """Return the values of a project that the audit log records."""
    pools = list(project.node_pools.order_by("name").values_list("name", flat=True))
    return (
        {"name": project.name}
        | ProjectChangeForm.values(project)
        | quotas.exact_values(project)
        | {"node_pools": pools}
    )
