"""What a person asks of a cell, and the workload that is submitted for it."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from typing import Any

from muster_delivery.notebook.connection import RestConnection
from muster_delivery.notebook.errors import NotebookError
from muster_delivery.notebook.payload import COMMAND, build_arguments

DEFAULT_IMAGE = "muster/delivery"
PRAGMA = "#pragma taas"


@dataclass(frozen=True)
class CellOptions:
    """The options of `%%muster` and `#pragma taas`."""

    gpus: int
    cpus: int
    units: int
    project: str
    image: str
    name: str
    framework: str


class _Parser(argparse.ArgumentParser):
    """Says what is wrong instead of ending the program."""

    def error(self, message: str) -> Any:
        raise NotebookError(f"{message}\n{self.format_usage()}")


def parse_options(line: str) -> CellOptions:
    """Return the options of a line. Raises NotebookError."""
    parser = _Parser(prog="%%muster", add_help=False)
    parser.add_argument("--gpus", type=int, required=True, help="GPUs in all")
    parser.add_argument("--cpus", type=int, default=0, help="data workers, 1 to 8")
    parser.add_argument("--units", type=int, default=0, help="elements prepared before GPUs start")
    parser.add_argument("--project", default="")
    parser.add_argument("--image", default=DEFAULT_IMAGE)
    parser.add_argument("--name", default="")
    parser.add_argument("--framework", default="PyTorch")
    try:
        arguments = parser.parse_args(shlex.split(line))
    except ValueError as error:
        raise NotebookError(f"The options cannot be read: {error}.") from None
    options = CellOptions(**vars(arguments))
    if options.units and not options.cpus:
        raise NotebookError("--units are prepared by data workers: say how many with --cpus.")
    return options


def find_project(connection: RestConnection, name: str) -> dict[str, Any]:
    """Return the project to submit to: that of a name, or the only one. Raises NotebookError."""
    name = name or connection.project
    query = {"limit": "100"}
    if name and not set(name) & set(",=<>!"):
        # There may be more than one answer lists.
        query["filterBy"] = f"name=={name}"
    listed = connection.call("GET", "/org-unit/projects", query=query)["projects"]
    if name and not listed:
        raise NotebookError(f"There is no project {name} among those that you may see.")
    chosen = [each for each in listed if not name or each.get("name") == name]
    if len(chosen) != 1:
        names = ", ".join(str(each.get("name")) for each in listed[:20]) or "none"
        raise NotebookError(f"Choose a project with --project; you have: {names}.")
    return dict(chosen[0])


def build_body(options: CellOptions, code: str, project: dict[str, Any]) -> dict[str, Any]:
    """Return the body of the submission. Raises NotebookError where the code is too large."""
    spec: dict[str, Any] = {
        "distributedFramework": options.framework,
        "image": options.image,
        "command": COMMAND,
        "args": build_arguments(code),
        "totalGpus": options.gpus,
    }
    if options.cpus:
        spec["dataDelivery"] = {"workers": options.cpus, "units": options.units}
    body = {
        "name": options.name or "notebook",
        # Each run of a cell is a workload of its own.
        "useGivenNameAsPrefix": not options.name,
        "projectId": str(project["id"]),
        "clusterId": str(project["clusterId"]),
        "spec": spec,
    }
    if options.framework == "PyTorch":
        # All pods run the same script, and then one machine can be all of them.
        body["noMaster"] = True
    return body
