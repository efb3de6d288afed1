"""What of a notebook goes along with a cell: exactly what it needs, or a refusal."""

import base64
import random
import shlex
import subprocess
import sys
import zlib

import pytest

from muster_delivery.notebook.cell_code import collect_code
from muster_delivery.notebook.errors import NotebookError
from muster_delivery.notebook.payload import LARGEST_ARGUMENT, build_arguments

CELLS = [
    "import math\nfrom itertools import count as numbers\nimport os.path",
    "def area(radius):\n    return math.pi * radius**2\n\nSIZE = 2",
    "@staticmethod\ndef unused():\n    return missing",
    "class Ring:\n    radius = SIZE\n    def area(self):\n        return area(self.radius)",
    "loaded = open('/dev/null').read()",
    "def area(radius):\n    return math.tau * radius**2",
    "def broken(:",
    "SIZE: int = 3",
]
KNOWN = {"math", "numbers", "os", "area", "SIZE", "unused", "Ring", "loaded"}


def run_code(cell: str, included: tuple[str, ...] = ()) -> str:
    """Return what the code that is collected for a cell prints, run by itself."""
    code = collect_code(cell, CELLS, included, KNOWN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


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
    code = collect_code("print(Ring)", CELLS, (), KNOWN - {"Ring"})
    assert "class Ring" not in code


def test_decorators_and_star_imports_go_along() -> None:
    cells = [
        "from math import *",
        "import functools",
        "@functools.cache\ndef half(x): return x / 2",
    ]
    code = collect_code("print(half(pi))", cells, (), {"functools", "half", "pi"})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("1.57")


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
