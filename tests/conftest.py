"""What every test of the project shares: the markers, the cast, and an embedded cluster. Other
fixtures live beside their tests.
"""

import gc
import os
import secrets
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import hypothesis
import pytest
from django.conf import settings
from django.db import connection
from hypothesis import HealthCheck
from pytest_django import DjangoDbBlocker

from clusters import connections
from tests.cast import Cast, make_cast
from tests.cluster import ROOT, LocalKube
from tests.migrated import copy_database

# No test depends on time, and fixtures of these tests are made to be used again. Whether examples
# are drawn at random stays as hypothesis chose: not in continuous integration.
hypothesis.settings.register_profile(
    "muster",
    parent=hypothesis.settings.get_profile(hypothesis.settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("muster")

FIRST = (
    "tests/console/test_permission_matrix.py",
    "tests/browser/",
    "tests/console/test_permission_matrix_api.py",
    "tests/faults/",
)
"""What takes longest comes first, so that no worker is left alone with it at the end; and what
shares a browser stays together.
"""

PARTS = 3
"""Parts of a sweep over all pages or addresses, and of the files that ask another database."""
AT_COMMIT, ALL_PARTS = "commit", "all"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors to use: whoever waits for a browser, a server or a clock
    leaves its own to the others.
    """
    usable = getattr(os, "sched_getaffinity", None)
    return (len(usable(0)) if usable else os.cpu_count() or 1) + 1


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--only-with-database",
        action="store_true",
        help="leave out the tests that use no database; `--part` is of the files then",
    )
    parser.addoption(
        "--cases", type=int, help="of a test with more cases, only so many, spread over all of them"
    )
    parser.addoption(
        "--part",
        choices=[ALL_PARTS, AT_COMMIT, *map(str, range(1, PARTS + 1))],
        default=ALL_PARTS,
        help=f"of each sweep one of {PARTS} parts, all, or at each commit the next one",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = items
    part, only_with_database = _get_part(config), config.getoption("--only-with-database")
    if only_with_database:
        kept = [item for item in kept if _uses_database(item)]
    if cases := config.getoption("--cases"):
        kept = choose_cases(kept, cases)
    if part is not None:
        kept = choose_files(kept, part) if only_with_database else choose_part(kept, part)
    if kept is not items:
        wanted = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
    items[:] = sorted(kept, key=_get_turn)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What has been loaded stays: a collection of garbage that looks through thousands of tests
    each time takes long.
    """
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if (part := _get_part(config)) is not None:
        what = (
            "files"
            if config.getoption("--only-with-database")
            else "sweeps over all pages and addresses"
        )
        terminalreporter.write_line(
            f"Of the {what} this was part {part} of {PARTS}. The same again: PART={part}; all of "
            "them: PART=all."
        )


@cache
def _count_commits() -> int:
    """Return how many commits the project has; 0 without git, and where it is no repository."""
    command = ["git", "rev-list", "--count", "HEAD"]
    try:
        return int(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    except (OSError, subprocess.CalledProcessError):
        return 0


def _get_part(config: pytest.Config) -> int | None:
    """Return the part of sweeps that runs, from 1 on; None where all do."""
    part: str = config.getoption("--part")
    if part == AT_COMMIT:
        return _count_commits() % PARTS + 1
    return None if part == ALL_PARTS else int(part)


def choose_part(items: Sequence[pytest.Item], part: int) -> list[pytest.Item]:
    """Return the items without the cases of sweeps that are of another part."""
    numbers: dict[str, int] = defaultdict(int)
    chosen = []
    for item in items:
        name = item.nodeid.partition("[")[0]
        if item.get_closest_marker("sweep") is None or numbers[name] % PARTS == part - 1:
            chosen.append(item)
        numbers[name] += 1
    return chosen


def choose_files(items: Sequence[pytest.Item], part: int) -> list[pytest.Item]:
    """Return the items of every third file, from the file of this part on."""
    files = sorted({item.path for item in items})
    chosen = set(files[part - 1 :: PARTS])
    return [item for item in items if item.path in chosen]


def choose_cases(items: Sequence[pytest.Item], most: int) -> list[pytest.Item]:
    """Return the items without those that are one of many cases of a test.

    `most` of each test are kept, the first among them, as far from each other as they can be.
    """
    by_test: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        by_test[item.nodeid.partition("[")[0]].append(item)
    kept = set()
    for cases in by_test.values():
        count = min(most, len(cases))
        kept |= {cases[number * len(cases) // count] for number in range(count)}
    return [item for item in items if item in kept]


def _get_turn(item: pytest.Item) -> int:
    return next(
        (turn for turn, place in enumerate(FIRST) if item.nodeid.startswith(place)), len(FIRST)
    )


def _uses_database(item: pytest.Item) -> bool:
    return item.get_closest_marker("django_db") is not None or "django_db_setup" in getattr(
        item, "fixturenames", ()
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.PASSWORD_HASHERS = ["tests.hashing.Quick"]
    # Otherwise every test's client looks through all static files.
    settings.WHITENOISE_AUTOREFRESH = True
    config.addinivalue_line(
        "markers",
        (
            "controllers: needs a cluster whose garbage collector and namespace controller run "
            "(MUSTER_TEST_CONTROLLERS=1)"
        ),
    )


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """On SQLite a migrated database is there already, and goes with the directory of the tests."""
    return connection.vendor == "sqlite"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Name the test database of this worker, and on SQLite begin it as a copy of a migrated one."""
    if connection.vendor == "sqlite":
        copy_database(Path(connection.settings_dict["TEST"]["NAME"]))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database; PostgreSQL drops none that somebody still talks to, such as a thread of a
    test that ends late.
    """
    yield
    if connection.vendor == "postgresql":
        others = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
            "current_database() AND pid <> pg_backend_pid()"
        )
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(others)


@pytest.fixture
def cast(db: None) -> Cast:
    """Alice, Bob, Vera and Mallory, their two projects, and a cluster that does not answer."""
    return make_cast()


@pytest.fixture(scope="session")
def embedded_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKube]:
    """One embedded cluster of four GPUs for the session, and each worker of it."""
    with LocalKube(tmp_path_factory.mktemp("embedded") / "data", "--gpus", "4") as cluster:
        yield cluster


@pytest.fixture
def live_cast(cast: Cast, embedded_cluster: LocalKube) -> Iterator[Cast]:
    """The cast on the embedded cluster, with namespaces and Queues that no other test has; they are
    not there yet.
    """
    cast.cluster.server, cast.cluster.kubeconfig = (
        embedded_cluster.url,
        embedded_cluster.kubeconfig.read_text(),
    )
    cast.cluster.save()
    cast.research.name = f"research-{secrets.token_hex(3)}"
    cast.research.save()
    for project in (cast.team_a, cast.team_b):
        project.queue = f"{project.name}-{secrets.token_hex(3)}"
        project.namespace = f"muster-{project.queue}"
        project.cluster, project.department = cast.cluster, cast.research
        project.save()
    yield cast
    connections.close_all()
