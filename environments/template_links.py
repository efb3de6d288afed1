"""The assets that a template names, as rows: so that an asset knows its templates without any of
them being read.
"""

import json
import re
import uuid

from environments.models import ComputeResource, Credential, DataSource, Environment, Link, Template

LINKED_MODELS = (Environment, ComputeResource, DataSource, Credential)
MAX_LINKS = 200
"""Of one template."""
_ID = re.compile(r'"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"')


def update_links(template: Template) -> None:
    """Make the template's links those that its form has now; in the transaction that writes the
    template.
    """
    wanted = _find_named_assets(template)
    there = set(Link.objects.filter(template=template).values_list("asset", flat=True))
    Link.objects.filter(template=template, asset__in=there - wanted).delete()
    Link.objects.bulk_create(
        (Link(template=template, asset=key) for key in wanted - there), ignore_conflicts=True
    )


def _find_named_assets(template: Template) -> set[uuid.UUID]:
    """Whatever is an asset's id in its form: it names one in whichever field."""
    ids = {
        uuid.UUID(found)
        for found in list(dict.fromkeys(_ID.findall(json.dumps(template.form))))[:MAX_LINKS]
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
