"""Measure the house: size by room, shape of files and functions, cycles and escapes.

`make check` prints it, and fails on an import cycle; docs/architecture.md carries the figures.
"""

import ast
import io
import re
import statistics
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
PRODUCT = ("console", "projects", "clusters", "environments", "workloads")
"""The floors of the console, lowest first."""
ROOMS = (*PRODUCT, "cli", "delivery", "simulation", "scheduling", "localkube")
PACKAGES = {"muster_cli": "cli", "muster_delivery": "delivery", "taas": "delivery"}
"""Packages that lie in the folder `src` of a room of another name."""
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
"""Tokens that make no line a line of code."""


@dataclass(slots=True)
class Module:
    """One Python file and what was measured in it."""

    name: str
    lines: int
    code_lines: int
    functions: list[int] = field(default_factory=list)
    """The length of each function in lines."""
    imports: set[str] = field(default_factory=set)
    """What is imported when the module is loaded, as dotted names."""
    typing_imports: set[str] = field(default_factory=set)
    """What only a type checker imports."""
    deferred_imports: int = 0
    """Imports inside functions, save in AppConfig.ready."""
    broad_excepts: int = 0
    type_ignores: int = 0

    @property
    def room(self) -> str:
        package = self.name.split(".")[0]
        return PACKAGES.get(package, package)


def find_docstring_lines(tree: ast.AST) -> set[int]:
    """Return the numbers of the lines that hold docstrings, of attributes too."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def count_code_lines(source: str, tree: ast.AST) -> int:
    """Count the lines that are neither comment nor docstring nor blank."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - find_docstring_lines(tree))


def is_typing_only(node: ast.AST) -> bool:
    """Say whether a statement is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def list_imports(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the dotted names that an import statement may load."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    module = node.module or ""
    return [module, *(f"{module}.{alias.name}" for alias in node.names)]


def visit(module: Module, node: ast.AST, *, in_function: bool, is_typing: bool) -> None:
    """Add what stands below a node to the module's figures."""
    for child in ast.iter_child_nodes(node):
        inside, typing = in_function, is_typing or is_typing_only(child)
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            module.functions.append((child.end_lineno or child.lineno) - child.lineno + 1)
            # AppConfig.ready is where models can first be imported.
            inside = child.name != "ready" or not module.name.endswith(".apps")
        elif isinstance(child, ast.Import | ast.ImportFrom):
            if inside:
                module.deferred_imports += 1
            else:
                imports = module.typing_imports if typing else module.imports
                imports.update(list_imports(child))
        elif isinstance(child, ast.ExceptHandler) and is_broad(child):
            module.broad_excepts += 1
        visit(module, child, in_function=inside, is_typing=typing)


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Say whether a handler catches everything."""
    names = {"Exception", "BaseException"}
    caught = handler.type
    each = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return caught is None or any(isinstance(name, ast.Name) and name.id in names for name in each)


def measure_module(path: Path) -> Module:
    """Read one file and measure it."""
    source = path.read_text()
    tree = ast.parse(source)
    parts = path.relative_to(BASE).with_suffix("").parts
    # A package in a folder of its own is imported by its own name.
    parts = parts[2:] if parts[0] in PACKAGES.values() else parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    module = Module(name, source.count("\n"), count_code_lines(source, tree))
    module.type_ignores = len(re.findall(r"# type: ignore", source))
    visit(module, tree, in_function=False, is_typing=False)
    return module


def list_files(*patterns: str) -> list[Path]:
    """Return the files that git tracks, and new ones, below these folders."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    output = subprocess.run(command, cwd=BASE, capture_output=True, text=True, check=True).stdout
    return [BASE / line for line in output.splitlines() if (BASE / line).is_file()]


def find_cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected groups of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[list[str]] = []

    def connect(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                connect(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                cycles.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10_000)
    for name in graph:
        if name not in index:
            connect(name)
    return cycles


def build_graph(modules: Sequence[Module], *, with_typing: bool) -> dict[str, set[str]]:
    """Return which module imports which; a package's own import of its parts does not count.

    `from package import part` names both; the package counts only where no such part exists.
    """
    names = {module.name for module in modules}
    packages = {name for name in names if any(other.startswith(f"{name}.") for other in names)}
    graph: dict[str, set[str]] = {}
    for module in modules:
        wanted = module.imports | (module.typing_imports if with_typing else set())
        imports = {name for name in wanted if name in names and name != module.name}
        parents = {name for name in imports if name in packages}
        graph[module.name] = imports - {
            parent for parent in parents if any(each.startswith(f"{parent}.") for each in imports)
        }
    return graph


def percentile(values: Sequence[int], share: float) -> int:
    """Return the value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0


def describe(modules: Sequence[Module], templates: int) -> Iterator[str]:
    """Return the report, line by line, as a Markdown table."""
    product = [module for module in modules if module.room in PRODUCT]
    yield "| room | files | lines | lines of code |"
    yield "|---|---:|---:|---:|"
    for room in ROOMS:
        room_modules = [module for module in modules if module.room == room]
        if room_modules:
            lines, code = (
                sum(each.lines for each in room_modules),
                sum(each.code_lines for each in room_modules),
            )
            yield f"| {room} | {len(room_modules)} | {lines:,} | {code:,} |"
    lines = sum(module.lines for module in product)
    code = sum(module.code_lines for module in product)
    yield f"| console and its floors | {len(product)} | {lines:,} | {code:,} |"
    yield ""
    files = [module.lines for module in modules]
    functions = [length for module in modules for length in module.functions]
    yield "| what | figure |"
    yield "|---|---:|"
    yield f"| lines of a file, median / p95 / most | {format_spread(files)} |"
    yield f"| lines of a function, median / p95 / most | {format_spread(functions)} |"
    yield (
        "| import cycles at run time | "
        f"{len(find_cycles(build_graph(modules, with_typing=False)))} |"
    )
    yield (
        f"| import cycles with types | {len(find_cycles(build_graph(modules, with_typing=True)))} |"
    )
    yield f"| imports inside functions | {sum(each.deferred_imports for each in modules)} |"
    yield f"| broad excepts | {sum(each.broad_excepts for each in modules)} |"
    yield f"| `type: ignore` | {sum(each.type_ignores for each in modules)} |"
    yield f"| templates | {templates} |"


def format_spread(values: Sequence[int]) -> str:
    """Return median, 95th percentile and maximum."""
    return f"{statistics.median(values):.0f} / {percentile(values, 0.95)} / {max(values)}"


def main() -> int:
    """Print the figures; fail where modules import each other in a circle."""
    paths = [path for path in list_files(*ROOMS) if path.suffix == ".py"]
    modules = [measure_module(path) for path in paths if "migrations" not in path.parts]
    for line in describe(modules, len(list_files("templates"))):
        print(line)
    cycles = find_cycles(build_graph(modules, with_typing=False))
    for cycle in cycles:
        print("import cycle:", " -> ".join(cycle), file=sys.stderr)
    return 1 if cycles else 0


if __name__ == "__main__":
    raise SystemExit(main())
