"""How ranks come into the pods of an MPIJob: the remote shell, the worker that answers it, and what
is said without mpirun.
"""

import asyncio
from pathlib import Path
from typing import Any

from localkube.metadata import Object
from localkube.options import MPI_JOB_ANNOTATION, MPI_WORKER_COMMAND
from tests.localkube.kubelets import ANY_IMAGE, machine, pod, shell

JOB = {MPI_JOB_ANNOTATION: "a-uid"}


def worker(name: str = "j-worker-0", **fields: object) -> Object:
    container: Object = {
        "name": "mpi",
        "image": ANY_IMAGE,
        "command": [MPI_WORKER_COMMAND],
        "env": [{"name": "MINE", "value": name}],
    }
    return pod(container | fields, name=name, annotations=JOB, hostname=name)


def launcher(script: str, **container: Any) -> Object:
    made = pod(
        shell(script, **container), name="j-launcher-x", annotations=JOB, hostname="j-launcher"
    )
    made["metadata"]["labels"] = {"training.kubeflow.org/job-role": "launcher"}
    return made


def _waiting(container: Object) -> Object:
    """Why a container waits, once that is told; {} before."""
    waiting: Object = container.get("state", {}).get("waiting", {})
    return waiting if waiting.get("message") else {}


def test_a_command_runs_in_the_named_workers_pod(tmp_path: Path) -> None:
    script = (
        "$PRTE_MCA_plm_ssh_agent j-worker-1.j.team-a.svc 'echo \"$MINE in $PWD\" ;' 'exit 7'; echo "
        "code $?"
    )

    async def scenario() -> None:
        async with machine(tmp_path / "m") as kubelet:
            for name in ("j-worker-0", "j-worker-1"):
                kubelet.submit(worker(name))
            kubelet.submit(launcher(script))
            assert (await kubelet.finished("j-launcher-x"))["phase"] == "Succeeded"
            log = await kubelet.log("j-launcher-x")
            assert "the command in j-worker-1 ended with exit code 7" in log
            assert log.endswith("code 7\n")
            home = tmp_path / "m" / "pods" / kubelet.pod("j-worker-1")["metadata"]["uid"] / "_home"
            assert f"j-worker-1 in {home}" in await kubelet.log("j-worker-1", "mpi")
            assert "j-worker-1" not in await kubelet.log("j-worker-0", "mpi")

    asyncio.run(scenario())


def test_a_worker_that_is_killed_takes_its_ranks_along_and_the_launcher_hears_of_it(
    tmp_path: Path,
) -> None:
    script = "$PRTE_MCA_plm_ssh_agent j-worker-0 'echo started; exec sleep 1000'; echo code $?"

    async def scenario() -> None:
        async with machine(tmp_path / "m") as kubelet:
            kubelet.submit(worker())
            kubelet.submit(launcher(script))
            await kubelet.running("j-worker-0")
            await kubelet.logged("started", "j-worker-0", "mpi")
            kubelet.delete("j-worker-0", grace=0)
            await kubelet.finished("j-launcher-x")
            log = await kubelet.log("j-launcher-x")
            assert "mpi-rsh: the worker pod j-worker-0 has ended\n" in log
            # The script ends well, as mpirun does; the container does not.
            assert log.endswith(
                "code 255\nmpi-launch: the run lost j-worker-0, whatever its exit code 0 says\n"
            )
            assert kubelet.status("j-launcher-x")["phase"] == "Failed"

    asyncio.run(scenario())


def test_a_launcher_that_ends_ends_what_it_started(tmp_path: Path) -> None:
    script = (
        '$PRTE_MCA_plm_ssh_agent j-worker-0 \'trap "echo told; exit" TERM; echo started; while :; '
        "do sleep 0.05; done'"
    )

    async def scenario() -> None:
        async with machine(tmp_path / "m") as kubelet:
            kubelet.submit(worker())
            kubelet.submit(launcher(script))
            await kubelet.running("j-worker-0")
            await kubelet.logged("started", "j-worker-0", "mpi")
            kubelet.delete("j-launcher-x", grace=0)
            await kubelet.logged("told", "j-worker-0", "mpi")

    asyncio.run(scenario())


def test_a_launcher_that_is_its_own_worker_runs_the_command_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "m") as kubelet:
            kubelet.submit(
                launcher("$PRTE_MCA_plm_ssh_agent -x -o A=b j-launcher.j.team-a.svc 'echo here'")
            )
            await kubelet.finished("j-launcher-x")
            assert await kubelet.log("j-launcher-x") == "here\n"

    asyncio.run(scenario())


def test_without_mpirun_the_launcher_waits_and_says_what_to_install(tmp_path: Path) -> None:
    bare = {
        "name": "mpi",
        "image": ANY_IMAGE,
        "command": ["mpirun", "hostname"],
        "env": [{"name": "PATH", "value": str(tmp_path)}],
    }

    async def scenario() -> None:
        async with machine(tmp_path / "m") as kubelet:
            kubelet.submit(pod(bare, name="p"))
            waiting = await kubelet.until(lambda: _waiting(kubelet.container()))
            assert waiting["reason"] == "CreateContainerConfigError"
            assert '"mpirun" is not on this machine' in waiting["message"]
            assert "openmpi-bin" in waiting["message"]

    asyncio.run(scenario())


def test_other_pods_get_nothing_of_this(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "m") as kubelet:
            kubelet.submit(pod(shell("env | grep -c -e MCA -e LOCALKUBE_MPI; true")))
            await kubelet.finished()
            assert await kubelet.log() == "0\n"

    asyncio.run(scenario())
