"""Which assets a workload was made from, and which workloads use an asset."""

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.urls import reverse

from environments import kinds
from environments.cluster_secrets import list_registry_credentials
from environments.credentials import is_login_for, secret_name
from environments.kinds import BY_KEY, AssetKind
from environments.models import Asset, Credential
from projects.models import Project, User
from workloads.asset_references import MASTER, AssetReference
from workloads.models import UsedAsset, Workload
from workloads.specs import S3, Git, Setup, Spec, VariableSource
from workloads.specs import Secret as SecretVolume

TEMPLATE = "template"
_SECRET_NAME = re.compile(
    rf"muster-({'|'.join(map(re.escape, Credential.Kind.values))})-[0-9a-f]{{12}}"
)


def build_asset_reference(asset: Asset, part: str = "") -> AssetReference:
    """Return a reference to the asset's current version."""
    return AssetReference(kinds.get_kind(asset).key, asset.pk, asset.name, asset.version, part)


def is_secret_name(name: str) -> bool:
    """Return whether a Secret of this name belongs to one of our credentials."""
    return _SECRET_NAME.fullmatch(name) is not None


def load_named_credentials(spec: Spec, project: Project) -> Sequence[AssetReference]:
    """Return the credentials whose Secrets a workload names, whoever wrote them there.

    One query; none where the workload names no such Secret.
    """
    workers = set(filter(is_secret_name, list_secret_names(spec.setup)))
    master = (
        set(filter(is_secret_name, list_secret_names(spec.master_setup)))
        if spec.has_master
        else set()
    )
    if not workers | master:
        return ()
    rows = Credential.objects.within(project).defer("secret").order_by("name", "pk")
    credentials = [(each, secret_name(each)) for each in rows]
    return [
        build_asset_reference(each, "" if name in workers else MASTER)
        for each, name in credentials
        if name in workers | master
    ]


def load_registry_credentials(spec: Spec, project: Project) -> Sequence[AssetReference]:
    """Return the credentials with which pods log in to their image's registry.

    No spec names these; they apply by the registry's address. One query.
    """
    workers = spec.setup.environment.image_reference
    master = spec.master_setup.environment.image_reference if spec.has_master else workers
    references = []
    for each in list_registry_credentials(project):
        server = each.public.get("server", "")
        if is_login_for(server, workers) or is_login_for(server, master):
            references.append(
                build_asset_reference(each, "" if is_login_for(server, workers) else MASTER)
            )
    return references


def list_secret_names(setup: Setup) -> Iterator[str]:
    """Yield the names of the Secrets that pods of this setup need."""
    yield from setup.environment.pull_secrets
    yield from (
        each.object_name
        for each in setup.environment.variables
        if each.source is VariableSource.SECRET
    )
    for volume in setup.volumes:
        if isinstance(volume, SecretVolume):
            yield volume.name
        elif isinstance(volume, Git | S3):
            yield volume.secret


def count_workloads(ids: Iterable[uuid.UUID], user: User | None = None) -> Mapping[uuid.UUID, int]:
    """Count the workloads that were made from each asset, by the asset's id.

    Counts those that are not deleted and, with a user, those that the user sees. One query.
    """
    return dict(
        UsedAsset.objects.filter(
            Exists(_filter_unreleased(user).filter(pk=OuterRef("workload"))), asset__in=list(ids)
        )
        .order_by()
        .values_list("asset")
        .annotate(number=Count("workload", distinct=True))
    )


def list_workloads_using(asset_id: uuid.UUID, user: User | None) -> QuerySet[Workload]:
    """Return the workloads that were made from an asset, newest first.

    Only those that are not deleted and, with a user, those that the user sees.
    """
    workload_ids = UsedAsset.objects.filter(asset=asset_id).values("workload")
    workloads: QuerySet[Workload] = (
        _filter_unreleased(user)
        .filter(pk__in=workload_ids)
        .select_related("project")
        .order_by("-created_at", "-id")
    )
    return workloads


def filter_used_in(project: Project, ids: QuerySet[Any]) -> QuerySet[Any]:
    """Return those of the assets that workloads of a project were made from.

    `ids` is a query for the assets' ids, and so is the result. Deleted workloads do not count.
    """
    rows = UsedAsset.objects.filter(
        workload__project=project, workload__released_at=None, asset__in=ids
    )
    return rows.order_by().values("asset")


def _filter_unreleased(user: User | None) -> QuerySet[Workload]:
    rows: QuerySet[Workload] = Workload.objects.filter(released_at=None)
    return rows if user is None else Workload.objects.visible_to(user).filter(released_at=None)


@dataclass(frozen=True, slots=True)
class UsedAssetSummary:
    """An asset that a workload was made from, as a page shows it.

    `url` is "" where the asset is gone or the reader may not see it.
    """

    noun: str
    name: str
    version: int
    part: str
    has_changed: bool
    url: str


def list_used_assets(workload: Workload, user: User) -> Sequence[UsedAssetSummary]:
    """Return what a workload was made from, and whether each has changed since.

    One query for the workload and one for each kind of asset.
    """
    rows = list(workload.assets.all())
    summaries: list[UsedAssetSummary] = []
    for key, kind in BY_KEY.items():
        kind_rows = sorted((row for row in rows if row.kind == key), key=lambda row: row.name)
        ids = [row.asset for row in kind_rows]
        versions = (
            dict(
                kind.model.objects.visible_to(user).filter(pk__in=ids).values_list("pk", "version")
            )
            if kind_rows
            else {}
        )
        summaries += [
            _summarize_used_asset(row, kind, versions.get(row.asset)) for row in kind_rows
        ]
    return summaries


def _summarize_used_asset(row: UsedAsset, kind: AssetKind, version: int | None) -> UsedAssetSummary:
    noun = f"{kind.noun[:1].upper()}{kind.noun[1:]}"
    url = reverse(kind.url, args=[row.asset]) if version is not None else ""
    return UsedAssetSummary(
        noun, row.name, row.version, row.part, version not in (None, row.version), url
    )
