"""Scopes: the tenant, a cluster, a department or a project, with everything below.

A project is below its department and its cluster; both are below the tenant.
"""

import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, Self

from django.db import models

from console.texts import parse_number


class KeyedRow(Protocol):
    """A row of any model; the models import this module, so it cannot name them."""

    @property
    def pk(self) -> Any: ...


class Level(StrEnum):
    """The kind of a scope."""

    TENANT = "tenant"
    CLUSTER = "cluster"
    DEPARTMENT = "department"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class Scope:
    """A level and the id there; the tenant has none."""

    level: Level
    id: int | uuid.UUID | None = None

    def __str__(self) -> str:
        return str(self.level) if self.id is None else f"{self.level}:{self.id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse "tenant" or "level:id", as forms and the REST API send it. Raises ValueError."""
        name, _, key = text.partition(":")
        level = Level(name)
        if level is Level.TENANT:
            if key:
                raise ValueError(text)
            return cls(level)
        if level is Level.CLUSTER:
            return cls(level, uuid.UUID(key))
        number = parse_number(key)
        if number is None:
            raise ValueError(text)
        return cls(level, number)

    @classmethod
    def from_columns(
        cls, *, cluster: uuid.UUID | None, department: int | None, project: int | None
    ) -> Self:
        """Return the scope of the columns of a `Scoped` row."""
        if project is not None:
            return cls(Level.PROJECT, project)
        if department is not None:
            return cls(Level.DEPARTMENT, department)
        return cls(Level.TENANT) if cluster is None else cls(Level.CLUSTER, cluster)

    @property
    def columns(self) -> dict[str, Any]:
        """Return the scope as the columns of a `Scoped` row."""
        columns: dict[str, Any] = {"cluster_id": None, "department_id": None, "project_id": None}
        return columns if self.level is Level.TENANT else columns | {f"{self.level}_id": self.id}


TENANT = Scope(Level.TENANT)


def project_scope(project: KeyedRow | int) -> Scope:
    """Return the scope of a project, given as the row or its id."""
    return Scope(Level.PROJECT, project if isinstance(project, int) else project.pk)


def department_scope(department: KeyedRow | int) -> Scope:
    return Scope(Level.DEPARTMENT, department if isinstance(department, int) else department.pk)


def cluster_scope(cluster: uuid.UUID) -> Scope:
    return Scope(Level.CLUSTER, cluster)


class Scoped(models.Model):
    """A row that belongs to one scope. At most one column is set; none is the tenant."""

    cluster = models.ForeignKey(
        "clusters.Cluster", models.CASCADE, null=True, blank=True, related_name="+"
    )
    department = models.ForeignKey(
        "projects.Department", models.CASCADE, null=True, blank=True, related_name="+"
    )
    project = models.ForeignKey(
        "projects.Project", models.CASCADE, null=True, blank=True, related_name="+"
    )

    class Meta:
        abstract = True

    @property
    def scope(self) -> Scope:
        return Scope.from_columns(
            cluster=self.cluster_id, department=self.department_id, project=self.project_id
        )

    @property
    def scope_words(self) -> str:
        """Return the scope's name for a page; the related row must be loaded."""
        if self.project is not None:
            return f"Project {self.project.name}"
        if self.department is not None:
            return f"Department {self.department.name}"
        return "Everybody" if self.cluster is None else f"Cluster {self.cluster.name}"


def make_one_scope_constraint() -> models.CheckConstraint:
    """Return the constraint that at most one of the three columns is set."""
    pairs = (("cluster", "department"), ("cluster", "project"), ("department", "project"))
    condition = models.Q()
    for first, second in pairs:
        condition &= models.Q((f"{first}__isnull", True)) | models.Q((f"{second}__isnull", True))
    return models.CheckConstraint(condition=condition, name="%(class)s_of_one_scope")


def make_name_constraints() -> list[models.BaseConstraint]:
    """Return the constraints that a name is unique in each scope."""
    constraints: list[models.BaseConstraint] = [
        models.UniqueConstraint(fields=[level, "name"], name=f"%(class)s_name_once_a_{level}")
        for level in ("project", "department", "cluster")
    ]
    is_tenant = models.Q(cluster=None, department=None, project=None)
    return [
        *constraints,
        models.UniqueConstraint(
            fields=["name"], condition=is_tenant, name="%(class)s_name_once_for_all"
        ),
    ]
