"""What of a notebook goes along with a cell: exactly what it needs, or a refusal."""

import base64
import contextlib
import random
import shlex
import subprocess
import sys
import zlib
from collections.abc import Sequence

import pytest

from muster_delivery.notebook.cell_code import (
    IncludedCell,
    collect_code,
    place_cell,
    select_definitions,
)
from muster_delivery.notebook.errors import NotebookError
from muster_delivery.notebook.payload import LARGEST_ARGUMENT, build_arguments

CELLS = [
    "import math\nfrom itertools import count as numbers\nimport os.path",
    "def area(radius):\n    return math.pi * radius**2\n\nSIZE = 2",
    "@staticmethod\ndef unused():\n    return missing",
    "class Ring:\n    radius = SIZE\n    def area(self):\n        return area(self.radius)",
    "loaded = str(1)",
    "def area(radius):\n    return math.tau * radius**2",
    "def broken(:",
    "SIZE: int = 3",
]


def run_cells(cells: Sequence[str]) -> dict[str, object]:
    """Return what a notebook knows that has run these cells; those that fail are left out."""
    known: dict[str, object] = {}
    for cell in cells:
        with contextlib.suppress(SyntaxError):
            exec(cell, known)
    return known


KNOWN = run_cells(CELLS)
needs_match = pytest.mark.skipif(sys.version_info < (3, 10), reason="match came with Python 3.10")


def run_script(code: str) -> str:
    """Return what a code prints that is run by itself."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def run_code(cell: str, included: tuple[str, ...] = ()) -> str:
    """Return what the code that is collected for a cell prints, run by itself."""
    cells = [IncludedCell(each, len(CELLS)) for each in included]
    return run_script(collect_code(cell, CELLS, cells, KNOWN))


def run_after(cells: Sequence[str], cell: str) -> str:
    """Return what a cell prints as a workload of a notebook that has run these cells."""
    return run_script(collect_code(cell, cells, (), run_cells(cells)))


def test_definitions_are_found_through_each_other_and_the_newest_counts() -> None:
    assert run_code("print(round(Ring().area()))") == "57"


def test_only_what_is_named_goes_along() -> None:
    code = collect_code("print(area(1))", CELLS, (), KNOWN)
    assert "import math" in code
    assert "math.pi" not in code
    assert not [each for each in ("Ring", "unused", "numbers", "loaded") if each in code]


def test_a_value_of_the_notebook_is_refused_with_words() -> None:
    with pytest.raises(NotebookError, match=r"names loaded, a value of this notebook.*include"):
        collect_code("print(loaded)", CELLS, (), KNOWN)


def test_a_name_of_the_cell_s_own_is_not_that_of_the_notebook() -> None:
    assert run_code("for loaded in [1]:\n    print(loaded)") == "1"
    assert run_code("def show(loaded):\n    print(loaded)\nshow(5)") == "5"
    assert run_code("print([loaded for loaded in (1, 2)])") == "[1, 2]"


def test_a_cell_that_is_included_goes_along_whole() -> None:
    assert run_code("print(loaded)", ("loaded = round(area(1))",)) == "6"


def test_a_definition_that_failed_here_is_none() -> None:
    code = collect_code(
        "print(Ring)", CELLS, (), {name: each for name, each in KNOWN.items() if name != "Ring"}
    )
    assert "class Ring" not in code


def test_decorators_and_star_imports_go_along() -> None:
    cells = [
        "from math import *",
        "import functools",
        "@functools.cache\ndef half(x): return x / 2",
    ]
    assert run_after(cells, "print(half(pi))").startswith("1.57")


FUTURE = "from __future__ import annotations"
CACHED = "import functools\nTEXT = 'a\u2028b\x0cc'\n@functools.cache\ndef f():\n    return 7"


@pytest.mark.parametrize(
    ("cells", "cell", "printed"),
    [
        (["SIZE = 2"], "SIZE = SIZE * 3\nprint(SIZE)", "6"),
        (["total = 1"], "for step in range(3): total += step\nprint(total)", "4"),
        (["limit = 9"], "if limit > 5: limit = 5\nprint(limit)", "5"),
        (["dir = 'data'", "def sum(x): return 'ours'"], "print(dir, sum([1]))", "data ours"),
        (
            ["try:\n    import json\nexcept ImportError:\n    json = None"],
            "print(json.dumps(1))",
            "1",
        ),
        (["import sys\nif sys.path:\n    import math as m"], "print(round(m.pi))", "3"),
        ([f"{FUTURE}\ndef f(a: Missing): return 1"], "print(f(2))", "1"),
        (["A = 1"], f"'Words.'\n{FUTURE}; B = 2\nprint(A + B)", "3"),
        ([CACHED], "print(f())", "7"),
        (["rows = [n for n in (1, 2)]", "n = 5", "more = {n for n in (1, 2)}"], "print(n)", "5"),
        (["n = 5"], "rows = [n for n in (1, 2)]\nprint(n, {n: n for n in rows})", "5 {1: 1, 2: 2}"),
        (["loaded = str(1)"], "print([loaded for loaded in (1,)])", "[1]"),
        (["loaded = str(1)"], "for loaded in (1,):\n    print(loaded)", "1"),
        (["async def f(): return 8"], "import asyncio\nprint(asyncio.run(f()))", "8"),
        (["LOW, (HIGH, _top) = 1, (2, 3)"], "print(LOW + HIGH + _top)", "6"),
        (["import xml.dom.minidom, os", "import xml"], "print(xml.dom.minidom.Text.nodeType)", "3"),
        (["class A:\n    b = 1", "def change(): A.b = 2"], "print(A.b)", "1"),
        (["class Box:\n\tsize = 3"], "print(Box.size)", "3"),
        (["FIRST, *REST = [1, 2, 3]"], "print(FIRST, REST)", "1 [2, 3]"),
        (["LOW, *_, (_, HIGH) = 1, (2, 3)"], "print(LOW, HIGH, _)", "1 3 2"),
        (["*MOST, LAST = 'abc'"], "print(MOST, LAST)", "['a', 'b'] c"),
        (["SIZE = 1", "SIZE: int"], "print(SIZE)", "1"),
        (["SIZE = 1"], "SIZE: int\nprint(SIZE)", "1"),
        (["SIZE = 1"], "if True:\n    SIZE: int\n    SIZE += 1\nprint(SIZE)", "2"),
        (["class Kind: ..."], "size: Kind\nprint(Kind.__name__)", "Kind"),
        (
            ["total = 1"],
            "def count():\n    total: int\n    total = 3\n    return total\nprint(total, count())",
            "1 3",
        ),
        pytest.param(
            ["total = 1"],
            "match 2:\n  case 1:\n    total = 0\n  case 2:\n    total += 1\nprint(total)",
            "2",
            marks=needs_match,
        ),
    ],
)
def test_a_cell_means_in_the_workload_what_it_means_here(
    cells: list[str], cell: str, printed: str
) -> None:
    assert run_after(cells, cell) == printed


@pytest.mark.parametrize(
    "cell",
    [
        "for epoch in range(2):\n    total = 0\n    for step in (1, 2):\n        total += step\n"
        "print(total)",
        "if True:\n    def count():\n        total = 1\n        total += 2\n        return total\n"
        "    total = count()\nprint(total)",
        "if True:\n    class Sum:\n        total = 1\n        total += 2\n"
        "    total = Sum.total\nprint(total)",
        "with open(__import__('os').devnull) as file:\n    total = 1\n    total += 2\nprint(total)",
        "try:\n    total = 1\nfinally:\n    total += 2\nprint(total)",
        "for total in (2,):\n    total += 1\nprint(total)",
        "if (total := 1) and total < 2:\n    total += 2\nprint(total)",
    ],
)
def test_a_name_that_a_block_binds_before_is_not_that_of_the_notebook(cell: str) -> None:
    # Run here once, the cell leaves the name in the notebook.
    assert run_after([cell], cell) == "3"


@pytest.mark.parametrize(
    "cell",
    [
        "for step in (1, 2):\n    loaded += step\n    loaded = 0",
        "if loaded:\n    loaded = 1\nelse:\n    loaded += 1",
        "if False:\n    loaded = 1\nelse:\n    loaded += 1",
        "while (loaded := loaded - 1):\n    pass",
    ],
)
def test_a_name_that_a_block_reads_before_is_that_of_the_notebook(cell: str) -> None:
    with pytest.raises(NotebookError, match="names loaded, a value"):
        collect_code(cell, CELLS, (), KNOWN)


@pytest.mark.parametrize(
    ("cells", "cell", "words"),
    [
        (["RATES = {'lr': 1}", "RATES['lr'] = 2"], "print(RATES)", "RATES, .* has changed"),
        (["LIST = [1]", "LIST.append(2)"], "print(LIST)", "LIST, .* has changed"),
        (["class Setup:\n    lr = 1", "Setup.lr = 2"], "print(Setup.lr)", "Setup, .* has changed"),
        (["loss = float('1')"], "loss = loss * 2", "loss, a value"),
        (["exec('def made(): return 1')"], "print(made())", "made, a value"),
        (["for each in (1,):\n    import json"], "print(json)", "json, a value"),
        ([], "display(1)", "display, which only a notebook has"),
        (
            ["def listing():\n    get_ipython().system('ls')"],
            "listing()",
            "get_ipython, which only",
        ),
    ],
)
def test_what_would_mean_something_else_in_the_workload_is_refused(
    cells: list[str], cell: str, words: str
) -> None:
    with pytest.raises(NotebookError, match=f"names {words}"):
        collect_code(cell, cells, (), run_cells(cells))


def test_a_change_that_is_included_goes_along() -> None:
    cells = ["RATES = {'lr': 1}", "RATES['lr'] = 2"]
    included = [IncludedCell("RATES['lr'] = 2", 2)]
    code = collect_code("print(RATES)", cells, included, run_cells(cells))
    assert run_script(code) == "{'lr': 2}"


def test_a_later_definition_than_the_included_one_is_refused() -> None:
    cells = ["get_ipython()", "SIZES = [9]", "other = 1"]
    known = {"SIZES": [9], "other": 1}
    source = "SIZES = list(range(3))"
    with pytest.raises(NotebookError, match="names SIZES, which a later cell defines anew"):
        collect_code("print(SIZES)", cells, [IncludedCell(source, 1)], known)
    code = collect_code("print(SIZES)", cells, [IncludedCell(source, 2)], known)
    assert run_script(code) == "[0, 1, 2]"


def test_a_refusal_names_the_marked_cell_that_it_is_about() -> None:
    included = [IncludedCell("# sizes\nSIZES = [loaded]", len(CELLS))]
    words = "The cell “sizes”, which is marked with %%muster_include, names loaded, a value"
    with pytest.raises(NotebookError, match=words):
        collect_code("print(SIZES)", CELLS, included, KNOWN)


def test_a_marked_cell_that_is_run_again_stays_before_those_that_need_it() -> None:
    first, second = (
        IncludedCell("# sizes\nSIZES = [1]"),
        IncludedCell("# total\nTOTAL = sum(SIZES)"),
    )
    again = IncludedCell("# sizes\nSIZES = [1, 2]")
    included = place_cell(place_cell([first], second), again)
    assert included == [again, second]
    assert run_script(collect_code("print(TOTAL)", [], included, {})) == "3"


@pytest.mark.parametrize("again", ["# sizes\nSIZES = [TOTAL]", "# sizes\nTOTAL = 5"])
def test_a_marked_cell_that_is_run_again_comes_after_those_whose_names_it_has(again: str) -> None:
    included = [IncludedCell("# sizes\nSIZES = [1]"), IncludedCell("# total\nTOTAL = 4")]
    placed = place_cell(included, IncludedCell(again))
    assert [each.key for each in placed] == ["total", "sizes"]


MARKED = """
import os, math as m
import xml.dom.minidom
from json import dumps as write
SIZE, RATES = 2, {'lr': 1}
def half(x): return x / 2
"""


def collect_with_marked(later: Sequence[str], cell: str) -> str:
    """Return the code of a cell after a marked one, and later ones that run to their end."""
    included = [IncludedCell(MARKED, 1)]
    return collect_code(cell, ["mark()", *later], included, run_cells([MARKED, *later]))


@pytest.mark.parametrize(
    ("later", "cell", "printed"),
    [
        (["import math as m  # again"], "print(round(m.pi))", "3"),
        (["import os, sys"], "print(os.sep)", "/"),
        (["import xml"], "print(xml.dom.minidom.Text.nodeType)", "3"),
        (["from json import loads, dumps as write"], "print(write(1))", "1"),
        (["SIZE, RATES = 2, {'lr': 1}"], "print(SIZE, RATES)", "2 {'lr': 1}"),
        (["SIZE = 2", "RATES = dict(lr=1)"], "print(SIZE, RATES)", "2 {'lr': 1}"),
        (["SIZE = 9", "SIZE = 2"], "print(SIZE)", "2"),
        (["def half(x):\n    return x / 2"], "print(half(4))", "2.0"),
        (["def half(x): return 0", "def half(x): return x / 2"], "print(half(4))", "2.0"),
    ],
)
def test_a_later_definition_that_means_the_same_as_the_included_one_is_none(
    later: list[str], cell: str, printed: str
) -> None:
    assert run_script(collect_with_marked(later, cell)) == printed


@pytest.mark.parametrize(
    ("later", "name"),
    [
        ("import cmath as m", "m"),
        ("from json import loads as write", "write"),
        ("import xml.etree.ElementTree", "xml"),
        ("SIZE = 3", "SIZE"),
        ("SIZE += 1", "SIZE"),
        ("def half(x): return x // 2", "half"),
        ("half = str", "half"),
    ],
)
def test_a_later_definition_that_means_something_else_is_refused(later: str, name: str) -> None:
    with pytest.raises(NotebookError, match=f"names {name}, which a later cell defines anew"):
        collect_with_marked([later], f"print({name})")


@pytest.mark.parametrize(
    ("marked", "later"),
    [
        ("KEPT = []\nKEPT.append(1)", "KEPT = []"),
        ("KEPT = {}\nKEPT['lr'] = 1", "KEPT = {}"),
        ("class KEPT: lr = 1\nKEPT.lr = 2", "class KEPT: lr = 1"),
        ("KEPT = 1\nKEPT += 1", "KEPT = 1"),
    ],
)
def test_the_same_definition_without_its_changes_is_another(marked: str, later: str) -> None:
    included = [IncludedCell(marked, 1, select_definitions(marked, run_cells([marked])))]
    with pytest.raises(NotebookError, match="names KEPT, which a later cell defines anew"):
        collect_code("print(KEPT)", ["mark()", later], included, run_cells([marked, later]))


@pytest.mark.parametrize(
    ("marked", "later", "printed"),
    [
        ("RATES = {'lr': 1}", "RATES['lr'] = 2", "{'lr': 2}"),
        ("RATES = [1]", "RATES.append(2)", "[1, 2]"),
        ("class RATES: lr = 1", "RATES.__doc__ = 'changed'", "<class '__main__.RATES'>"),
    ],
)
def test_a_change_of_what_a_marked_cell_defines_must_be_marked_too(
    marked: str, later: str, printed: str
) -> None:
    known, cells = run_cells([marked, later]), ["mark()", later]
    included = [IncludedCell(marked, 1)]
    with pytest.raises(NotebookError, match=r"names RATES, .* has changed since"):
        collect_code("print(RATES)", cells, included, known)
    included.append(IncludedCell(later, 2))
    assert run_script(collect_code("print(RATES)", cells, included, known)) == printed


def test_a_later_cell_that_failed_before_its_definitions_defines_nothing() -> None:
    known = run_cells([MARKED])
    later = "1 / 0\nSIZE = 3\ndef half(x): return 0\nm = None"
    included = [IncludedCell(MARKED, 1, select_definitions(MARKED, known))]
    cell = "print(SIZE, half(4), round(m.pi))"
    code = collect_code(cell, ["mark()", later], included, known)
    assert run_script(code) == "2 2.0 3"
    known["half"] = str
    with pytest.raises(NotebookError, match="names half, which a later cell defines anew"):
        collect_code(cell, ["mark()", later], included, known)


def test_arguments_run_the_code_as_a_script() -> None:
    code = (
        "import sys\nprint(__name__, __file__.endswith('notebook.py'), sys.argv[1:], '\"\\'')\n1/0"
    )
    words = shlex.split(build_arguments(code))
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.stdout == "__main__ True [] \"'\n"
    assert 'notebook.py", line 3' in done.stderr
    assert "1/0" in done.stderr
    assert zlib.decompress(base64.b64decode(words[-1])).decode() == code


def test_code_that_is_too_large_is_refused_with_its_size() -> None:
    code = f"x = {random.Random(1).randbytes(LARGEST_ARGUMENT)!r}"
    with pytest.raises(NotebookError, match=r"packed [\d,]+; a workload takes 98,304"):
        build_arguments(code)
