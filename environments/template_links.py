"""The assets that a template names, as rows.

So an asset knows its templates without any of them being read.
"""

import json
import re
import uuid

from environments.models import ComputeResource, Credential, DataSource, Environment, Link, Template
from projects.models import User

LINKED_MODELS = (Environment, ComputeResource, DataSource, Credential)
MAX_LINKS = 200
"""Links of one template."""
_ID = re.compile(r'"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"')


def update_links(template: Template, by: User | None = None) -> None:
    """Make the template's links match its form; in the transaction that writes the template.

    Links are added to assets that its writer sees, to any for None: a link keeps an asset from
    being deleted, so nobody makes one to what is others' alone.
    """
    ids = _parse_ids(template)
    linked = set(Link.objects.filter(template=template).values_list("asset", flat=True))
    Link.objects.filter(template=template, asset__in=linked - ids).delete()
    # Another writer of the template may add the same links at once.
    Link.objects.bulk_create(
        (Link(template=template, asset=key) for key in _find_assets(ids - linked, by)),
        ignore_conflicts=True,
    )


def _parse_ids(template: Template) -> set[uuid.UUID]:
    """Return what may be ids of assets in its form, in whichever field."""
    texts = list(dict.fromkeys(_ID.findall(json.dumps(template.form))))[:MAX_LINKS]
    return {uuid.UUID(text) for text in texts}


def _find_assets(ids: set[uuid.UUID], by: User | None) -> set[uuid.UUID]:
    """Return the ids that are those of assets that the user sees; of any for None."""
    if not ids:
        return set()
    rows = [
        model.objects.all() if by is None else model.objects.visible_to(by)
        for model in LINKED_MODELS
    ]
    return {key for each in rows for key in each.filter(pk__in=ids).values_list("pk", flat=True)}
