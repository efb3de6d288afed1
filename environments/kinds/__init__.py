"""The kinds of assets."""

from environments.kinds.asset_kind import AssetKind
from environments.kinds.compute import COMPUTE
from environments.kinds.credentials import CREDENTIAL
from environments.kinds.data_sources import DATA_SOURCE
from environments.kinds.environments import ENVIRONMENT
from environments.kinds.policies import POLICY
from environments.kinds.templates import TEMPLATE
from environments.models import Asset

KINDS: tuple[AssetKind, ...] = (ENVIRONMENT, COMPUTE, DATA_SOURCE, CREDENTIAL, TEMPLATE, POLICY)
BY_KEY = {kind.key: kind for kind in KINDS}
_BY_MODEL = {kind.model: kind for kind in KINDS}

__all__ = [
    "BY_KEY",
    "COMPUTE",
    "CREDENTIAL",
    "DATA_SOURCE",
    "ENVIRONMENT",
    "KINDS",
    "POLICY",
    "TEMPLATE",
    "AssetKind",
    "get_kind",
]


def get_kind(asset: Asset | type[Asset]) -> AssetKind:
    """Return the kind of an asset, or of its model."""
    return _BY_MODEL[asset if isinstance(asset, type) else type(asset)]
