"""Refuse names that are riddles: `make check` runs this over the house.

A function is a verb with its object or a noun of the field; a class is a noun of the field. What is
refused here stands as a bare word only: `read_body` is fine, `read` is not.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent

FOLDERS = ("console", "projects", "clusters", "environments", "workloads", "localkube")
FOLDERS += ("scheduling", "simulation", "examples", "cli", "delivery", "benchmarks")
FOLDERS += ("scripts", "tests")

PARTICIPLES = """
asked became become begun bound bought brought built caught chosen come cut dealt done drawn driven
fallen fed felt found forgotten frozen given gone grown heard held hidden hurt kept known laid led
left lent lost made meant met overlaid paid proven put ran read said seen sent set shown shrunk shut
sold sought spent spoken spread spun stood struck stuck taken taught thrown told understood went
withdrawn won worn written
"""
"""Past forms that do not end in -ed."""
BARE_VERBS = """
answer ask become blame bring call come count cut fill find get give go hold hush keep leave look
make mark may meet move need offer pass put read say see send serve set show speak split stand take
tell think touch try turn use want
"""
"""Verbs that say nothing without their object."""
FUNCTION_WORDS = """
about above after again ahead alike all alone another any anybody anywhere apart around at away back
before behind below beside between beyond both by down each either else every everybody everywhere
few from here how in inside instead into it its late later many mine more most much near nearest
nobody none not now of off often on once one onward only other others ours out over own part plain
same several since so some soon such than that them then there these they thing this those through
together too twice under until up upon what when where whether which who whole whom whose why with
within without yet
"""
"""Words that mean something only beside another."""
RIDDLES = frozenset(f"{PARTICIPLES} {BARE_VERBS} {FUNCTION_WORDS}".split())
NOUNS_IN_ED = frozenset({"bed", "embed", "feed", "need", "seed", "shed", "speed", "thread"})
"""Nouns and verbs that only look like past participles."""
ALLOWED_FUNCTIONS = frozenset({"main", "get"})
"""Bare words that stay: the entry of a program, and the verb of the Kubernetes API."""
REFUSED_CLASSES = """
Case Thing Told Said Seen Held Some Left Lost Shown Used Asked Known Listed Heard Kept Found Ran
Raced Applied Missing Merged Offered Wanted Needed Counted Look Of Where Whole
"""
"""What a class is never called: participles and pronouns that stand for anything."""
REFUSED_VARIABLES = frozenset(["told", "said", "seen", "held", "asked", "heard", "gone"])
REFUSED_PARAMETERS = REFUSED_VARIABLES | {"shown"}


def is_riddle(name: str) -> bool:
    """Say whether a bare function name tells nobody what the function does."""
    word = name.strip("_")
    if not word or "_" in word or word in ALLOWED_FUNCTIONS:
        return False
    if word.endswith("ed") and word not in NOUNS_IN_ED:
        return True
    return word in RIDDLES


def list_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.arg]:
    """Return all parameters of a function."""
    arguments = node.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (each for each in (arguments.vararg, arguments.kwarg) if each is not None)


def find_riddles(path: Path) -> Iterator[str]:
    """Return a line for each refused name of a file."""
    tree = ast.parse(path.read_text())
    where = path.relative_to(BASE)
    top_level = set(tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name.strip("_") in REFUSED_CLASSES.split():
            yield f"{where}:{node.lineno}: class {node.name} is no noun of the field"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node in top_level and is_riddle(node.name):
                yield f"{where}:{node.lineno}: {node.name}() is no verb with its object"
            for parameter in list_parameters(node):
                if parameter.arg in REFUSED_PARAMETERS:
                    yield f"{where}:{parameter.lineno}: parameter {parameter.arg} is a riddle"
        if isinstance(node, ast.Name) and node.id in REFUSED_VARIABLES:
            yield f"{where}:{node.lineno}: variable {node.id} is a riddle"


def list_files(folders: Sequence[str]) -> list[Path]:
    """Return the Python files of these folders, of all by default, without migrations."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    command += folders or FOLDERS
    output = subprocess.run(command, cwd=BASE, capture_output=True, text=True, check=True).stdout
    paths = [BASE / line for line in output.splitlines() if line.endswith(".py")]
    return [path for path in paths if path.is_file() and "migrations" not in path.parts]


def main(folders: Sequence[str]) -> int:
    """Print every riddle below these folders; 1 when there is one."""
    riddles = [line for path in list_files(folders) for line in find_riddles(path)]
    for line in riddles:
        print(line)
    return 1 if riddles else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
