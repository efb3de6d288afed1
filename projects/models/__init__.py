"""Departments, projects, people, access and audit. A file for each subject."""

from projects.models.access import AccessRule, CustomRole
from projects.models.audit import AuditEntry, KnownAddress
from projects.models.idempotency import IdempotentRequest
from projects.models.organisation import Department, Installation, Project
from projects.models.people import FailedSignIns, PersonalKey, ServiceAccount, User
from projects.models.request_counts import RequestCount
from projects.models.sign_in_requests import SignInRequest

__all__ = [
    "AccessRule",
    "AuditEntry",
    "CustomRole",
    "Department",
    "FailedSignIns",
    "IdempotentRequest",
    "Installation",
    "KnownAddress",
    "PersonalKey",
    "Project",
    "RequestCount",
    "ServiceAccount",
    "SignInRequest",
    "User",
]
