"""Processes without pages load the code of none, and beat that of no step: memory, and a start."""

import json
import subprocess
import sys

from django.conf import settings

from console import processes

LIST_MODULES = """
import json, sys
from celery.app.utils import find_app
app = find_app(sys.argv[1])
app.loader.init_worker()
app.finalize()
json.dump([list(sys.modules), list(app.conf.beat_schedule)], sys.stdout)
"""


def list_modules(process: str) -> tuple[set[str], list[str]]:
    """Return the modules that a process of Celery has loaded when it begins, and its schedule."""
    command = processes.build_command(process, settings.OPTIONS)
    environment = processes.build_environment(settings.OPTIONS)
    # Each process chooses its own; those of the tests are not meant.
    del environment["DJANGO_SETTINGS_MODULE"]
    app = command[command.index("-A") + 1]
    answer = subprocess.run(
        [sys.executable, "-c", LIST_MODULES, app],
        cwd=processes.BASE,
        env=environment,
        capture_output=True,
        check=True,
        timeout=120,
    )
    modules, schedule = json.loads(answer.stdout)
    return set(modules), schedule


def test_beat_asks_for_all_periodic_steps_and_loads_none() -> None:
    modules, schedule = list_modules("beat")
    assert set(schedule) == set(settings.STEP_SECONDS)
    assert not modules & {"workloads.tasks", "clusters.tasks", "projects.tasks", "console.urls"}


def test_a_worker_loads_the_steps_and_no_page() -> None:
    modules, _ = list_modules("worker")
    assert {name.rpartition(".")[0] for name in settings.STEP_SECONDS} <= modules
    assert "console.urls" not in modules
