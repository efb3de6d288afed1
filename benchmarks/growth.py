"""The growth of cost with size, from what `benchmarks/scale.py --json` has written.

It becomes a picture and a table of docs/production.md.

    benchmarks/growth.py FILE [--before FILE] [--beside FILE]... [--rate N]

The picture, docs/growth.svg, has the lag and the processor time of a change by the pods of its
workload, and with --before those of an earlier run. The table has one row for each size and rate of
FILE, of the run before, and of those beside (PostgreSQL's, a real API server's).
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURE = DOCS / "growth.svg"
PAGE = DOCS / "production.md"
BEGIN, END = "<!-- growth: begin -->", "<!-- growth: end -->"
RATE = 200
WIDTH, HEIGHT = 880, 360
LEFT, TOP, PANEL_WIDTH, PANEL_HEIGHT, PANEL_STEP = 60, 56, 340, 210, 430
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 13px; }
.quiet { fill: #59636e; }
.grid { stroke: #d1d9e0; }
.now { stroke: #0969da; fill: #0969da; }
.raw { stroke: #59636e; fill: #59636e; }
.before { stroke: #bc4c00; fill: #bc4c00; }
polyline { fill: none; stroke-width: 2; }
.dashed { stroke-dasharray: 5 4; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .quiet { fill: #9198a1; }
  .grid { stroke: #3d444d; }
  .now { stroke: #4493f8; fill: #4493f8; }
  .raw { stroke: #9198a1; fill: #9198a1; }
  .before { stroke: #f0883e; fill: #f0883e; }
}
polyline.now, polyline.raw, polyline.before { fill: none; }
"""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """One line of a panel: points of (pods of a workload, figure)."""

    name: str
    style: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One diagram, with logarithmic axes; `bounds` are those of the figure."""

    title: str
    bounds: tuple[float, float]
    lines: Sequence[Line]


def main() -> int:
    words = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(description=words[0], epilog=words[2])
    parser.add_argument("file", type=Path)
    parser.add_argument("--before", type=Path, metavar="FILE")
    parser.add_argument("--beside", type=Path, metavar="FILE", action="append", default=[])
    parser.add_argument("--rate", type=int, default=RATE, help="of the picture, changes a second")
    options = parser.parse_args()
    now = json.loads(options.file.read_text())
    before = json.loads(options.before.read_text()) if options.before else None
    PICTURE.write_text(draw_picture(now, before, options.rate))
    runs = [("", now)]
    if before is not None:
        runs.append(("before", before))
    runs += [("", json.loads(each.read_text())) for each in options.beside]
    replace_block(PAGE, build_table(runs))
    return 0


def build_table(runs: Sequence[tuple[str, Any]]) -> str:
    """Return the Markdown table of the changes of some runs."""
    heads = (
        "pods of a workload",
        "changes a second",
        "raw watch, p50 and p99",
        "database, p50 and p99",
        "processor time of a change",
    )
    lines = [f"| run | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for name, run in runs:
        words = (name, run["database"], run["api"], f"{run['pods']:,} pods")
        title = ", ".join(word for word in words if word)
        lines += [f"| {title} | {_build_row(each)} |" for each in run["changes"]]
    machines = "; ".join(dict.fromkeys(run["machine"] for _, run in runs))
    return "\n".join([*lines, "", f"Measured: {machines}."])


def _build_row(record: Record) -> str:
    arrival_note = "" if record["came"] >= 100 else f" ({record['came']:.0f} % came)"
    logs = f" with {record['what'].split()[2]} logs" if " logs" in record["what"] else ""
    return " | ".join(
        (
            f"{record['pods_per_workload']:,}",
            f"{record['sent']:.0f}{logs}",
            f"{record['raw_p50']:.0f} and {record['raw_p99']:.0f} ms",
            f"{record['row_p50']:.0f} and {record['row_p99']:,.0f} ms{arrival_note}",
            f"{record['busy']:.2f} ms",
        )
    )


def replace_block(page: Path, text: str) -> None:
    """Replace what is between the marks of a page."""
    head, begin, rest = page.read_text().partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} does not have the marks {BEGIN} and {END}")
    page.write_text(f"{head}{begin}\n{text}\n{end}{tail}")


def draw_picture(now: Any, before: Any | None, rate: int) -> str:
    """Return the picture as SVG, readable on light and on dark ground."""
    runs = [("", "now", now)]
    if before is not None:
        runs.append((" before", "before", before))
    lags = [
        Line(f"{name}{of}", f"{style}{dashed}", list(_list_points(run, rate, key)))
        for of, style, run in runs
        for name, key, dashed in (("p99", "row_p99", ""), ("p50", "row_p50", " dashed"))
    ]
    lags.append(Line("raw watch p99", "raw", list(_list_points(now, rate, "raw_p99"))))
    costs = [
        Line(f"a change{of}", style, list(_list_points(run, rate, "busy")))
        for of, style, run in runs
    ]
    panels = (
        Panel(f"Lag to the database at {rate} changes a second, ms", (1, 100_000), lags),
        Panel("Processor time of the follower, ms a change", (0.1, 100), costs),
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" '
        'aria-label="Lag and cost of a change by the pods of its workload">',
        f"<style>{STYLE}</style>",
        *(part for place, each in enumerate(panels) for part in _draw_panel(each, place)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _list_points(run: Any, rate: int, key: str) -> Iterator[tuple[float, float]]:
    for each in run["changes"]:
        if each["rate"] == rate and "logs" not in each["what"]:
            yield each["pods_per_workload"], each[key]


def _draw_panel(panel: Panel, place: int) -> Iterator[str]:
    left = LEFT + place * PANEL_STEP
    bottom = TOP + PANEL_HEIGHT
    yield f'<text class="title" x="{left}" y="{TOP - 24}">{panel.title}</text>'
    low, high = (round(math.log10(each)) for each in panel.bounds)
    for power in range(low, high + 1):
        y = _scale(10**power, panel.bounds, bottom, -PANEL_HEIGHT)
        yield f'<line class="grid" x1="{left}" y1="{y}" x2="{left + PANEL_WIDTH}" y2="{y}"/>'
        yield (
            f'<text class="quiet" x="{left - 8}" y="{y + 4}" text-anchor="end">'
            f"{10**power:,g}</text>"
        )
    sizes = sorted({x for line in panel.lines for x, _ in line.points})
    across = (1.0, max([*sizes, 10.0]))
    for size in sizes:
        x = _scale(size, across, left, PANEL_WIDTH)
        yield (
            f'<text class="quiet" x="{x}" y="{bottom + 18}" text-anchor="middle">{size:,g}</text>'
        )
    yield (
        f'<text class="quiet" x="{left + PANEL_WIDTH / 2}" y="{bottom + 38}" '
        'text-anchor="middle">pods of a workload</text>'
    )
    for number, line in enumerate(panel.lines):
        points = [
            (_scale(x, across, left, PANEL_WIDTH), _scale(y, panel.bounds, bottom, -PANEL_HEIGHT))
            for x, y in line.points
        ]
        path = " ".join(f"{x},{y}" for x, y in points)
        yield f'<polyline class="{line.style}" points="{path}"/>'
        color = line.style.split()[0]
        yield from (f'<circle class="{color}" cx="{x}" cy="{y}" r="3"/>' for x, y in points)
        key_x, key_y = left + number % 3 * 115, bottom + 60 + number // 3 * 18
        sample = f"{key_x},{key_y - 4} {key_x + 22},{key_y - 4}"
        yield f'<polyline class="{line.style}" points="{sample}"/>'
        yield f'<text x="{key_x + 28}" y="{key_y}">{line.name}</text>'


def _scale(value: float, bounds: tuple[float, float], start: float, length: float) -> float:
    """Return the place of a value on a logarithmic axis; what is outside is at its end."""
    low, high = (math.log10(each) for each in bounds)
    part = (math.log10(max(value, bounds[0])) - low) / (high - low)
    return round(start + length * min(1.0, part), 1)


if __name__ == "__main__":
    sys.exit(main())
