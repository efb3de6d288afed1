"""One source: what the server has, the command line knows, and its document says."""

from collections.abc import Iterator
from typing import Any

import click
import pytest

from console import VERSION
from muster_cli import VERSION as CLIENT_VERSION
from muster_cli import routes
from muster_cli.commands.root import root
from muster_cli.fields import load_catalogue
from muster_cli.resources import RESOURCES
from scripts import command_line
from tests.api.described import list_operations
from tests.console.addresses import EVERY  # noqa: F401 - addresses are all imported by this

OTHER_ROUTES = {
    "/api/v1/apps": "An older name of service accounts.",
    "/api/v1/administration/access-keys": "`muster api`: rare, for administrators.",
    "/api/v1/authorization/me": "`muster whoami` says who; the page *Account* has the rules.",
    "/api/v1/authorization/permissions": "What scripts ask by `muster api`.",
    "/api/v1/authorization/permitted-scopes": "The same.",
    "/api/v1/clusters/test": "The page that adds a cluster tries it.",
    "/api/v1/clusters/*/test": "The same.",
    "/api/v1/workload-templates/distributed": "The same templates are below workload-templates.",
    "/api/v1/workload-templates/trainings": "The same.",
    "/api/v2/policy": "An older shape of policies; `muster policy` has them.",
    "/api/v1/users/*/": "`muster api`: the end of somebody's sessions, passwords and keys.",
    "/api/v1/schema": "`muster api GET /schema`.",
    "/api/v1/audit/log/file": "`muster audit list -o csv`; the whole file by `muster api`.",
    "/api/v1/quota-trials": "`muster api`: what comes out is a picture, on the page of trials.",
    "/api/v1/workloads/batch": "A command asks for each workload, and says what each answered.",
}
"""Routes without a command, by how they begin, each with the reason."""
OTHER_ENDS = {
    "/name-availability": "Creating says whether a name is free.",
    "/count": "Lists say whether there is more.",
    "/telemetry": "What `muster project get` and `muster top` show, as series of numbers.",
    "/metrics": "Series for pictures.",
    "/preview": "`muster submit --dry-run` asks for the preflight, which has the same and more.",
    "/alternatives": "`muster forecast --alternatives` once it waits; before, the wizard's review.",
    "/findings": "`muster why` says what is wrong now; what is over is among `muster events`.",
    "/excluded-nodes": "`muster api`: a choice that one makes on the page of what was found.",
    "/progress": "`muster list -o wide` says how far each is; the loss is for pictures.",
    "/resources": "`muster project update --set resources=...` changes the quota.",
    "/data-delivery": "`muster api`: numbers for pictures; `muster describe` says the sentence.",
    "/calibration": "`muster api`: numbers for pictures; `muster forecast` says the record.",
    "/secret": "`muster api`: a secret is rotated where it is kept.",
}
PREFERRED = "PATCH changes what it names; PUT would empty the rest."


def normalize_path(path: str) -> str:
    return "/".join("*" if part[:1] == "{" else part for part in path.split("/"))


def list_known_routes() -> set[tuple[str, str]]:
    known = {*routes.list_routes()}
    for resource in RESOURCES.values():
        known.update(resource.list_routes())
    return {(each.method, normalize_path(each.path)) for each in known}


def is_excepted(method: str, path: str, known: set[tuple[str, str]]) -> bool:
    if method == "PUT" and ("PATCH", path) in known:
        return bool(PREFERRED)
    return path.startswith(tuple(OTHER_ROUTES)) or path.endswith(tuple(OTHER_ENDS))


def test_every_route_has_a_command_or_a_reason() -> None:
    known = list_known_routes()
    offered = {(method, normalize_path(path)) for method, path, _ in list_operations()}
    assert not {each for each in offered - known if not is_excepted(*each, known)}


def test_every_route_of_a_command_is_there() -> None:
    offered = {(method, normalize_path(path)) for method, path, _ in list_operations()}
    assert list_known_routes() <= offered


def test_every_exception_is_still_one() -> None:
    paths = [normalize_path(path) for _, path, _ in list_operations()]
    undescribed = {"/api/v1/schema"}
    starts = [
        start
        for start in OTHER_ROUTES
        if start not in undescribed and not any(path.startswith(start) for path in paths)
    ]
    ends = [end for end in OTHER_ENDS if not any(path.endswith(end) for path in paths)]
    assert not starts + ends


OTHER_FIELDS = {
    "name": "An argument.",
    "projectId": "Found by --project.",
    "clusterId": "That of the project.",
    "templateId": "Found by --template.",
    "useGivenNameAsPrefix": "--name-prefix.",
    "noMaster": "--no-master.",
    "masterSpec": "The flags --master-...",
    "masterSpecSameAsWorker": "So it is where no flag --master-... is given.",
    "spec.distributedFramework": "The name of the command.",
    "spec.compute.gpuRequestType": "Follows from --gpu-portion and --gpu-memory.",
    "spec.compute.gpuPortionLimit": "Can only be the request.",
    "spec.compute.gpuMemoryLimit": "Can only be the request.",
    "spec.security.uidGidSource": "Follows from --run-as-uid.",
}
"""Fields of a submission without a flag of their own, each with the reason."""


def list_leaves(schema: Any, place: str = "") -> Iterator[str]:
    """Each field of a body by its place; lists, and what lies in them, are one field."""
    for name, each in schema["properties"].items():
        below = f"{place}.{name}" if place else name
        if "properties" in each and below not in ("masterSpec", "spec.podAffinity"):
            yield from list_leaves(each, below)
        else:
            yield below


def test_every_field_of_a_submission_has_a_flag_or_a_reason() -> None:
    [schema] = [
        operation["requestBody"]["content"]["application/json"]["schema"]
        for method, path, operation in list_operations()
        if (method, path) == ("POST", "/api/v1/workloads/distributed")
    ]
    catalogue = load_catalogue()
    flagged = {f"spec.{each.place}" for each in catalogue.fields}
    flagged |= {f"spec.{each.place}" for each in catalogue.volumes}
    leaves = set(list_leaves(schema))
    assert leaves - flagged - set(OTHER_FIELDS) == set()
    assert flagged | set(OTHER_FIELDS) <= leaves


def test_what_is_made_of_the_server_is_as_it_would_be_made_now() -> None:
    assert command_line.list_stale() == []
    assert load_catalogue().server_version == VERSION == CLIENT_VERSION


def list_commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[Any]:
    context = click.Context(group, info_name="muster")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from list_commands(command, (*path, name))


COMMANDS = dict(list_commands(root))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    text = command.get_help(click.Context(command, info_name=" ".join(path)))
    assert command.help
    flags = [
        flag
        for each in command.params
        for flag in (*each.opts, *each.secondary_opts)
        if flag.startswith("-")
    ]
    assert len(flags) == len(set(flags))
    for each in command.params:
        if isinstance(each, click.Option) and not each.hidden:
            assert each.help, f"{path} {each.opts}"
    assert "Usage: " in text
