"""`runai` and `arena`: what their flags become, what is refused, and how they are installed."""

import importlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from muster_cli.actions.dialect_scripts import DIALECTS, describe_path_trouble
from muster_cli.dialects import arena, parsing, runai, submitting
from muster_cli.dialects.parsing import build_dialect, spell_switches
from muster_cli.dialects.tables import Command, Dialect, Flag, Form
from muster_cli.errors import UsageProblem
from tests.cli.documented_flags import ARENA, ELSEWHERE, RUNAI
from tests.cli.log_server import Answer, serve_answers
from tests.cli.running import CommandLine, Console, Outcome
from tests.cli.test_reference import list_commands

TABLES = {"runai": runai.DIALECT, "arena": arena.DIALECT}
EACH_COMMAND = [
    pytest.param(dialect, command, id=f"{dialect.name} {command.words}")
    for dialect in TABLES.values()
    for command in dialect.commands
]


def run_dialect(person: CommandLine, line: str, code: int = 0) -> Outcome:
    """Run a line of `runai` or `arena` by its module."""
    name, *arguments = line.split()
    done = subprocess.run(
        [sys.executable, "-P", "-m", DIALECTS[name], *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=person.home,
        env=person.environment,
        timeout=360,
    )
    outcome = Outcome(done.returncode, done.stdout, done.stderr)
    assert outcome.code == code, (line, outcome)
    return outcome


def translate(monkeypatch: pytest.MonkeyPatch, line: str, *words: str) -> list[str]:
    """The arguments of `muster` that a line becomes."""
    name, *arguments = line.split()
    built: list[list[str]] = []

    def keep_arguments(words: str, arguments: list[str], origins: Any) -> None:
        built.append([words, *arguments])

    monkeypatch.setattr(submitting, "run_muster", keep_arguments)
    monkeypatch.setenv("MUSTER_SERVER", "http://127.0.0.1:1")
    monkeypatch.setenv("MUSTER_PROJECT", "team-a")
    result = CliRunner().invoke(build_dialect(TABLES[name]), [*arguments, *words])
    if isinstance(result.exception, UsageProblem):
        raise result.exception
    assert result.exit_code == 0, result.output
    return built[0]


@pytest.mark.parametrize(("dialect", "command"), EACH_COMMAND)
def test_every_command_has_help_and_its_handler_is_there(
    dialect: Dialect, command: Command
) -> None:
    built = parsing.build_command(dialect, command)
    assert "Usage: " in built.get_help(click.Context(built, info_name=command.words))
    if command.refused:
        assert command.instead
        return
    module, _, name = command.handler.partition(":")
    assert callable(getattr(importlib.import_module(f"muster_cli.dialects.{module}"), name))
    opts = [opt for each in (*command.flags, *dialect.common_flags) for opt in each.opts]
    assert len(opts) == len(set(opts))


@pytest.mark.parametrize(
    ("dialect", "words", "flags"),
    [
        pytest.param(dialect, words, flags, id=f"{dialect.name} {words}")
        for dialect, commands in ((runai.DIALECT, RUNAI), (arena.DIALECT, ARENA))
        for words, flags in commands.items()
    ],
)
def test_every_flag_that_the_original_has_is_taken_or_refused_by_name(
    dialect: Dialect, words: str, flags: str
) -> None:
    [command] = [each for each in dialect.commands if each.words == words]
    known = {opt for each in (*command.flags, *dialect.common_flags) for opt in each.opts}
    assert set(flags.split()) - known == set()


@pytest.mark.parametrize(
    ("name", "words"), [(name, words) for name in ELSEWHERE for words in ELSEWHERE[name]]
)
def test_every_command_that_is_elsewhere_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    with pytest.raises(UsageProblem) as refusal:
        translate(monkeypatch, f"{name} {words} train1 --anything")
    assert words in refusal.value.message
    assert refusal.value.hint


@pytest.mark.parametrize(("dialect", "command"), EACH_COMMAND)
def test_what_a_flag_becomes_is_a_flag_of_muster(dialect: Dialect, command: Command) -> None:
    handlers = {"submitting": "submit", "log_reading": "logs"}
    target = handlers.get(command.handler.partition(":")[0])
    becoming = {each.becomes for each in command.flags if each.becomes}
    if target is None:
        assert not becoming
        return
    root = importlib.import_module("muster_cli.commands.root").root
    known = dict(list_commands(root))
    path: tuple[str, ...] = (target,)
    if target == "submit":
        path = (target, str(command.settings["framework"]) or "standard")
    if command.words == "distributed submit":
        frameworks = ("pytorch", "tensorflow", "mpi", "xgboost", "jax")
        options = {opt for each in frameworks for opt in list_opts(known[target, each])}
    else:
        options = list_opts(known[path])
    named = {each.split()[0].partition("=")[0] for each in becoming}
    assert named <= options


def list_opts(command: click.Command) -> set[str]:
    return {opt for each in command.params for opt in (*each.opts, *each.secondary_opts)}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("runai submit-dist pytorch a -g 0.5", "--gpu-portion=0.5"),
        ("runai submit-dist pytorch a -g=2", "--gpus=2"),
        ("runai submit-dist pytorch a --master-gpu 0.5", "--master-gpu-portion=0.5"),
        ("runai submit-dist pytorch a -g 4 --master-gpu 0.5", "--master-gpus=1"),
        ("runai submit a --node-pools=one,two", "--node-pool=one two"),
        ("runai submit a --ttl-after-finish 1h", "--auto-delete=3600"),
        ("runai submit a --large-shm=true", "--large-shm"),
        ("runai submit a -e A=-1", "--env=A=-1"),
        (
            "runai submit-dist pytorch a --required-pod-topology-key=zone",
            "--topology=zone:required",
        ),
        (
            "runai submit a --pvc-exists claimname=data,path=/data",
            "--pvc=existingPvc=true,claimName=data,path=/data",
        ),
        (
            "runai submit a --pvc-new claimname=data,path=/data,size=1Gi,accessmode-rwm,ephemeral",
            "--pvc=existingPvc=false,claimName=data,path=/data,claimInfo.size=1Gi,"
            "claimInfo.accessModes.readWriteMany=true,ephemeral=true",
        ),
        (
            "runai submit a -v /data:/mnt:ro",
            "--host-path=path=/data,mountPath=/mnt,readOnly=true",
        ),
        (
            "runai submit a -v /data:/mnt --nfs-server=files",
            "--nfs=server=files,path=/data,mountPath=/mnt,readOnly=false",
        ),
        (
            "runai pytorch submit a --git-sync repository=https://a/b.git,path=/code",
            "--git=repository=https://a/b.git,path=/code",
        ),
        (
            "runai pytorch submit a --host-path path=/data,mount=/mnt",
            "--host-path=path=/data,mountPath=/mnt,readOnly=true",
        ),
        (
            "runai pytorch submit a --toleration operator=Equal,key=a,value=b,effect=NoSchedule",
            "--toleration=a=b:NoSchedule",
        ),
        ("runai pytorch submit a --toleration key=a", "--toleration=a"),
        ("runai distributed submit a --framework tf", "submit tensorflow"),
        ("runai submit-tf a", "submit tensorflow"),
        ("runai submit a", "submit standard"),
        ("runai submit --job-name-prefix a", "--name-prefix"),
        ("arena submit tf --name=a --workers=2", "--no-master"),
        ("arena submit pytorch --name=a --workers=3", "--workers=2"),
        ("arena submit pytorch --name=a", "--no-master"),
        ("arena submit mpi --name=a --workers=3", "--workers=3"),
        ("arena submit mj --name=a --workers=3", "submit mpi"),
        ("runai training jax submit a --no-master", "submit jax"),
        ("arena submit pytorch --name=a --cpu=2", "--cpu-limit=2"),
        ("arena submit pytorch --name=a --rdma", "--extended-resource=rdma/hca=1"),
        (
            "arena submit pytorch --name=a -d data:/data",
            "--pvc=claimName=data,path=/data,existingPvc=true",
        ),
        (
            "arena submit pytorch --name=a --toleration a=b:NoExecute,Equal",
            "--toleration=a=b:NoExecute",
        ),
        (
            "arena submit pytorch --name=a --syncMode=git --syncSource=https://a/b.git "
            "-e GIT_SYNC_BRANCH=next",
            "--git=repository=https://a/b.git,path=/root/code/b,branch=next",
        ),
        ("arena submit pytorch --name=a --gang python a.py", "--command=sh -c 'python a.py'"),
    ],
)
def test_a_flag_becomes_what_muster_takes(
    monkeypatch: pytest.MonkeyPatch, line: str, wanted: str
) -> None:
    assert wanted in translate(monkeypatch, line)


def test_words_after_dashes_are_arguments_or_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    line, words = "runai submit a -i x", ("--", "python", "a b.py", "--lr=1")
    assert "--args=python 'a b.py' --lr=1" in translate(monkeypatch, line, *words)
    assert "--command=python 'a b.py' --lr=1" in translate(
        monkeypatch, f"{line} --command=true", *words
    )
    assert translate(monkeypatch, line)[-2:] == ["--", "a"]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("runai submit a --attach", "muster logs"),
        ("runai submit a --port 80", "kubectl"),
        ("runai submit a -g 1.5", "whole number"),
        ("runai submit a -g nan", "whole number"),
        ("runai submit a --command", "behind"),
        ("runai submit a --name b", "once"),
        ("runai submit a b", "behind `--`"),
        ("runai submit", "as an argument"),
        ("runai submit a --git-sync source=x,target=/y,password=hidden", "credential"),
        ("runai submit a --large-shm=perhaps", "true or false"),
        ("runai pytorch submit a --gpu-portion-request 0.5 --gpu-portion-limit 0.6", "limit"),
        ("runai pytorch submit a --gpu-request-type memory", "--gpu-memory-request"),
        ("runai submit a --nfs-server x", "--volume"),
        ("runai submit a --port=", "kubectl"),
        ("runai node list -p team-a", "Leave it out"),
        ("runai login sso -u bob", "login user"),
        ("runai login user -u bob -p hidden", "--password-stdin"),
        ("runai pytorch logs a --wait-timeout 5x", "not a duration"),
        ("runai exec a", "muster logs"),
        ("runai pytorch bash a", "muster logs"),
        ("runai update", "pip"),
        ("runai config cluster a", "config project"),
        ("arena attach a", "muster logs"),
        ("runai tensorflow submit a --min-replicas 2", "runai pytorch submit"),
        ("runai submit-dist mpi a --max-replicas=2", "runai submit-dist pytorch"),
        ("runai xgboost submit a --no-master", "leave it out"),
        ("arena submit tf --name=a --evaluator-cpu 2", "submit it alone"),
        ("arena submit tf --name=a --ps-affinity-constraint required", "--topology"),
        ("arena serve a", "training"),
        ("arena submit volcano a", "pytorch"),
        ("arena submit pytorch", "--name"),
        ("arena submit pytorch --name=a --workers=0", "whole number"),
        ("arena submit pytorch --name=a --sync-mode=rsync --sync-source=x", "--sync-mode=git"),
        ("arena submit pytorch --name=a --sync-mode=git", "--sync-source"),
        ("arena submit pytorch --name=a --tensorboard", "--data"),
        ("arena submit pytorch --name=a --toleration=all", "each taint"),
        (
            "arena submit pytorch --name=a --syncMode=git --syncSource=x "
            "-e GIT_SYNC_PASSWORD=hidden",
            "credential",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_what_to_use(
    monkeypatch: pytest.MonkeyPatch, line: str, wanted: str
) -> None:
    with pytest.raises(UsageProblem) as refusal:
        translate(monkeypatch, line)
    text = f"{refusal.value.message} {refusal.value.hint}"
    assert wanted in text
    assert "hidden" not in text


def test_switches_are_spelled_as_click_reads_them() -> None:
    flags = [Flag("--big -b", form=Form.SWITCH), Flag("--size -s")]
    typed = ["--big=true", "--big=false", "-s=1", "--size=true", "-b=t"]
    assert spell_switches(typed, flags) == ["--big", "-s", "1", "--size=true", "-b"]


def test_an_error_names_the_flag_that_was_typed(bob: CommandLine) -> None:
    submit = "runai pytorch submit a -i muster/allreduce"
    assert "'--gpu-devices-request'" in run_dialect(bob, f"{submit} -g 1000", code=2).err
    refused = run_dialect(bob, f"{submit} --cpu-memory-request 10XB", code=1).err
    assert "--cpu-memory-request (spec.compute.cpuMemoryRequest): " in refused
    assert "No such option" in run_dialect(bob, f"{submit} --nonsense", code=2).err
    elastic = "runai distributed submit a -f TF --min-replicas 2"
    assert "--min-replicas is not taken" in run_dialect(bob, elastic, code=2).err
    unknown = run_dialect(bob, "runai submit-nothing", code=2).err
    assert "no command submit-nothing" in unknown
    assert "submit-dist" in unknown
    assert "workspace" not in unknown + run_dialect(bob, "runai --help").out


def test_workloads_are_listed_and_shown_in_the_columns_of_each(bob: CommandLine) -> None:
    listed = run_dialect(bob, "runai list jobs -p team-a").out
    assert "train1" in listed
    assert "waiting" not in run_dialect(bob, "runai workload list --status failed").out
    rows = run_dialect(bob, "runai pytorch list --no-headers --limit 2 --offset 1").out
    assert len(rows.splitlines()) == 2
    assert not run_dialect(bob, "runai mpi list --no-headers").out
    assert run_dialect(bob, "runai workload list --json").out.startswith("[")
    assert "PROJECT" in run_dialect(bob, "runai list projects").out.splitlines()[0]
    description = run_dialect(bob, "runai pytorch describe waiting --general").out
    assert "Message: No node has 8 free GPUs." in description
    assert "Compute:" not in description
    assert "SUCCEEDED" in run_dialect(bob, "arena list -A").out
    assert "NAMESPACE" in run_dialect(bob, "arena list -A").out.splitlines()[0]
    assert run_dialect(bob, "arena get train1 -o json").out.startswith("{")
    assert "Events:" in run_dialect(bob, "arena get train1 -e").out
    assert "pytorchjob" in run_dialect(bob, "arena get train1 -T tfjob", code=2).err
    run_dialect(bob, "arena list -n nowhere", code=2)
    for line in ("arena top job", "arena top node", "arena data list", "arena whoami"):
        run_dialect(bob, line)
    for noun in ("node", "nodepool", "compute", "environment", "datasource", "template"):
        run_dialect(bob, f"runai {noun} list")
    for line in ("runai list nodes", "runai top node", "runai whoami", "runai project list"):
        run_dialect(bob, line)
    assert "There is no node" in run_dialect(bob, "runai describe node nowhere", code=5).err


def test_nodes_of_one_name_are_one_document(stranger: CommandLine) -> None:
    nodes = [{"name": "node-1", "clusterName": name} for name in ("east", "west")]
    with serve_answers(lambda *request: Answer(body=json.dumps({"nodes": nodes}))) as server:
        stranger.variables = {"MUSTER_SERVER": server.url, "MUSTER_TOKEN": "a-token"}
        assert json.loads(run_dialect(stranger, "runai describe node node-1 -o json").out) == nodes


def test_logs_are_those_of_the_pod_that_is_named_or_leads(bob: CommandLine) -> None:
    first = run_dialect(bob, "runai logs train1").out.splitlines()
    assert first[0] == "rank 0 line 0"
    tail = run_dialect(bob, "arena logs train1 -i train1-worker-0 -t 2").out
    assert tail == "rank 1 line 8\nrank 1 line 9\n"
    assert run_dialect(bob, "runai pytorch logs train1 --tail -1").out.splitlines() == first
    exclusive = "runai logs train1 --since 1h --since-time 2026-01-01T00:00:00Z"
    assert "exclude" in run_dialect(bob, exclusive, code=2).err
    refused = run_dialect(bob, "runai pytorch logs waiting --wait-timeout 1s", code=124)
    assert "No node has 8 free GPUs." in refused.err
    waited = run_dialect(bob, "runai pytorch logs waiting --wait-timeout 5s", code=124).err
    assert waited.startswith("waiting is Pending; its log is waited for until 5 s are over.")
    assert "no pod nobody" in run_dialect(bob, "runai logs wide --pod nobody", code=5).err


def test_a_pod_whose_name_came_back_is_told_from_the_one_before(
    bob: CommandLine, lost_pod_workload: str
) -> None:
    line = f"runai logs {lost_pod_workload} --pod replaced-worker-0"
    wanted = [f"{uid} {number}" for uid in ("lost", "new") for number in range(3)]
    assert run_dialect(bob, line).out.splitlines() == wanted
    for line in (f"runai describe job {lost_pod_workload}", f"arena get {lost_pod_workload}"):
        statuses = [
            each.split()[1]
            for each in run_dialect(bob, line).out.splitlines()
            if each.strip().startswith("replaced-worker-0")
        ]
        assert statuses == ["Deleted", "Completed"], line


def test_levels_choose_what_is_said_beside_the_output(bob: CommandLine) -> None:
    assert not run_dialect(bob, "arena --loglevel error prune -A --since 300d").err
    assert "--all-namespaces" in run_dialect(bob, "arena prune --since 300d", code=2).err
    assert "0 of 0" in run_dialect(bob, "arena prune -A --since 300d --loglevel=info").err
    assert not run_dialect(bob, "arena prune -A --since 300d --loglevel error").err


def test_starting_imports_no_more_than_muster_does(bob: CommandLine, console: Console) -> None:
    bob("project", "set", "team-a")

    def list_modules(program: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", f"import sys; {program}; print('|', *sys.modules)"],
            capture_output=True,
            text=True,
            env=bob.environment,
            cwd=bob.home,
            check=True,
            timeout=180,
        )
        return set(done.stdout.rpartition("|")[2].split())

    run = "from muster_cli.program import run_command"
    ours = list_modules(
        f"sys.argv = ['muster', 'list']; {run}; from muster_cli.commands.root import root; "
        "run_command(root, 'muster')"
    )
    theirs = list_modules(
        f"sys.argv = ['runai', 'list', 'jobs']; {run}; from muster_cli.dialects import parsing, "
        "runai; run_command(parsing.build_dialect(runai.DIALECT), 'runai')"
    )
    assert "muster_cli.dialects.listing" in theirs
    further = {each for each in theirs - ours if not each.startswith("muster_cli.dialects")}
    # The words of its nouns are the help of some commands.
    assert further <= {"muster_cli.resources"}


def test_the_programs_are_installed_and_nothing_else_is_overwritten(stranger: CommandLine) -> None:
    folder = stranger.home / "my bin"
    installed = stranger("dialect", "install", str(folder))
    assert "PATH" in installed.err
    for name in DIALECTS:
        path = folder / name
        assert stat.S_IMODE(path.stat().st_mode) == 0o755
        done = subprocess.run(
            [path, "--version"],
            env=stranger.environment,
            cwd=stranger.home,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith(f"{name}, spoken by muster ")
    on_path = CommandLine(stranger.home, {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"})
    assert not on_path("dialect", "install", str(folder)).err
    assert on_path("dialect", "list", "-o", "name").out == "runai\narena\n"

    other = folder / "runai"
    target = stranger.home / "real"
    target.write_text("#!/bin/sh\necho real\n")
    other.unlink()
    other.symlink_to(target)
    (folder / "arena").unlink()
    assert "--force" in stranger("dialect", "install", str(folder), code=2).err
    assert not (folder / "arena").exists()
    stranger("dialect", "install", str(folder), "--force")
    assert target.read_text() == "#!/bin/sh\necho real\n"
    assert not other.is_symlink()
    assert stranger("dialect", "remove", str(folder)).out.count("is removed") == 2
    stranger("dialect", "remove", str(folder), code=5)
    assert "dialect install" in stranger("dialect", "list", str(folder)).out


def test_a_script_on_the_path_that_cannot_be_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "runai").write_text("#!/bin/sh\n")
    assert f"{tmp_path / 'runai'} cannot be run" in describe_path_trouble(tmp_path / "runai")


def test_a_file_of_the_folder_it_is_started_in_is_not_imported(stranger: CommandLine) -> None:
    Path(stranger.home, "json.py").write_text("raise SystemExit('the wrong json')")
    stranger("dialect", "install", "bin", code=1)
    folder = Path(stranger.home, "bin")
    Path(stranger.home, "json.py").unlink()
    stranger("dialect", "install", "bin")
    Path(stranger.home, "json.py").write_text("raise SystemExit('the wrong json')")
    done = subprocess.run(
        [folder / "runai", "--version"],
        env=stranger.environment,
        cwd=stranger.home,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["bash", "exec", "attach", "port-forward", "update"])
def test_muster_says_what_is_not_there_yet_and_why(stranger: CommandLine, name: str) -> None:
    refused = stranger(name, "train1", "--anything", code=2)
    assert f"There is no command {name} yet." in refused.err
    assert "`" in refused.err
