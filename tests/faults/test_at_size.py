"""Workloads of 100 pods change all the time while disks fill, the database is locked, the API
server goes, clocks are set back and leases are stolen: pages say what is the matter, and after one
poll the database is as the cluster is.
"""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.disks import fill_disk
from tests.faults.sized_cluster import LEASE, PASSWORD, Changes, SizedCluster
from tests.faults.test_console_full_disk import until_refused
from tests.installation import eventually
from tests.rest import Program, Refused

HOUR = 3600.0
SMALL = {"cpuCoreRequest": 0.05, "cpuMemoryRequest": "20M"}
SILENT = "has not answered since"
NOT_WRITTEN = "has not been written down since"
LOCKED = "The database does not answer as it should."
POLLED_WITHIN = 180.0
"""Seconds for what was under way at the poll."""
TAKEN_WITHIN = LEASE + 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SizedCluster]:
    folder = tmp_path_factory.mktemp("at-size")
    with SizedCluster(folder, folder / "var") as running:
        yield running


def assert_polled(cluster: SizedCluster, what: str) -> None:
    """Poll once; the rows have to be as the cluster is."""
    cluster.reconnect()
    cluster.poll()
    found: list[str] = []

    def is_equal() -> bool:
        found[:] = cluster.find_differences()
        return not found

    until = time.monotonic() + POLLED_WITHIN
    while not is_equal():
        assert time.monotonic() < until, f"{what}: " + "\n".join(found[:20])
        time.sleep(0.2)


def lock_while_pods_change(cluster: SizedCluster, seconds: float) -> None:
    """Lock the database for so long; pages go on, and what they show is of before."""
    with Changes(cluster, random.Random(1)) as changes:
        with cluster.lock_database():
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                assert "sized-0" in cluster.reader.page("/workloads")
                time.sleep(0.5)
        eventually(lambda: changes.made)
    assert_polled(cluster, f"locked for {seconds:g} s")


def leave_without_api(cluster: SizedCluster, seconds: float) -> None:
    """Take the API server away for so long; it comes back without its history."""
    with Changes(cluster, random.Random(2)) as changes:
        eventually(lambda: changes.made)
        cluster.kube.kill()
        eventually(lambda: SILENT in cluster.reader.page("/workloads"), within=180)
        time.sleep(seconds)
        assert "sized-0" in cluster.reader.page("/workloads")
        before = changes.made
        cluster.kube.start()
        eventually(lambda: changes.made > before)
        troubles = {cluster.trouble}

        def is_back() -> bool:
            troubles.add(cluster.trouble)
            return SILENT not in cluster.reader.page("/workloads")

        eventually(is_back, within=270)
        # That the server has forgotten its history (410) is no state of the cluster.
        assert not [each for each in troubles if "remembers" in each]
    assert_polled(cluster, f"no API for {seconds:g} s")


@pytest.mark.timeout(900)
def test_a_database_that_is_locked_for_a_while_loses_no_change(cluster: SizedCluster) -> None:
    lock_while_pods_change(cluster, 4)


@pytest.mark.timeout(900)
def test_an_api_that_comes_back_without_its_history_is_listed_anew(
    cluster: SizedCluster,
) -> None:
    leave_without_api(cluster, 2)


@pytest.mark.timeout(900)
def test_a_clock_that_is_set_back_an_hour_keeps_no_dead_follower_s_lease(
    cluster: SizedCluster,
) -> None:
    leader = cluster.holder
    with Changes(cluster, random.Random(3)) as changes:
        eventually(lambda: changes.made)
        cluster.kill_follower(leader)
        cluster.set_clock(-HOUR)
        try:
            eventually(lambda: cluster.holder != leader, within=TAKEN_WITHIN)
            cluster.start_follower(leader)
        finally:
            cluster.set_clock(0)
    assert_polled(cluster, "the clock was set back")


@pytest.mark.timeout(900)
def test_a_follower_whose_lease_was_stolen_spoils_nothing(cluster: SizedCluster) -> None:
    leader = cluster.holder
    with Changes(cluster, random.Random(4)) as changes:
        eventually(lambda: changes.made)
        with cluster.pause_follower(leader):
            eventually(lambda: cluster.holder != leader, within=TAKEN_WITHIN)
        # Both write for a moment: it has not looked at its lease yet.
        time.sleep(1)
        assert cluster.holder != leader
    assert_polled(cluster, "the lease was stolen")


@pytest.mark.timeout(900)
def test_a_full_disk_is_told_and_loses_no_change(disk: Path) -> None:
    with SizedCluster(disk, disk / "var") as cluster:
        program = Program(cluster.web.url, PASSWORD, username="alice")
        with Changes(cluster, random.Random(5)):
            *_, refused = until_refused(program, disk, compute=SMALL)
            assert "sized-0" in cluster.reader.page("/workloads")
            fill_disk(disk)
            time.sleep(2)
            (disk / "filler").unlink()
            time.sleep(1)
        assert_polled(cluster, "the disk was full")
        assert program.submit(refused, compute=SMALL)


# Random histories.


def lock_for_a_moment(cluster: SizedCluster, chance: random.Random) -> None:
    """Lock the database."""
    with cluster.lock_database():
        time.sleep(chance.uniform(0.1, 0.6))


def kill_a_follower(cluster: SizedCluster, chance: random.Random) -> None:
    """kill -9 of a follower, which a supervisor starts again."""
    name = chance.choice(list(cluster.followers))
    cluster.kill_follower(name)
    cluster.start_follower(name)


def pause_a_follower(cluster: SizedCluster, chance: random.Random) -> None:
    """A follower stands still for a moment."""
    with cluster.pause_follower(chance.choice(list(cluster.followers))):
        time.sleep(chance.uniform(0.1, 0.6))


def steal_the_lease(cluster: SizedCluster, chance: random.Random) -> None:
    """Give the lease to any of the followers, while another one has it."""
    with cluster.query() as rows:
        rows.execute(
            "UPDATE clusters_cluster SET followed_by = ?", [chance.choice(["one", "other"])]
        )


def restart_the_api(cluster: SizedCluster, chance: random.Random) -> None:
    """kill -9 of the API server, which comes back without its history."""
    cluster.kube.kill()
    time.sleep(chance.uniform(0, 0.5))
    cluster.kube.start()


def set_the_clock(cluster: SizedCluster, chance: random.Random) -> None:
    """Set the followers' clock back or ahead, or right."""
    cluster.set_clock(chance.choice([-HOUR, 0, HOUR]))


def change_nothing(cluster: SizedCluster, chance: random.Random) -> None:
    """Nothing goes wrong for a moment."""
    time.sleep(0.2)


STEPS: tuple[Callable[[SizedCluster, random.Random], None], ...] = (
    lock_for_a_moment,
    kill_a_follower,
    pause_a_follower,
    steal_the_lease,
    restart_the_api,
    set_the_clock,
    change_nothing,
)


def live_history(cluster: SizedCluster, seed: int) -> None:
    """A few steps while pods change, and then one poll."""
    chance = random.Random(seed)
    steps = [chance.choice(STEPS) for _ in range(chance.randint(2, 4))]
    with Changes(cluster, random.Random(seed)):
        for step in steps:
            step(cluster, chance)
    cluster.set_clock(0)
    names = ", ".join(step.__name__ for step in steps)
    assert_polled(cluster, f"history of the seed {seed} ({names})")


@pytest.mark.timeout(900)
def test_after_any_of_a_few_histories_the_database_is_as_the_cluster_is(
    cluster: SizedCluster,
) -> None:
    for seed in range(10):
        live_history(cluster, seed)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_after_any_of_a_thousand_histories_at_size_the_database_is_as_the_cluster_is(
    cluster: SizedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    first = random.SystemRandom().randrange(1_000_000)
    with capsys.disabled():
        print(f"histories of the seeds {first} to {first + 999}")
    for seed in range(first, first + 1000):
        live_history(cluster, seed)


@pytest.mark.long
def test_a_database_that_is_locked_for_half_a_minute_refuses_in_words_and_loses_no_change(
    cluster: SizedCluster,
) -> None:
    program = Program(cluster.web.url, PASSWORD, patience=0, username="alice")
    with Changes(cluster, random.Random(6)), cluster.lock_database():
        began = time.monotonic()
        with pytest.raises(Refused, match=LOCKED) as refusal:
            program.submit("while-locked", compute=SMALL)
        assert refusal.value.status == 503
        eventually(lambda: NOT_WRITTEN in cluster.reader.page("/workloads"), within=90)
        time.sleep(max(0.0, began + 30 - time.monotonic()))
    assert_polled(cluster, "locked for 30 s")
    eventually(lambda: NOT_WRITTEN not in cluster.reader.page("/workloads"), within=TAKEN_WITHIN)


@pytest.mark.long
def test_an_api_that_was_gone_for_five_minutes_is_listed_anew(cluster: SizedCluster) -> None:
    leave_without_api(cluster, 300)
