"""Departments, projects, people, access and audit. A file for each subject."""

from projects.models.access import AccessRule, CustomRole
from projects.models.audit import AuditEntry, KnownAddress
from projects.models.organisation import Department, Installation, Project
from projects.models.people import FailedSignIns, PersonalKey, ServiceAccount, User

__all__ = [
    "AccessRule",
    "AuditEntry",
    "CustomRole",
    "Department",
    "FailedSignIns",
    "Installation",
    "KnownAddress",
    "PersonalKey",
    "Project",
    "ServiceAccount",
    "User",
]
