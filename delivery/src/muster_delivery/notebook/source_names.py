"""Names in sources of Python: which a source reads, and which it gives a meaning."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterator

_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_INNER_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def list_free_names(source: str) -> list[str]:
    """Return the names that a source reads and did not define itself before. Raises SyntaxError."""
    top = _build_symbols(source)
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
    return sorted(names - set(_list_bound(top)) | _list_names_read_first(source))


def list_bound_names(source: str) -> list[str]:
    """Return the names that a source defines at its top. Raises SyntaxError."""
    return _list_bound(_build_symbols(source))


def list_changed_names(statement: ast.stmt) -> list[str]:
    """Return the names of what a statement changes in place, as settings in settings.lr = 1."""
    if isinstance(statement, _DEFINITIONS):
        return []
    targets = [
        node
        for node in ast.walk(statement)
        if isinstance(node, (ast.Attribute, ast.Subscript))
        and isinstance(node.ctx, (ast.Store, ast.Del))
    ]
    roots = [_find_root(each) for each in targets]
    return [each.id for each in roots if isinstance(each, ast.Name)]


def get_source(source: str, statement: ast.stmt) -> str:
    """Return the lines of a statement, with its decorators."""
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(each.lineno for each in decorators)])
    if not decorators and (segment := ast.get_source_segment(source, statement)):
        return segment
    # Other characters that end lines for str.splitlines end none for Python.
    return "\n".join(_LINE_ENDS.split(source)[first - 1 : statement.end_lineno])


def split_future_imports(source: str) -> tuple[list[str], str]:
    """Return the imports from __future__, and the source without them. Raises SyntaxError.

    They stand at the beginning of a file, or nowhere.
    """
    imports = [each for each in ast.parse(source).body if is_future_import(each)]
    rest = source
    for statement in reversed(imports):
        lines = _LINE_ENDS.split(rest)
        last = int(statement.end_lineno or statement.lineno) - 1
        before = lines[statement.lineno - 1].encode()[: statement.col_offset].decode()
        after = lines[last].encode()[statement.end_col_offset :].decode()
        lines[statement.lineno - 1 : last + 1] = [f"{before}pass{after}"]
        rest = "\n".join(lines)
    return [get_source(source, each) for each in imports], rest


def is_future_import(statement: ast.stmt) -> bool:
    """Tell whether a statement is an import from __future__."""
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _build_symbols(source: str) -> symtable.SymbolTable:
    tree = _SymbolSource().visit(ast.parse(source))
    return symtable.symtable(ast.unparse(tree), "<cell>", "exec")


class _SymbolSource(ast.NodeTransformer):
    """Makes a source whose table of symbols has what the source itself reads and binds.

    Comprehensions become generators, which name the same: Python 3.12 and later count the variables
    of the former as names of what they stand in. An annotation without a value binds nothing
    outside of functions, and counts as a binding for the table.
    """

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return _FunctionSource().generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return _FunctionSource().generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.Expr(node.annotation) if _is_bare_annotation(node) else node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        self.generic_visit(node)
        pair = ast.Tuple([node.key, node.value], ast.Load())
        return ast.GeneratorExp(pair, node.generators)


class _FunctionSource(_SymbolSource):
    """The same within a function, where an annotation makes a name local."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return self.generic_visit(node)


def _is_bare_annotation(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.AnnAssign) and node.value is None and isinstance(node.target, ast.Name)
    )


def _list_bound(table: symtable.SymbolTable) -> list[str]:
    return [
        each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported()
    ]


def _find_root(node: ast.expr) -> ast.expr:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node


def _list_names_read_first(source: str) -> set[str]:
    """Return the names that a source reads at its top before it gives them a meaning."""
    bound: set[str] = set()
    names: set[str] = set()
    for statement in ast.parse(source).body:
        names |= set(_list_read_names(statement)) - bound
        bound |= set(list_bound_names(get_source(source, statement)))
    return names


def _list_read_names(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement reads before it binds them itself.

    Of its blocks only `+=` counts: all else in them may be there for when a name is unknown.
    """
    if isinstance(statement, _DEFINITIONS):
        return
    yield from _list_augmented_names(statement, set())
    bound: set[str] = set()
    for head in _list_heads(statement):
        yield from _list_loaded_names(head, bound)


def _list_augmented_names(node: ast.AST, bound: set[str]) -> Iterator[str]:
    """Yield the names in `+=` and the like that nothing before has bound; add to `bound`."""
    if isinstance(node, ast.alias):
        bound.add(node.asname or node.name.partition(".")[0])
    elif isinstance(name := getattr(node, "name", None), str):
        # That of a function, a class, a handler or a pattern.
        bound.add(name)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        bound.add(node.id)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        if node.target.id not in bound:
            yield node.target.id
    elif not isinstance(node, (*_DEFINITIONS, *_INNER_SCOPES)) and not _is_bare_annotation(node):
        yield from _list_augmented_within(node, bound)


def _list_augmented_within(node: ast.AST, bound: set[str]) -> Iterator[str]:
    """Yield the names in `+=` of what stands in a node, in the order of the source."""
    branches: list[list[ast.AST]] = []
    heads: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.If):
        heads, branches = [node.test], [[*node.body], [*node.orelse]]
    elif cases := getattr(node, "cases", None):
        # A match statement, which Python 3.9 does not know.
        heads, branches = [node.subject], [[each] for each in cases]  # type: ignore[attr-defined]
    for child in heads:
        yield from _list_augmented_names(child, bound)
    # What one branch binds is not bound in the others.
    in_branches = [set(bound) for _ in branches]
    for children, in_branch in zip(branches, in_branches):
        for child in children:
            yield from _list_augmented_names(child, in_branch)
    bound.update(*in_branches)


def _list_heads(statement: ast.stmt) -> list[ast.AST]:
    """Return what of a statement is always evaluated before its blocks; all where it has none."""
    if not (hasattr(statement, "body") or hasattr(statement, "cases")):
        return [statement]
    names = ("test", "iter", "subject")
    heads = [each for name in names if (each := getattr(statement, name, None))]
    return heads + [each.context_expr for each in getattr(statement, "items", [])]


def _list_loaded_names(node: ast.AST, bound: set[str]) -> Iterator[str]:
    """Yield the names that are read outside of functions and comprehensions within.

    Those in `bound` are left out; added to it are those that := binds.
    """
    if isinstance(node, ast.NamedExpr):
        yield from _list_loaded_names(node.value, bound)
        bound.add(node.target.id)
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound:
        yield node.id
    if not isinstance(node, _INNER_SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _list_loaded_names(child, bound)
