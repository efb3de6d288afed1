"""The kinds of assets that there are."""

from environments.kinds.compute import COMPUTE
from environments.kinds.credentials import CREDENTIAL
from environments.kinds.data_sources import DATA_SOURCE
from environments.kinds.environments import ENVIRONMENT
from environments.kinds.policies import POLICY
from environments.kinds.recipe import Kind
from environments.kinds.templates import TEMPLATE
from environments.models import Asset

KINDS: tuple[Kind, ...] = (ENVIRONMENT, COMPUTE, DATA_SOURCE, CREDENTIAL, TEMPLATE, POLICY)
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
    "Kind",
    "of",
]


def of(asset: Asset | type[Asset]) -> Kind:
    """The kind of an asset, or of its model."""
    return _BY_MODEL[asset if isinstance(asset, type) else type(asset)]
