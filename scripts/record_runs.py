"""Record thirty real runs of known length on an embedded cluster, for the forecasts to be held to.

tests/simulation/test_recorded_runs.py forecasts their starts. It takes about three minutes:

    python scripts/record_runs.py [--seed 1] [--out FILE]
"""

import argparse
import sys
import tempfile
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BASE))

from tests.simulation.recorder import record_runs  # noqa: E402 - found by the path above
from tests.simulation.recording import RECORDING, find_running, list_starts  # noqa: E402


def main() -> int:
    """Record, and say what it was."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RECORDING)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recording = record_runs(options.seed, Path(folder))
    recording.save(options.out)
    running = sum(bool(find_running(recording, run)) for run in recording.runs)
    starts = list_starts(recording)
    print(
        f"{options.out}: {len(recording.runs)} runs, {running} ran and {len(starts)} waited when "
        f"all had been submitted; the last started after {max(starts.values()):.0f} s; a run lasts "
        f"{recording.overhead:.2f} s longer than it sleeps"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
