"""The commands of the notebook: `%%muster`, `%%muster_include`, `%muster_stop`, `#pragma taas`."""

from __future__ import annotations

import ast
import contextlib
import html
import re
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from muster_delivery.notebook.cell_code import (
    IncludedCell,
    collect_code,
    place_cell,
    select_definitions,
)
from muster_delivery.notebook.connection import RestConnection, Unreachable, open_connection
from muster_delivery.notebook.errors import NotebookError
from muster_delivery.notebook.following import WorkloadFollower, WorkloadStatus
from muster_delivery.notebook.submission import PRAGMA, build_body, find_project, parse_options

PREFIX = "/workloads/distributed"
ID = re.compile(r"[A-Za-z0-9-]+")
_display: Any = display
"""IPython's, which has no types."""


@dataclass(frozen=True)
class WorkloadResult:
    """How the workload of a cell ended."""

    name: str
    workload_id: str
    phase: str
    message: str = ""

    @property
    def exit_code(self) -> int:
        """0 when it was completed, 1 otherwise."""
        return 0 if self.phase == "Completed" else 1


class StatusBar:
    """What a workload does now, in one line drawn anew, with a bar while data is prepared."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._handle: Any = None
        self._last: WorkloadStatus | None = None
        self._status = WorkloadStatus("Creating", "")

    def show(self, status: WorkloadStatus) -> None:
        """Draw a status where it is another one."""
        if status == self._last:
            return
        self._last = self._status = status
        if self._handle is None:
            self._handle = _display(self, display_id=True)
        else:
            self._handle.update(self)

    def __repr__(self) -> str:
        status = self._status
        progress = (
            f" · {status.prepared:,} of {status.units:,} units prepared" if status.units else ""
        )
        return f"{self.name}: {status.phase}{progress}" + (
            f" · {status.message}" if status.message else ""
        )

    def _repr_html_(self) -> str:
        status = self._status
        bar = (
            f'<progress max="{status.units}" value="{status.prepared}"></progress> '
            if status.units
            else ""
        )
        # What the cluster says of the workload is not trusted.
        return f"<div>{bar}{html.escape(repr(self))}</div>"


class MusterCommands:
    """The commands, and what was marked to be taken along."""

    def __init__(self, shell: InteractiveShell) -> None:
        # IPython's own functions have no types.
        self._shell: Any = shell
        self._included: list[IncludedCell] = []

    def register(self) -> None:
        """Make the commands known to the shell."""
        shell = self._shell
        shell.register_magic_function(self.run_cell, "cell", "muster")
        shell.register_magic_function(self.include_cell, "cell", "muster_include")
        shell.register_magic_function(self.stop_workload, "line", "muster_stop")
        if translate_pragma not in shell.input_transformers_cleanup:
            shell.input_transformers_cleanup.append(translate_pragma)

    def include_cell(self, line: str, cell: str) -> None:
        """Run a cell here, and take its whole source along to each workload from now on.

        Raises NotebookError and SyntaxError for what no workload can run.
        """
        self._check_syntax(cell)
        if self._shell.run_cell(cell).success:
            key = line.strip() or cell.strip().partition("\n")[0]
            count = len(self._shell.history_manager.input_hist_parsed)
            definitions = select_definitions(cell, self._shell.user_ns)
            marked = IncludedCell(f"# {key}\n{cell}", count, definitions)
            self._included = place_cell(self._included, marked)

    def run_cell(self, line: str, cell: str) -> WorkloadResult:
        """Run a cell as a workload; return how it ended. Raises NotebookError."""
        options = parse_options(line)
        code = self._collect_code(cell)
        connection = open_connection()
        project = find_project(connection, options.project)
        workload = _submit(connection, build_body(options, code, project))
        name, workload_id = str(workload.get("name")), str(workload["workloadId"])
        print(f"{name} was submitted: {connection.server}/workloads/{workload_id}")
        for warning in workload.get("warnings") or []:
            print(f"Warning: {warning}")
        return self._follow(connection, name, workload_id)

    def _collect_code(self, cell: str) -> str:
        """Return the script of a cell. Raises NotebookError and SyntaxError."""
        shell = self._shell
        history = list(shell.history_manager.input_hist_parsed)
        hidden = shell.user_ns_hidden
        namespace = {
            name: value
            for name, value in shell.user_ns.items()
            # Without what IPython itself put there.
            if name not in hidden or hidden[name] is not value
        }
        self._check_syntax(cell)
        code = collect_code(cell, history, self._included, namespace)
        compile(code, "notebook.py", "exec")
        return code

    def _check_syntax(self, cell: str) -> None:
        """Raise NotebookError for what only a notebook can run, and SyntaxError."""
        try:
            compile(cell, "notebook.py", "exec")
        except SyntaxError:
            _refuse_commands(cell, self._shell.transform_cell(cell))
            _refuse_await(cell)
            raise

    def stop_workload(self, line: str) -> None:
        """Stop the workload of an id. Raises NotebookError."""
        workload_id = line.strip()
        if not ID.fullmatch(workload_id):
            raise NotebookError("Say which workload: `%muster_stop ID`, as its cell printed it.")
        open_connection().call("POST", f"{PREFIX}/{workload_id}/suspend")
        print(f"{workload_id} stops.")

    def _follow(self, connection: RestConnection, name: str, workload_id: str) -> WorkloadResult:
        bar = StatusBar(name)
        follower = WorkloadFollower(connection, workload_id, show_status=bar.show, show_line=print)
        try:
            status = follower.follow()
        except KeyboardInterrupt:
            return self._ask_what_to_do(connection, name, workload_id)
        return WorkloadResult(name, workload_id, status.phase, status.message)

    def _ask_what_to_do(
        self, connection: RestConnection, name: str, workload_id: str
    ) -> WorkloadResult:
        """Ask an interrupted person whether the workload shall stop; it goes on otherwise."""
        try:
            answer = input(f"Stop {name}? Type yes to stop it; otherwise it goes on. ")
        except (KeyboardInterrupt, EOFError, RuntimeError, NotImplementedError):
            # A notebook that runs without a person cannot be asked.
            answer = ""
        if answer.strip().lower() in ("y", "yes"):
            connection.call("POST", f"{PREFIX}/{workload_id}/suspend")
            return WorkloadResult(name, workload_id, "Stopped")
        print(f"{name} goes on. `%muster_stop {workload_id}` stops it.")
        return WorkloadResult(name, workload_id, "Running", "left running")


def _submit(connection: RestConnection, body: dict[str, Any]) -> dict[str, Any]:
    """Submit a workload; return what the server says of it. Raises NotebookError."""
    unknown = (
        "Whether the workload was submitted is not known: see `muster list` or the page of "
        "workloads before you run the cell again."
    )
    try:
        answer = connection.call("POST", PREFIX, body)
    except KeyboardInterrupt:
        print(unknown)
        raise
    except Unreachable as error:
        raise Unreachable(f"{error} {unknown}") from None
    if not isinstance(answer, dict) or "workloadId" not in answer:
        raise NotebookError(f"{connection.server} is no Muster. {unknown}")
    return answer


def translate_pragma(lines: list[str]) -> list[str]:
    """Return a cell whose first line is `#pragma taas …` as one of `%%muster …`."""
    if lines and lines[0].startswith(PRAGMA):
        return [f"%%muster{lines[0][len(PRAGMA) :]}", *lines[1:]]
    return lines


def _refuse_commands(cell: str, translated: str) -> None:
    """Raise NotebookError where IPython has translated a command into Python."""
    if translated.count("get_ipython()") > cell.count("get_ipython()"):
        raise NotebookError(
            "The cell has a command of the notebook, as %matplotlib or !pip. The workload runs the "
            "cell as a script, without IPython: leave the command out."
        )


def _refuse_await(cell: str) -> None:
    """Raise NotebookError for await outside of functions, which only a notebook can run."""
    # Compiled like this, await may stand outside of functions.
    with contextlib.suppress(SyntaxError):
        compile(cell, "notebook.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        raise NotebookError(
            "The cell has await or the like outside of functions. The workload runs the cell as a "
            "script: put it into a function, and call that by asyncio.run."
        )
