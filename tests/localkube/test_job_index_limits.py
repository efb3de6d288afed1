"""Indexed Jobs whose indexes fail and succeed alone: limits per index and success policies."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from localkube import clock
from localkube.controllers.index_failures import (
    FAILURE_COUNT,
    IGNORED_FAILURE_COUNT,
    IndexFailures,
)
from localkube.controllers.job_rules import COMPLETION_INDEX
from localkube.controllers.jobs import JobController
from localkube.metadata import Object
from localkube.resources import JOBS, PODS
from localkube.resources.jobs import UNLIMITED
from tests.localkube.resource_objects import build_object, find_texts, pod, prepare_object
from tests.localkube.stage import START, Stage, conditions

FAIL_INDEX = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}
IGNORE = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path / "state.db", monkeypatch, lambda objects: [JobController(objects)])
    yield made
    made.close()


def job(**spec: Any) -> Object:
    template = {"spec": pod(restartPolicy="Never")["spec"]}
    fields = {"completionMode": "Indexed", "completions": 3, "parallelism": 3} | spec
    kept = {name: value for name, value in fields.items() if value is not None}
    return build_object(JOBS, "j", spec={"template": template, **kept})


def submit(stage: Stage, **spec: Any) -> None:
    stage.create(JOBS, job(**spec))


def find_running(stage: Stage) -> dict[int, str]:
    """Return the names of the pods that have not ended, by their index."""
    return {
        int(name.split("-")[1]): name
        for name, phase in stage.phases().items()
        if phase not in ("Succeeded", "Failed")
    }


def end(stage: Stage, index: int, code: int) -> None:
    stage.end(find_running(stage)[index], code, "main")


def status(stage: Stage) -> Object:
    found: Object = stage.get(JOBS, "j")["status"]
    return found


def job_conditions(stage: Stage) -> list[tuple[str, str, str]]:
    return conditions(stage.get(JOBS, "j"))


def failure_conditions(reason: str) -> list[tuple[str, str, str]]:
    return [("FailureTarget", "True", reason), ("Failed", "True", reason)]


def test_an_index_beyond_its_limit_fails_alone_and_the_job_once_the_others_have_ended(
    stage: Stage,
) -> None:
    submit(stage, backoffLimitPerIndex=1)
    end(stage, 0, 1)
    stage.settle(10)
    assert sorted(find_running(stage)) == [0, 1, 2]
    end(stage, 0, 1)
    stage.settle(600)
    assert (sorted(find_running(stage)), status(stage)["failedIndexes"], job_conditions(stage)) == (
        [1, 2],
        "0",
        [],
    )
    end(stage, 1, 0)
    end(stage, 2, 0)
    assert job_conditions(stage) == failure_conditions("FailedIndexes")
    done = status(stage)
    assert (done["failed"], done["succeeded"], done["completedIndexes"]) == (2, 2, "1,2")
    assert stage.events("Job")[-1] == ("Warning", "FailedIndexes", "Job has failed indexes")


def test_a_job_whose_indexes_stay_within_their_limit_is_complete(stage: Stage) -> None:
    submit(stage, backoffLimitPerIndex=1)
    for index in range(3):
        end(stage, index, 1)
    stage.settle(10)
    for index in range(3):
        end(stage, index, 0)
    assert [kind for kind, _, _ in job_conditions(stage)] == ["SuccessCriteriaMet", "Complete"]
    assert (status(stage)["failedIndexes"], status(stage)["failed"]) == ("", 3)


def test_each_index_waits_after_its_own_failures_only(stage: Stage) -> None:
    submit(stage, backoffLimitPerIndex=5)
    for delay in (10, 20, 40):
        end(stage, 1, 1)
        stage.settle(delay - 1)
        assert sorted(find_running(stage)) == [0, 2]
        end(stage, 0, 1)
        stage.settle(1)
        assert 1 in find_running(stage)
        stage.settle(400)
    assert sorted(find_running(stage)) == [0, 1, 2]


def test_many_indexes_that_wait_hold_up_no_other(stage: Stage) -> None:
    submit(stage, backoffLimitPerIndex=5, completions=40, parallelism=12)
    for index in range(12):
        end(stage, index, 1)
    assert sorted(find_running(stage)) == list(range(12, 24))
    stage.settle(10)
    end(stage, 20, 0)
    assert sorted(find_running(stage)) == [0, *range(12, 20), *range(21, 24)]
    for index in (0, *range(12, 20), *range(21, 24)):
        end(stage, index, 1)
    assert sorted(find_running(stage)) == [*range(1, 12), 24]


def test_at_the_end_of_a_job_the_indexes_that_wait_start_when_their_time_has_come(
    stage: Stage,
) -> None:
    submit(stage, backoffLimitPerIndex=5, completions=12, parallelism=12)
    for index in range(12):
        end(stage, index, 1)
    stage.settle(9)
    assert find_running(stage) == {}
    stage.settle(1)
    assert sorted(find_running(stage)) == list(range(12))


def test_a_clock_that_was_set_back_delays_no_index() -> None:
    failures, failed_pod = IndexFailures(), pod({COMPLETION_INDEX: "0"})
    failed_pod["metadata"]["creationTimestamp"] = clock.format_time(START)
    failures.add_failure(failed_pod, is_ignored=False)
    assert failures.seconds_until_retry(0, START + timedelta(seconds=4)) == 6
    assert failures.seconds_until_retry(0, START - timedelta(hours=1)) == 0


@pytest.mark.parametrize("restarts", [False, True])
def test_pods_carry_the_failures_of_their_index_also_over_a_restart(
    stage: Stage, restarts: bool
) -> None:
    submit(stage, backoffLimitPerIndex=2, podFailurePolicy={"rules": [IGNORE]})

    def annotations() -> tuple[str | None, str | None]:
        found = stage.get(PODS, find_running(stage)[0])["metadata"]["annotations"]
        return found.get(FAILURE_COUNT), found.get(IGNORED_FAILURE_COUNT)

    assert annotations() == ("0", None)
    for code, expected in ((1, ("1", None)), (7, ("1", "1")), (1, ("2", "1"))):
        end(stage, 0, code)
        if restarts:
            stage.close()
            stage.open()
        stage.settle(400)
        assert annotations() == expected
    end(stage, 0, 1)
    assert status(stage)["failedIndexes"] == "0"


def test_a_policy_can_fail_an_index_at_once(stage: Stage) -> None:
    submit(stage, backoffLimitPerIndex=5, podFailurePolicy={"rules": [FAIL_INDEX]})
    end(stage, 2, 42)
    stage.settle(600)
    assert (sorted(find_running(stage)), status(stage)["failedIndexes"]) == ([0, 1], "2")


def test_beyond_the_most_failed_indexes_the_job_fails_and_its_pods_go(stage: Stage) -> None:
    submit(stage, backoffLimitPerIndex=0, maxFailedIndexes=1, completions=5, parallelism=5)
    end(stage, 0, 1)
    assert (job_conditions(stage), len(find_running(stage))) == ([], 4)
    end(stage, 1, 1)
    stage.confirm_deletions()
    assert (job_conditions(stage), find_running(stage)) == (
        failure_conditions("MaxFailedIndexesExceeded"),
        {},
    )


@pytest.mark.parametrize(
    ("rules", "needed"),
    [
        ([{"succeededIndexes": "1"}], [1]),
        ([{"succeededIndexes": "0-2", "succeededCount": 2}], [2, 0]),
        ([{"succeededCount": 2}], [1, 2]),
        ([{"succeededIndexes": "2"}, {"succeededIndexes": "0,1"}], [0, 1]),
    ],
)
def test_a_job_succeeds_by_the_first_rule_that_is_fulfilled(
    stage: Stage, rules: list[Object], needed: list[int]
) -> None:
    submit(stage, successPolicy={"rules": rules})
    for index in needed:
        assert job_conditions(stage) == []
        end(stage, index, 0)
    stage.confirm_deletions()
    assert job_conditions(stage) == [
        ("SuccessCriteriaMet", "True", "SuccessPolicy"),
        ("Complete", "True", "SuccessPolicy"),
    ]
    done = status(stage)
    assert done["conditions"][1]["message"] == f"Matched rules at index {len(rules) - 1}"
    assert (done["succeeded"], "completionTime" in done, find_running(stage)) == (
        len(needed),
        True,
        {},
    )


def test_a_limit_per_index_stands_instead_of_the_usual_one() -> None:
    assert prepare_object(JOBS, job())["spec"]["backoffLimit"] == 6
    limited = prepare_object(JOBS, job(backoffLimitPerIndex=1))
    assert limited["spec"]["backoffLimit"] == UNLIMITED


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        ({"backoffLimitPerIndex": 0, "maxFailedIndexes": 3}, []),
        (
            {"completionMode": "NonIndexed", "backoffLimitPerIndex": 1, "maxFailedIndexes": 1},
            [
                "backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
                "maxFailedIndexes: Invalid value: 1: requires indexed completion mode",
            ],
        ),
        (
            {"maxFailedIndexes": 1},
            ["backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"],
        ),
        (
            {"backoffLimitPerIndex": 1, "maxFailedIndexes": 4},
            ["maxFailedIndexes: Invalid value: 4: must be less than or equal to completions"],
        ),
        (
            {"completions": -1},
            ["completions: Invalid value: -1: must be greater than or equal to 0"],
        ),
        ({"completions": None}, ["completions: Required value: when completion mode is Indexed"]),
        (
            {"successPolicy": {}},
            [
                "successPolicy.rules: Required value: at least one rules must be specified when "
                "the successPolicy is specified"
            ],
        ),
        (
            {"successPolicy": {"rules": [{"succeededCount": 1}] * 21}},
            ["successPolicy.rules: Too many: 21: must have at most 20 items"],
        ),
    ],
)
def test_limits_that_make_no_sense_are_refused(spec: Object, texts: list[str]) -> None:
    assert find_texts(JOBS, job(**spec)) == [f"spec.{text}" for text in texts]


def test_a_stored_job_with_such_limits_still_gets_its_status() -> None:
    stored = job(completionMode="NonIndexed", backoffLimitPerIndex=1)
    assert find_texts(JOBS, stored | {"status": {"active": 1}}, stored) == []
    changed = job(completionMode="NonIndexed", backoffLimitPerIndex=1, suspend=True)
    assert find_texts(JOBS, changed, stored) == [
        "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"
    ]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"succeededIndexes": "0,1-2", "succeededCount": 3}, ""),
        ({}, ": Required value: at least one of succeededCount or succeededIndexes"),
        ({"succeededCount": -1}, ".succeededCount: Invalid value: -1: must be greater than or"),
        (
            {"succeededCount": 4},
            ".succeededCount: Invalid value: 4: must be less than or equal to 3 (the number of "
            "specified completions)",
        ),
        (
            {"succeededCount": 2, "succeededIndexes": "1"},
            ".succeededCount: Invalid value: 2: must be less than or equal to 1 (the number of "
            "indexes in the specified succeededIndexes field)",
        ),
        ({"succeededIndexes": "x"}, 'cannot convert string to integer for index: "x"'),
        ({"succeededIndexes": "3"}, 'too large index: "3"'),
        ({"succeededIndexes": "2,1"}, "non-increasing order, previous: 2, current: 1"),
        ({"succeededIndexes": "1-1"}, "non-increasing order, previous: 1, current: 1"),
        ({"succeededIndexes": "0-1-2"}, 'the fragment "0-1-2" violates the requirement'),
        ({"succeededIndexes": "0," * 40_000}, "Too long: may not be more than 65536 bytes"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(rule: Object, text: str) -> None:
    found = find_texts(JOBS, job(successPolicy={"rules": [rule]}))
    assert len(found) == bool(text)
    assert all(text in each for each in found), found
