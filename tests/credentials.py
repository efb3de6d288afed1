"""Credentials as an administrator would have made them."""

import json

from environments.credentials import parse_registry_address
from environments.models import Credential
from projects.models import Project


def a_registry(
    project: Project | None,
    name: str = "corp",
    *,
    address: str = "example.com",
    username: str = "u",
    password: str = "p",
    **scope: object,
) -> Credential:
    """The credential of an image registry, of a project, or of the scope that is given."""
    return Credential.objects.create(
        name=name,
        project=project,
        kind=Credential.Kind.REGISTRY,
        public={"server": parse_registry_address(address), "username": username},
        secret=json.dumps({"password": password}),
        **scope,
    )
