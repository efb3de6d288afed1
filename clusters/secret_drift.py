"""Which projects have other Secrets in their cluster than their credentials ask for."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from clusters import project_manifests, project_provisioning, seams
from clusters.kube.client import Client
from clusters.kube.resources import SECRETS, SERVICEACCOUNTS
from clusters.labelled_objects import fetch_summaries
from clusters.ownership import PROJECT_LABEL, Owner
from clusters.project_manifests import WantedSecret
from clusters.secret_summaries import (
    SecretSummary,
    summarize_credential_secret,
    summarize_secret,
)
from projects.models import Project

PROJECTS_AT_ONCE = 25
"""Projects whose credentials are in memory together: at most 4 MiB of each, and what they share."""


def find_wrong_secrets(client: Client, projects: Iterable[Project], installation: str) -> set[int]:
    """Return the ids of the projects whose Secrets are not as their credentials ask for.

    The service account that names those for images counts, too. Returns none where Secrets or
    service accounts may not be listed.
    """
    secrets = fetch_summaries(client, SECRETS, PROJECT_LABEL, summarize_credential_secret)
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
    digests: dict[str, bytes] = {}
    for project, credentials in _iterate_credentials(projects):
        owner = project_provisioning.build_project_owner(project, installation)
        pull_names = [each.name for each in credentials if each.is_pull]
        account = accounts.get((project.namespace, project_manifests.SERVICE_ACCOUNT))
        wanted_account = project_manifests.build_service_account(
            owner, account, pull_names[: project_provisioning.MAX_PULL_SECRETS]
        )
        existing = by_namespace[project.namespace]
        if wanted_account is not None or not _are_current(existing, owner, credentials, digests):
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
    secrets: Mapping[str, SecretSummary],
    owner: Owner,
    credentials: Sequence[WantedSecret],
    digests: dict[str, bytes],
) -> bool:
    """Return whether a project's Secrets are as its credentials ask for.

    `digests` are those of the data, by credential; what is missing there is added.
    """
    # What cannot be read stays as it is there.
    unreadable = {each.name for each in credentials if each.problem}
    existing = {
        name: secret
        for name, secret in secrets.items()
        if name not in unreadable and owner.owns(secret.reference)
    }
    wanted = {
        each.name: _summarize_wanted(owner, each, digests)
        for each in credentials
        if not each.problem
    }
    return existing.keys() == wanted.keys() and all(
        existing[name].matches(each) for name, each in wanted.items()
    )


def _summarize_wanted(
    owner: Owner, wanted: WantedSecret, digests: dict[str, bytes]
) -> SecretSummary:
    """Reduce the Secret of a credential as it should be to what is compared of it."""
    if wanted.credential not in digests:
        secret = project_manifests.build_secret(owner, wanted)
        digests[wanted.credential] = summarize_secret(secret.body).digest
    # Of another project's only the labels differ: up to 4 MiB of secrets belong to all of a tenant.
    without_data = project_manifests.build_secret(owner, replace(wanted, data={}))
    return replace(summarize_secret(without_data.body), digest=digests[wanted.credential])
