"""The code of a workload out of a notebook: a cell, and the definitions that it names.

Taken along are the sources of functions and classes of earlier cells that the cell names, of those
that these name, and so on; their imports; constants that are written out; and all that was marked
with `%%muster_include`. Other values of the notebook cannot be taken along, and are refused.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from muster_delivery.notebook.errors import NotebookError
from muster_delivery.notebook.source_names import (
    get_source,
    is_future_import,
    list_bound_names,
    list_changed_names,
    list_free_names,
    split_future_imports,
)

NOTEBOOK_ONLY = frozenset({"display", "get_ipython"})
"""What IPython adds to the names of Python, and a script does not have."""
_VALUE = (
    "a value of this notebook, which the workload does not have. Compute it in the cell, in a "
    "function that the cell calls, or mark the cell that computes it with %%muster_include."
)
_CHANGED = (
    "which this notebook has changed since the cell that defines it. Write it out as it is now, or "
    "mark the cell that changes it with %%muster_include."
)
_REDEFINED = (
    "which a later cell defines anew, after the one that is marked with %%muster_include. Mark the "
    "later one, too."
)
_NOTEBOOK = "which only a notebook has: the workload runs the cell as a script."
_MISSING = object()
_CONTAINERS = (list, dict, set)
"""What of all that can be written out can be changed in place."""
_PORTABLE = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
    ast.Pass,
)


@dataclass(frozen=True)
class IncludedCell:
    """A cell that goes along whole, and how many cells had been run when it was marked."""

    source: str
    cell_count: int = 0
    definitions: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """What `select_definitions` returned when it had been run."""

    @property
    def key(self) -> str:
        """Return its first line: a comment with its name, or with the first line of the cell."""
        return self.source.partition("\n")[0].removeprefix("# ")


@dataclass(frozen=True)
class _Definition:
    """A statement of an earlier cell that gives names a meaning."""

    source: str
    names: frozenset[str]
    problem: str = ""
    """Why its source does not mean the same elsewhere; "" where it does."""
    is_changeable: bool = False
    """Whether it is a class or a function, whose attributes a later cell may set."""
    is_import: bool = False
    """Whether it imports modules by their own names."""
    is_constant: bool = False
    """Whether it writes out the very value that the notebook has now."""


def select_definitions(cell: str, namespace: Mapping[str, object]) -> dict[str, object]:
    """Return the modules, functions and classes that a cell has given a name.

    Only these tell later whether the name was defined anew: values may be large, and are not kept.
    """
    return {
        name: namespace[name]
        for name in list_bound_names(cell)
        if isinstance(namespace.get(name), (ModuleType, FunctionType, type))
    }


def collect_code(
    cell: str,
    earlier_cells: Sequence[str],
    included: Sequence[IncludedCell],
    namespace: Mapping[str, object],
) -> str:
    """Return the source that runs the cell by itself.

    `namespace` has what the notebook knows: a definition in a cell that failed is none. Raises
    NotebookError for what cannot be taken along, and SyntaxError.
    """
    parsed = [(each, *_parse_statements(each)) for each in earlier_cells]
    futures = [each for _, future_imports, _ in parsed for each in future_imports]
    included_sources = [(_describe_marked(each), each.source) for each in included]
    sources = []
    for subject, source in [*included_sources, ("The cell", cell)]:
        future_imports, rest = split_future_imports(source)
        futures += future_imports
        sources.append((subject, rest.strip("\n")))
    newest, stars = _find_newest(parsed, namespace)
    managed = {name for each in included for name in list_free_names(each.source)}
    own = {name for each in included for name in list_bound_names(each.source)}
    own_problems = _find_own_problems(included, parsed, namespace)
    usable = {
        name: _forgive_change(each) if name in managed else each
        for name, each in newest.items()
        if name not in own
    }
    taken = _TakenDefinitions(usable, own, own_problems, _UndefinedNames(namespace, stars))
    for subject, source in sources:
        taken.add_needs(source, subject)
    imports = [*dict.fromkeys(futures), *dict.fromkeys(source for source, _ in stars)]
    parts = [*imports, *taken.sources, *(source for _, source in sources)]
    return "\n\n".join(parts) + "\n"


def place_cell(included: Sequence[IncludedCell], cell: IncludedCell) -> list[IncludedCell]:
    """Return the included cells with one more, or with one that was run again in its place.

    Cells after it may need what it defines. It comes last where it names what they define.
    """
    keys = [each.key for each in included]
    others = [each for each in included if each.key != cell.key]
    place = keys.index(cell.key) if cell.key in keys else len(others)
    names = {*list_free_names(cell.source), *list_bound_names(cell.source)}
    if any(names & set(list_bound_names(each.source)) for each in others[place:]):
        place = len(others)
    return [*others[:place], cell, *others[place:]]


def _describe_marked(cell: IncludedCell) -> str:
    return f"The cell “{cell.key}”, which is marked with %%muster_include,"


class _UndefinedNames:
    """The names that the notebook knows, and none of its cells defines."""

    def __init__(self, namespace: Mapping[str, object], stars: Sequence[tuple[str, str]]) -> None:
        self._known = namespace
        self._modules = [module for _, module in stars]

    def find_problem(self, name: str) -> str:
        """Return why a name without a definition cannot go along; "" where it need not."""
        if name in NOTEBOOK_ONLY:
            return _NOTEBOOK
        value = self._known.get(name, _MISSING)
        # What a module has of itself, as __name__, is there in the workload, too.
        if value is _MISSING or name.startswith("__") or value is getattr(builtins, name, _MISSING):
            return ""
        is_starred = any(
            getattr(sys.modules.get(module), name, _MISSING) is value for module in self._modules
        )
        return "" if is_starred else _VALUE


class _TakenDefinitions:
    """Definitions that are needed, each after those that it needs itself."""

    def __init__(
        self,
        newest: Mapping[str, _Definition],
        own: set[str],
        own_problems: Mapping[str, str],
        undefined: _UndefinedNames,
    ) -> None:
        self._newest = newest
        self._own = own
        self._own_problems = own_problems
        self._undefined = undefined
        self._taken: set[_Definition] = set()
        self.sources: list[str] = []

    def add_needs(self, source: str, subject: str) -> None:
        """Take what a source names. Raises NotebookError for a value of the notebook.

        `subject` begins the words of a refusal.
        """
        for name in list_free_names(source):
            definition = self._newest.get(name)
            # Functions that call each other are found again here.
            if definition in self._taken:
                continue
            if problem := self._find_problem(name, definition):
                raise NotebookError(f"{subject} names {name}, {problem}")
            if definition is not None:
                self._taken.add(definition)
                self.add_needs(definition.source, subject)
                self.sources.append(definition.source)

    def _find_problem(self, name: str, definition: _Definition | None) -> str:
        """Return why a name cannot go along; "" where it can."""
        if name in self._own:
            return self._own_problems.get(name, "")
        if definition is None:
            return self._undefined.find_problem(name)
        return definition.problem


_Parsed = tuple[str, "list[str]", "list[ast.stmt]"]


def _parse_statements(cell: str) -> tuple[list[str], list[ast.stmt]]:
    """Return the imports from __future__ of a cell, and its other statements; none if broken."""
    try:
        statements = ast.parse(cell).body
    except (SyntaxError, ValueError):
        return [], []
    futures = [get_source(cell, each) for each in statements if is_future_import(each)]
    return futures, [each for each in statements if not is_future_import(each)]


def _find_newest(
    parsed: Sequence[_Parsed], namespace: Mapping[str, object]
) -> tuple[dict[str, _Definition], list[tuple[str, str]]]:
    """Return the newest definition of each name, and each star import with its module."""
    newest: dict[str, _Definition] = {}
    stars: list[tuple[str, str]] = []
    for cell, _, statements in parsed:
        for statement in statements:
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                stars.append((get_source(cell, statement), statement.module or ""))
                continue
            for name in list_changed_names(statement):
                if name in newest and newest[name].is_changeable:
                    newest[name] = replace(newest[name], problem=_CHANGED)
            definition = _define(cell, statement, namespace)
            for name in definition.names & namespace.keys():
                newest[name] = _add_submodules(definition, newest.get(name))
    return newest, stars


def _add_submodules(definition: _Definition, earlier: _Definition | None) -> _Definition:
    """Return a definition with the imports before it: `import a` takes none of `import a.b`."""
    if earlier is None or not (definition.is_import and earlier.is_import):
        return definition
    sources = dict.fromkeys([*earlier.source.splitlines(), definition.source])
    return replace(definition, source="\n".join(sources))


def _define(cell: str, statement: ast.stmt, namespace: Mapping[str, object]) -> _Definition:
    """Return what a statement defines; it may be nothing."""
    source = get_source(cell, statement)
    try:
        names = frozenset(list_bound_names(source))
    except SyntaxError:
        return _Definition(source, frozenset())
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        problem = _find_value_problem(statement, names, namespace)
        return _Definition(source, names, problem, is_constant=not problem)
    return _Definition(
        source,
        names,
        "" if _is_portable(statement) else _VALUE,
        isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)),
        isinstance(statement, ast.Import) and not any(each.asname for each in statement.names),
    )


def _find_value_problem(
    statement: ast.Assign | ast.AnnAssign, names: frozenset[str], namespace: Mapping[str, object]
) -> str:
    """Return why an assignment cannot go along: only constants that are written out can."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    try:
        value = ast.literal_eval(statement.value)  # type: ignore[arg-type]
        written = {name: each for target in targets for name, each in _pair(target, value)}
        is_same = all(
            _is_equal(written[name], namespace[name]) for name in names & namespace.keys()
        )
    except Exception:  # noqa: BLE001 - what cannot be compared may be anything
        return _VALUE
    return "" if is_same else _CHANGED


def _pair(target: ast.expr, value: Any) -> Iterator[tuple[str, object]]:
    """Yield each name of a target with its part of the value."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Starred):
        yield from _pair(target.value, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts = list(value)
        for number, inner in enumerate(target.elts):
            if isinstance(inner, ast.Starred):
                # It takes what the targets after it leave.
                end = len(parts) - (len(target.elts) - number - 1)
                parts[number:end] = [parts[number:end]]
        for inner, part in zip(target.elts, parts):
            yield from _pair(inner, part)


def _is_equal(written: object, value: object) -> bool:
    return type(written) is type(value) and bool(written == value)


def _is_portable(statement: ast.stmt) -> bool:
    """Tell whether a statement is a definition or an import, or tries some."""
    if isinstance(statement, (ast.If, ast.Try)):
        return all(_is_portable(each) for each in _list_inner_statements(statement))
    if isinstance(statement, ast.Assign):
        # Within a block: it cannot be compared with what the notebook has, so it is one that
        # nothing can change in place.
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, _PORTABLE)


def _list_inner_statements(statement: ast.If | ast.Try) -> Iterator[ast.stmt]:
    yield from statement.body
    yield from statement.orelse
    if isinstance(statement, ast.Try):
        yield from statement.finalbody
        for handler in statement.handlers:
            yield from handler.body


def _forgive_change(definition: _Definition) -> _Definition:
    """Return a definition whose changes an included cell repeats."""
    return replace(definition, problem="") if definition.problem == _CHANGED else definition


def _find_own_problems(
    included: Sequence[IncludedCell], parsed: Sequence[_Parsed], namespace: Mapping[str, object]
) -> dict[str, str]:
    """Return why names of included cells mean something else since a later cell, by name."""
    sources = [(each.source, *_parse_statements(each.source)) for each in included]
    own, _ = _find_newest(sources, namespace)
    bound = [(name, each) for each in included for name in list_bound_names(each.source)]
    last = {name: each for name, each in bound if name in own}
    altered = _list_altered_names(sources, namespace)
    problems = {}
    for cell in included:
        names = {name for name, each in last.items() if each is cell}
        later = parsed[cell.cell_count :]
        for name in names - altered:
            if _is_changed(name, own[name], later, namespace):
                problems[name] = _CHANGED
        # Where a later cell failed before it came to its definition, the object is still there.
        same = {name for name, each in cell.definitions.items() if namespace.get(name) is each}
        for name, newest in _find_newest(later, namespace)[0].items():
            # A further submodule is imported into the same module.
            if name not in names or (name in same and not newest.is_import):
                continue
            if name in altered or not _means_the_same(name, newest, own[name]):
                problems[name] = _REDEFINED
    return problems


def _is_changed(
    name: str, own: _Definition, later: Sequence[_Parsed], namespace: Mapping[str, object]
) -> bool:
    """Tell whether a later cell has changed in place what an included one defines."""
    if own.is_changeable:
        return any(
            name in list_changed_names(each) for _, _, statements in later for each in statements
        )
    return own.problem == _CHANGED and isinstance(namespace[name], _CONTAINERS)


def _list_altered_names(sources: Sequence[_Parsed], namespace: Mapping[str, object]) -> set[str]:
    """Return the names of what cells may change in place after they have defined it."""
    statements = [each for _, _, cell_statements in sources for each in cell_statements]
    read = {
        node.id
        for each in statements
        for node in ast.walk(each)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    changed = {name for each in statements for name in list_changed_names(each)}
    return changed | {name for name in read if isinstance(namespace.get(name), _CONTAINERS)}


def _means_the_same(name: str, later: _Definition, own: _Definition) -> bool:
    """Tell whether a name means what the included definition says, whatever a later one says."""
    # A later one of another value has failed before, or was itself defined anew.
    if own.is_constant:
        return True
    if later.problem == _VALUE:
        return False
    return set(_list_meanings(name, later.source)) <= set(_list_meanings(name, own.source))


def _list_meanings(name: str, source: str) -> Iterator[str]:
    """Yield what a source binds a name to: each import by itself, and other statements whole."""
    for statement in ast.parse(source).body:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield ast.dump(statement)
            continue
        for each in statement.names:
            first, *rest = each.name.split(".")
            if (each.asname or first) != name:
                continue
            if isinstance(statement, ast.ImportFrom):
                yield f"from {'.' * statement.level}{statement.module} import {each.name}"
            elif each.asname:
                yield f"import {each.name} as {name}"
            else:
                # `import a.b` does what `import a` does, too.
                yield from accumulate([f"import {first}", *rest], "{}.{}".format)
