"""A timeline in a terminal: a bar of characters for each lane, and what its marks mean."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster_cli.actions import moments
from muster_cli.output.tables import TableColumn, build_rows, render_table
from muster_cli.output.terminal import PHASE_COLOURS, Terminal, clean_text, cut_text, measure_text

Item = Mapping[str, Any]

USUAL_WIDTH = 100
"""Columns where lines go to a file or a program."""
TITLE_WIDTH = 24
LEAST_BAR = 20
MOST_MARKS = 40
"""Marks that are listed; `-o csv` has all."""
BLOCKS = "▁▂▃▄▅▆▇█"
"""Shares of a lane, from little to all."""
STATES = {"waiting": ("░", "yellow"), "starting": ("▒", "cyan"), "running": ("█", "green")}
UNKNOWN = "·"
MARKS = {
    "failed": ("x", "red"),
    "succeeded": ("o", "blue"),
    "taken": ("v", "yellow"),
    "removed": ("|", "grey"),
    "restart": ("r", "yellow"),
    "grown": ("^", "cyan"),
    "finding": ("!", "magenta"),
    "checkpoint": ("c", "blue"),
    "last-line": (">", "blue"),
    "bad-loss": ("n", "red"),
    "log-gap": ("?", "grey"),
}
"""The character and colour of each kind of marks."""
PART_COLUMNS = [
    TableColumn("LANE", lambda item: item["lane"]),
    TableColumn("SINCE", lambda item: moments.format_moment(item["since"])),
    TableColumn("UNTIL", lambda item: moments.format_moment(item["until"])),
    TableColumn("WHAT", lambda item: item["what"]),
    TableColumn("MESSAGE", lambda item: item["message"]),
]
_MARK_COLUMNS = [
    TableColumn("MARK", lambda item: MARKS.get(item["what"], ("*", ""))[0]),
    TableColumn("WHEN", lambda item: moments.format_moment(item["since"])),
    TableColumn("LANE", lambda item: item["lane"]),
    TableColumn("MESSAGE", lambda item: item["message"]),
]


def list_parts(timeline: Item) -> list[dict[str, Any]]:
    """Return all segments and marks of a timeline, lane by lane."""
    return [
        {
            "lane": lane["title"],
            "since": part.get("beganAt") or part.get("at"),
            "until": part.get("endedAt"),
            "what": part.get("state") or part.get("kind"),
            "message": part["message"],
        }
        for lane in timeline["lanes"]
        for part in (*lane["segments"], *lane["marks"])
    ]


def draw_timeline(timeline: Item, terminal: Terminal, *, is_wide: bool = False) -> Iterator[str]:
    """Yield the lines of the picture, of its marks and its notes."""
    width = max(LEAST_BAR, (terminal.width or USUAL_WIDTH) - TITLE_WIDTH - 1)
    for lane in timeline["lanes"]:
        title = cut_text(clean_text(str(lane["title"])), TITLE_WIDTH)
        padding = " " * (TITLE_WIDTH - measure_text(title))
        yield f"{title}{padding} {_draw_lane(lane, timeline, width, terminal)}"
    yield _draw_axis(timeline, width)
    marks = [each for each in list_parts(timeline) if each["what"] in MARKS]
    marks.sort(key=lambda each: str(each["since"]))
    visible_marks = marks if is_wide else marks[-MOST_MARKS:]
    if visible_marks:
        yield ""
        yield from render_table(*build_rows(_MARK_COLUMNS, visible_marks, is_wide=False), terminal)
    if len(visible_marks) < len(marks):
        yield f"{len(marks) - len(visible_marks)} earlier marks are left out: -o wide shows them."
    for note in timeline["notes"]:
        yield clean_text(str(note))


def _draw_lane(lane: Item, timeline: Item, width: int, terminal: Terminal) -> str:
    cells = [(" ", "")] * width
    for segment in lane["segments"]:
        first = _find_column(segment["beganAt"], timeline, width)
        last = _find_column(segment["endedAt"] or timeline["endedAt"], timeline, width)
        character, colour = _choose_character(segment)
        label = clean_text(str(segment["label"]))
        room = last - first + 1
        for number in range(first, last + 1):
            cells[number] = (character, colour)
        if label and room > len(label) + 1 and label.isascii():
            for number, letter in enumerate(f"{label} "):
                cells[first + number] = (letter, colour)
    for mark in lane["marks"]:
        cells[_find_column(mark["at"], timeline, width)] = MARKS.get(mark["kind"], ("*", ""))
    return _paint_cells(cells, terminal)


def _choose_character(segment: Item) -> tuple[str, str]:
    """Return the character and the colour of a segment."""
    state = str(segment["state"])
    if state == "unknown":
        return UNKNOWN, "grey"
    character, colour = STATES.get(state, ("─", PHASE_COLOURS.get(state, "blue")))
    share = float(segment["share"])
    if (state in STATES and share >= 1) or state not in (*STATES, "pods"):
        return character, colour
    return BLOCKS[max(0, min(len(BLOCKS), round(share * len(BLOCKS))) - 1)], colour


def _paint_cells(cells: Sequence[tuple[str, str]], terminal: Terminal) -> str:
    """Return the characters, those of one colour that follow each other painted at once."""
    parts, text, before = [], "", ""
    for character, colour in cells:
        if colour != before:
            parts.append(terminal.paint(text, before) if text else "")
            text, before = "", colour
        text += character
    return "".join([*parts, terminal.paint(text, before) if text else ""]).rstrip()


def _find_column(moment: str, timeline: Item, width: int) -> int:
    since = moments.compute_age(timeline["beganAt"], moment) or 0.0
    length = moments.compute_age(timeline["beganAt"], timeline["endedAt"]) or 1.0
    return min(width - 1, int(since / length * width))


def _draw_axis(timeline: Item, width: int) -> str:
    begin, end = (moments.format_moment(timeline[name]) for name in ("beganAt", "endedAt"))
    end = end if timeline["isOver"] else f"now {end}"
    gap = " " * max(1, width - len(begin) - len(end))
    return f"{' ' * TITLE_WIDTH} {begin}{gap}{end}"
