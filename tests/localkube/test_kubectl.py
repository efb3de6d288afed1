"""The real kubectl against the embedded cluster: what a person types, and what they read."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import LocalKube
from tests.conformance.api import Object, eventually
from tests.conformance.samples import configmap, pod, pytorchjob, queue, shell_pod

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(
    KUBECTL is None and os.environ.get("CI") != "true", reason="kubectl is not installed"
)


class Kubectl:
    """kubectl with the cluster's kubeconfig and a home of its own."""

    def __init__(self, kubeconfig: Path, home: Path, namespace: str = "default") -> None:
        self.kubeconfig = kubeconfig
        self.home = home
        self.namespace = namespace

    def popen(self, *arguments: str) -> "subprocess.Popen[str]":
        assert KUBECTL, "CI needs kubectl: see .ci/run"
        environment = {
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "PATH": os.environ["PATH"],
        }
        command = [KUBECTL, "--namespace", self.namespace, *arguments]
        return subprocess.Popen(
            command,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(
        self, *arguments: str, given: Object | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run to the end; `given` is written to its standard input as YAML."""
        with self.popen(*arguments) as process:
            try:
                out, err = process.communicate(
                    yaml.safe_dump(given) if given else None, timeout=180
                )
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def __call__(self, *arguments: str, given: Object | None = None) -> str:
        """What it printed; fails, showing why, when it failed."""
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def refused(self, *arguments: str, given: Object | None = None) -> str:
        """What it complained about; fails when it did not."""
        done = self.run(*arguments, given=given)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} was accepted: {done.stdout}"
        return done.stderr

    def json(self, *arguments: str) -> Object:
        read: Object = json.loads(self(*arguments, "--output", "json"))
        return read


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKube]:
    with LocalKube(tmp_path_factory.mktemp("kubectl") / "data") as running:
        yield running


@pytest.fixture
def kubectl(server: LocalKube, tmp_path: Path) -> Iterator[Kubectl]:
    """kubectl in a namespace of the test's own."""
    outside = Kubectl(server.kubeconfig, tmp_path)
    name = json.loads(outside("create", "-f", "-", "-o", "json", given=new_namespace()))[
        "metadata"
    ]["name"]
    yield Kubectl(server.kubeconfig, tmp_path, name)
    outside("delete", "namespace", name, "--wait=false")


def new_namespace() -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "kubectl-"}}


def script(text: str, **spec: Any) -> Object:
    return shell_pod("busybox:1.36", text, **spec)


def training(
    name: str = "job", text: str = "echo rank $RANK of $WORLD_SIZE", workers: int = 1
) -> Object:
    container = {"name": "pytorch", "image": "train:1", "command": ["/bin/sh", "-c", text]}
    replica = {"restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    specs = {"Master": replica | {"replicas": 1}, "Worker": replica | {"replicas": workers}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": specs},
    }


def test_the_versions_are_known(kubectl: Kubectl) -> None:
    assert kubectl.json("version")["serverVersion"]["gitVersion"].startswith("v1.")
    assert "is running at" in kubectl("cluster-info")


def test_nodes_pods_and_jobs_are_shown_together(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=training())
    eventually(lambda: "job-master-0" in kubectl("get", "pods"))
    output = kubectl("get", "nodes,pods,pytorchjobs", "-A", "-o", "wide")
    assert re.search(r"NAME +STATUS +ROLES +AGE +VERSION +INTERNAL-IP", output)
    assert re.search(r"node/localkube +Ready", output)
    assert re.search(r"NAMESPACE +NAME +READY +STATUS +RESTARTS +AGE +IP +NODE", output)
    assert re.search(rf"{kubectl.namespace} +pod/job-master-0 +\d/1 ", output)
    assert re.search(rf"{kubectl.namespace} +pytorchjob.kubeflow.org/job +\w+", output)


def test_the_resources_are_listed(kubectl: Kubectl) -> None:
    output = kubectl("api-resources")
    assert re.search(r"^pods +po +v1 +true +Pod$", output, re.MULTILINE)
    assert re.search(r"^pytorchjobs +kubeflow.org/v1 +true +PyTorchJob$", output, re.MULTILINE)
    assert re.search(r"^queues +scheduling.run.ai/v2 +false +Queue$", output, re.MULTILINE)
    assert "kubeflow.org/v1" in kubectl("api-versions").split()


def test_get_all_works(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=pod("gated"))
    assert "pod/gated" in kubectl("get", "all")


def test_nothing_is_said_to_be_nothing(kubectl: Kubectl) -> None:
    assert "No resources found" in kubectl.run("get", "pods").stderr
    assert '"nope" not found' in kubectl.refused("get", "pod", "nope")
    assert "the server doesn't have a resource type" in kubectl.refused("get", "nosuchkinds")


def test_a_pod_is_described_with_its_events(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=script("echo hello; sleep 30"))
    kubectl("wait", "--for=condition=Ready", "pod/pod", "--timeout=30s")
    described = kubectl("describe", "pod", "pod")
    assert re.search(r"Status: +Running", described)
    assert re.search(r"State: +Running", described)
    assert "Successfully assigned" in described
    assert "Started container main" in described


def test_a_node_is_described_with_its_pods(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=script("sleep 30"))
    kubectl("wait", "--for=condition=Ready", "pod/pod", "--timeout=30s")
    described = kubectl("describe", "node", "localkube")
    assert "Allocatable:" in described
    assert re.search(rf"{kubectl.namespace} +pod ", described)
    assert "nvidia.com/gpu" in described


def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    first = training() | {"metadata": {"name": "job", "labels": {"stage": "a"}}}
    first["spec"]["runPolicy"] = {"suspend": True}
    assert kubectl("apply", "-f", "-", given=first) == "pytorchjob.kubeflow.org/job created\n"
    assert kubectl("apply", "-f", "-", given=first) == "pytorchjob.kubeflow.org/job unchanged\n"
    second = first | {"metadata": {"name": "job", "labels": {"phase": "b"}}}
    assert kubectl("apply", "-f", "-", given=second) == "pytorchjob.kubeflow.org/job configured\n"
    assert kubectl.json("get", "pytorchjob", "job")["metadata"]["labels"] == {"phase": "b"}


def test_apply_works_on_pods_too(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", given=pod()) == "pod/pod created\n"
    assert kubectl("apply", "-f", "-", given=pod()) == "pod/pod unchanged\n"
    changed = pod(containers=[{"name": "main", "image": "train:2", "command": ["sleep", "60"]}])
    assert kubectl("apply", "-f", "-", given=changed) == "pod/pod configured\n"
    assert kubectl("get", "pod", "pod", "-o", "jsonpath={.spec.containers[0].image}") == "train:2"


def test_a_list_is_applied_and_validated(kubectl: Kubectl) -> None:
    items = [configmap("a", key="1"), configmap("b", key="1")]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    expected = "configmap/a created\nconfigmap/b created\n"
    assert kubectl("apply", "-f", "-", given=listed) == expected
    kubectl(
        "replace", "-f", "-", given=yaml.safe_load(kubectl("get", "cm", "a", "b", "-o", "yaml"))
    )
    items[0]["oddField"] = 1
    refusal = kubectl.refused("create", "-f", "-", given=listed)
    assert 'strict decoding error: unknown field "oddField"' in refusal


def test_apply_on_the_servers_side(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    assert (
        kubectl(*apply, given=configmap("cm", a="1", b="2")) == "configmap/cm serverside-applied\n"
    )
    kubectl(*apply, given=configmap("cm", a="1"))
    assert kubectl.json("get", "configmap", "cm")["data"] == {"a": "1"}
    refusal = kubectl.refused(*apply, "--field-manager=other", given=configmap("cm", a="2"))
    assert 'conflict with "kubectl"' in refusal
    kubectl(*apply, "--field-manager=other", "--force-conflicts", given=configmap("cm", a="2"))
    assert kubectl.json("get", "configmap", "cm")["data"] == {"a": "2"}


def test_diff_shows_what_apply_would_do(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=configmap("cm", a="1"))
    done = kubectl.run("diff", "-f", "-", given=configmap("cm", a="2"))
    assert done.returncode == 1, done.stderr
    assert '+  a: "2"' in done.stdout


def test_create_and_replace(kubectl: Kubectl) -> None:
    assert kubectl("create", "configmap", "cm", "--from-literal=a=1") == "configmap/cm created\n"
    assert "already exists" in kubectl.refused("create", "configmap", "cm")
    assert kubectl("replace", "-f", "-", given=configmap("cm", a="2")) == "configmap/cm replaced\n"
    assert kubectl("get", "configmap", "cm", "-o", "jsonpath={.data.a}") == "2"


def test_secrets_are_made_and_hidden(kubectl: Kubectl) -> None:
    kubectl("create", "secret", "generic", "token", "--from-literal=key=hidden")
    described = kubectl("describe", "secret", "token")
    assert re.search(r"key: +6 bytes", described)
    assert "hidden" not in described


def test_changes_are_watched(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=script("sleep 1"))
    with kubectl.popen("get", "pods", "--watch") as watching:
        assert watching.stdout is not None
        lines = [next(watching.stdout)]
        for line in watching.stdout:
            lines.append(line)
            if "Completed" in line:
                break
        watching.kill()
    assert re.match(r"NAME +READY +STATUS +RESTARTS +AGE$", lines[0])
    assert all(re.match(r"pod +\d/1 +\w+ +0 +\d+s$", line) for line in lines[1:])


def test_a_log_is_shown_and_followed(kubectl: Kubectl) -> None:
    kubectl(
        "create",
        "-f",
        "-",
        given=script("for n in 1 2 3; do echo line $n; done; sleep 2; echo end"),
    )
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/pod", "--timeout=30s")
    assert kubectl("logs", "-f", "--tail=1", "pod").endswith("end\n")
    assert kubectl("logs", "pod") == "line 1\nline 2\nline 3\nend\n"
    assert kubectl("logs", "--tail=2", "pod") == "line 3\nend\n"
    assert kubectl("logs", "--since=1h", "--limit-bytes=6", "pod") == "line 1"
    assert re.match(
        r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d) end\n",
        kubectl("logs", "--timestamps", "--tail=1", "pod"),
    )


def test_logs_are_shown_by_label(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=training(text="echo rank $RANK"))
    kubectl("wait", "--for=condition=Succeeded", "pytorchjob/job", "--timeout=60s")
    output = kubectl("logs", "--selector=training.kubeflow.org/job-name=job", "--prefix")
    assert "[pod/job-master-0/pytorch] rank 0" in output


def test_deleting_waits_for_the_end(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=script("trap 'exit 0' TERM; while :; do sleep 0.1; done"))
    kubectl("wait", "--for=condition=Ready", "pod/pod", "--timeout=30s")
    assert kubectl("delete", "pod", "pod") == 'pod "pod" deleted\n'
    assert '"pod" not found' in kubectl.refused("get", "pod", "pod")


def test_a_deleted_job_takes_its_pods_along(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=training(text="sleep 60"))
    kubectl("wait", "--for=condition=Running", "pytorchjob/job", "--timeout=60s")
    with kubectl.popen("wait", "--for=delete", "pod/job-master-0", "--timeout=60s") as waiting:
        kubectl("delete", "pytorchjob", "job", "--cascade=foreground")
        assert waiting.wait(60) == 0
        waiting.communicate()


def test_pods_are_deleted_by_force(kubectl: Kubectl) -> None:
    kubectl(
        "create",
        "-f",
        "-",
        given=script("trap '' TERM; while :; do sleep 0.1; done", terminationGracePeriodSeconds=60),
    )
    kubectl("wait", "--for=condition=Ready", "pod/pod", "--timeout=30s")
    kubectl("delete", "pod", "pod", "--grace-period=0", "--force")
    assert '"pod" not found' in kubectl.refused("get", "pod", "pod")


def test_everything_of_a_kind_is_deleted(kubectl: Kubectl) -> None:
    for name in ("a", "b"):
        kubectl("create", "configmap", name)
    output = kubectl("delete", "configmaps", "a", "b")
    assert output == 'configmap "a" deleted\nconfigmap "b" deleted\n'
    kubectl("create", "-f", "-", given=pod("gated"))
    assert kubectl("delete", "pods", "--all") == 'pod "gated" deleted\n'


def test_events_tell_the_story_of_a_pod(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=script("exit 0"))
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/pod", "--timeout=30s")
    output = kubectl("get", "events", "--field-selector=involvedObject.name=pod")
    assert re.search(r"LAST SEEN +TYPE +REASON +OBJECT +MESSAGE", output)
    assert re.search(r"Normal +Scheduled +pod/pod", output)
    assert "Started" in kubectl("events", "--for=pod/pod")


def test_waiting_for_a_condition(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=training())
    kubectl("wait", "--for=condition=Succeeded", "pytorchjob/job", "--timeout=60s")
    assert re.search(r"^job +Succeeded ", kubectl("get", "pytorchjobs"), re.MULTILINE)
    assert "timed out" in kubectl.refused(
        "wait", "--for=condition=Failed", "pytorchjob/job", "--timeout=1s"
    )


def test_usage_is_measured(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=script("while :; do :; done"))
    kubectl("wait", "--for=condition=Ready", "pod/pod", "--timeout=30s")
    measured = eventually(
        lambda: re.search(r"^pod +(\d+)m +\d+Mi", kubectl.run("top", "pods").stdout, re.MULTILINE),
        within=180,
    )
    assert int(measured[1]) > 0
    assert re.search(r"^localkube +\d+m +\d+% +\d+Mi +\d+%", kubectl("top", "nodes"), re.MULTILINE)


def test_rights_are_asked_for(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pytorchjobs.kubeflow.org") == "yes\n"
    assert "Username" in kubectl("auth", "whoami")
    assert "*.*" in kubectl("auth", "can-i", "--list")


def test_fields_are_explained(kubectl: Kubectl) -> None:
    assert re.search(r"KIND: +PyTorchJob", kubectl("explain", "pytorchjob"))
    assert "cleanPodPolicy" in kubectl("explain", "pytorchjob.spec.runPolicy")
    assert "restartPolicy" in kubectl("explain", "pod.spec")


def test_labels_and_annotations(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=pod("gated"))
    assert kubectl("label", "pod", "gated", "team=a") == "pod/gated labeled\n"
    assert kubectl("annotate", "pod", "gated", "note=hello") == "pod/gated annotated\n"
    assert "gated" in kubectl("get", "pods", "--selector=team in (a,b)", "--show-labels")
    kubectl("label", "pod", "gated", "team-")
    assert "No resources found" in kubectl.run("get", "pods", "--selector=team").stderr


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("merge", '{"spec":{"runPolicy":{"suspend":true}}}'),
        ("json", '[{"op":"replace","path":"/spec/runPolicy/suspend","value":true}]'),
    ],
)
def test_patching_a_job(kubectl: Kubectl, kind: str, body: str) -> None:
    kubectl("create", "-f", "-", given=pytorchjob())
    assert (
        kubectl("patch", "pytorchjob", "job", f"--type={kind}", f"--patch={body}")
        == "pytorchjob.kubeflow.org/job patched\n"
    )
    assert kubectl.json("get", "pytorchjob", "job")["spec"]["runPolicy"]["suspend"] is True


def test_patching_a_pod_and_a_status(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=pod())
    kubectl(
        "patch", "pod", "pod", '--patch={"spec":{"containers":[{"name":"main","image":"train:2"}]}}'
    )
    assert kubectl.json("get", "pod", "pod")["spec"]["containers"][0]["image"] == "train:2"
    kubectl("create", "-f", "-", given=pytorchjob())
    status = '{"status":{"startTime":"2026-01-01T00:00:00Z"}}'
    kubectl(
        "patch", "pytorchjob", "job", "--subresource=status", "--type=merge", f"--patch={status}"
    )
    assert (
        kubectl("get", "pytorchjob", "job", "-o", "jsonpath={.status.startTime}")
        == "2026-01-01T00:00:00Z"
    )


def test_scaling_a_job(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=pytorchjob())
    assert (
        kubectl("scale", "pytorchjob", "job", "--replicas=5")
        == "pytorchjob.kubeflow.org/job scaled\n"
    )
    assert (
        kubectl.json("get", "pytorchjob", "job")["spec"]["pytorchReplicaSpecs"]["Worker"][
            "replicas"
        ]
        == 5
    )


def test_raw_paths(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert json.loads(kubectl("get", "--raw", "/apis/kubeflow.org/v1"))["kind"] == "APIResourceList"


def test_forms_of_output(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=pod("gated"))
    assert (
        yaml.safe_load(kubectl("get", "pod", "gated", "-o", "yaml"))["spec"]["restartPolicy"]
        == "Never"
    )
    assert kubectl("get", "pods", "-o", "name") == "pod/gated\n"
    assert kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.name}") == "gated"
    output = kubectl("get", "pods", "-o", "custom-columns=N:.metadata.name,P:.status.phase")
    assert output.split() == ["N", "P", "gated", "Pending"]
    assert re.search(
        r"gated +0/1 +SchedulingGated +0", kubectl("get", "pods", "--sort-by=.metadata.name")
    )


def test_pages_are_put_together(kubectl: Kubectl) -> None:
    for number in range(5):
        kubectl("create", "-f", "-", given=pod(f"p{number}"))
    assert kubectl("get", "pods", "--chunk-size=2", "-o", "name").split() == [
        f"pod/p{number}" for number in range(5)
    ]


def test_dry_runs_on_the_server(kubectl: Kubectl) -> None:
    output = kubectl("apply", "-f", "-", "--dry-run=server", given=pytorchjob("dry"))
    assert output == "pytorchjob.kubeflow.org/dry created (server dry run)\n"
    assert "not found" in kubectl.refused("get", "pytorchjob", "dry")
    kubectl("create", "-f", "-", given=pod())
    assert (
        kubectl("delete", "pod", "pod", "--dry-run=server")
        == 'pod "pod" deleted (server dry run)\n'
    )
    assert "pod" in kubectl("get", "pods")


def test_unknown_fields_are_refused_or_warned_about(kubectl: Kubectl) -> None:
    odd = pytorchjob("odd")
    odd["spec"]["unknownField"] = 1
    refusal = kubectl.refused("create", "-f", "-", "--validate=strict", given=odd)
    assert 'strict decoding error: unknown field "spec.unknownField"' in refusal
    warned = kubectl.run("create", "-f", "-", "--validate=warn", given=odd)
    assert warned.returncode == 0
    assert 'Warning: unknown field "spec.unknownField"' in warned.stderr
    assert 'unknown field "spec.oddField"' in kubectl.refused(
        "apply", "-f", "-", given=pod(oddField=1)
    )


def test_queues_belong_to_the_cluster(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=queue(kubectl.namespace))
    assert re.search(rf"^{kubectl.namespace} ", kubectl("get", "queues"), re.MULTILINE)
    assert (
        kubectl("delete", "queue", kubectl.namespace)
        == f'queue.scheduling.run.ai "{kubectl.namespace}" deleted\n'
    )


def test_a_namespace_goes_with_all_it_holds(kubectl: Kubectl) -> None:
    name = f"{kubectl.namespace}-b"
    kubectl("create", "namespace", name)
    kubectl("create", "configmap", "cm", f"--namespace={name}")
    kubectl("delete", "namespace", name, "--timeout=60s")
    assert "not found" in kubectl.refused("get", "namespace", name)
