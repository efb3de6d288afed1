"""The credentials that projects may use, as Secrets of their namespaces."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q, Sum, TextField
from django.db.models.functions import Cast, Length

from clusters.project_manifests import WantedSecret
from console.encryption import Unreadable, annotate_token, decrypt
from environments.credentials import SECRET_TYPES, build_secret_data, secret_name
from environments.models import Credential
from projects.models import Project
from projects.scopes import Level, Scope

MAX_CREDENTIALS_OF_SCOPE = 200
"""Credentials of one scope alone: what a project has keeps nobody from making one for all."""
MAX_BYTES_OF_SCOPE = 4 << 20
"""Bytes of all secrets of one scope, of which one may have 1 MiB. All of a project are in memory
together when they are written, and are compared with its cluster again and again.
"""
MAX_SECRETS = MAX_CREDENTIALS_OF_SCOPE * len(Level)
"""Secrets of one project: its own come first, then its department's, cluster's and tenant's."""
MAX_PULL_SECRETS = 20
"""Registry credentials of one project; every pod names each of them."""


def build_wanted_secrets(projects: Sequence[Project]) -> Mapping[int, Sequence[WantedSecret]]:
    """Build the Secrets of each project, by its id. One query.

    Of a credential that cannot be read the Secret says why.
    """
    rows = Credential.objects.filter(_build_scope_filter(projects)).order_by("name", "pk")
    # Decrypted one by one: one that cannot be read keeps no other from its cluster.
    credentials = list(annotate_token(rows, "secret").defer("secret"))
    secrets = {each.pk: _build_wanted_secret(each) for each in credentials}
    return {
        project.pk: [secrets[each.pk] for each in _select_usable(credentials, project)]
        for project in projects
    }


def count_credentials(scope: Scope) -> int:
    """Return how many credentials a scope has itself. One query."""
    return Credential.objects.filter(**scope.columns).order_by().count()


def measure_secrets(scope: Scope, without: Credential | None = None) -> int:
    """Return how many bytes the secrets of a scope and what is public of them have together, to
    within a hundred each.

    The credential `without` does not count. One query.
    """
    rows = Credential.objects.filter(**scope.columns).order_by()
    if without is not None:
        rows = rows.exclude(pk=without.pk)
    public = Length(Cast("public", TextField()))
    sums = annotate_token(rows, "secret").aggregate(secret=Sum(Length("token")), public=Sum(public))
    # A token is in base64: four characters for three bytes.
    return (sums["secret"] or 0) * 3 // 4 + (sums["public"] or 0)


def list_registry_credentials(project: Project) -> Sequence[Credential]:
    """Return the credentials with which the project's pods log in to image registries.

    Without their secrets. One query.
    """
    credentials = (
        Credential.objects.within(project)
        .filter(kind=Credential.Kind.REGISTRY)
        .defer("secret")
        .order_by("name", "pk")
    )
    return _sort_by_nearness(list(credentials), project)[:MAX_PULL_SECRETS]


def list_pull_secret_names(project: Project) -> tuple[str, ...]:
    """Return the names of the registry credentials' Secrets. One query."""
    return tuple(map(secret_name, list_registry_credentials(project)))


def _build_scope_filter(projects: Sequence[Project]) -> Q:
    return (
        Q(project=None, department=None, cluster=None)
        | Q(project__in=[each.pk for each in projects])
        | Q(department__in={each.department_id for each in projects})
        | Q(cluster__in={each.cluster_id for each in projects})
    )


def _select_usable(credentials: Sequence[Credential], project: Project) -> Sequence[Credential]:
    usable = [
        each
        for each in credentials
        if (each.project_id is None or each.project_id == project.pk)
        and (each.department_id is None or each.department_id == project.department_id)
        and (each.cluster_id is None or each.cluster_id == project.cluster_id)
    ]
    return _sort_by_nearness(usable, project)[:MAX_SECRETS]


def _sort_by_nearness(credentials: Sequence[Credential], project: Project) -> list[Credential]:
    """Sort by scope: the project's first, the tenant's last; by name within each."""
    return sorted(
        credentials,
        key=lambda each: (
            each.project_id is None,
            each.department_id is None,
            each.cluster_id is None,
        ),
    )


def _build_wanted_secret(credential: Any) -> WantedSecret:
    """Build the Secret of a credential that was loaded with its `token`."""
    data: dict[str, str] = {}
    problem = ""
    try:
        credential.secret = decrypt(credential.token) if credential.token else ""
        data = build_secret_data(credential)
    except Unreadable as error:
        problem = f"The credential {credential.name} cannot be read. {error}"
    except (KeyError, ValueError):
        # What is stored is of a form that this release does not know: said without what it holds.
        problem = f"The credential {credential.name} cannot be read. Enter its secret anew."
    return WantedSecret(
        secret_name(credential),
        str(credential.pk),
        SECRET_TYPES[credential.kind],
        data,
        is_pull=credential.kind == Credential.Kind.REGISTRY,
        problem=problem,
    )
