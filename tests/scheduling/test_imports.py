"""The package of scheduling decisions stands alone."""

import ast
import sys
from pathlib import Path

import scheduling

FOLDER = Path(scheduling.__file__).parent
ALLOWED = sys.stdlib_module_names | {"scheduling"}


def list_imported_packages(path: Path) -> set[str]:
    """Return the top-level names of all that a file imports, wherever it does."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add((node.module or "").partition(".")[0])
    return names


def test_it_imports_the_standard_library_and_itself_only() -> None:
    foreign = {path.name: list_imported_packages(path) - ALLOWED for path in FOLDER.rglob("*.py")}
    assert {name: found for name, found in foreign.items() if found} == {}


def test_it_reads_no_clock_and_draws_no_random_number() -> None:
    impure = {"datetime", "os", "random", "secrets", "socket", "subprocess", "threading", "time"}
    found = {path.name: list_imported_packages(path) & impure for path in FOLDER.rglob("*.py")}
    assert {name: each for name, each in found.items() if each} == {}
