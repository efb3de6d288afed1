"""The objects of its namespace that a submission names, and whether another project has them."""

from collections.abc import Iterator

from environments.credentials import secret_name
from environments.models import Credential, DataSource
from projects.models import Project
from workloads.asset_uses import list_secret_names
from workloads.specs import Claim, ConfigMap, Setup, Spec, VariableSource

Kind = DataSource.Kind
ObjectName = tuple[Kind, str]
_FIELDS = {Kind.PVC: "claim", Kind.CONFIG_MAP: "configmap"}
"""Where a data source of each kind names the object that it is."""


def has_named_objects(spec: Spec, project: Project) -> bool:
    """Return whether assets give a project the claims, Secrets and ConfigMaps that a spec names.

    Nobody has asked the cluster what else its namespace holds, and a pod without one of them waits
    for ever. Two queries, none where the spec names nothing.
    """
    names = set(_list_object_names(spec.setup))
    if spec.has_master:
        names |= set(_list_object_names(spec.master_setup))
    return not names or names <= set(_load_given_names(project))


def _list_object_names(setup: Setup) -> Iterator[ObjectName]:
    # Repositories and buckets that everybody may read name no Secret.
    yield from ((Kind.SECRET, name) for name in list_secret_names(setup) if name)
    yield from (
        (Kind.CONFIG_MAP, each.object_name)
        for each in setup.environment.variables
        if each.source is VariableSource.CONFIG_MAP
    )
    for volume in setup.volumes:
        if isinstance(volume, Claim):
            yield Kind.PVC, volume.claim
        elif isinstance(volume, ConfigMap):
            yield Kind.CONFIG_MAP, volume.name


def _load_given_names(project: Project) -> Iterator[ObjectName]:
    """Yield the objects that assets for use in a project give its namespace."""
    for credential in Credential.objects.within(project).only("kind").order_by():
        yield Kind.SECRET, secret_name(credential)
    sources = DataSource.objects.within(project).filter(kind__in=_FIELDS).order_by()
    for kind, origin in sources.values_list("kind", "origin"):
        # A claim that is made for each workload has no name.
        yield Kind(kind), str(origin.get(_FIELDS[Kind(kind)], ""))
