"""The objects of a cluster that have a label, and of each what is compared."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import NotServed, Rejected
from clusters.kube.resources import Resource

T = TypeVar("T")
Object = dict[str, Any]
ObjectKey = tuple[str, str]
"""The namespace ("" for none) and the name of an object."""

log = logging.getLogger(__name__)


def fetch_objects(
    client: Client, resource: Resource, labels: str
) -> dict[ObjectKey, Object] | None:
    """Return all objects with these labels; None where they may not be listed. Raises NotServed."""
    return fetch_summaries(client, resource, labels, lambda each: each)


def fetch_summaries(
    client: Client,
    resource: Resource,
    labels: str,
    summarize: Callable[[Object], T | None],
    fields: str = "",
) -> dict[ObjectKey, T] | None:
    """Return what `summarize` makes of each object with these labels and fields.

    Objects of which it makes None are left out, and one page of objects is in memory at a time.
    Returns None where they may not be listed. Raises NotServed.
    """
    summaries: dict[ObjectKey, T] = {}
    try:
        for page in calls.list_all(client, resource, labels=labels, fields=fields):
            if page.first:
                summaries = {}
            for each in page.items:
                metadata = each.get("metadata") or {}
                summary = summarize(each)
                if summary is not None:
                    key = (metadata.get("namespace", ""), metadata.get("name", ""))
                    summaries[key] = summary
    except NotServed:
        raise
    except Rejected as error:
        log.info("%s cannot be listed: %s", resource.plural, error.message)
        return None
    return summaries
