"""batch/v1 Jobs: parallelism and completions, indexes, failures and their delays, suspension,
deadlines, what is counted.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from localkube.controllers.expiry import JobExpiry
from localkube.controllers.garbage import GarbageCollector
from localkube.controllers.job_rules import format_indexes, parse_indexes, seconds_until_retry
from localkube.controllers.jobs import JobController
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, name_of
from localkube.resources import JOBS, PODS
from tests.localkube.stage import SPACE, START, Stage, conditions

REACHED = [
    ("SuccessCriteriaMet", "True", "CompletionsReached"),
    ("Complete", "True", "CompletionsReached"),
]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db",
        monkeypatch,
        lambda objects: [JobController(objects), JobExpiry(objects), GarbageCollector(objects)],
    )
    yield made
    made.close()


def submit(stage: Stage, restart: str = "Never", **spec: Any) -> None:
    template = {"spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": "x"}]}}
    stage.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template, **spec}})


def status(stage: Stage) -> Object:
    found: Object = stage.get(JOBS, "j")["status"]
    return found


def job_conditions(stage: Stage) -> list[tuple[str, str, str]]:
    return conditions(stage.get(JOBS, "j"))


def unfinished_pods(stage: Stage) -> list[str]:
    return [name for name, phase in stage.phases().items() if phase not in ("Succeeded", "Failed")]


def end(stage: Stage, code: int, count: int = 1, **more: Any) -> None:
    """The first `count` pods that have not ended end."""
    for pod in unfinished_pods(stage)[:count]:
        stage.end(pod, code, "main", **more)


def test_a_job_runs_one_pod_and_is_complete(stage: Stage) -> None:
    submit(stage)
    (pod,) = stage.objects.list(PODS, SPACE)
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert pod["metadata"]["name"].startswith("j-")
    stage.report(name_of(pod), "Running", conditions=[{"type": "Ready", "status": "True"}])
    assert status(stage) | {
        "active": 1,
        "ready": 1,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    } == status(stage)
    end(stage, 0)
    assert job_conditions(stage) == REACHED
    done = status(stage)
    assert (done["succeeded"], done["ready"], done["completionTime"]) == (
        1,
        0,
        "2026-11-21T03:00:00Z",
    )
    assert "active" not in done
    assert "finalizers" not in stage.objects.list(PODS, SPACE)[0]["metadata"]
    assert stage.reasons("Job") == ["SuccessfulCreate", "Completed"]


def test_a_job_ends_whatever_others_wrote_into_its_conditions(stage: Stage) -> None:
    submit(stage)

    def write_incomplete(job: Object) -> None:
        types = ("Complete", "Failed", "SuccessCriteriaMet", "Suspended")
        job["status"]["conditions"] = [{}, *({"type": each} for each in types)]

    stage.objects.modify(JOBS, SPACE, "j", write_incomplete, subresource="status")
    stage.settle()
    end(stage, 0)
    assert [each for each in status(stage)["conditions"] if each.get("status") == "True"] != []
    assert status(stage)["succeeded"] == 1


def test_never_more_pods_than_parallelism_nor_than_are_still_wanted(stage: Stage) -> None:
    submit(stage, completions=5, parallelism=3)
    assert len(unfinished_pods(stage)) == 3
    end(stage, 0, 3)
    assert len(unfinished_pods(stage)) == 2
    end(stage, 0, 2)
    assert job_conditions(stage) == REACHED
    assert status(stage)["succeeded"] == 5


def test_a_work_queue_is_done_when_one_has_succeeded_and_all_have_ended(stage: Stage) -> None:
    submit(stage, parallelism=3)
    end(stage, 0)
    assert (len(unfinished_pods(stage)), job_conditions(stage)) == (2, [])
    end(stage, 0, 2)
    assert job_conditions(stage) == REACHED


def change_spec(stage: Stage, **fields: Any) -> None:
    stage.modify(JOBS, "j", lambda job: job["spec"].update(fields))


def test_changing_the_parallelism_starts_and_removes_pods(stage: Stage) -> None:
    submit(stage, parallelism=1, completions=10)
    for count in (4, 2):
        change_spec(stage, parallelism=count)
        assert len(unfinished_pods(stage)) == count
    assert "failed" not in status(stage)


def test_indexed_pods_carry_their_index(stage: Stage) -> None:
    submit(stage, completions=3, parallelism=3, completionMode="Indexed")
    pods = stage.objects.list(PODS, SPACE)
    key = "batch.kubernetes.io/job-completion-index"
    assert [pod["metadata"]["name"][:4] for pod in pods] == ["j-0-", "j-1-", "j-2-"]
    assert [pod["metadata"]["annotations"][key] for pod in pods] == ["0", "1", "2"]
    assert [pod["spec"]["hostname"] for pod in pods] == ["j-0", "j-1", "j-2"]
    assert pods[0]["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


def test_a_failed_index_is_run_again_until_all_have_succeeded(stage: Stage) -> None:
    submit(stage, completions=3, parallelism=3, completionMode="Indexed")
    end(stage, 1)
    stage.settle(10)
    assert sorted(name[:4] for name in unfinished_pods(stage)) == ["j-0-", "j-1-", "j-2-"]
    for name in [name for name in unfinished_pods(stage) if not name.startswith("j-1-")]:
        stage.end(name, 0, "main")
    assert status(stage)["completedIndexes"] == "0,2"
    end(stage, 0)
    assert (status(stage)["completedIndexes"], status(stage)["succeeded"]) == ("0-2", 3)
    assert job_conditions(stage) == REACHED


def unfinished_indexes(stage: Stage) -> list[int]:
    return sorted(int(name.split("-")[1]) for name in unfinished_pods(stage))


def test_an_indexed_job_that_shrinks_and_grows_again_has_each_index_once(stage: Stage) -> None:
    submit(stage, completions=5, parallelism=5, completionMode="Indexed")
    for count in (2, 5):
        change_spec(stage, completions=count, parallelism=count)
        assert unfinished_indexes(stage) == list(range(count))


@pytest.mark.parametrize("restarts", [True, False])
def test_a_lost_index_is_made_again_also_after_a_restart(stage: Stage, restarts: bool) -> None:
    submit(stage, completions=12, parallelism=12, completionMode="Indexed")
    lost = [name for name in unfinished_pods(stage) if name.startswith(("j-3-", "j-7-"))]
    if restarts:
        stage.close()
        stage.open()
        stage.settle()
    for name in lost:
        stage.delete(PODS, name)
    stage.settle(30)
    assert not {*lost} & {*unfinished_pods(stage)}
    assert unfinished_indexes(stage) == list(range(12))


def test_an_index_whose_success_somebody_takes_back_is_run_again(stage: Stage) -> None:
    submit(stage, completions=3, parallelism=1, completionMode="Indexed")
    end(stage, 0)
    assert unfinished_indexes(stage) == [1]
    stage.objects.modify(
        JOBS,
        SPACE,
        "j",
        lambda job: job["status"].pop("completedIndexes"),
        subresource="status",
    )
    stage.settle()
    for _ in range(3):
        end(stage, 0)
    assert status(stage)["completedIndexes"] == "0-2"


@pytest.mark.parametrize("text", ["", "0", "0,1", "0-2", "1,3-5,8,9", "0,2,4-7"])
def test_indexes_are_read_and_written_alike(text: str) -> None:
    assert format_indexes(parse_indexes(text, 10)) == text


def test_each_failure_doubles_the_delay_up_to_six_minutes(stage: Stage) -> None:
    submit(stage, backoffLimit=20)
    for delay in (10, 20, 40, 80, 160, 320, 360, 360):
        end(stage, 1)
        stage.settle(delay - 1)
        assert unfinished_pods(stage) == []
        stage.settle(1)
        assert len(unfinished_pods(stage)) == 1


def test_a_clock_that_was_set_back_delays_no_pod() -> None:
    ended = [START, START + timedelta(hours=1)]
    assert seconds_until_retry(ended, None, START) == 10
    assert seconds_until_retry(ended[1:], None, START) == 0


def test_beyond_the_limit_the_job_fails_once_its_last_pod_has_ended(stage: Stage) -> None:
    submit(stage, backoffLimit=1, completions=4, parallelism=2)
    stage.report(unfinished_pods(stage)[1], "Running")
    end(stage, 1)
    stage.settle(10)
    running = unfinished_pods(stage)
    stage.report(running[1], "Running")
    stage.end(running[0], 1, "main")
    why = "BackoffLimitExceeded"
    assert job_conditions(stage) == [("FailureTarget", "True", why)]
    stage.confirm_deletions()
    assert job_conditions(stage) == [("FailureTarget", "True", why), ("Failed", "True", why)]
    assert stage.events("Job")[-1] == (
        "Warning",
        why,
        "Job has reached the specified backoff limit",
    )
    assert status(stage)["failed"] == 3


def test_restarts_in_place_count_too(stage: Stage) -> None:
    submit(stage, "OnFailure", backoffLimit=2)
    (pod,) = unfinished_pods(stage)
    for restarts in (1, 2):
        assert job_conditions(stage) == []
        stage.report(pod, "Running", containerStatuses=[{"name": "main", "restartCount": restarts}])
    stage.confirm_deletions()
    assert job_conditions(stage)[-1] == ("Failed", "True", "BackoffLimitExceeded")


def test_the_deadline_fails_the_job(stage: Stage) -> None:
    submit(stage, activeDeadlineSeconds=30)
    (pod,) = unfinished_pods(stage)
    stage.report(pod, "Running")
    stage.settle(30)
    assert job_conditions(stage) == [("FailureTarget", "True", "DeadlineExceeded")]
    stage.confirm_deletions()
    assert job_conditions(stage)[-1] == ("Failed", "True", "DeadlineExceeded")
    assert stage.events("Job")[-1] == (
        "Warning",
        "DeadlineExceeded",
        "Job was active longer than specified deadline",
    )


def test_suspension_takes_the_pods_without_counting_them_and_resumes_with_a_new_start(
    stage: Stage,
) -> None:
    submit(stage, parallelism=2, completions=2)
    for pod in unfinished_pods(stage):
        stage.report(pod, "Running")
    first = status(stage)["startTime"]
    stage.modify(JOBS, "j", lambda job: job["spec"].update(suspend=True))
    assert job_conditions(stage) == [("Suspended", "True", "JobSuspended")]
    assert status(stage)["terminating"] == 2
    stage.confirm_deletions()
    assert (stage.names(PODS), "failed" in status(stage)) == ([], False)
    stage.settle(100)
    stage.modify(JOBS, "j", lambda job: job["spec"].update(suspend=False))
    assert job_conditions(stage) == [("Suspended", "False", "JobResumed")]
    assert (len(unfinished_pods(stage)), status(stage)["startTime"] > first) == (2, True)
    assert [reason for reason in stage.reasons("Job") if reason in ("Suspended", "Resumed")] == [
        "Suspended",
        "Resumed",
    ]


def test_the_time_in_suspension_does_not_count_against_the_deadline(stage: Stage) -> None:
    submit(stage, activeDeadlineSeconds=30)
    stage.modify(JOBS, "j", lambda job: job["spec"].update(suspend=True))
    stage.settle(100)
    stage.modify(JOBS, "j", lambda job: job["spec"].update(suspend=False))
    assert job_conditions(stage) == [("Suspended", "False", "JobResumed")]
    (pod,) = unfinished_pods(stage)
    stage.report(pod, "Running")
    stage.settle(29)
    assert unfinished_pods(stage) == [pod]
    stage.settle(1)
    assert job_conditions(stage)[-1] == ("FailureTarget", "True", "DeadlineExceeded")


def test_a_job_made_suspended_starts_nothing(stage: Stage) -> None:
    submit(stage, suspend=True)
    assert (stage.names(PODS), "startTime" in status(stage)) == ([], False)


def test_a_node_shutdown_counts_for_nothing(stage: Stage) -> None:
    submit(stage, backoffLimit=0)
    stage.shut_down(*unfinished_pods(stage))
    assert len(unfinished_pods(stage)) == len(stage.names(PODS)) == 1
    end(stage, 0)
    assert job_conditions(stage) == REACHED
    assert "failed" not in status(stage)


def test_a_deleted_pod_is_counted_and_replaced_at_once(stage: Stage) -> None:
    submit(stage)
    (pod,) = unfinished_pods(stage)
    stage.report(pod, "Running")
    stage.delete(PODS, pod)
    assert (status(stage)["failed"], status(stage)["terminating"], len(unfinished_pods(stage))) == (
        1,
        1,
        2,
    )
    stage.confirm_deletions()
    assert pod not in stage.names(PODS)


def test_with_replacement_policy_failed_the_next_pod_waits_for_the_last(stage: Stage) -> None:
    submit(stage, podReplacementPolicy="Failed")
    (pod,) = unfinished_pods(stage)
    stage.report(pod, "Running")
    stage.delete(PODS, pod)
    assert (unfinished_pods(stage), "failed" in status(stage)) == ([pod], False)
    stage.confirm_deletions()
    assert (len(unfinished_pods(stage)), status(stage)["failed"]) == (1, 1)


def test_a_success_is_counted_although_its_pod_is_deleted_at_once(stage: Stage) -> None:
    submit(stage, completions=2)
    (pod,) = unfinished_pods(stage)
    stage.report(pod, "Succeeded", settle=False)
    stage.objects.delete(PODS, SPACE, pod)
    stage.settle()
    assert status(stage)["succeeded"] == 1
    assert pod not in stage.names(PODS)


def failure_policy(action: str, **match: Any) -> Object:
    return {"rules": [{"action": action, **match}]}


def test_an_ignored_disruption_does_not_count(stage: Stage) -> None:
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    submit(
        stage,
        backoffLimit=0,
        podFailurePolicy=failure_policy("Ignore", onPodConditions=[disrupted]),
    )
    end(stage, 137, conditions=[disrupted])
    assert (job_conditions(stage), len(unfinished_pods(stage)), "failed" in status(stage)) == (
        [],
        1,
        False,
    )


def test_an_exit_code_can_fail_the_whole_job(stage: Stage) -> None:
    submit(
        stage,
        podFailurePolicy=failure_policy("FailJob", onExitCodes={"operator": "In", "values": [42]}),
    )
    (pod,) = unfinished_pods(stage)
    end(stage, 42)
    assert job_conditions(stage)[-1] == ("Failed", "True", "PodFailurePolicy")
    message = (
        f"Container main for pod team/{pod} failed with exit code 42 matching FailJob rule at "
        "index 0"
    )
    assert stage.events("Job")[-1] == ("Warning", "PodFailurePolicy", message)


@pytest.mark.parametrize("code", [0, 1])
def test_a_finished_job_goes_after_its_time_to_live(stage: Stage, code: int) -> None:
    submit(stage, backoffLimit=0, ttlSecondsAfterFinished=50)
    end(stage, code)
    stage.settle(49)
    assert stage.names(JOBS) == ["j"]
    stage.settle(1)
    assert (stage.names(JOBS), stage.names(PODS)) == ([], [])


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_deleting_a_job_frees_its_pods(stage: Stage, policy: str) -> None:
    submit(stage, parallelism=2, completions=2)
    for pod in unfinished_pods(stage):
        stage.report(pod, "Running")
    stage.objects.delete(JOBS, SPACE, "j", DeleteOptions(propagation_policy=policy))  # type: ignore[arg-type]
    stage.settle()
    stage.confirm_deletions()
    assert (stage.names(JOBS), stage.names(PODS)) == ([], [])


def test_orphaned_pods_lose_their_finalizer_and_live_on(stage: Stage) -> None:
    submit(stage)
    stage.delete(JOBS, "j", propagation_policy="Orphan")
    (pod,) = stage.objects.list(PODS, SPACE)
    assert not {"finalizers", "ownerReferences"} & set(pod["metadata"])


def test_a_large_job_is_started_in_steps(stage: Stage) -> None:
    submit(stage, parallelism=60, completions=60)
    assert len(unfinished_pods(stage)) == 60
