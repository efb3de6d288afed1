"""How pages find the asset of an address."""

import uuid

from django.http import Http404

from environments import actions
from environments.kinds import AssetKind
from environments.models import Asset
from projects.http import Request


def get_asset(request: Request, kind: AssetKind, key: uuid.UUID) -> Asset:
    """Return the asset of an address.

    Raises Http404 for one that the person may not see, as for one that does not exist.
    """
    asset = actions.find_asset(kind.model, key, request.user)
    if asset is None:
        raise Http404(f"There is no such {kind.noun} among those that you may see.")
    return asset
