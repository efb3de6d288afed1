"""The table of resources: an entry for each noun, which one implementation serves.

A new noun is an entry here: its routes, its columns, and what can be done with it.
"""

from collections.abc import Mapping
from typing import Any

from muster_cli.resource_types import ALL_VERBS, Column, Resource, Verb

_CHANGES = (Verb.CREATE, Verb.UPDATE, Verb.DELETE)
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
            plural="policies",
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
            absent={
                Verb.DELETE: (
                    "People stay in the history of what they did.",
                    "`muster user update NAME --set isActive=false` keeps somebody out.",
                ),
            },
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
            absent={
                Verb.UPDATE: (
                    "A key stays as it was made.",
                    "Make another by `muster access-key create`, and delete this one.",
                ),
            },
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
            absent={
                Verb.GET: (
                    "Two clusters may have a node of one name.",
                    "`muster node list --filter name==NAME -o json` shows it.",
                ),
                **dict.fromkeys(_CHANGES, ("Nodes are the cluster's.", "`kubectl` changes them.")),
            },
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
            plural="entries of the audit log",
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
            absent={
                Verb.GET: (
                    "The list has all of each entry.",
                    "`muster audit list --filter request_id==ID -o json` shows what a request did.",
                ),
                **dict.fromkeys(
                    _CHANGES,
                    ("Nobody changes the audit log.", "`muster audit list` shows it."),
                ),
            },
            filters=("start", "end"),
        ),
    )
}
"""Every noun, by its word on the command line."""
