"""The commands of the notebook: `%%muster`, `%%muster_include`, `%muster_stop`, `#pragma taas`."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from muster_delivery.notebook.cell_code import collect_code
from muster_delivery.notebook.connection import RestConnection, open_connection
from muster_delivery.notebook.following import WorkloadFollower, WorkloadStatus
from muster_delivery.notebook.submission import PRAGMA, build_body, find_project, parse_options

PREFIX = "/workloads/distributed"
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
        self._included: list[str] = []

    def register(self) -> None:
        """Make the commands known to the shell."""
        shell = self._shell
        shell.register_magic_function(self.run_cell, "cell", "muster")
        shell.register_magic_function(self.include_cell, "cell", "muster_include")
        shell.register_magic_function(self.stop_workload, "line", "muster_stop")
        if translate_pragma not in shell.input_transformers_cleanup:
            shell.input_transformers_cleanup.append(translate_pragma)

    def include_cell(self, line: str, cell: str) -> None:
        """Run a cell here, and take its whole source along to each workload from now on."""
        result = self._shell.run_cell(cell)
        if result.success:
            # Run again after a change, it replaces what it was.
            key = line.strip() or cell.strip().partition("\n")[0]
            self._included = [each for each in self._included if _get_key(each) != key]
            self._included.append(f"# {key}\n{cell}")

    def run_cell(self, line: str, cell: str) -> WorkloadResult:
        """Run a cell as a workload; return how it ended. Raises NotebookError."""
        options = parse_options(line)
        history = list(self._shell.history_manager.input_hist_parsed)
        code = collect_code(cell, history, self._included, self._shell.user_ns)
        compile(code, "notebook.py", "exec")
        connection = open_connection()
        project = find_project(connection, options.project)
        made = connection.call("POST", PREFIX, build_body(options, code, project))
        name, workload_id = str(made.get("name")), str(made["workloadId"])
        print(f"{name} was submitted: {connection.server}/workloads/{workload_id}")
        return self._follow(connection, name, workload_id)

    def stop_workload(self, line: str) -> None:
        """Stop the workload of an id. Raises NotebookError."""
        open_connection().call("POST", f"{PREFIX}/{line.strip()}/suspend")

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


def translate_pragma(lines: list[str]) -> list[str]:
    """Return a cell whose first line is `#pragma taas …` as one of `%%muster …`."""
    if lines and lines[0].startswith(PRAGMA):
        return [f"%%muster{lines[0][len(PRAGMA) :]}", *lines[1:]]
    return lines


def _get_key(source: str) -> str:
    return source.partition("\n")[0].removeprefix("# ")
