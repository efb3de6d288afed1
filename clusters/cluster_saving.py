"""Saves a cluster from a valid form, for its page and for the REST API."""

import uuid

from django.db import transaction

from clusters import actions
from clusters.cluster_forms import ClusterChangeForm
from clusters.models import Cluster
from console import edit_conflicts
from console.errors import Clash
from projects.models import User


def save_cluster(
    pk: uuid.UUID,
    form: ClusterChangeForm,
    user: User,
    edited_version: int,
    *,
    is_enabled: bool | None = None,
) -> Cluster:
    """Change a cluster as a valid form says: all of it, or nothing.

    `edited_version` is the version that the user started from; `is_enabled` of None leaves whether
    it is used. The caller checks the permission to edit it. Raises ChangedMeanwhile, NotAllowed,
    and UserError for what cannot be used, or a cluster that was removed.
    """
    with transaction.atomic():
        rows = Cluster.objects.there().defer("kubeconfig").select_for_update(no_key=True)
        cluster: Cluster | None = rows.filter(pk=pk).first()
        if cluster is None:
            raise Clash(
                "The cluster was removed by somebody else meanwhile. To use it again, add it."
            )
        edit_conflicts.check_version(
            cluster.edit_version, edited_version, f"Cluster {cluster.name}"
        )
        if form.cleaned_data["name"] != cluster.name:
            actions.rename(cluster, form.cleaned_data["name"], user=user)
        if not form.keeps_credentials:
            way, kubeconfig = form.credentials
            actions.reconnect(cluster, kubeconfig, way=way, user=user)
        url = form.cleaned_data["prometheus_url"]
        if url or cluster.prometheus_url:
            actions.set_prometheus(cluster, url, form.sign_in, matcher=form.matcher, user=user)
        if is_enabled is not None and is_enabled != cluster.is_enabled:
            (actions.enable if is_enabled else actions.disable)(cluster, user=user)
    return cluster
