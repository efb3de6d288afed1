"""Node pools: their forms and their actions, shared by the pages and the REST API."""

from decimal import Decimal
from typing import Any

from django import forms
from django.db import IntegrityError, transaction
from django.shortcuts import get_object_or_404

from clusters import label_syntax, seams
from clusters.models import Cluster, NodePool
from clusters.project_names import NAME_VALIDATOR
from console import edit_conflicts
from console.errors import Clash
from console.texts import join_first
from projects import access, audit
from projects.models import User
from projects.permissions import Entity, Permission, Verb
from projects.scopes import cluster_scope

DEFAULT_POOL = "default"
"""The name by which clients mean all nodes: no pool may have it."""
_MOST_WATTS = 100_000
_PLAIN_INPUT = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


class NodePoolForm(forms.Form):
    """The fields of a node pool that can be changed. `row` is the pool; None for a new one."""

    description = forms.CharField(
        required=False, max_length=250, widget=forms.TextInput({"autocomplete": "off"})
    )
    label_key = forms.CharField(
        max_length=316,
        widget=forms.TextInput(_PLAIN_INPUT),
        help_text="The key of a label of nodes, as nvidia.com/gpu.product or example.com/pool.",
    )
    label_value = forms.CharField(
        required=False,
        max_length=63,
        widget=forms.TextInput(_PLAIN_INPUT),
        help_text=(
            "The nodes whose label has this value are in the pool. What is placed already stays "
            "where it is."
        ),
    )
    gpu_hour_price = forms.DecimalField(
        label="Price of a GPU-hour",
        required=False,
        min_value=Decimal(0),
        max_digits=12,
        decimal_places=4,
        widget=forms.NumberInput({"step": "any", "min": "0"}),
        help_text="For the page GPU hours. Without it no money is shown.",
    )
    currency = forms.CharField(
        required=False,
        max_length=12,
        widget=forms.TextInput(_PLAIN_INPUT),
        help_text="What the price is in, as EUR or credits.",
    )
    gpu_watts = forms.IntegerField(
        label="Power of a GPU in watts",
        required=False,
        min_value=1,
        max_value=_MOST_WATTS,
        error_messages={"max_value": f"It must be at most {_MOST_WATTS:,}."},
        help_text="Counts where no power is measured. Without it no energy is shown then.",
    )

    def __init__(self, *args: Any, row: NodePool | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.row = row

    def clean_description(self) -> str:
        return str(self.cleaned_data["description"]).replace("\x00", "").strip()

    def clean_label_key(self) -> str:
        key: str = self.cleaned_data["label_key"].strip()
        if wrong := label_syntax.describe_key_problem(key):
            raise forms.ValidationError(wrong)
        return key

    def clean_label_value(self) -> str:
        value: str = self.cleaned_data["label_value"].strip()
        if wrong := label_syntax.describe_value_problem(value):
            raise forms.ValidationError(wrong)
        return value

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).replace("\x00", "").strip()

    def clean(self) -> dict[str, Any]:
        cleaned_data = super().clean() or {}
        self._check_price(cleaned_data)
        cluster = self.row.cluster if self.row else cleaned_data.get("cluster")
        if cluster is not None and not self.errors:
            same = NodePool.objects.filter(
                cluster=cluster,
                label_key=cleaned_data["label_key"],
                label_value=cleaned_data["label_value"],
            )
            if other := same.exclude(pk=self.row.pk if self.row else None).first():
                self.add_error(
                    "label_value",
                    (
                        f"The node pool {other.name} has this label already: it is the same "
                        "nodes. Use that one."
                    ),
                )
        return cleaned_data

    def _check_price(self, cleaned_data: dict[str, Any]) -> None:
        """Add an error where a price has no currency, or a currency no price."""
        if self.errors.keys() & {"gpu_hour_price", "currency"}:
            return
        has_price = cleaned_data.get("gpu_hour_price") is not None
        if has_price and not cleaned_data.get("currency"):
            self.add_error("currency", "Say what the price is in, as EUR.")
        elif cleaned_data.get("currency") and not has_price:
            self.add_error("gpu_hour_price", "Give a price, or take the currency away.")

    @staticmethod
    def values(pool: NodePool) -> dict[str, Any]:
        """Return the form's values of a pool."""
        return {
            "description": pool.description,
            "label_key": pool.label_key,
            "label_value": pool.label_value,
            "gpu_hour_price": pool.gpu_hour_price,
            "currency": pool.currency,
            "gpu_watts": pool.gpu_watts,
        }


class NewNodePoolForm(NodePoolForm):
    """The form of a new node pool, on a cluster where `user` may make one. Its name is fixed:
    workloads name it.
    """

    name = forms.CharField(
        max_length=40,
        validators=[NAME_VALIDATOR],
        widget=forms.TextInput(_PLAIN_INPUT),
        help_text="Lower-case letters, digits and dashes. It stays.",
    )
    cluster = forms.ModelChoiceField(Cluster.objects.none(), empty_label=None)
    field_order = ("name", "description", "cluster", *list(NodePoolForm.base_fields)[1:])

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields[("cluster")].queryset = list_clusters_for_new_pools(user)  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name == DEFAULT_POOL:
            raise forms.ValidationError(
                f"{DEFAULT_POOL} means all nodes, which need no pool. Choose another name."
            )
        return name


def list_clusters_for_new_pools(user: User) -> Any:
    """Return the clusters on which a user may make node pools."""
    where = user.rights.permitted_scopes(Permission(Entity.NODE_POOLS, Verb.CREATE))
    clusters = Cluster.objects.there().defer("kubeconfig")
    return clusters if where.tenant else clusters.filter(pk__in=where.clusters)


def create(form: NewNodePoolForm, user: User) -> NodePool:
    """Create the pool of a valid form. Raises NotAllowed, Http404, and Clash where its name is
    taken, or its cluster was removed.
    """
    cleaned_data = form.cleaned_data
    access.require(user, Verb.CREATE, Entity.NODE_POOLS, cluster_scope(cleaned_data["cluster"].pk))
    pool = NodePool(name=cleaned_data["name"], cluster=cleaned_data["cluster"], created_by=user)
    _set_fields(pool, form)
    try:
        with transaction.atomic():
            clusters = Cluster.objects.there().select_for_update(no_key=True)
            if not clusters.filter(pk=pool.cluster_id).exists():
                raise Clash(
                    "The cluster was removed meanwhile. Choose another one.", field="cluster"
                )
            pool.save(force_insert=True)
            _record(audit.Event.CREATE, pool, user, None, describe_for_audit(pool))
    except IntegrityError:
        raise Clash(
            (
                f"The cluster {pool.cluster.name} has a node pool {pool.name} already. Choose "
                "another name."
            ),
            field="name",
        ) from None
    return pool


def change(
    pool: NodePool, form: NodePoolForm, user: User, edited_version: int | None = None
) -> NodePool:
    """Change the pool as a valid form says. Raises NotAllowed, Http404 and ChangedMeanwhile.

    `edited_version` is the version that the user started from.
    """
    access.require(user, Verb.EDIT, Entity.NODE_POOLS, cluster_scope(pool.cluster_id))
    with transaction.atomic():
        row: NodePool = get_object_or_404(NodePool.objects.select_for_update(), pk=pool.pk)
        edit_conflicts.check_version(row.version, edited_version, f"Node pool {row.name}")
        before, columns_before = describe_for_audit(row), edit_conflicts.get_edited_columns(row)
        _set_fields(row, form)
        if edit_conflicts.get_edited_columns(row) == columns_before:
            return row
        row.version += 1
        row.save()
        _record(
            audit.Event.UPDATE, row, user, *audit.select_changes(before, describe_for_audit(row))
        )
    return row


def delete(pool: NodePool, user: User) -> None:
    """Delete a pool; its nodes stay as they are. Raises NotAllowed, Http404, and Clash while a
    project or workload names it.
    """
    access.require(user, Verb.DELETE, Entity.NODE_POOLS, cluster_scope(pool.cluster_id))
    with transaction.atomic():
        row = get_object_or_404(NodePool.objects.select_for_update(), pk=pool.pk)
        if hindrance := describe_hindrance(row, user):
            raise Clash(hindrance)
        _record(audit.Event.DELETE, row, user, describe_for_audit(row), None)
        row.delete()


def describe_hindrance(pool: NodePool, user: User) -> str:
    """Return why a pool cannot be deleted now, as far as the user may know; "" where it can."""
    projects = list(
        pool.projects.filter(deleted_at=None).order_by("name").values_list("name", flat=True)[:100]
    )
    users = seams.NODE_POOL_USERS.get().list_pool_users(pool.cluster_id, pool.name)
    hindrances = []
    if projects:
        hindrances.append(f"Projects allow it: {join_first(projects)}. Take it out of them first.")
    if users:
        may_view = access.is_permitted(
            user, Verb.VIEW, Entity.WORKLOADS, cluster_scope(pool.cluster_id)
        )
        named = join_first(users) if may_view else len(users)
        hindrances.append(f"Workloads ask for it: {named}. Stop or delete them first.")
    return f"Node pool {pool.name} is in use. {' '.join(hindrances)}" if hindrances else ""


def describe_for_audit(pool: NodePool) -> dict[str, Any]:
    """Return the values of a pool that the audit log records."""
    values = {"name": pool.name} | NodePoolForm.values(pool)
    # JSON has no decimals: as text the price stays exact.
    price = values["gpu_hour_price"]
    return values | {"gpu_hour_price": None if price is None else f"{price.normalize():f}"}


def _set_fields(pool: NodePool, form: NodePoolForm) -> None:
    for name in NodePoolForm.base_fields:
        setattr(pool, name, form.cleaned_data[name])


def _record(event: audit.Event, pool: NodePool, user: User, before: Any, after: Any) -> None:
    audit.record(
        event,
        "node-pool",
        by=user,
        id=pool.pk,
        name=pool.name,
        scope=cluster_scope(pool.cluster_id),
        before=before,
        after=after,
    )
