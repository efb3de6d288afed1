"""Which projects have other Secrets in their cluster than their credentials ask for.

The Secrets of a project may have many MiB: a digest stands for the data of each, and few projects'
credentials are decrypted at a time.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from clusters import project_manifests, project_provisioning, seams
from clusters.kube.client import Client
from clusters.kube.resources import SECRETS, SERVICEACCOUNTS
from clusters.labelled_objects import fetch_summaries
from clusters.ownership import (
    CREDENTIAL_LABEL,
    INSTALLATION_LABEL,
    MANAGED_BY,
    PROJECT_LABEL,
    REGISTRY_LABEL,
    Owner,
    get_labels,
    has_wanted_fields,
)
from clusters.project_manifests import WantedSecret
from projects.models import Project

Object = dict[str, Any]

PROJECTS_AT_ONCE = 25
"""Projects whose credentials are in memory together: at most 4 MiB of each, and what they share."""
COMPARED_LABELS = (MANAGED_BY, PROJECT_LABEL, INSTALLATION_LABEL, CREDENTIAL_LABEL, REGISTRY_LABEL)


@dataclass(frozen=True, slots=True)
class SecretSummary:
    """What is compared of a Secret: its labels that are ours, and a digest of its type and data."""

    labels: Mapping[str, str]
    digest: bytes


def find_wrong_secrets(client: Client, projects: Iterable[Project], installation: str) -> set[int]:
    """Return the ids of the projects whose Secrets, or whose pods' service account, are not as
    their credentials ask for; none where either may not be listed.
    """
    secrets = fetch_summaries(client, SECRETS, PROJECT_LABEL, _summarize_credential_secret)
    accounts = fetch_summaries(
        client,
        SERVICEACCOUNTS,
        PROJECT_LABEL,
        lambda account: account,
        f"metadata.name={project_manifests.SERVICE_ACCOUNT}",
    )
    if secrets is None or accounts is None:
        return set()
    by_namespace: dict[str, dict[str, SecretSummary]] = defaultdict(dict)
    for (namespace, name), secret in secrets.items():
        by_namespace[namespace][name] = secret
    wrong = set()
    for project, credentials in _iterate_credentials(projects):
        owner = project_provisioning.build_project_owner(project, installation)
        pull_names = [each.name for each in credentials if each.is_pull]
        account = accounts.get((project.namespace, project_manifests.SERVICE_ACCOUNT))
        wanted_account = project_manifests.build_service_account(
            owner, account, pull_names[: project_provisioning.MAX_PULL_SECRETS]
        )
        existing = by_namespace[project.namespace]
        if wanted_account is not None or not _are_current(existing, owner, credentials):
            wrong.add(project.pk)
    return wrong


def _iterate_credentials(
    projects: Iterable[Project],
) -> Iterator[tuple[Project, Sequence[WantedSecret]]]:
    """Yield each project with its Secrets. One query for every PROJECTS_AT_ONCE."""
    rest = iter(projects)
    while batch := list(islice(rest, PROJECTS_AT_ONCE)):
        credentials = seams.PROJECT_SECRETS.get().build_wanted_secrets(batch)
        for project in batch:
            yield project, credentials[project.pk]


def _are_current(
    secrets: Mapping[str, SecretSummary], owner: Owner, credentials: Sequence[WantedSecret]
) -> bool:
    # What cannot be read stays as it is there.
    unreadable = {each.name for each in credentials if each.problem}
    existing = {
        name: secret
        for name, secret in secrets.items()
        if name not in unreadable and owner.owns({"metadata": {"labels": secret.labels}})
    }
    wanted = {
        each.name: _summarize_secret(project_manifests.build_secret(owner, each).body)
        for each in credentials
        if not each.problem
    }
    return existing.keys() == wanted.keys() and all(
        has_wanted_fields(existing[name].labels, each.labels)
        and existing[name].digest == each.digest
        for name, each in wanted.items()
    )


def _summarize_credential_secret(secret: Object) -> SecretSummary | None:
    """Return the summary of the Secret of a credential, None for other Secrets."""
    is_one = project_provisioning.is_credential_secret(secret)
    return _summarize_secret(secret) if is_one else None


def _summarize_secret(secret: Object) -> SecretSummary:
    labels = get_labels(secret)
    content = json.dumps([secret.get("type"), secret.get("data")], sort_keys=True)
    return SecretSummary(
        {name: labels[name] for name in COMPARED_LABELS if name in labels},
        hashlib.sha256(content.encode()).digest(),
    )
