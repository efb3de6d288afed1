"""Makes docs/screenshots/radar-*.png: real processes, and what the radar says of them.

A rank that hangs, a rank that is slow, and a healthy training of 512 ranks, each as the console
shows it in light and dark. It takes some ten minutes and 6 GiB of memory.

python scripts/radar_screenshots.py [--into DIR] [--ranks 512]
"""

import argparse
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BASE), str(BASE / "scripts")]

import django  # noqa: E402

import tests.environ  # noqa: E402, F401 - what Django's settings read

os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"
django.setup()

from palette import reduce_colours  # noqa: E402
from playwright.sync_api import Browser, sync_playwright  # noqa: E402
from screenshots import signed_in  # noqa: E402

from tests.browser.conftest import chromium  # noqa: E402
from tests.chromium import FLAGS  # noqa: E402
from tests.radar.plans import Fault, draw_fault  # noqa: E402
from tests.radar.radar_stage import RadarStage  # noqa: E402

SEED = 7
STEP_SECONDS = 5
HEALTHY = (
    'n=0; while true; do n=$((n+1)); echo "step $n of 2000 loss $((90000/(n+30)))e-3"; '
    f"sleep {STEP_SECONDS}; done"
)
TINY = {"cpuCoreRequest": 0.001, "cpuMemoryRequest": "4M"}
NODES = "3"
"""A node takes 250 pods."""
FOUND_SECONDS, RUNNING_SECONDS = 600.0, 900.0
METRICS_SECONDS = 240.0
"""Until there is something to see in charts."""
SIZES = {360: 740, 1280: 1000, 1920: 1080}
KEPT = 1280


def wait_for_findings(stage: RadarStage, plans: dict[str, str]) -> None:
    """Wait until each workload has a finding. Raises TimeoutError."""
    deadline = time.monotonic() + FOUND_SECONDS
    while missing := [
        name
        for name, key in plans.items()
        if not stage.program.ask("GET", f"/workloads/{key}/findings")["findings"]
    ]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing was found in {', '.join(missing)}")
        time.sleep(5)


def wait_until_running(stage: RadarStage, workload: str) -> None:
    """Wait until a workload runs. Raises TimeoutError."""
    deadline = time.monotonic() + RUNNING_SECONDS
    while stage.program.phase(workload) != "Running":
        if time.monotonic() > deadline:
            raise TimeoutError("the large training does not run")
        time.sleep(5)


def take_screenshots(browser: Browser, url: str, paths: dict[str, str], into: Path) -> None:
    """Write a picture of each page; every width, whole, where they are not for the documents."""
    is_kept = into == BASE / "docs" / "screenshots"
    for width in [KEPT] if is_kept else SIZES:
        for theme in ("light", "dark"):
            page = signed_in(browser, url, width, theme, name="admin", height=SIZES[width])
            for name, path in paths.items():
                page.goto(path)
                page.evaluate("document.fonts.ready")
                page.wait_for_timeout(2000)
                png = page.screenshot(full_page=not is_kept, animations="disabled", caret="hide")
                picture = into / f"{name}-{width}-{theme}.png"
                picture.write_bytes(reduce_colours(png) if is_kept else png)
            page.context.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--into", type=Path, default=BASE / "docs" / "screenshots", metavar="DIR")
    parser.add_argument("--ranks", type=int, default=512)
    chosen = parser.parse_args()
    chosen.into.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        RadarStage(Path(folder), {"localkube_nodes": NODES}) as stage,
        sync_playwright() as playwright,
    ):
        faulty = {
            fault.value: stage.submit_plan(draw_fault(fault, SEED)).id
            for fault in (Fault.HANG, Fault.SLOW)
        }
        wait_for_findings(stage, faulty)
        healthy = stage.program.submit(
            "llama-70b-pretrain",
            workers=chosen.ranks - 1,
            command="sh -c " + shlex.quote(HEALTHY),
            compute=TINY,
        )
        wait_until_running(stage, healthy)
        time.sleep(METRICS_SECONDS)
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        paths = {
            "radar-hang": f"/workloads/{faulty[Fault.HANG]}",
            "radar-straggler": f"/workloads/{faulty[Fault.SLOW]}",
            "radar-healthy": f"/workloads/{healthy}/metrics",
        }
        take_screenshots(browser, stage.muster.url, paths, chosen.into)
        browser.close()


if __name__ == "__main__":
    main()
