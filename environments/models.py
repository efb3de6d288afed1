"""Assets, which workloads are made of, and policies, which restrict their values.

A workload copies an asset's values; a change of the asset changes no workload.
"""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from clusters.job_kinds import ADAPTERS
from console.encryption import EncryptedTextField
from projects.permissions import Entity
from projects.querysets import ScopedQuerySet
from projects.scopes import Scoped, make_name_constraints, make_one_scope_constraint

FRAMEWORKS = {each.name: each.label for each in ADAPTERS.values()}
"""The distributed frameworks: the word an environment stores, and the name a page shows."""


class Asset(Scoped):
    """A named thing that workloads are made of, in its scope and everything below."""

    entity: ClassVar[Entity]

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=63)
    description = models.CharField(max_length=250, blank=True)
    is_built_in = models.BooleanField(default=False, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    updated_at = models.DateTimeField(auto_now=True)
    version = models.PositiveIntegerField(default=1, editable=False)
    """Raised by every change; a workload says which one it was made from."""

    objects = ScopedQuerySet.as_manager()

    class Meta:
        abstract = True
        ordering = ["name"]
        indexes = [models.Index(fields=["name", "id"], name="%(class)s_in_name_order")]
        constraints = [make_one_scope_constraint(), *make_name_constraints()]

    def __str__(self) -> str:
        return self.name


class Environment(Asset):
    """An image and what it runs.

    Command and arguments are single texts, split as a shell does; empty means the image's own.
    """

    entity = Entity.ENVIRONMENTS

    class PullPolicy(models.TextChoices):
        ALWAYS = "Always"
        IF_NOT_PRESENT = "IfNotPresent", "If not present"
        NEVER = "Never"

    image = models.CharField(max_length=512)
    pull_policy = models.CharField(max_length=16, choices=PullPolicy, blank=True)
    command = models.TextField(blank=True)
    args = models.TextField(blank=True)
    variables = models.JSONField(default=list, blank=True)
    """[{"name": ..., "value": ...}]"""
    working_dir = models.CharField(max_length=512, blank=True)
    architecture = models.CharField(max_length=16, default="Distributed")
    """An environment serves one architecture, and one framework of Distributed."""
    framework = models.CharField(max_length=16, blank=True)

    @property
    def serves(self) -> str:
        """The workloads that it is for, in words."""
        if self.architecture != "Distributed":
            return self.architecture
        return (
            f"{self.architecture}, "
            f"{FRAMEWORKS.get(self.framework, self.framework) or 'any framework'}"
        )


class ComputeResource(Asset):
    """The resources of each pod. Quantities are Kubernetes ones; an empty one is left out."""

    entity = Entity.COMPUTE

    gpu_devices = models.PositiveIntegerField(default=0)
    gpu_portion = models.DecimalField(max_digits=4, decimal_places=3, null=True, blank=True)
    gpu_memory = models.CharField(max_length=32, blank=True)
    cpu_request = models.CharField(max_length=32, blank=True, default="0.1")
    cpu_limit = models.CharField(max_length=32, blank=True)
    memory_request = models.CharField(max_length=32, blank=True, default="100M")
    memory_limit = models.CharField(max_length=32, blank=True)
    large_shm = models.BooleanField(default=False)


class DataSource(Asset):
    """Data that pods read. `origin` has the fields of its kind; a credential is named by its id."""

    entity = Entity.DATA_SOURCES

    class Kind(models.TextChoices):
        GIT = "git", "Git"
        PVC = "pvc", "PVC"
        NFS = "nfs", "NFS"
        S3 = "s3", "S3"
        HOST_PATH = "host-path", "Host path"
        CONFIG_MAP = "config-map", "ConfigMap"
        SECRET = "secret", "Secret"

    kind = models.CharField(max_length=16, choices=Kind)
    origin = models.JSONField(default=dict)
    path = models.CharField(max_length=512)
    """Where the data is in the container."""
    access = models.CharField(max_length=16, default="read-only")
    """A value of `workloads.specs.VolumeAccess`."""
    credential = models.ForeignKey(
        "environments.Credential",
        models.RESTRICT,
        null=True,
        blank=True,
        related_name="data_sources",
    )


class Credential(Asset):
    """A login. `public` can be shown; `secret`, a JSON text, is given to the cluster only."""

    entity = Entity.CREDENTIALS

    class Kind(models.TextChoices):
        REGISTRY = "registry", "Docker registry"
        ACCESS_KEY = "access-key", "Access key"
        PASSWORD = "password", "User and password"
        SSH_KEY = "ssh-key", "SSH key"
        GENERIC = "generic", "Generic secret"

    kind = models.CharField(max_length=16, choices=Kind)
    public = models.JSONField(default=dict)
    secret = EncryptedTextField()
    secret_at = models.DateTimeField(default=timezone.now, editable=False)
    """When its secret was written last."""


class Template(Asset):
    """A workload as it was typed into the wizard.

    `locked` names the fields that stay as they are; `form` is {step: typed values}.
    """

    entity = Entity.TEMPLATES

    architecture = models.CharField(max_length=16, default="Distributed")
    framework = models.CharField(max_length=16, blank=True)
    form = models.JSONField(default=dict)
    locked = models.JSONField(default=list)


class Link(models.Model):
    """An asset that a template names.

    `environments.template_links` derives them from its `form`.
    """

    template = models.ForeignKey(Template, models.CASCADE, related_name="links")
    asset = models.UUIDField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["template", "asset"], name="link_once")]
        indexes = [models.Index(fields=["asset"], name="link_by_asset")]

    def __str__(self) -> str:
        return f"{self.asset} of {self.template_id}"


class Policy(Asset):
    """Rules for the fields of workloads in a scope.

    `rules` is {field: {default, required, min, max, step, options, locked}}.
    """

    entity = Entity.POLICIES

    architecture = models.CharField(
        max_length=16,
        blank=True,
        choices=[("", "All workloads"), ("Distributed", "Distributed"), ("Standard", "Standard")],
    )
    """Which workloads it is for; empty is all of them."""
    rules = models.JSONField(default=dict)
