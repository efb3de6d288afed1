"""The lives of pods: real processes under a real kubelet."""

import asyncio
from pathlib import Path

import pytest

from localkube.errors import ApiError
from localkube.metadata import Object, find_condition
from localkube.resources import PODS
from tests.localkube.kubelets import TEAM, machine, pod, shell


def conditions(status: Object) -> dict[str, tuple[str, str]]:
    return {
        entry["type"]: (entry["status"], entry.get("reason", "")) for entry in status["conditions"]
    }


def test_a_pod_that_succeeds_goes_through_its_states(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("echo hello; exit 0")))
            status = await here.finished()
            assert status["phase"] == "Succeeded"
            ended = status["containerStatuses"][0]
            assert (
                ended["state"]["terminated"].items()
                >= {"exitCode": 0, "reason": "Completed"}.items()
            )
            assert ended["restartCount"] == 0
            assert ended["containerID"].startswith("localkube://")
            assert conditions(status)["Ready"] == ("False", "PodCompleted")
            assert await here.log() == "hello\n"
            assert [reason for reason, _ in here.events()] == ["Pulled", "Created", "Started"]
            assert ("Created", "Created container: main") in here.events()

    asyncio.run(scenario())


def test_a_pod_ends_whatever_others_write_into_its_status(tmp_path: Path) -> None:
    def write_incomplete(pod: Object) -> None:
        pod["status"] |= {
            "conditions": [{"status": "True"}, {"type": "PodScheduled"}],
            "containerStatuses": [{}, {"ready": True}],
        }

    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            done = tmp_path / "done"
            here.submit(pod(shell(f"until [ -e {done} ]; do sleep 0.05; done")))
            await here.running()
            here.objects.modify(PODS, TEAM, "p", write_incomplete, subresource="status")
            done.touch()
            status = await here.finished()
            assert status["phase"] == "Succeeded"
            assert status["containerStatuses"][0]["name"] == "main"

    asyncio.run(scenario())


def test_a_running_pod_is_ready_at_the_address_of_this_machine(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("sleep 100")))
            await here.running()
            status = here.status()
            assert (status["phase"], status["podIP"], status["hostIP"]) == (
                "Running",
                "127.0.0.1",
                "127.0.0.1",
            )
            assert {kind for kind, (holds, _) in conditions(status).items() if holds == "True"} == {
                "PodReadyToStartContainers",
                "Initialized",
                "Ready",
                "ContainersReady",
                "PodScheduled",
            }
            assert (
                status["containerStatuses"][0].items() >= {"ready": True, "started": True}.items()
            )

    asyncio.run(scenario())


def test_under_never_a_failure_is_the_pods_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("exit 3"), shell("exit 0", "other")))
            status = await here.finished()
            assert status["phase"] == "Failed"
            assert (
                status["containerStatuses"][0]["state"]["terminated"].items()
                >= {"exitCode": 3, "reason": "Error"}.items()
            )
            assert conditions(status)["ContainersReady"] == ("False", "PodFailed")

    asyncio.run(scenario())


def test_on_failure_a_container_is_restarted_and_its_log_before_is_kept(tmp_path: Path) -> None:
    script = "echo run; if [ -e $HOME/mark ]; then exit 0; fi; touch $HOME/mark; exit 7"

    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell(script), policy="OnFailure"))
            status = await here.finished()
            entry = status["containerStatuses"][0]
            assert (status["phase"], entry["restartCount"]) == ("Succeeded", 1)
            assert entry["lastState"]["terminated"]["exitCode"] == 7
            assert entry["lastState"]["terminated"]["containerID"] != entry["containerID"]
            assert await here.log(previous=True) == "run\n"

    asyncio.run(scenario())


def test_a_second_failure_backs_off_and_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("exit 1"), policy="OnFailure"))
            await here.until(
                lambda: (
                    here.container().get("state", {}).get("waiting", {}).get("reason")
                    == "CrashLoopBackOff"
                )
            )
            entry, uid = here.container(), here.pod()["metadata"]["uid"]
            assert (
                entry["state"]["waiting"]["message"]
                == f"back-off 10s restarting failed container=main pod=p_{TEAM}({uid})"
            )
            assert (entry["restartCount"], entry["lastState"]["terminated"]["exitCode"]) == (1, 1)
            assert here.status()["phase"] == "Running"
            assert (
                "BackOff",
                f"Back-off restarting failed container main in pod p_{TEAM}({uid})",
            ) in here.events()

    asyncio.run(scenario())


def test_init_containers_run_one_after_the_other_before_the_main_ones(tmp_path: Path) -> None:
    inits = [shell("echo 1 >> $HOME/order", "first"), shell("echo 2 >> $HOME/order", "second")]

    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("cat $HOME/order"), initContainers=inits))
            status = await here.finished()
            assert status["phase"] == "Succeeded"
            assert await here.log() == "1\n2\n"
            assert [entry["ready"] for entry in status["initContainerStatuses"]] == [True, True]

    asyncio.run(scenario())


def test_while_an_init_container_runs_the_main_one_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("true"), initContainers=[shell("sleep 100", "init")]))
            await here.until(
                lambda: (
                    "running"
                    in here.status().get("initContainerStatuses", [{"state": {}}])[0]["state"]
                )
            )
            status = here.status()
            assert status["phase"] == "Pending"
            assert status["containerStatuses"][0]["state"] == {
                "waiting": {"reason": "PodInitializing"}
            }
            initialized = find_condition(status["conditions"], "Initialized")
            assert initialized is not None
            assert initialized["message"] == "containers with incomplete status: [init]"

    asyncio.run(scenario())


def test_under_never_a_failed_init_container_fails_the_pod(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("true"), initContainers=[shell("exit 4", "init")]))
            status = await here.finished()
            assert status["phase"] == "Failed"
            assert "waiting" in status["containerStatuses"][0]["state"]

    asyncio.run(scenario())


def test_a_sidecar_runs_beside_the_main_container_and_ends_with_it(tmp_path: Path) -> None:
    sidecar = shell("touch $HOME/up; exec sleep 100", "proxy", restartPolicy="Always")

    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(
                pod(shell("until [ -e $HOME/up ]; do sleep 0.01; done"), initContainers=[sidecar])
            )
            status = await here.finished()
            assert status["phase"] == "Succeeded"
            assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 143

    asyncio.run(scenario())


def test_an_unknown_image_without_a_command_waits_and_says_why(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod({"name": "main", "image": "secret/sauce:1"}))
            waiting = await here.until(lambda: here.container().get("state", {}).get("waiting"))
            assert waiting["reason"] == "ErrImagePull"
            messages = [message for reason, message in here.events() if reason == "Failed"]
            assert any(
                "localkube runs commands of this machine, not images" in message
                for message in messages
            )
            assert "Error: ErrImagePull" in messages

    asyncio.run(scenario())


def test_a_missing_config_map_is_named_and_waited_for(tmp_path: Path) -> None:
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k"}}}]

    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("true", env=env)))
            waiting = await here.until(lambda: here.container().get("state", {}).get("waiting"))
            assert waiting == {
                "reason": "CreateContainerConfigError",
                "message": 'configmap "none" not found',
            }
            assert ("Failed", 'Error: configmap "none" not found') in here.events()

    asyncio.run(scenario())


def test_a_volume_that_is_not_there_is_a_failed_mount(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(
                pod(shell("true"), volumes=[{"name": "v", "nfs": {"server": "s", "path": "/"}}])
            )
            waiting = await here.until(lambda: here.container().get("state", {}).get("waiting"))
            assert waiting["reason"] == "ContainerCreating"
            assert any(
                reason == "FailedMount" and "not on localkube" in message
                for reason, message in here.events()
            )

    asyncio.run(scenario())


def test_containers_of_a_pod_share_a_volume_at_their_own_paths(tmp_path: Path) -> None:
    volume = {"name": "shared", "emptyDir": {}}
    writer = shell(
        "echo hi > /out/file", "writer", volumeMounts=[{"name": "shared", "mountPath": "/out"}]
    )
    reader = shell(
        "cat $FROM; cat /in/file",
        env=[{"name": "FROM", "value": "/in/file"}],
        volumeMounts=[{"name": "shared", "mountPath": "/in"}],
    )

    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(reader, initContainers=[writer], volumes=[volume]))
            assert (await here.finished())["phase"] == "Succeeded"
            assert await here.log() == "hi\nhi\n"

    asyncio.run(scenario())


def test_a_command_that_does_not_exist_fails_with_its_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod({"name": "main", "image": "x", "command": ["no-such-program"]}))
            ended = (await here.finished())["containerStatuses"][0]["state"]["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (127, "ContainerCannotRun")
            assert "no-such-program" in ended["message"]
            assert any(
                reason == "Failed" and "no-such-program" in message
                for reason, message in here.events()
            )

    asyncio.run(scenario())


def test_memory_over_the_limit_is_oom_killed(tmp_path: Path) -> None:
    hungry = {
        "name": "main",
        "image": "python",
        "command": ["python3", "-c", "import time; x = b'x' * (200 << 20); time.sleep(100)"],
    }

    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(hungry | {"resources": {"limits": {"memory": "64Mi"}}}))
            ended = (await here.finished())["containerStatuses"][0]["state"]["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("script", "policy", "message"),
    [
        ("echo $NOTE > /dev/termination-log; exit 1", "File", "noted\n"),
        ("echo from the log; exit 1", "FallbackToLogsOnError", "from the log\n"),
        ("echo from the log; exit 1", "File", None),
        ("rm /dev/termination-log; mkfifo /dev/termination-log; exit 1", "File", None),
    ],
)
def test_a_container_leaves_a_message(
    tmp_path: Path, script: str, policy: str, message: str | None
) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(
                pod(
                    shell(
                        script,
                        env=[{"name": "NOTE", "value": "noted"}],
                        terminationMessagePolicy=policy,
                    )
                )
            )
            ended = (await here.finished())["containerStatuses"][0]["state"]["terminated"]
            assert ended.get("message") == message

    asyncio.run(scenario())


def test_a_pod_past_its_deadline_is_ended(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("exec sleep 100")))
            # The deadline counts from the pod's start, and a slow machine may take longer than that
            # to start the container at all.
            await here.running()
            running = here.pod()
            here.objects.update(
                PODS, TEAM, "p", running | {"spec": running["spec"] | {"activeDeadlineSeconds": 1}}
            )
            status = await here.finished()
            assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
            assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143

    asyncio.run(scenario())


def test_a_pod_without_a_log_yet_is_refused_in_a_kubelets_words(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod({"name": "main", "image": "secret/sauce:1"}))
            await here.until(lambda: here.container().get("state"))
            with pytest.raises(
                ApiError, match='container "main" in pod "p" is waiting to start: ErrImagePull'
            ):
                await here.log()

    asyncio.run(scenario())


def test_without_an_earlier_run_there_is_no_previous_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("true")))
            await here.finished()
            with pytest.raises(
                ApiError, match='previous terminated container "main" in pod "p" not found'
            ):
                await here.log(previous=True)

    asyncio.run(scenario())


def test_a_held_pod_is_left_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(
                pod(shell("true"), name="held", annotations={"localkube.muster.dev/hold": "true"})
            )
            here.submit(pod(shell("true")))
            await here.finished()
            assert here.status("held")["phase"] == "Pending"
            here.delete("held")
            await here.gone("held")

    asyncio.run(scenario())
