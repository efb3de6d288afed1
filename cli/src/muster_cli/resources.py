"""The table of resources: an entry for each noun, which one implementation serves.

A new noun is an entry here: its routes, its columns, and what can be done with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from muster_cli.routes import Route


class Verb(StrEnum):
    """What can be done with a resource."""

    LIST = "list"
    GET = "get"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


ALL_VERBS = frozenset(Verb)
READ_VERBS = frozenset({Verb.LIST, Verb.GET})


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading, and where its value is in an item.

    `is_wide` columns are shown by `-o wide` only.
    """

    title: str
    path: str
    is_wide: bool = False
    is_moment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A noun: where REST has it, how its items read, and what can be done with them."""

    noun: str
    title: str
    help: str
    path: str
    items: str
    """The name of the list in an answer; "" where the answer is an array."""
    columns: tuple[Column, ...]
    verbs: frozenset[Verb] = ALL_VERBS
    id: str = "id"
    name: str = "name"
    argument: str = "id"
    """What REST's path calls the id."""
    update_method: str = "PATCH"
    kinds: Mapping[str, str] = field(default_factory=dict)
    """The path below `path` of each kind, where kinds have addresses of their own."""
    kept: tuple[str, ...] = ()
    """What PUT must say again where it is not changed."""
    is_scoped: bool = False
    """Whether it belongs to a scope, which its `meta` names."""
    is_searchable: bool = True
    filters: tuple[str, ...] = ()
    """Query parameters of the list that are options of their own."""

    @property
    def is_grouped(self) -> bool:
        """Tell whether the values of an item are below `meta` and `spec`."""
        return self.name.startswith("meta.")

    def get_id(self, item: Mapping[str, Any]) -> str:
        """Return the id of an item."""
        return str(get_value(item, self.id))

    def find_kind(self, item: Mapping[str, Any]) -> str:
        """Return the kind of an item of a list; "" where there is but one."""
        return str(get_value(item, "meta.kind") or "") if self.kinds else ""

    def get_route(self, verb: Verb, kind: str = "") -> Route:
        """Return the route of a verb."""
        path = f"/api/v1/{self.path}" + (f"/{self.kinds[kind]}" if kind else "")
        one = f"{path}/{{id}}"
        match verb:
            case Verb.LIST:
                return Route("GET", path)
            case Verb.GET:
                return Route("GET", one)
            case Verb.CREATE:
                return Route("POST", path)
            case Verb.UPDATE:
                return Route(self.update_method, one)
            case Verb.DELETE:
                return Route("DELETE", one)

    def list_routes(self) -> list[Route]:
        """Return every route that its commands use, `{id}` standing for any argument."""
        kinds = ["", *self.kinds] if self.kinds else [""]
        return [
            self.get_route(verb, kind)
            for kind in kinds
            for verb in self.verbs
            if kind or not self.kinds or verb is Verb.LIST
        ]


def get_value(item: Any, path: str) -> Any:
    """Return what is at a dotted path of an item; None where there is nothing."""
    for name in path.split("."):
        if not isinstance(item, Mapping):
            return None
        item = item.get(name)
    return item


_AGE = Column("AGE", "meta.createdAt", is_moment=True)
_SCOPE = (
    Column("SCOPE", "meta.scope"),
    Column("PROJECT", "meta.projectName"),
)
_META = (Column("ID", "meta.id", is_wide=True), Column("BY", "meta.createdBy", is_wide=True), _AGE)


def _build_asset(noun: str, title: str, help_text: str, path: str, **more: Any) -> Resource:
    """Build the entry of an asset: all of them are alike in REST."""
    columns = (Column("NAME", "meta.name"), *more.pop("columns", ()), *_SCOPE, *_META)
    return Resource(
        noun=noun,
        title=title,
        help=help_text,
        path=path,
        items="entries",
        id="meta.id",
        name="meta.name",
        columns=columns,
        is_scoped=True,
        filters=("projectId", "scope"),
        **more,
    )


RESOURCES: Mapping[str, Resource] = {
    each.noun: each
    for each in (
        _build_asset(
            "environment",
            "environment",
            "Environments: an image with its command and variables.",
            "asset/environment",
            columns=(Column("IMAGE", "spec.image"),),
        ),
        _build_asset(
            "compute",
            "compute resource",
            "Compute resources: GPUs, cores and memory of a pod.",
            "asset/compute",
            columns=(
                Column("GPUS", "spec.gpuDevicesRequest"),
                Column("PORTION", "spec.gpuPortionRequest"),
                Column("CPU", "spec.cpuCoreRequest"),
                Column("MEMORY", "spec.cpuMemoryRequest"),
            ),
        ),
        _build_asset(
            "datasource",
            "data source",
            "Data sources: what is mounted into pods.",
            "asset/datasource",
            columns=(Column("KIND", "meta.kind"), Column("PATH", "spec.path", is_wide=True)),
            kinds={
                "git": "git",
                "pvc": "pvc",
                "nfs": "nfs",
                "s3": "s3",
                "host-path": "host-path",
                "config-map": "config-map",
                "secret": "secrets",
            },
        ),
        _build_asset(
            "credential",
            "credential",
            "Credentials: secrets that are written and never read back.",
            "asset/credentials",
            columns=(Column("KIND", "meta.kind"),),
            kinds={
                "registry": "docker-registry",
                "access-key": "access-key",
                "password": "password",
                "ssh-key": "ssh-key",
                "generic": "generic-secret",
            },
        ),
        _build_asset(
            "template",
            "template",
            "Templates of workloads.",
            "workload-templates",
            columns=(
                Column("TYPE", "architecture"),
                Column("FRAMEWORK", "distributedFramework"),
            ),
        ),
        _build_asset(
            "policy",
            "policy",
            "Policies: what workloads of a scope may say.",
            "asset/policies",
            columns=(Column("WORKLOADS", "spec.workloadType"),),
        ),
        Resource(
            noun="department",
            title="department",
            help="Departments and their quotas.",
            path="org-unit/departments",
            items="departments",
            columns=(
                Column("NAME", "name"),
                Column("GPU QUOTA", "totalResources.gpuQuota"),
                Column("GPUS HELD", "status.quotaStatus.allocated.gpu"),
                Column("ID", "id", is_wide=True),
                Column("AGE", "createdAt", is_moment=True),
            ),
        ),
        Resource(
            noun="project",
            title="project",
            help="Projects, their quotas, and the one that commands are about.",
            path="org-unit/projects",
            items="projects",
            columns=(
                Column("NAME", "name"),
                Column("DEPARTMENT", "departmentName"),
                Column("GPU QUOTA", "totalResources.gpuQuota"),
                Column("GPUS HELD", "status.quotaStatus.allocated.gpu"),
                Column("STATUS", "status.phase"),
                Column("NAMESPACE", "namespace", is_wide=True),
                Column("CLUSTER ID", "clusterId", is_wide=True),
                Column("ID", "id", is_wide=True),
                Column("AGE", "createdAt", is_moment=True),
            ),
        ),
        Resource(
            noun="user",
            title="user",
            help="People who can sign in.",
            path="users",
            items="",
            name="username",
            columns=(
                Column("NAME", "username"),
                Column("EMAIL", "email"),
                Column("ACTIVE", "isActive"),
                Column("ID", "id", is_wide=True),
                Column("LAST SIGN-IN", "lastLogin", is_moment=True),
            ),
            verbs=ALL_VERBS - {Verb.DELETE},
        ),
        Resource(
            noun="access-rule",
            title="access rule",
            help="Access rules: who has which role where.",
            path="authorization/access-rules",
            items="accessRules",
            name="id",
            columns=(
                Column("ID", "id"),
                Column("SUBJECT", "subjectId"),
                Column("KIND", "subjectType"),
                Column("ROLE", "roleName"),
                Column("SCOPE", "scopeType"),
                Column("OF", "scopeName"),
                Column("BY", "createdBy", is_wide=True),
                Column("AGE", "createdAt", is_moment=True),
            ),
            is_searchable=False,
            filters=("subjectType", "roleId", "scopeType", "scopeId"),
        ),
        Resource(
            noun="role",
            title="role",
            help="Roles, and custom ones.",
            path="authorization/roles",
            items="",
            argument="key",
            columns=(
                Column("KEY", "key"),
                Column("NAME", "name"),
                Column("DESCRIPTION", "description"),
                Column("ID", "id", is_wide=True),
            ),
            update_method="PUT",
            kept=("name", "description", "permissions"),
            is_searchable=False,
        ),
        Resource(
            noun="service-account",
            title="service account",
            help="Service accounts: how programs sign in.",
            path="service-accounts",
            items="serviceAccounts",
            columns=(
                Column("NAME", "name"),
                Column("CLIENT ID", "clientId"),
                Column("SCOPE", "scopeType"),
                Column("OF", "scopeName"),
                Column("ENABLED", "enabled"),
                Column("EXPIRES", "expiresAt"),
                Column("ID", "id", is_wide=True),
                Column("AGE", "createdAt", is_moment=True),
            ),
        ),
        Resource(
            noun="access-key",
            title="access key",
            help="Your own access keys.",
            path="access-keys",
            items="accessKeys",
            columns=(
                Column("NAME", "name"),
                Column("CLIENT ID", "clientId"),
                Column("EXPIRES", "expiresAt"),
                Column("LAST USED", "lastLogin", is_moment=True),
                Column("ID", "id", is_wide=True),
            ),
            verbs=ALL_VERBS - {Verb.UPDATE},
            is_searchable=False,
        ),
        Resource(
            noun="cluster",
            title="cluster",
            help="Clusters, and whether they answer.",
            path="clusters",
            items="",
            id="uuid",
            columns=(
                Column("NAME", "name"),
                Column("STATUS", "status.state"),
                Column("VERSION", "version"),
                Column("ADDRESS", "domain", is_wide=True),
                Column("ID", "uuid", is_wide=True),
                Column("SEEN", "lastLiveness", is_moment=True),
            ),
            is_searchable=False,
        ),
        Resource(
            noun="node",
            title="node",
            help="Nodes, and what is free on them.",
            path="nodes",
            items="nodes",
            id="name",
            columns=(
                Column("NAME", "name"),
                Column("STATUS", "status"),
                Column("CLUSTER", "clusterName"),
                Column("POOL", "nodePool"),
                Column("GPU TYPE", "gpuInfo.gpuType"),
                Column("GPUS", "gpuInfo.gpuCount"),
                Column("FREE", "gpuInfo.free"),
                Column("WHY", "statusReason", is_wide=True),
            ),
            verbs=frozenset({Verb.LIST}),
        ),
        Resource(
            noun="node-pool",
            title="node pool",
            help="Node pools: nodes by a label.",
            path="node-pools",
            items="nodepools",
            columns=(
                Column("NAME", "name"),
                Column("CLUSTER", "clusterName"),
                Column("LABEL", "labelKey"),
                Column("VALUE", "labelValue"),
                Column("NODES", "nodes"),
                Column("GPUS", "gpus"),
                Column("ID", "id", is_wide=True),
            ),
        ),
        Resource(
            noun="audit",
            title="entry of the audit log",
            help="The audit log: who did what.",
            path="audit/log",
            items="audit_logs",
            name="id",
            columns=(
                Column("WHEN", "timestamp"),
                Column("WHO", "subject"),
                Column("EVENT", "event"),
                Column("KIND", "entity_type"),
                Column("NAME", "entity_name"),
                Column("STATUS", "status"),
                Column("FROM", "source_ip", is_wide=True),
                Column("REQUEST", "request_id", is_wide=True),
            ),
            verbs=frozenset({Verb.LIST}),
            filters=("start", "end"),
        ),
    )
}
"""Every noun, by its word on the command line."""
