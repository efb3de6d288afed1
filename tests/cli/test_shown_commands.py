"""The commands that pages show: pasted into a shell they make the same thing."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings

from muster_cli.commands.root import root
from tests.cast import PASSWORD
from tests.cli.log_server import Answer, ScriptedServer, serve_answers
from tests.cli.running import CommandLine, Console
from tests.environments.assets import CREDENTIALS, SECRET
from tests.rest import Program
from tests.workloads.spec_strategies import ANY_SPEC
from tests.workloads.submissions import EVERYTHING, train1
from workloads.rest.reading import parse_submission
from workloads.rest.submit_command import build_submit_command
from workloads.rest.writing import build_rest_body
from workloads.specs import Environment, MasterChanges, Setup, Spec, Variable

LISTED = '{"projects": [{"id": "7", "clusterId": "c-1", "name": "team-a"}]}'
SUBMITTED = '{"name": "a", "workloadId": "w-1"}'
PRINT_WORDS = r"""muster() { printf '%s\0' "$@"; printf '\0'; cat; }
"""
"""A `muster` that says what the shell gave it: its words, and its standard input."""


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    """A server that keeps what is submitted."""
    with serve_answers(
        lambda path, query, token: Answer(200, LISTED if "projects" in path else SUBMITTED)
    ) as running:
        yield running


def read_pasted(command: str) -> tuple[list[str], str]:
    """Return the words and the standard input that a shell makes of a command."""
    done = subprocess.run(
        ["sh", "-c", PRINT_WORDS + command], capture_output=True, input=b"", check=True, timeout=60
    )
    assert not done.stderr, done.stderr
    words, _, document = done.stdout.decode().rpartition("\0\0")
    return words.split("\0"), document


def submit_pasted(server: ScriptedServer, command: str) -> dict[str, object]:
    """Return the body that the command line sends for a command."""
    words, document = read_pasted(command)
    server.bodies.clear()
    done = CliRunner().invoke(
        root,
        words,
        input=document,
        env={"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t", "MUSTER_PROJECT": ""},
    )
    assert done.exit_code == 0, (command, done.output, done.exception)
    (body,) = server.bodies
    return json.loads(body)  # type: ignore[no-any-return]


HOSTILE = (
    "$(touch /tmp/x)",
    "`id`",
    "a'b\"c",
    "a\\",
    "!!",
    "EOF",
    "\nEOF\nid\n",
    "\x1b[2J\x03",
    "\u202e\x9b31m",
    "-f",
    "--",
    "=ls",
    "~",
    "*",
    "",
    " ",
    "secret:a/b",
)


def build_hostile_spec(text: str) -> Spec:
    environment = Environment(
        "a", command=("sh", text), args=(text,), variables=(Variable("A", text),)
    )
    return train1(
        setup=Setup(environment=environment),
        master=MasterChanges(args=("x", text), variables=(Variable("B", text),)),
    )


def add_hostile_examples(test: Callable[..., None]) -> Callable[..., None]:
    for text in HOSTILE:
        test = example(build_hostile_spec(text))(test)
    return test


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(ANY_SPEC)
@example(train1(setup=EVERYTHING))
@add_hostile_examples
def test_any_submission_is_the_command_that_makes_it(server: ScriptedServer, spec: Spec) -> None:
    sent = submit_pasted(server, build_submit_command(spec, "team-a"))
    body = build_rest_body(spec, project_id="7", cluster_id="c-1")
    assert parse_submission(sent, spec.architecture).spec == (
        parse_submission(body, spec.architecture).spec
    )
    assert (sent["projectId"], sent["clusterId"]) == ("7", "c-1")


READ_PAGES = """
import html, json, re
from django.test import Client
from environments.models import Template
from projects.models import Project, User
from projects.scopes import project_scope, TENANT
from tests.environments.assets import ONE_OF_EACH, SAMPLES
alice = User.objects.get(username="alice")
project = Project.objects.get(name="team-a")
client = Client(headers={"host": "127.0.0.1"})
client.force_login(alice)

def read_command(address, mark):
    page = client.get(address)
    assert page.status_code == 200, (address, page.status_code)
    found = re.search(rf'id="{mark}"[^>]*>(.*?)</pre>', page.content.decode(), re.S)
    return html.unescape(found[1])
"""
EACH_SAMPLE = """
shown = {}
for sample in SAMPLES:
    for scope in (project_scope(project), *([TENANT] if sample in ONE_OF_EACH[:2] else [])):
        asset = sample.make(scope, alice, name=f"twin-{sample}-{scope.level}")
        command = read_command(f"/{sample.kind.path}/{asset.pk}", "call-command")
        shown[f"{sample}-{scope.level}"] = [f"{sample.api[7:]}/{asset.pk}", sample.api[7:], command]
template = Template.objects.get(name="twin-template")
shown["template"] = [
    f"/workload-templates/{template.pk}",
    "/workload-templates",
    read_command(f"/templates/{template.pk}", "call-command"),
]
shown["project"] = read_command(f"/projects/{project.pk}", "call-command")
print(json.dumps(shown))
"""
OWN = frozenset({"id", "createdAt", "updatedAt", "createdBy", "updatedBy", "version"})


def paste(who: CommandLine, folder: Path, command: str) -> "subprocess.CompletedProcess[str]":
    """Run what was copied from a page in a shell that knows `muster`."""
    program = folder / "bin" / "muster"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m muster_cli "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        cwd=folder,
        env=who.environment | {"PATH": path},
        stdin=subprocess.DEVNULL,
        timeout=360,
    )


def drop_own(value: Any) -> Any:
    """Return an answer without what each row has of its own."""
    if isinstance(value, dict):
        return {name: drop_own(each) for name, each in value.items() if name not in OWN}
    return [drop_own(each) for each in value] if isinstance(value, list) else value


TEMPLATE = {
    "meta": {"name": "twin-template", "description": "It's one", "scope": "tenant"},
    "spec": {"image": "a", "distributedFramework": "JAX", "numWorkers": 3, "command": "a 'b c'"},
    "locked": ["image"],
}


@pytest.mark.timeout(900)
def test_assets_are_made_again_by_the_commands_of_their_pages(
    alice: CommandLine, console: Console, tmp_path: Path
) -> None:
    alice("template", "create", "-f", "-", stdin=json.dumps(TEMPLATE))
    commands = json.loads(console.web.python(READ_PAGES + EACH_SAMPLE))
    made_project = commands.pop("project")
    assert len(commands) > 12
    rest = Program(console.web.url, PASSWORD, username="alice")
    for name, (address, listed, command) in commands.items():
        first = rest.ask("GET", address)
        rest.ask("DELETE", address)
        if "/credentials" in listed:
            assert SECRET not in command
            assert paste(alice, tmp_path, command).returncode == 1, name
            command = add_secret(command, first["meta"]["kind"])
        done = paste(alice, tmp_path, command)
        assert done.returncode == 0, (name, done.stderr, command)
        [found] = rest.ask("GET", f"{listed}?name={first['meta']['name']}")["entries"]
        second = rest.ask("GET", f"{listed}/{found['meta']['id']}")
        assert drop_own(second) == drop_own(first), name
    again = made_project.replace("create team-a", "create twin")
    done = paste(alice, tmp_path, again)
    assert done.returncode == 0, done.stderr
    first, second = (alice("project", "get", each, "-o", "json").parse() for each in TWINS)
    assert {each: first[each] for each in SETTINGS} == {each: second[each] for each in SETTINGS}


TWINS = ("team-a", "twin")
SETTINGS = ("clusterId", "departmentId", "resources", "schedulingRules", "defaultPreemptibility")


def add_secret(command: str, kind: str) -> str:
    """Return a command with the secret that the person writes into its document."""
    head, _, rest = command.partition("\n{")
    document, _, end = rest.rpartition("}\n")
    body = json.loads(f"{{{document}}}")
    sample = next(each for each in CREDENTIALS if each.subtype == kind)
    body["spec"] = sample.spec
    return f"{head}\n{json.dumps(body)}\n{end}"


EACH_WORKLOAD = """
from tests.cast import a_spec
from workloads import journal
from workloads.specs import Architecture, Configuration, Framework, MasterChanges, Variable
hostile = "$(touch hacked) `touch hacked` '; touch hacked; '\\nEOF\\ntouch hacked\\n"
master = MasterChanges(variables=(Variable("B", hostile),), args=(hostile,))
workers_only = {"configuration": Configuration.WORKERS_ONLY}
specs = {
    "plain": {},
    "hostile": {"master": master},
    "jax": {"framework": Framework.JAX, **workers_only},
    "one": {"architecture": Architecture.STANDARD, "framework": None, "workers": 1},
}
bob = User.objects.get(username="bob")
client.force_login(bob)
shown = {}
for name, changes in specs.items():
    spec = a_spec(project, f"twin-{name}", **changes)
    row = journal.create_workload(spec, project=project, user=bob)
    shown[name] = [str(row.pk), read_command(f"/workloads/{row.pk}/details", "wl-command")]
print(json.dumps(shown))
"""


@pytest.mark.timeout(900)
def test_workloads_are_made_again_by_the_commands_of_their_pages(
    bob: CommandLine, console: Console, tmp_path: Path
) -> None:
    commands = json.loads(console.web.python(READ_PAGES + EACH_WORKLOAD))
    for name, (_, command) in commands.items():
        first = read_submission(bob, f"twin-{name}")
        renamed = command.replace(f" twin-{name} ", f" twins-{name} ")
        done = paste(bob, tmp_path, renamed)
        assert done.returncode == 0, (name, done.stderr, command)
        assert read_submission(bob, f"twins-{name}") == first
    assert not (tmp_path / "hacked").exists()
    bob(
        "delete",
        "-y",
        *(f"twins-{name}" for name in commands),
        *(f"twin-{name}" for name in commands),
    )


def read_submission(who: CommandLine, name: str) -> dict[str, Any]:
    """Return what a workload was submitted with, without its names and ids."""
    found = who("get", name, "-o", "json").parse()
    kind = "distributed" if found["type"] == "Distributed" else "trainings"
    answer = who("api", "GET", f"/workloads/{kind}/{found['id']}").parse()
    kept = ("spec", "masterSpec", "masterSpecSameAsWorker", "noMaster", "projectId", "clusterId")
    return {each: answer.get(each) for each in kept}
