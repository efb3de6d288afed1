"""The assets that a template names, as rows.

So an asset knows its templates without any of them being read.
"""

import json
import re
import uuid

from environments.models import ComputeResource, Credential, DataSource, Environment, Link, Template

LINKED_MODELS = (Environment, ComputeResource, DataSource, Credential)
MAX_LINKS = 200
"""Links of one template."""
_ID = re.compile(r'"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"')


def update_links(template: Template) -> None:
    """Make the template's links match its form; in the transaction that writes the template."""
    named = _find_named_assets(template)
    linked = set(Link.objects.filter(template=template).values_list("asset", flat=True))
    Link.objects.filter(template=template, asset__in=linked - named).delete()
    # Another writer of the template may add the same links at once.
    Link.objects.bulk_create(
        (Link(template=template, asset=key) for key in named - linked), ignore_conflicts=True
    )


def _find_named_assets(template: Template) -> set[uuid.UUID]:
    """Return the ids in its form that are an asset's, in whichever field."""
    ids = {
        uuid.UUID(text)
        for text in list(dict.fromkeys(_ID.findall(json.dumps(template.form))))[:MAX_LINKS]
    }
    return (
        {
            key
            for model in LINKED_MODELS
            for key in model.objects.filter(pk__in=ids).values_list("pk", flat=True)
        }
        if ids
        else set()
    )
