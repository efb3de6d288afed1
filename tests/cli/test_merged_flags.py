"""Flags merged over a file, a template or a workload: what they do not name stays."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from muster_cli.commands.root import root
from muster_cli.errors import UsageProblem
from tests.cli.log_server import Answer, Query, ScriptedServer, serve_answers
from tests.cli.running import CommandLine
from workloads.api.from_template import merge_values

Body = dict[str, Any]
Submit = Callable[..., Body]

SHARED: Body = {"gpuDevicesRequest": 4, "gpuRequestType": "portion", "gpuPortionRequest": 0.5}
MASTER: Body = {
    "image": "own:1",
    "command": "python lead.py",
    "environmentVariables": [{"name": "A", "value": "1"}],
    "compute": {"cpuCoreRequest": 1},
}
WORKERS: Body = {"image": "train:1", "numWorkers": 2, "compute": SHARED}
SUBMISSION: Body = {
    "name": "old",
    "spec": WORKERS | {"distributedFramework": "PyTorch"},
    "masterSpecSameAsWorker": False,
    "masterSpec": MASTER,
}
META: Body = {"name": "base", "id": "t-1"}
TEMPLATE: Body = {
    "meta": META,
    "architecture": "Distributed",
    "spec": {"image": "train:1", "command": "python train.py", "numWorkers": 2, "compute": SHARED},
    "masterSpecSameAsWorker": True,
}
WORKLOAD: Body = {"id": "w-0", "name": "old", "type": "Distributed", "projectName": "team-a"}


@pytest.fixture
def template() -> Body:
    """What the server's template has; a test may change it."""
    return dict(TEMPLATE)


@pytest.fixture
def server(template: Body) -> Iterator[ScriptedServer]:
    """A server of a template and a workload, which keeps what is submitted."""

    def answer(path: str, query: Query, token: str) -> Answer:
        answers: Body = {
            "/api/v1/org-unit/projects": {"projects": [{"id": "7", "clusterId": "c-1"}]},
            "/api/v1/workload-templates": {"entries": [{"meta": META}]},
            "/api/v1/workload-templates/t-1": template,
            "/api/v1/workloads": {"workloads": [WORKLOAD]},
            "/api/v1/workloads/distributed/w-0": SUBMISSION,
        }
        return Answer(200, json.dumps(answers.get(path, {"name": "a", "workloadId": "w-1"})))

    with serve_answers(answer) as running:
        yield running


def run(server: ScriptedServer, *words: str) -> Result:
    environment = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t", "MUSTER_PROJECT": "team-a"}
    return CliRunner().invoke(root, words, env=environment)


@pytest.fixture
def submit(server: ScriptedServer) -> Submit:
    """Run a command and return the body that it sent, without nulls."""

    def send(*words: str) -> Body:
        done = run(server, *words)
        assert done.exit_code == 0, (words, done.output, done.exception)
        (body,) = server.bodies
        sent: Body = drop_nulls(json.loads(body))
        return sent

    return send


def drop_nulls(value: Any) -> Any:
    """Return a body as REST reads it: null is as good as missing."""
    if isinstance(value, dict):
        return {name: drop_nulls(each) for name, each in value.items() if each is not None}
    return value


@pytest.fixture
def document(tmp_path: Path) -> str:
    path = tmp_path / "submission.json"
    path.write_text(json.dumps(SUBMISSION))
    return str(path)


def test_flags_of_the_master_keep_the_rest_of_the_files_master(
    submit: Submit, document: str
) -> None:
    body = submit("submit", "pytorch", "a", "-f", document, "--master-cpu", "4")
    assert body["masterSpec"] == MASTER | {"compute": {"cpuCoreRequest": 4}}
    assert body["spec"] == SUBMISSION["spec"]


def test_a_master_of_the_file_that_is_no_object_is_refused(
    server: ScriptedServer, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(SUBMISSION | {"masterSpec": [MASTER]}))
    done = run(server, "submit", "pytorch", "a", "-f", str(path), "--master-cpu", "4")
    assert isinstance(done.exception, UsageProblem)
    assert "masterSpec is no object" in str(done.exception)


@pytest.mark.parametrize(
    ("flags", "compute"),
    [
        (("--gpu-portion=0.25",), SHARED | {"gpuPortionRequest": 0.25}),
        (("--gpus=2",), {"gpuDevicesRequest": 2}),
        (
            ("--gpu-memory=8Gi",),
            {"gpuDevicesRequest": 4, "gpuRequestType": "memory", "gpuMemoryRequest": "8Gi"},
        ),
        (
            ("--gpus=2", "--gpu-portion=0.25"),
            {"gpuDevicesRequest": 2, "gpuRequestType": "portion", "gpuPortionRequest": 0.25},
        ),
        (("--cpu=3",), SHARED | {"cpuCoreRequest": 3}),
    ],
)
@pytest.mark.parametrize("source", ["file", "template", "workload"])
def test_a_flag_of_gpus_changes_only_what_it_says(
    server: ScriptedServer,
    submit: Submit,
    document: str,
    source: str,
    flags: tuple[str, ...],
    compute: Body,
) -> None:
    sources = {
        "file": ("submit", "pytorch", "new", "-f", document),
        "template": ("submit", "pytorch", "new", "--template", "base"),
        "workload": ("copy", "old", "new"),
    }
    body = submit(*sources[source], *flags)
    if source == "template":
        assert body["templateId"] == "t-1"
        sent = json.loads(server.bodies[0])["spec"]
        assert merge_values(TEMPLATE["spec"], sent)["compute"] == compute
    else:
        assert body["spec"]["compute"] == compute
        assert body["masterSpec"] == MASTER


def test_a_share_is_of_one_device_where_nothing_says_how_many(submit: Submit) -> None:
    flags = ("--gpu-portion", "0.5", "--master-gpu-portion", "0.25")
    body = submit("submit", "pytorch", "a", "--image", "x", *flags)
    portion = {"gpuDevicesRequest": 1, "gpuRequestType": "portion"}
    assert body["spec"]["compute"] == portion | {"gpuPortionRequest": 0.5}
    assert body["masterSpec"]["compute"] == portion | {"gpuPortionRequest": 0.25}


def test_a_master_beside_a_template_is_as_the_templates_workers(submit: Submit) -> None:
    body = submit(
        *("submit", "pytorch", "a", "--template", "base"),
        *("--image", "own:2", "--master-cpu", "4"),
    )
    assert body["spec"] == {"image": "own:2", "distributedFramework": "PyTorch"}
    shared = {name: value for name, value in SHARED.items() if name != "gpuRequestType"}
    assert body["masterSpec"] == {
        "image": "own:2",
        "command": "python train.py",
        "compute": shared | {"cpuCoreRequest": 4},
    }


def test_a_master_beside_a_template_stays_where_the_templates_differs(
    submit: Submit, template: Body
) -> None:
    own: Body = {"command": "python lead.py", "compute": SHARED | {"gpuDevicesRequest": 1}}
    template |= {"masterSpecSameAsWorker": False, "masterSpec": template["spec"] | own}
    body = submit(
        *("submit", "pytorch", "a", "--template", "base"),
        *("--image", "own:2", "--gpus", "2", "--master-cpu", "4"),
    )
    assert body["masterSpec"] == {
        "image": "own:2",
        "command": "python lead.py",
        "compute": own["compute"] | {"cpuCoreRequest": 4},
    }


def test_a_template_without_a_master_gets_none_silently(submit: Submit, template: Body) -> None:
    del template["masterSpecSameAsWorker"]
    template["noMaster"] = True
    body = submit("submit", "pytorch", "a", "--template", "base", "--master-cpu", "4")
    # The server refuses both together.
    assert body["noMaster"] is True
    assert "masterSpec" in body


@pytest.mark.parametrize(
    "command", [("submit", "pytorch", "a", "--image", "x"), ("copy", "old", "a"), ("wait", "old")]
)
def test_a_timeout_is_read_before_anything_is_sent(
    server: ScriptedServer, command: tuple[str, ...]
) -> None:
    wait = () if command[0] == "wait" else ("--wait",)
    done = run(server, *command, *wait, "--timeout", "5x")
    assert isinstance(done.exception, UsageProblem)
    assert "5x is not a duration" in str(done.exception)
    assert not server.queries


def test_the_server_makes_of_a_template_and_flags_what_they_say(bob: CommandLine) -> None:
    spec = {
        "image": "train:1",
        "command": "python train.py",
        "distributedFramework": "PyTorch",
        "numWorkers": 2,
        "compute": SHARED,
    }
    meta = {"name": "merged", "scope": "project", "projectId": "1"}
    bob("template", "create", "-f", "-", stdin=json.dumps({"meta": meta, "spec": spec}))
    start = ("submit", "pytorch", "a", "--template", "merged", "--dry-run")
    manifests = bob(*start, "--image", "own:2", "--gpus", "2", "--master-cpu", "4").out
    job = next(each for each in yaml.safe_load_all(manifests) if each["kind"] == "PyTorchJob")
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        (container,) = replica["template"]["spec"]["containers"]
        assert container["image"] == "own:2"
        assert container["command"] == ["python", "train.py"]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "2"
        assert "gpu-fraction" not in replica["template"]["metadata"].get("annotations", {})
