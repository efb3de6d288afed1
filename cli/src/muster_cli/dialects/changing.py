"""Workloads deleted, suspended, resumed and pruned; each returns when that is done."""

from muster_cli.actions import moments, workloads
from muster_cli.dialects.arena_words import check_type
from muster_cli.dialects.tables import Call
from muster_cli.errors import CliError, UsageProblem, describe_error

PATIENCE_SECONDS = 300.0
"""How long a name, or the end of all pods, is waited for."""
PRUNED_PHASES = ("Completed", "Failed", "Stopped")


def delete(call: Call) -> None:
    """Delete workloads, and return when their names are free."""
    session = call.invocation.session
    targets = _find_all(call)
    for workload in targets:
        check_type(workload, call.get_text("--type"))
    accepted: list[workloads.Workload] = []
    for workload in targets:
        try:
            workloads.delete(session, workload)
            accepted.append(workload)
        except CliError as error:
            if len(targets) == 1:
                raise
            call.invocation.error_terminal.write_line(
                f"{workload['name']}: {describe_error(error)}"
            )
    for workload in accepted:
        workloads.wait_for(session, str(workload["id"]), "deleted", timeout=PATIENCE_SECONDS)
        call.invocation.terminal.write_line(f"{workload['name']} is deleted; its name is free.")
    if len(accepted) < len(targets):
        raise CliError(f"{len(targets) - len(accepted)} of {len(targets)} were not deleted.")


def _find_all(call: Call) -> list[workloads.Workload]:
    """Return the workloads that are named, or all of the project. Raises UsageProblem."""
    session = call.invocation.session
    if call.has("--all"):
        if call.arguments:
            raise UsageProblem("--all takes no names.")
        if not call.project:
            raise UsageProblem("No project is named.", "Say --project NAME.")
        return list(
            workloads.list_workloads(
                session, filter_by=workloads.build_filter(project=call.project)
            )
        )
    names = [*call.arguments, *filter(None, [call.get_text("--uuid")])]
    if not names:
        raise UsageProblem("No workload is named.", "Give the names of what is to be deleted.")
    return [workloads.get_workload(session, each, call.project) for each in names]


def suspend(call: Call) -> None:
    """Stop a workload, and return when it has stopped: it can be resumed then."""
    session = call.invocation.session
    workload = workloads.get_workload(session, call.get_name(), call.project)
    workloads.stop(session, workload)
    reached = workloads.wait_for(session, str(workload["id"]), "stopped", timeout=PATIENCE_SECONDS)
    phase = "Deleted" if reached is None else reached["phase"]
    if phase != "Stopped":
        raise CliError(f"{workload['name']} is not suspended: it is {phase} meanwhile.")
    call.invocation.terminal.write_line(f"{workload['name']} is suspended.")


def resume(call: Call) -> None:
    """Run a workload again, as a new attempt."""
    session = call.invocation.session
    workload = workloads.get_workload(session, call.get_name(), call.project)
    workloads.run_again(session, workload)
    call.invocation.terminal.write_line(f"{workload['name']} is resumed.")


def prune(call: Call) -> None:
    """Delete the workloads that ended so long ago."""
    text = call.get_text("--since")
    if not text:
        raise UsageProblem("Say how long ago: --since 7d.")
    if not call.project and not call.has("--all-namespaces"):
        raise UsageProblem("No project is named.", "Say --namespace NAME, or --all-namespaces.")
    session, seconds = call.invocation.session, moments.parse_duration(text)
    targets = workloads.list_prunable(session, seconds, PRUNED_PHASES, call.project)
    failures = 0
    for each in targets:
        try:
            workloads.delete(session, each)
            call.invocation.terminal.write_line(f"{each['projectName']}/{each['name']}")
        except CliError as error:
            failures += 1
            call.invocation.error_terminal.write_line(f"{each['name']}: {describe_error(error)}")
    call.invocation.notify(f"{len(targets) - failures} of {len(targets)} are being deleted.")
    if failures:
        raise CliError(f"{failures} of {len(targets)} were not deleted.")
