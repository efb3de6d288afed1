"""Submissions: each becomes a call of `muster submit`, and is said to have so many pods."""

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from muster_cli.actions import submissions, workloads
from muster_cli.dialects.parsing import run_muster, translate_flags
from muster_cli.dialects.tables import Call
from muster_cli.errors import UsageProblem
from muster_cli.fields import load_catalogue

DEFAULT_HOME = "/root"
"""Where Arena's code lands without --working-dir: below the home of the image's user."""
_SYNC_VARIABLES = {"GIT_SYNC_BRANCH": "branch", "GIT_SYNC_REV": "revision"}
_SYNC_SECRETS = ("GIT_SYNC_USERNAME", "GIT_SYNC_PASSWORD")
_FRAMEWORK_WORDS = {"tf": "tensorflow"}


def submit_runai(call: Call) -> None:
    """Submit a workload of `runai`, whose --workers leave out the master."""
    if call.get_text("--nfs-server") and not call.values.get("--volume"):
        raise UsageProblem("--nfs-server says where --volume is.", "Give --volume, or --nfs.")
    arguments, origins = translate_flags(call)
    name, is_prefix = _read_name(call)
    if is_prefix:
        arguments.append("--name-prefix")
    framework = str(call.command.settings["framework"])
    if chosen := call.get_text("--framework").lower():
        framework = _FRAMEWORK_WORDS.get(chosen, chosen)
    if call.words:
        is_command = call.has("--command") or call.has("-c")
        flag = "--command" if is_command else "--args"
        arguments.append(f"{flag}={submissions.join_command(call.words)}")
    elif call.has("--command") or call.has("-c"):
        raise UsageProblem("There is no command.", "With --command it stands behind `--`.")
    _submit_translated(call, framework, name, arguments, origins)


def _read_name(call: Call) -> tuple[str, bool]:
    """Return the name of a submission, and whether random characters follow it."""
    exact_names = [*call.arguments, call.get_text("--name")]
    prefix = call.get_text("--job-name-prefix") or call.get_text("--name-prefix")
    names = [each for each in (*exact_names, prefix) if each]
    if len(names) != 1:
        raise UsageProblem(
            "The workload has no name." if not names else "The workload has several names.",
            "Give it once: as an argument or as --name.",
        )
    return names[0], bool(prefix)


def submit_arena(call: Call) -> None:
    """Submit a workload of `arena`, whose --workers of PyTorch count the master."""
    arguments, origins = translate_flags(call)
    name = call.get_text("--name")
    if not name:
        raise UsageProblem("The workload has no name.", "Give it as --name=NAME.")
    framework = str(call.command.settings["framework"])
    arguments += build_arena_workers(call, framework)
    origins |= {"--workers": "--workers"}
    arguments += build_synced_code(call.values)
    if directory := call.get_text("--working-dir"):
        arguments.append(f"--working-dir={directory}")
    if command := " ".join([*call.arguments, *call.words]):
        shell = [call.get_text("--shell") or "sh", "-c", command]
        arguments.append(f"--command={submissions.join_command(shell)}")
    _submit_translated(call, framework, name, arguments, origins)


def build_arena_workers(call: Call, framework: str) -> list[str]:
    """Return the workers, and whether there is a master. Raises UsageProblem."""
    text = call.get_text("--workers") or "1"
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise UsageProblem(f"--workers is a whole number from 1 on, and not {text}.")
    count = int(text)
    if framework == "pytorch":
        # One alone needs nobody to meet, and a master has at least one worker here.
        return [f"--workers={count - 1}"] if count > 1 else ["--workers=1", "--no-master"]
    if framework == "tensorflow" and not call.has("--chief"):
        return [f"--workers={count}", "--no-master"]
    return [f"--workers={count}"]


def build_synced_code(values: Mapping[str, Any]) -> list[str]:
    """Return the volume of a repository where --sync-mode names one. Raises UsageProblem."""
    mode, source = str(values.get("--sync-mode") or ""), str(values.get("--sync-source") or "")
    if not mode and not source:
        return []
    if mode != "git":
        raise UsageProblem(
            f"--sync-mode={mode} is not taken here." if mode else "--sync-mode is not given.",
            "Code comes by --sync-mode=git; files that you have copied to a claim by --data "
            "CLAIM:PATH.",
        )
    if not source:
        raise UsageProblem(
            "--sync-mode=git needs --sync-source.", "It is the repository's address."
        )
    if "," in source:
        raise UsageProblem("--sync-source holds a comma.", "Use a file: `muster submit -f`.")
    home = str(values.get("--working-dir") or DEFAULT_HOME)
    folder = posixpath.basename(source.rstrip("/")).removesuffix(".git")
    parts = [f"repository={source}", f"path={posixpath.join(home, 'code', folder)}"]
    for each in values.get("--env") or ():
        variable, _, value = each.partition("=")
        if variable in _SYNC_SECRETS:
            raise UsageProblem(
                f"{variable} is not taken here: all who see the workload would see it.",
                "Make a credential, and name it: `muster submit --git secretRef.name=NAME,...`.",
            )
        if variable in _SYNC_VARIABLES and "," not in value:
            parts.append(f"{_SYNC_VARIABLES[variable]}={value}")
    return [f"--git={','.join(parts)}"]


def _submit_translated(
    call: Call, framework: str, name: str, arguments: Sequence[str], origins: Mapping[str, str]
) -> None:
    """Submit by `muster submit`, and say how many pods there will be."""
    project = [f"--project={call.project}"] if call.project else []
    command = f"submit {framework or 'standard'}"
    submitted = run_muster(command, [*project, *arguments, "--", name], origins)
    if submitted is None:
        return
    workload = workloads.get_by_id(call.invocation.session, str(submitted["workloadId"]))
    is_alone = "--no-master" in arguments
    master = next(
        (each.master for each in load_catalogue().frameworks if each.command == framework), ""
    )
    call.invocation.terminal.write_line(
        describe_pods(workload["requestedPods"], "" if is_alone else master)
    )


def describe_pods(pods: Mapping[str, Any], master: str) -> str:
    """Say how many pods a workload has; one of `master` is among them, unless that is ""."""
    count = int(pods["number"])
    beside = f" with its {master}" if master else ""
    text = f"It has {count} {'pod' if count == 1 else 'pods'}{beside}."
    least, most = pods.get("min"), pods.get("max")
    if least is None or most is None:
        return text
    among = f", its {master} among them" if master else ""
    return f"{text} It is elastic: it runs with {least} to {most} pods{among}."
