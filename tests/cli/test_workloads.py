"""Workloads by the command line: looked at, explained, submitted, changed."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.log_server import Answer, Query, serve_answers
from tests.cli.running import CommandLine, Console

WORKLOAD_ID = "f6c1a4f4-58c5-4b8e-9d6c-6f4f1a1c3a55"
SUBMIT = ("submit", "pytorch", "--image", "muster/allreduce", "--gpu-portion", "0.1")


def test_workloads_are_listed_filtered_and_shown(bob: CommandLine) -> None:
    assert {"train1", "waiting", "old", "failed"} <= set(bob("list", "-o", "name").out.split())
    assert bob("list", "--status", "pending", "-o", "name").out == "waiting\n"
    two = bob("list", "--status", "pending", "--status", "failed", "-o", "name").out.split()
    assert sorted(two) == ["failed", "waiting"]
    assert bob("list", "--mine", "--search", "train1", "-o", "name").out == "train1\n"
    assert bob("get", "train1", "-o", "json").parse()["phase"] == "Running"
    assert bob("get", "team-a/train1", "-o", "name").out == "train1\n"
    described = bob("describe", "train1").out
    assert "train1-worker-0" in described
    assert "It was submitted." in described
    assert bob("pods", "train1", "-o", "csv").out.splitlines()[1].startswith("train1-master-0,")
    assert "Submitted" in bob("events", "train1").out


def test_a_pod_that_the_cluster_has_no_more_does_not_run(
    bob: CommandLine, lost_pod_workload: str
) -> None:
    rows = list(csv.DictReader(bob("pods", lost_pod_workload, "-o", "csv").out.splitlines()))
    # One that had ended before keeps how it ended.
    assert [each["STATUS"] for each in rows] == ["Deleted", "Completed"]
    assert bob("pods", lost_pod_workload, "-o", "json").parse()[0]["status"] == "Running"
    described = bob("describe", lost_pod_workload).out
    assert "Deleted" in described
    assert "Running " not in described.partition("Pods\n")[2]


def test_a_status_or_project_that_there_is_not_is_refused(bob: CommandLine) -> None:
    for command in (("list",), ("list", "--watch"), ("prune", "--older-than", "30d")):
        refused = bob(*command, "--project", "team-x", code=5)
        assert "There is no project team-x among those that you may see." in refused.err
    refused = bob("list", "--status", "running", "--status", "runing", code=2)
    assert "no status runing" in refused.err
    assert "running" in refused.err
    assert "no command lst. Is it list" in bob("lst", code=2).err
    message = bob(*SUBMIT, "a", "-g", "0.5", code=2).err
    assert "not a valid whole number. A part of a GPU is asked for by --gpu-portion." in message
    message = bob(*SUBMIT, "a", "--master-gpus", "1.5", code=2).err
    assert "A part of a GPU is asked for by --master-gpu-portion." in message
    assert "portion" not in bob(*SUBMIT, "a", "--gpus", "-1", code=2).err


def test_a_table_says_which_of_several_pods_failed_first(stranger: CommandLine) -> None:
    """The list of REST does not read their logs, and the answer of one workload does."""
    rows = [
        {
            "id": f"w{n}",
            "name": f"w{n}",
            "phase": "Completed" if n == 1 else "Failed",
            "phaseMessage": "1 replica failed.",
            "requestedPods": {"number": 1 if n == 2 else 3},
            "diagnosis": {"message": "1 replica failed."} if n == 3 else None,
        }
        for n in range(20)
    ]
    requested_names: list[str] = []

    def answer(path: str, query: Query, token: str) -> Answer:
        name = path.rpartition("/")[2]
        if name == "workloads":
            return Answer(200, json.dumps({"workloads": rows[: int(query["limit"])]}))
        requested_names.append(name)
        if name == "w6":
            return Answer(404, '{"code": 404, "message": "It is gone."}')
        return Answer(200, json.dumps(rows[0] | {"phaseMessage": "Worker 7 failed first."}))

    with serve_answers(answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        table = stranger("list").out.splitlines()
        assert requested_names == ["w0", "w4", "w5", "w6"]
        assert [line.split()[0] for line in table if "Worker 7" in line] == ["w0", "w4", "w5"]
        assert sum("1 replica failed." in line for line in table) == 17
        rows[6]["id"] = "w60"
        requested_names.clear()
        stranger("list", "-o", "wide")
        assert requested_names == ["w0", "w4", "w5", "w60", "w7"]
        requested_names.clear()
        assert "Worker 7" not in stranger("list", "-o", "json").out
        assert requested_names == []


def test_why_says_what_rest_says(bob: CommandLine) -> None:
    assert "No node has 8 free GPUs." in bob("why", "waiting").out
    assert "worker-0 ran out of memory." in bob("why", "failed").out
    assert bob("why", "waiting", "-o", "json").parse()["phase"] == "Pending"


def test_why_says_what_is_wrong_with_one_that_runs(bob: CommandLine) -> None:
    output = bob("why", "hangs").out
    assert "Hangs (certain): Rank 1 has said nothing for 6 min.\n" in output
    assert "Stop it to free what it holds.\n  - Rank 1 printed last:" in output
    assert "ago; node node-0.\n" in output
    assert "\x1b" not in output
    assert "\u202e" not in output
    assert "nothing is known to be wrong" not in output
    explained = bob("why", "hangs", "-o", "json").parse()
    assert [each["kind"] for each in explained["findings"]] == ["hang"]
    assert explained["radar"]["isOn"] is True
    described = bob("describe", "hangs").out
    assert "Needs a look:     Hangs (certain): Rank 1 has said nothing for 6 min.\n" in described


def test_why_of_a_healthy_one_says_when_the_radar_looked(bob: CommandLine) -> None:
    output = bob("why", "train1").out
    assert "It runs, and nothing is known to be wrong. The radar looked " in output
    assert "in its way" not in output


def _run_rows(console: Console, statements: str) -> None:
    console.web.python(
        "from datetime import timedelta; from django.utils import timezone\n"
        f"from clusters.models import Cluster; from workloads.models import Workload\n{statements}"
    )


LONG_STATUSES = ["Creating", "Stopping", "Initializing", "Deleting"]


@pytest.mark.parametrize("status", LONG_STATUSES)
def test_why_of_one_that_stays_as_it_is_says_since_when(
    bob: CommandLine, console: Console, status: str
) -> None:
    change = "Workload.objects.filter(name='late').update(status='{}', status_at=timezone.now(){})"
    _run_rows(console, change.format(status, ""))
    try:
        at_once = bob("why", "late").out
        assert at_once == f"late is {status}.\nNothing is known to stand in its way.\n"
        _run_rows(console, change.format(status, " - timedelta(minutes=3)"))
        output = bob("why", "late").out
    finally:
        _run_rows(console, change.format("Creating", ""))
    assert "stand in its way" not in output
    assert f"It has been {status} since 20" in output
    assert "(3m" in output
    assert "nothing is known of why" in output
    assert "`muster events late`" in output


def _explain_answer(stranger: CommandLine, **values: object) -> str:
    """Return what `why` says of a workload that REST answers with these values."""
    workload: dict[str, object] = {
        "id": WORKLOAD_ID,
        "name": "el",
        "phase": "Running",
        "phaseMessage": "",
        "phaseUpdatedAt": "2026-11-30T18:00:00Z",
        "attempts": [],
        "radar": None,
    }

    def answer(path: str, query: Query, token: str) -> Answer:
        return Answer(200, json.dumps(workload | values))

    with serve_answers(answer) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "t"}
        return stranger("why", WORKLOAD_ID).out


@pytest.mark.parametrize(
    ("phase", "sentence"),
    [
        ("Completed", "It has completed."),
        ("Failed", "Nothing is known of why. `muster logs el` shows what its pods wrote."),
        ("Stopped", "It was stopped, and holds nothing. `muster run el` runs it again."),
    ],
)
def test_why_of_what_has_ended_says_nothing_of_its_way(
    stranger: CommandLine, phase: str, sentence: str
) -> None:
    assert _explain_answer(stranger, phase=phase) == f"el is {phase}.\n{sentence}\n"


def test_why_says_nothing_of_the_pods_of_earlier_attempts(stranger: CommandLine) -> None:
    attempts = [
        {"number": 2, "requestedAt": "2026-11-30T18:40:28.250000Z"},
        {"number": 1, "requestedAt": "2026-11-30T18:38:39Z"},
    ]
    changes = [
        {"createdAt": "2026-11-30T18:40:28.300000Z", "message": "Gave 2 GPUs to team-b."},
        {"createdAt": "2026-11-30T18:39:12.100000Z", "message": "Somebody else gave it 7 workers."},
    ]
    output = _explain_answer(stranger, attempts=attempts, podChanges=changes)
    assert "Gave 2 GPUs to team-b." in output
    assert "Somebody else" not in output
    output = _explain_answer(stranger, attempts=attempts[1:], podChanges=changes)
    assert "Somebody else gave it 7 workers." in output


def test_why_says_beside_a_diagnosis_what_is_not_done_yet(stranger: CommandLine) -> None:
    trouble = "Not done yet, and tried again: Its job is being removed from the cluster."
    cluster = "The cluster c has not answered since 2026-11-30 18:00 UTC."
    output = _explain_answer(
        stranger,
        phase="Stopping",
        diagnosis={"message": "No node has 8 free GPUs.", "help": "Ask for less."},
        phaseMessage=f"No node has 8 free GPUs. {trouble} {cluster}",
        clusterMessage=cluster,
    )
    assert output == (
        f"el is Stopping.\nNo node has 8 free GPUs. {trouble}\n{cluster}\nAsk for less.\n"
    )


def test_what_a_cluster_hinders_is_said_once(bob: CommandLine, console: Console) -> None:
    _run_rows(console, "Cluster.objects.update(unreachable_since=timezone.now())")
    try:
        outputs = {name: bob("why", name).out for name in ("late", "waiting", "train1")}
    finally:
        _run_rows(console, "Cluster.objects.update(unreachable_since=None)")
    for name, output in outputs.items():
        assert output.count("has not answered since") == 1, output
        assert "nothing is known" not in output.lower(), name
    assert "No node has 8 free GPUs.\n" in outputs["waiting"]


def test_a_timeline_is_drawn_and_written_as_data(bob: CommandLine) -> None:
    drawn = bob("timeline", "train1").out
    assert "\nRank 0 " in drawn
    assert drawn.startswith("Status ")
    assert all(len(line) <= 100 for line in drawn.splitlines()[:3])
    hangs = bob("timeline", "hangs").out
    assert "Hangs" in hangs
    assert "\x1b" not in hangs
    assert "\u202e" not in hangs
    answer = bob("timeline", "wide", "--ranks", "3-4", "-o", "json").parse()
    assert [each["key"] for each in answer["lanes"] if each["kind"] == "rank"] == [
        "rank-3",
        "rank-4",
    ]
    rows = bob("timeline", "train1", "-o", "csv").out.splitlines()
    assert rows[0] == "LANE,SINCE,UNTIL,WHAT,MESSAGE"
    assert rows[1].startswith("Status,")
    assert "ranks must be" in bob("timeline", "wide", "--ranks", "many", code=1).err


def test_a_forecast_says_when_what_waits_starts(bob: CommandLine) -> None:
    lines = bob("forecast", "waiting").out.splitlines()
    assert "1st in line; likely " in lines[0]
    assert "8 of 10 times between" in lines[0]
    assert lines[1].startswith("Forecast ")
    assert "Too few such forecasts" in lines[2]
    assert bob("forecast", "waiting", "-o", "json").parse()["outlook"] == "starts"
    assert bob("forecast", "train1").out == "It does not wait.\n"


def test_alternatives_of_a_cluster_that_does_not_answer_say_so(bob: CommandLine) -> None:
    output = bob("forecast", "waiting", "--alternatives").out
    assert output.startswith("Nothing was played. ")
    assert bob("forecast", "waiting", "--alternatives", "-o", "json").parse()["asItIs"] is None


def test_a_dry_run_shows_objects_and_fit_and_submits_nothing(bob: CommandLine) -> None:
    output = bob(*SUBMIT, "dry", "--workers", "3", "--dry-run", "--", "python", "a b.py").out
    assert "kind: PyTorchJob" in output
    assert "# Within the quota" in output
    assert "a b.py" in output
    bob("get", "dry", code=5)


def test_what_is_typed_reaches_the_server_whole(bob: CommandLine, console: Console) -> None:
    bob(
        *SUBMIT,
        "whole",
        "--workers=2",
        "--env=A=b=c",
        "--env=KEY=secret:keys/one",
        "--label=team=vision",
        "--toleration=gpu=yes:NoSchedule",
        "--node-pool=default",
        "--image-pull-secret=one two",
        "--image-pull-secret=three",
        "--priority=HIGH",
        "--pvc=claimName=data,path=/data,existingPvc=true",
        "--master-env=ROLE=master",
        "--host-ipc",
        "--no-run-as-non-root",
    )
    found = bob("get", "whole", "-o", "json").parse()
    body = bob("api", "GET", f"/workloads/distributed/{found['id']}").parse()
    spec = body["spec"]
    assert spec["distributedFramework"] == "PyTorch"
    assert [each["name"] for each in spec["environmentVariables"]] == ["A", "KEY"]
    assert spec["environmentVariables"][0]["value"] == "b=c"
    assert spec["environmentVariables"][1]["secret"] == {"name": "keys", "key": "one"}
    assert spec["labels"] == [{"name": "team", "value": "vision"}]
    assert spec["tolerations"][0]["effect"] == "NoSchedule"
    assert spec["priorityClass"] == "high"
    assert [each["name"] for each in spec["imagePullSecrets"]] == ["one", "two", "three"]
    assert spec["storage"]["pvc"][0]["claimName"] == "data"
    assert spec["security"] == {"hostIpc": True, "runAsNonRoot": False}
    master = body["masterSpec"]
    assert master["environmentVariables"] == [{"name": "ROLE", "value": "master"}]
    assert master["image"] == "muster/allreduce"
    assert master["storage"] == spec["storage"]
    bob("copy", "whole", "whole-copy", "--workers", "4")
    copied = bob("get", "whole-copy", "-o", "json").parse()
    assert copied["requestedPods"]["number"] == 5
    assert "being stopped" in bob("stop", "whole-copy").out
    bob("delete", "whole", "whole-copy", code=2)
    bob("delete", "whole", "whole-copy", "--yes")


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_file_is_submitted_with_the_flags_over_it(bob: CommandLine, suffix: str) -> None:
    spec = {"image": "muster/allreduce", "numWorkers": 2}
    body = {"name": f"of-{suffix}", "project": "team-a", "framework": "PyTorch", "spec": spec}
    text = json.dumps(body)
    if suffix == "yaml":
        text = (
            f"name: of-{suffix}\nproject: team-a\nframework: PyTorch\n"
            "spec: {image: muster/allreduce, numWorkers: 2}\n"
        )
    Path(bob.home, f"a.{suffix}").write_text(text)
    assert "PyTorchJob" in bob("submit", "-f", f"a.{suffix}", "--dry-run").out
    outcome = bob(
        "submit", "pytorch", "other", "-f", "-", "--workers", "5", "--dry-run", stdin=text
    )
    assert "name: other" in outcome.out
    assert "replicas: 5" in outcome.out


def test_standard_workloads_and_templates_are_submitted(bob: CommandLine) -> None:
    bob("submit", "standard", "one", "--image", "a", "--completions", "2", "--parallelism", "2")
    assert bob("get", "one", "-o", "json").parse()["type"] == "Training"
    spec = {"image": "a", "distributedFramework": "JAX", "numWorkers": 3}
    meta = {"name": "base", "scope": "project", "projectId": "1"}
    body = json.dumps({"meta": meta, "spec": spec})
    bob("template", "create", "-f", "-", stdin=body)
    output = bob("submit", "--template", "base", "--name", "made", "--dry-run").out
    assert "kind: JAXJob" in output
    bob("submit", "--template", "none", "--name", "made", code=5)


def test_refusals_are_told_by_field_with_the_servers_words(bob: CommandLine) -> None:
    refused = bob("submit", "pytorch", "Bad_Name", "--image", "a b", code=1)
    assert not refused.out
    assert "name" in refused.err
    assert "--image (spec.image): " in refused.err
    wrong = bob(*SUBMIT, "x", "--memory=10XB", "--master-env=1A=b", "--pvc=path=relative", code=1)
    for each in (
        "--memory (spec.compute.cpu",
        "--master-env (masterSpec.",
        "--pvc (spec.storage.p",
    ):
        assert each in wrong.err
    assert "no such option" in bob("submit", "pytorch", "x", "--wrong", code=2).err.lower()
    assert "claimName" in bob(*SUBMIT, "x", "--pvc=nonsense=1", code=2).err
    bob(*SUBMIT, "train1", code=6)
    bob("run", "train1", code=6)
    bob("frobnicate", code=2)


def test_waiting_ends_with_a_code_of_its_own(bob: CommandLine) -> None:
    bob("wait", "train1", "--for", "running")
    bob("wait", "old")
    bob("wait", "failed", code=1)
    bob("wait", "failed", "--for", "running", code=1)
    assert "Pending" in bob("wait", "waiting", "--timeout", "1s", code=124).err
    bob("wait", "waiting", "--timeout", "soon", code=2)


def test_prune_takes_what_ended_long_ago_and_asks(bob: CommandLine) -> None:
    assert "--all-projects" in bob("prune", "--older-than", "30d", "-y", code=2).err
    prune = ("prune", "--all-projects", "--older-than")
    assert bob(*prune, "30d", "--dry-run").out.startswith("team-a/old ")
    assert "--yes" in bob(*prune, "30d", code=2).err
    assert not bob(*prune, "60d", "--dry-run").out


def test_what_is_not_yours_is_not_there_and_what_you_may_not_is_forbidden(
    stranger: CommandLine, console: Console
) -> None:
    mallory = stranger.sign_in(console.web.url, "mallory")
    mallory("get", "train1", code=5)
    mallory("get", console.ids["train1"], code=5)
    vera = stranger.sign_in(console.web.url, "vera")
    assert "may not" in vera("stop", "train1", code=4).err


def test_a_page_is_named_and_nothing_else_is_needed(bob: CommandLine, console: Console) -> None:
    address = bob("open", "train1").out.strip()
    assert address == f"{console.web.url}/workloads/{console.ids['train1']}"
    assert bob("api", "GET", "/workloads/count").parse()["count"] > 0
    bob("api", "GET", "/nowhere", code=5)
    for shell in ("bash", "zsh", "fish"):
        assert "_MUSTER_COMPLETE" in bob("completion", shell).out


def test_usage_says_what_became_of_gpu_hours(bob: CommandLine) -> None:
    month = ("usage", "--month", "2026-10")
    assert bob(*month).out.split()[:4] == ["NAME", "ALLOCATED", "USEFUL", "WAITING"]
    [item] = bob(*month, "-o", "json").parse()
    assert (item["name"], item["allocatedHours"], item["idleHours"]) == ("team-a", 4.5, 1.0)
    lines = bob(*month, "--by", "workload", "-A", "-o", "csv").out.splitlines()
    assert [line.split(",")[:4] for line in lines[1:]] == [
        ["train1", "team-a", "bob", "4.0"],
        ["old", "team-a", "vera", "0.5"],
    ]
    assert "Nothing held GPUs" in bob("usage", "--month", "2020-01", "--by", "user").out
    assert "month as 2026-11" in bob("usage", "--month", "now", code=2).err


def test_at_shows_a_past_moment(bob: CommandLine) -> None:
    text = bob("at").out
    assert "The state at 20" in text
    assert "Waited" in text
    found = bob("at", "-o", "json").parse()
    assert found["running"]["workloads"]
    assert "The record begins at" in bob("at", "2020-01-01 10:00", code=1).err
    assert "in your time" in bob("at", "tuesday", code=2).err
