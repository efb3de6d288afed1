"""References to the assets that a workload is made from, and their rows.

They need none of the assets' kinds and forms, so that what follows clusters does not load these.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from workloads.models import UsedAsset, Workload

MASTER = "master"


@dataclass(frozen=True, slots=True)
class AssetReference:
    """One version of an asset that a workload is made from.

    `part` is MASTER where only the master has it.
    """

    kind: str
    asset: uuid.UUID
    name: str
    version: int
    part: str = ""


def build_used_asset_rows(assets: Iterable[AssetReference], workload: Workload) -> list[UsedAsset]:
    """Build the rows that record the assets, each asset once.

    An asset that all pods have is not recorded for the master again.
    """
    references: dict[tuple[str, uuid.UUID], AssetReference] = {}
    for each in assets:
        earlier = references.get((each.kind, each.asset))
        if earlier is None or earlier.part:
            references[each.kind, each.asset] = each
    return [
        UsedAsset(
            workload=workload,
            kind=each.kind,
            asset=each.asset,
            name=each.name,
            version=each.version,
            part=each.part,
        )
        for each in references.values()
    ]
