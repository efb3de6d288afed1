"""How pods end from outside: deletion, node shutdown, and what a killed or restarted server
finds.
"""

import asyncio
import dataclasses
import os
import signal
from pathlib import Path

import pytest

from localkube import clock
from localkube.kubelet import proctree, records, runs
from localkube.machine import LogOptions
from localkube.metadata import Object, find_condition
from localkube.resources import NODES, PODS
from tests.localkube.kubelets import TEAM, Machine, machine, pod, shell

STUBBORN = "trap '' TERM; echo up; while true; do sleep 0.05; done"
POLITE = "trap 'echo bye; exit 0' TERM; echo up; while true; do sleep 0.05; done"


async def wait_until_up(here: Machine, name: str = "p") -> None:
    """Wait until the pod's script has said that it is up: its trap is set then."""
    await here.running(name)
    async for chunk in here.host.read_log(here.pod(name), "main", LogOptions(follow=True)):
        if b"up" in chunk:
            return
    raise AssertionError(f"{name} ended before it was up")


def before_the_boot(node: Object) -> None:
    node["status"]["nodeInfo"]["bootID"] = "another-boot"


def live_below(data: Path) -> list[str]:
    return [
        mark
        for mark in proctree.list_marked_processes("LOCALKUBE_RUN").values()
        if mark.startswith(str(data.resolve()))
    ]


def test_a_deleted_pod_may_end_by_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell(POLITE)))
            await wait_until_up(here)
            last: list[str] = []
            here.objects.subscribe(
                PODS, lambda change: last.append(change.record.decode()["status"]["phase"])
            )
            here.delete()
            assert here.pod()["metadata"]["deletionTimestamp"]
            await here.gone()
            assert last[-1] == "Succeeded"
            assert ("Killing", "Stopping container main") in here.events()

    asyncio.run(scenario())


def test_the_log_of_a_deleted_pod_can_be_read_after_its_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell(POLITE)))
            await wait_until_up(here)
            here.delete()
            assert (await here.finished())["phase"] == "Succeeded"
            assert "bye" in await here.log()
            await here.gone()

    asyncio.run(scenario())


def test_a_pod_that_does_not_end_in_its_grace_is_killed_with_all_its_processes(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell(f"(trap '' TERM; sleep 1000) & {STUBBORN}"), name="stubborn"))
            await wait_until_up(here, "stubborn")
            begun = clock.current_time()
            here.delete("stubborn", grace=1)
            await here.gone("stubborn")
            assert 0.9 < (clock.current_time() - begun).total_seconds() < 15
            assert live_below(tmp_path) == []

    asyncio.run(scenario())


def test_a_sidecar_ends_with_its_pod_however_long_its_grace_period(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            sidecar = shell(POLITE, "side", restartPolicy="Always")
            here.submit(
                pod(shell("true"), initContainers=[sidecar], terminationGracePeriodSeconds=2**62)
            )
            assert (await here.finished())["phase"] == "Succeeded"

    asyncio.run(scenario())


def test_a_second_deletion_may_shorten_the_grace(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell(STUBBORN), terminationGracePeriodSeconds=600))
            await wait_until_up(here)
            here.delete()
            await here.until(lambda: any(reason == "Killing" for reason, _ in here.events()))
            here.delete(grace=1)
            await here.gone()

    asyncio.run(scenario())


def test_a_forced_deletion_kills_at_once_and_leaves_nothing_on_disk(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell(STUBBORN)))
            await wait_until_up(here)
            directory = tmp_path / "data" / "pods" / here.pod()["metadata"]["uid"]
            here.delete(grace=0)
            await here.until(lambda: not directory.exists())
            assert live_below(tmp_path) == []

    asyncio.run(scenario())


def test_a_finished_pod_keeps_its_log_until_it_is_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("echo kept; touch $HOME/file")))
            await here.finished()
            directory = tmp_path / "data" / "pods" / here.pod()["metadata"]["uid"]
            await here.until(lambda: sorted(path.name for path in directory.iterdir()) == ["main"])
            assert await here.log() == "kept\n"
            here.delete()
            await here.until(lambda: not directory.exists())

    asyncio.run(scenario())


def test_a_new_pod_of_the_same_name_is_another_pod(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell(STUBBORN)))
            await wait_until_up(here)
            here.delete(grace=0)
            here.submit(pod(shell("echo second")))
            assert (await here.finished())["phase"] == "Succeeded"
            assert await here.log() == "second\n"

    asyncio.run(scenario())


def test_a_node_that_shuts_down_fails_its_pods_as_disrupted(tmp_path: Path) -> None:
    async def scenario() -> None:
        here = Machine(tmp_path / "data")
        await here.host.start()
        here.submit(pod(shell(POLITE), name="runs", policy="OnFailure"))
        here.submit(pod(shell("exit 0"), name="done"))
        here.submit(pod({"name": "main", "image": "none"}, name="waits"))
        await wait_until_up(here, "runs")
        await here.finished("done")
        await here.host.stop(keep_pods=False)
        for name in ("runs", "waits"):
            status = here.status(name)
            assert (status["phase"], status["reason"]) == ("Failed", "NodeShutdown")
            found = find_condition(status["conditions"], "DisruptionTarget")
            assert found is not None
            assert found["reason"] == "TerminationByKubelet"
        assert here.status("done")["phase"] == "Succeeded"
        assert live_below(tmp_path) == []
        ready = find_condition(
            here.objects.get(NODES, "", "localkube")["status"]["conditions"], "Ready"
        )
        assert ready is not None
        assert (ready["status"], ready["message"]) == ("False", "node is shutting down")
        here.store.close()

    asyncio.run(scenario())


def test_pods_that_are_kept_run_on_and_are_adopted_with_log_and_exit_code(tmp_path: Path) -> None:
    script = "echo before; until [ -e $HOME/go ]; do sleep 0.02; done; echo after; exit 5"

    async def scenario() -> None:
        async with machine(tmp_path / "data", keep_pods=True) as here:
            here.submit(pod(shell(script)))
            started = await here.running()
        (home,) = (tmp_path / "data" / "pods").glob("*/_home")
        (home / "go").touch()
        async with machine(tmp_path / "data") as here:
            status = await here.finished()
            ended = status["containerStatuses"][0]["state"]["terminated"]
            assert (ended["exitCode"], ended["startedAt"]) == (5, started["startedAt"])
            assert status["containerStatuses"][0]["restartCount"] == 0
            assert await here.log() == "before\nafter\n"
            assert [reason for reason, _ in here.events()].count("Started") == 1

    asyncio.run(scenario())


def test_a_pod_that_ended_while_no_server_ran_is_not_run_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", keep_pods=True) as here:
            here.submit(
                pod(
                    shell(
                        "echo once >> $HOME/times; until [ -e $HOME/go ]; do sleep 0.02; done; "
                        "cat $HOME/times"
                    )
                )
            )
            await here.running()
        (run,) = (tmp_path / "data" / "pods").glob("*/main/0")
        (run.parents[1] / "_home" / "go").touch()
        await runs.wait_until_ended(run)
        async with machine(tmp_path / "data") as here:
            assert (await here.finished())["phase"] == "Succeeded"
            assert await here.log() == "once\n"

    asyncio.run(scenario())


def test_a_deletion_goes_on_after_a_restart_of_the_server(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", keep_pods=True) as here:
            here.submit(pod(shell(STUBBORN)))
            await wait_until_up(here)
        idle = Machine(tmp_path / "data")
        idle.delete(grace=1)
        idle.store.close()
        async with machine(tmp_path / "data") as here:
            await here.gone()
            assert live_below(tmp_path) == []

    asyncio.run(scenario())


def test_a_pod_that_was_forced_away_while_no_server_ran_is_swept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", keep_pods=True) as here:
            here.submit(pod(shell(STUBBORN)))
            await wait_until_up(here)
        idle = Machine(tmp_path / "data")
        idle.delete(grace=0)
        idle.store.close()
        async with machine(tmp_path / "data"):
            assert live_below(tmp_path) == []
            assert list((tmp_path / "data" / "pods").iterdir()) == []

    asyncio.run(scenario())


def test_a_shutdown_that_was_cut_short_still_counts_as_a_disruption(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", keep_pods=True) as here:
            here.submit(pod(shell(POLITE)))
            await wait_until_up(here)
        idle = Machine(tmp_path / "data")
        disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
        idle.objects.modify(
            PODS,
            TEAM,
            "p",
            lambda made: made["status"]["conditions"].append(disrupted),
            subresource="status",
        )
        idle.store.close()
        async with machine(tmp_path / "data") as here:
            status = await here.finished()
            assert (status["phase"], status["reason"]) == ("Failed", "NodeShutdown")

    asyncio.run(scenario())


def test_a_container_whose_supervisor_was_killed_ends_as_unknown(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("sleep 1000")))
            await here.running()
            (run,) = (tmp_path / "data" / "pods").glob("*/main/0")
            state = runs.read_run_state(run)
            assert isinstance(state, runs.Running)
            os.kill(state.supervisor, signal.SIGKILL)
            ended = (await here.finished())["containerStatuses"][0]["state"]["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
            assert live_below(tmp_path) == []

    asyncio.run(scenario())


def test_a_reboot_of_the_machine_counts_as_a_node_shutdown(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", keep_pods=True) as here:
            here.submit(pod(shell("sleep 1000")))
            await here.running()
        runs.kill_all_runs(tmp_path / "data" / "pods")
        for record in (tmp_path / "data" / "pods").glob("*/main/0/exit.json"):
            record.unlink()
        idle = Machine(tmp_path / "data")
        idle.objects.modify(NODES, "", "localkube", before_the_boot, subresource="status")
        idle.store.close()
        async with machine(tmp_path / "data") as here:
            status = await here.finished()
            assert (status["phase"], status["reason"]) == ("Failed", "NodeShutdown")

    asyncio.run(scenario())


def test_runs_that_vanished_from_disk_are_not_started_anew_under_never(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", keep_pods=True) as here:
            here.submit(pod(shell("echo once; sleep 1000")))
            await here.running()
        runs.sweep(tmp_path / "data" / "pods", ())
        async with machine(tmp_path / "data") as here:
            ended = (await here.finished())["containerStatuses"][0]["state"]["terminated"]
            assert ended["reason"] == "ContainerStatusUnknown"

    asyncio.run(scenario())


@pytest.mark.parametrize("with_spec", [False, True])
def test_a_start_that_a_killed_server_left_halfway_is_made_good_once(
    tmp_path: Path, with_spec: bool
) -> None:
    async def scenario() -> None:
        idle = Machine(tmp_path / "data")
        idle.submit(pod(shell("echo ran")))
        run = tmp_path / "data" / "pods" / idle.pod()["metadata"]["uid"] / "main" / "0"
        run.mkdir(parents=True)
        if with_spec:
            spec = runs.RunSpec(["sh", "-c", "echo ran"], {"PATH": "/bin:/usr/bin"}, str(tmp_path))
            records.write_record_once(str(run), records.SPEC, dataclasses.asdict(spec))
        idle.store.close()
        async with machine(tmp_path / "data") as here:
            status = await here.finished()
            assert (status["phase"], status["containerStatuses"][0]["restartCount"]) == (
                "Succeeded",
                0,
            )
            assert await here.log() == "ran\n"

    asyncio.run(scenario())


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_a_pod_being_deleted_is_not_restarted(tmp_path: Path, policy: str) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(
                pod(
                    shell("trap 'exit 1' TERM; echo up; while true; do sleep 0.05; done"),
                    policy=policy,
                )
            )
            await wait_until_up(here)
            here.delete()
            await here.gone()
            assert [reason for reason, _ in here.events()].count("Started") == 1

    asyncio.run(scenario())
