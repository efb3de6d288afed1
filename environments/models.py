"""Assets: environments (what runs) and compute resources (what it gets). A workload copies their values; a change changes no workload."""

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone

from projects.querysets import InProjectOrAll


class Asset(models.Model):
    """A named thing that workloads are made of, in the scope of one project, or of everybody where `project` is null."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=63)
    description = models.CharField(max_length=250, blank=True)
    project = models.ForeignKey("projects.Project", models.CASCADE, null=True, blank=True, related_name="+")
    is_built_in = models.BooleanField(default=False, editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = InProjectOrAll.as_manager()

    class Meta:
        abstract = True
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="%(class)s_name_once_a_project"),
            models.UniqueConstraint(fields=["name"], condition=models.Q(project=None), name="%(class)s_name_once_for_all"),
        ]

    def __str__(self) -> str:
        return self.name


class Environment(Asset):
    """What runs. Command and arguments are single texts, split as a shell does; empty means the image's own."""

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
    """An environment serves one architecture, and of Distributed one framework."""
    framework = models.CharField(max_length=16, blank=True)


class ComputeResource(Asset):
    """What each pod gets. Quantities are Kubernetes ones; an empty one is left out."""

    gpu_devices = models.PositiveIntegerField(default=0)
    gpu_portion = models.DecimalField(max_digits=4, decimal_places=3, null=True, blank=True)
    gpu_memory = models.CharField(max_length=32, blank=True)
    cpu_request = models.CharField(max_length=32, blank=True, default="0.1")
    cpu_limit = models.CharField(max_length=32, blank=True)
    memory_request = models.CharField(max_length=32, blank=True, default="100M")
    memory_limit = models.CharField(max_length=32, blank=True)
    large_shm = models.BooleanField(default=False)
