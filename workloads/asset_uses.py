"""Which assets a workload was made from, and which workloads were made from an asset.
`settings.ASSET_USES` names this room.
"""

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
from workloads.models import UsedAsset, Workload
from workloads.specs import S3, Git, Setup, Spec, VariableSource
from workloads.specs import Secret as SecretVolume

MASTER = "master"
TEMPLATE = "template"
_SECRET_NAME = re.compile(
    rf"muster-({'|'.join(map(re.escape, Credential.Kind.values))})-[0-9a-f]{{12}}"
)


@dataclass(frozen=True, slots=True)
class AssetReference:
    """An asset that a workload is made from. `part` is MASTER where only the master has it."""

    kind: str
    asset: uuid.UUID
    name: str
    version: int
    part: str = ""


def build_asset_reference(asset: Asset, part: str = "") -> AssetReference:
    """An asset as it is now."""
    return AssetReference(kinds.get_kind(asset).key, asset.pk, asset.name, asset.version, part)


def is_secret_name(name: str) -> bool:
    """Whether a Secret that is called so is a credential's."""
    return _SECRET_NAME.fullmatch(name) is not None


def load_named_credentials(spec: Spec, project: Project) -> Sequence[AssetReference]:
    """The credentials whose Secrets a workload names, whoever wrote them there. One query, and none
    where it names no such Secret.
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
    named = [(each, secret_name(each)) for each in rows]
    return [
        build_asset_reference(each, "" if name in workers else MASTER)
        for each, name in named
        if name in workers | master
    ]


def load_registry_credentials(spec: Spec, project: Project) -> Sequence[AssetReference]:
    """The credentials with which pods log in to the registry of their image, which nobody names.
    One query.
    """
    workers = spec.setup.environment.image_reference
    master = spec.master_setup.environment.image_reference if spec.has_master else workers
    found = []
    for each in list_registry_credentials(project):
        server = each.public.get("server", "")
        if is_login_for(server, workers) or is_login_for(server, master):
            found.append(
                build_asset_reference(each, "" if is_login_for(server, workers) else MASTER)
            )
    return found


def list_secret_names(setup: Setup) -> Iterator[str]:
    """The names of the Secrets that a kind of pod is to have."""
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


def build_used_asset_rows(assets: Iterable[AssetReference], workload: Workload) -> list[UsedAsset]:
    """The rows that remember them, each asset once: what every pod has is not told of the master
    again.
    """
    told: dict[tuple[str, uuid.UUID], AssetReference] = {}
    for each in assets:
        known = told.get((each.kind, each.asset))
        if known is None or known.part:
            told[each.kind, each.asset] = each
    return [
        UsedAsset(
            workload=workload,
            kind=each.kind,
            asset=each.asset,
            name=each.name,
            version=each.version,
            part=each.part,
        )
        for each in told.values()
    ]


def counts(ids: Iterable[uuid.UUID], user: User | None = None) -> Mapping[uuid.UUID, int]:
    """How many workloads that are not deleted were made from each of these assets; with a user, of
    those that they see. One query.
    """
    return dict(
        UsedAsset.objects.filter(
            Exists(_filter_unreleased(user).filter(pk=OuterRef("workload"))), asset__in=list(ids)
        )
        .order_by()
        .values_list("asset")
        .annotate(number=Count("workload", distinct=True))
    )


def users_of(asset_id: uuid.UUID, user: User | None) -> QuerySet[Workload]:
    """The workloads that were made from an asset, that are not deleted, and, with a user, that they
    see; the newest first.
    """
    made = UsedAsset.objects.filter(asset=asset_id).values("workload")
    found: QuerySet[Workload] = (
        _filter_unreleased(user)
        .filter(pk__in=made)
        .select_related("project")
        .order_by("-created_at", "-id")
    )
    return found


def used_in(project: Project, ids: QuerySet[Any]) -> QuerySet[Any]:
    """Those of these assets, given as a query for their ids, that workloads of a project that are
    not deleted were made from.
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
    """An asset that a workload was made from, for a reader: `url` is "" where it is gone or not
    theirs to see.
    """

    noun: str
    name: str
    version: int
    part: str
    has_changed: bool
    url: str


def list_used_assets(workload: Workload, user: User) -> Sequence[UsedAssetSummary]:
    """What a workload was made from, and whether that has changed since. One query for the workload
    and one for each kind.
    """
    rows = list(workload.assets.all())
    found: list[UsedAssetSummary] = []
    for key, kind in BY_KEY.items():
        mine = sorted((row for row in rows if row.kind == key), key=lambda row: row.name)
        ids = [row.asset for row in mine]
        versions = (
            dict(
                kind.model.objects.visible_to(user).filter(pk__in=ids).values_list("pk", "version")
            )
            if mine
            else {}
        )
        found += [_summarize_used_asset(row, kind, versions.get(row.asset)) for row in mine]
    return found


def _summarize_used_asset(row: UsedAsset, kind: AssetKind, version: int | None) -> UsedAssetSummary:
    noun = f"{kind.noun[:1].upper()}{kind.noun[1:]}"
    url = reverse(kind.url, args=[row.asset]) if version is not None else ""
    return UsedAssetSummary(
        noun, row.name, row.version, row.part, version not in (None, row.version), url
    )
