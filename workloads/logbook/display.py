"""A line as a page shows it: text, and its coloured parts.

Programs' output is untrusted text, here and in the page.
"""

import re
from dataclasses import dataclass

from workloads.logbook import stamps
from workloads.logbook.windows import LONGEST_SHOWN

Span = tuple[int, int, str]
"""From and to, in characters, and the CSS classes, separated by a blank."""

_ESCAPE = re.compile(
    r"\x1b\[([0-9;:]{0,64})m"  # a colour
    r"|\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # any other control sequence
    # a string for the terminal: its title, a link
    r"|\x1b[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]{0,4}[0-~]?"
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
)
_ESCAPE_BYTES = re.compile(
    rb"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"
    rb"|\x1b[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[ -/]{0,4}[0-~]?",
)
_CONTROLS = {code: chr(0x2400 + code) for code in range(32) if code not in (9, 10)} | {
    127: "\u2421"
}
_CONTROLS |= dict.fromkeys(range(0x80, 0xA0), "\ufffd")
_FLAGS = {1: "bold", 2: "faint", 3: "italic", 4: "underline", 7: "inverse", 9: "struck"}
_FLAG_ENDS = {
    22: ("bold", "faint"),
    23: ("italic",),
    24: ("underline",),
    27: ("inverse",),
    29: ("struck",),
}
_RGB = (
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
)
_CUBE_STEPS = (0, 95, 135, 175, 215, 255)


@dataclass(frozen=True, slots=True)
class DisplayLine:
    """A line for display. `omitted_bytes` counts the bytes of a long line that are left out."""

    text: str
    spans: tuple[Span, ...] = ()
    omitted_bytes: int = 0


def decode_line(raw: bytes) -> DisplayLine:
    """Convert a stored line for display, without its time.

    Control characters become visible signs; escape sequences are removed.
    """
    _, begin = stamps.parse_stamp(raw[:64])
    body = raw[begin : begin + LONGEST_SHOWN]
    text = body.decode("utf-8", "replace").removesuffix("\r")
    omitted = len(raw) - begin - len(body)
    if "\x1b" not in text and "\x9b" not in text:
        return DisplayLine(text.translate(_CONTROLS), (), omitted)
    plain, spans = parse_colours(text)
    return DisplayLine(plain, spans, omitted)


def strip_for_search(raw: bytes) -> bytes:
    """Return the whole line for a search, without its time and escape sequences."""
    _, begin = stamps.parse_stamp(raw[:64])
    body = raw[begin:]
    return _ESCAPE_BYTES.sub(b"", body) if b"\x1b" in body else body


def parse_colours(text: str) -> tuple[str, tuple[Span, ...]]:
    """Return the text without escape sequences, and its coloured spans.

    Colours beyond the sixteen become the nearest of these.
    """
    parts: list[str] = []
    spans: list[Span] = []
    style = _Style()
    at = last_end = 0
    for escape in _ESCAPE.finditer(text):
        at = _add_piece(text[last_end : escape.start()], at, style, parts, spans)
        last_end = escape.end()
        if escape[1] is not None:
            style.apply_codes(escape[1])
    _add_piece(text[last_end:], at, style, parts, spans)
    return "".join(parts), tuple(spans)


def _add_piece(piece: str, at: int, style: "_Style", parts: list[str], spans: list[Span]) -> int:
    if not piece:
        return at
    parts.append(piece.translate(_CONTROLS))
    if classes := style.classes():
        spans.append((at, at + len(piece), classes))
    return at + len(piece)


class _Style:
    """The style that SGR sequences have set so far."""

    def __init__(self) -> None:
        self._flags: set[str] = set()
        self._colours: dict[str, int] = {}

    def classes(self) -> str:
        names = [f"ansi-{flag}" for flag in sorted(self._flags)]
        return " ".join(
            names + [f"ansi-{ground}-{colour}" for ground, colour in sorted(self._colours.items())]
        )

    def apply_codes(self, codes: str) -> None:
        numbers = [
            int(code) if code and len(code) < 5 else 0
            for code in codes.replace(":", ";").split(";")
        ]
        while numbers:
            code = numbers.pop(0)
            if code in (38, 48):
                self._apply_extended_colour("fg" if code == 38 else "bg", numbers)
            else:
                self._apply_code(code)

    def _apply_code(self, code: int) -> None:
        if code == 0:
            self._flags, self._colours = set(), {}
        elif code in _FLAGS:
            self._flags.add(_FLAGS[code])
        elif code in _FLAG_ENDS:
            self._flags.difference_update(_FLAG_ENDS[code])
        elif code in (39, 49):
            self._colours.pop("fg" if code == 39 else "bg", None)
        else:
            for first, ground, offset in (
                (30, "fg", 0),
                (40, "bg", 0),
                (90, "fg", 8),
                (100, "bg", 8),
            ):
                if first <= code < first + 8:
                    self._colours[ground] = code - first + offset

    def _apply_extended_colour(self, ground: str, numbers: list[int]) -> None:
        kind = numbers.pop(0) if numbers else 0
        if kind == 5 and numbers:
            self._colours[ground] = _find_nearest_of_256(numbers.pop(0))
        elif kind == 2 and len(numbers) >= 3:
            self._colours[ground] = _find_nearest_colour(
                (numbers.pop(0), numbers.pop(0), numbers.pop(0))
            )


def _find_nearest_of_256(code: int) -> int:
    if code < 16:
        return code
    if code < 232:
        code -= 16
        return _find_nearest_colour(
            (_CUBE_STEPS[code // 36], _CUBE_STEPS[code // 6 % 6], _CUBE_STEPS[code % 6])
        )
    grey = 8 + 10 * (min(code, 255) - 232)
    return _find_nearest_colour((grey, grey, grey))


def _find_nearest_colour(rgb: tuple[int, int, int]) -> int:
    distances = [sum((a - b) ** 2 for a, b in zip(rgb, colour, strict=True)) for colour in _RGB]
    return distances.index(min(distances))
