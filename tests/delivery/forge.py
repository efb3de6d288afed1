"""Starts scripts as processes that have torch loaded already: loading it takes seconds each.

Reads a JSON object a line: the script's path, its environment and its log. Answers each with the
new process's id, and writes its exit code beside the log.
"""

import json
import os
import runpy
import sys
import threading
from io import TextIOWrapper

import torch
import torch.utils.data  # noqa: F401  the forked scripts find it loaded


def run_script(order: dict[str, object]) -> None:
    """Become the script, in the child."""
    log = os.open(str(order["log"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    environment = order["environment"]
    assert isinstance(environment, dict)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = str(environment["PYTHONPATH"]).split(os.pathsep)
    sys.argv = [str(order["script"])]
    assert isinstance(sys.stdout, TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=True)
    runpy.run_path(str(order["script"]), run_name="__main__")


def note_end(child: int, log: str) -> None:
    """Wait for a child and write its exit code."""
    _, status = os.waitpid(child, 0)
    with open(f"{log}.part", "w") as file:
        file.write(str(os.waitstatus_to_exitcode(status)))
    os.rename(f"{log}.part", f"{log}.exit")


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 0
            try:
                run_script(order)
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else 1
            except Exception:  # noqa: BLE001  the log shows whatever the script raised
                sys.excepthook(*sys.exc_info())
                code = 1
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        threading.Thread(target=note_end, args=(child, order["log"]), daemon=True).start()
        print(child, flush=True)


main()
