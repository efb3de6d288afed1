"""The code of a workload out of a notebook: a cell, and the definitions that it names.

Taken along are the sources of functions and classes of earlier cells that the cell names, of those
that these name, and so on; their imports; constants that are written out; and all that was marked
with `%%muster_include`. Other values of the notebook cannot be taken along, and are refused.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster_delivery.notebook.errors import NotebookError


@dataclass(frozen=True)
class _Definition:
    """A statement of an earlier cell that gives names a meaning."""

    source: str
    names: frozenset[str]
    is_portable: bool
    """Whether its source means the same elsewhere; the result of a call may not."""


def collect_code(
    cell: str, earlier_cells: Sequence[str], included: Sequence[str], known: Container[str]
) -> str:
    """Return the source that runs the cell by itself.

    `known` has the names that the notebook knows: a definition in a cell that failed is none.
    Raises NotebookError for what cannot be taken along, and SyntaxError.
    """
    definitions = list(_list_definitions(earlier_cells))
    stars = [each.source for each in definitions if not each.names]
    newest = {name: each for each in definitions for name in each.names if name in known}
    own = {name for source in included for name in _list_bound_names(source)}
    taken = _TakenDefinitions({name: newest[name] for name in newest.keys() - own})
    for source in (*included, cell):
        taken.add_needs(source)
    parts = [*dict.fromkeys(stars), *taken.sources, *included, cell.strip("\n")]
    return "\n\n".join(parts) + "\n"


class _TakenDefinitions:
    """Definitions that are needed, each after those that it needs itself."""

    def __init__(self, newest: Mapping[str, _Definition]) -> None:
        self._newest = newest
        self._seen: set[_Definition] = set()
        self.sources: list[str] = []

    def add_needs(self, source: str) -> None:
        """Take what a source names. Raises NotebookError for a value of the notebook."""
        for name in _list_free_names(source):
            definition = self._newest.get(name)
            # Functions that call each other are found again here.
            if definition is None or definition in self._seen:
                continue
            if not definition.is_portable:
                raise NotebookError(
                    f"The cell names {name}, a value of this notebook, which the workload does not "
                    "have. Compute it in the cell, in a function that the cell calls, or mark the "
                    "cell that computes it with %%muster_include."
                )
            self._seen.add(definition)
            self.add_needs(definition.source)
            self.sources.append(definition.source)


def _list_definitions(cells: Sequence[str]) -> Iterator[_Definition]:
    """Yield the statements of cells that define names; a star import has none."""
    for cell in cells:
        try:
            statements = ast.parse(cell).body
        except (SyntaxError, ValueError):
            continue
        for statement in statements:
            names = _list_statement_names(statement)
            is_star = isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*"
            if not names and not is_star:
                continue
            source = _get_source(cell, statement)
            yield _Definition(source, frozenset(names), _is_portable(statement))


def _get_source(cell: str, statement: ast.stmt) -> str:
    """Return the lines of a statement, with its decorators."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    if not decorators and (segment := ast.get_source_segment(cell, statement)):
        return segment
    return "\n".join(cell.splitlines()[first - 1 : statement.end_lineno])


def _list_statement_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        names = [(each.asname or each.name.partition(".")[0]) for each in statement.names]
        return [name for name in names if name != "*"]
    return [
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def _is_portable(statement: ast.stmt) -> bool:
    """Tell whether a statement is a definition, an import, or a constant that is written out."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        try:
            ast.literal_eval(statement.value)  # type: ignore[arg-type]
        except (ValueError, TypeError):
            return False
        return True
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    return isinstance(statement, kinds)


def _list_free_names(source: str) -> list[str]:
    """Return the names that a source reads and does not define itself. Raises SyntaxError."""
    top = symtable.symtable(source, "<cell>", "exec")
    own = {
        each.get_name() for each in top.get_symbols() if each.is_assigned() or each.is_imported()
    }
    names: set[str] = set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables.extend(table.get_children())
        names.update(
            each.get_name()
            for each in table.get_symbols()
            if each.is_referenced() and (table is top or each.is_global())
        )
    return sorted(name for name in names - own if not hasattr(builtins, name))


def _list_bound_names(source: str) -> list[str]:
    """Return the names that a source defines at its top."""
    top = symtable.symtable(source, "<cell>", "exec")
    return [
        each.get_name() for each in top.get_symbols() if each.is_assigned() or each.is_imported()
    ]
