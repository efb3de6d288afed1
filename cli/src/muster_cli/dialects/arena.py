"""`arena`, spoken by Muster: the commands of Kubeflow Arena's command line."""

from dataclasses import replace

from muster_cli.dialects import arena_flags as flags
from muster_cli.dialects.parsing import build_dialect
from muster_cli.dialects.tables import Command, Dialect, Flag, Form
from muster_cli.program import run_program

SWITCH = Form.SWITCH
ALL = Flag("--all-namespaces --allNamespaces -A", "Those of all projects.", form=SWITCH)
TYPE = Flag("--type -T", "The type, as pytorchjob.")
OUTPUT = Flag("--output -o", "How it is written.", choices=("wide", "json", "yaml"))
LOG_FLAGS = (
    TYPE,
    Flag("--follow -f", "Go on until the workload has ended.", "--follow", SWITCH),
    Flag("--instance -i", "The pod; the chief, or the pod of rank 0."),
    Flag("--container -c", becomes="--container"),
    Flag("--tail -t", "The last so many lines; -1 is all."),
    Flag("--since", becomes="--since"),
    Flag("--since-time", becomes="--since"),
    Flag("--timestamps", becomes="--timestamps", form=SWITCH),
)
_NO_METRICS = (
    "REST has no such figures of a pod; `arena top job` and `arena top node` have the rest."
)
_KINDS = {
    "pytorch": ("pytorch", flags.PYTORCH),
    "pytorchjob": ("pytorch", flags.PYTORCH),
    "tf": ("tensorflow", flags.TENSORFLOW),
    "tfjob": ("tensorflow", flags.TENSORFLOW),
    "mpi": ("mpi", flags.MPI),
    "mpijob": ("mpi", flags.MPI),
    "mj": ("mpi", flags.MPI),
}
_OTHER_KINDS = (
    *("horovod", "horovodjob", "hj", "volcano", "volcanojob", "vj", "etjob", "et"),
    *("deepspeed", "deepspeedjob", "dp", "ray", "rayjob", "rj", "spark", "sparkjob"),
)
_OUTSIDE_TRAINING = ("serve", "model", "llm", "cron", "evaluate", "logviewer")
_ALIASES = {"ls": "list", "log": "logs", "del": "delete"}
COMMANDS = [
    *(
        Command(
            f"submit {word}",
            f"Submit a {framework} workload; the words after the flags are its command.",
            "submitting:submit_arena",
            own,
            "[COMMAND...]",
            takes_words=True,
            settings={"framework": framework},
        )
        for word, (framework, own) in _KINDS.items()
    ),
    *(
        Command(
            f"submit {each}",
            "",
            refused="Muster has no such workloads.",
            instead="`arena submit` has pytorch, tf and mpi; `muster submit --help` has more.",
        )
        for each in _OTHER_KINDS
    ),
    Command(
        "list", "List workloads, the newest first.", "arena_views:list_jobs", (ALL, TYPE, OUTPUT)
    ),
    Command(
        "get",
        "Show a workload and its pods.",
        "arena_views:get_job",
        (
            TYPE,
            OUTPUT,
            Flag("--events -e", "Events, too.", form=SWITCH),
            Flag("--gpus -g", form=SWITCH, refused=_NO_METRICS),
        ),
        "NAME",
    ),
    Command(
        "logs",
        "Show the log of a workload's pod.",
        "log_reading:show_arena_logs",
        LOG_FLAGS,
        "NAME",
    ),
    Command(
        "delete",
        "Delete workloads; it returns when their names are free.",
        "changing:delete",
        (TYPE,),
        "NAME...",
    ),
    Command(
        "prune",
        "Delete workloads that ended so long ago.",
        "changing:prune",
        (Flag("--since -s", "How long ago they ended; it must be given."), ALL),
    ),
    Command(
        "top node",
        "Show how full the nodes are.",
        "arena_views:show_nodes",
        (
            OUTPUT,
            Flag("--details -d", form=SWITCH, refused="`arena top node -o wide` shows more."),
            Flag("--refresh -r", form=SWITCH, refused="Use `watch arena top node`."),
            Flag("--gpu-mode -m", refused=_NO_METRICS),
            Flag("--metric", form=SWITCH, refused=_NO_METRICS),
        ),
        "[NODE...]",
    ),
    Command(
        "top job",
        "Show the workloads that hold GPUs.",
        "arena_views:show_holders",
        (
            ALL,
            TYPE,
            OUTPUT,
            Flag("--instance -i", refused=_NO_METRICS),
            Flag("--refresh -r", form=SWITCH, refused="Use `watch arena top job`."),
        ),
        "[NAME]",
    ),
    Command("data list", "List the claims that data sources name.", "arena_views:list_data"),
    Command("whoami", "Say who is signed in.", "passing:run_alike", settings={"words": "whoami"}),
    Command("version", "Print the version.", "passing:show_version"),
    *(
        Command(
            each,
            "",
            refused="Muster's part is training.",
            instead="`muster --help` says what there is.",
        )
        for each in _OUTSIDE_TRAINING
    ),
    *(
        Command(
            each,
            "",
            refused="Elastic workloads grow and shrink by themselves.",
            instead="Give the bounds: `muster submit pytorch --min-replicas N --max-replicas N`.",
        )
        for each in ("scalein", "scaleout")
    ),
    Command(
        "completion",
        "",
        refused="Only what `muster` takes is completed.",
        instead="Use `muster completion SHELL`.",
    ),
]
COMMANDS += [
    replace(each, words=alias)
    for alias, words in _ALIASES.items()
    for each in COMMANDS
    if each.words == words
]
DIALECT = Dialect(
    "arena",
    "Kubeflow Arena's command line",
    COMMANDS,
    (
        Flag("--loglevel", "debug shows tracebacks; error leaves out notices."),
        Flag("--namespace -n", "The namespace of the project that is meant."),
        Flag("--arena-namespace", refused="Nothing of Arena runs in the cluster: leave it out."),
        Flag("--config", refused="Muster needs no kubeconfig: `muster login` signs in."),
        Flag("--helm-binary", refused="Nothing is installed by Helm: leave it out."),
        Flag("--pprof", form=SWITCH, refused="MUSTER_DEBUG=1 shows tracebacks."),
        Flag("--trace", form=SWITCH, refused="MUSTER_DEBUG=1 shows tracebacks."),
    ),
    (
        "`--workers` of PyTorch counts the master, as in Arena: 2 are a master and a worker. One "
        "alone is a worker without a master. Of MPI and TensorFlow it counts workers.",
        "`--sync-mode=git` puts the code at WORKING-DIR/code/REPOSITORY, as Arena does; "
        "WORKING-DIR is /root where it is not given, and pods then start where the image says. "
        "`--env GIT_SYNC_BRANCH=...` and `GIT_SYNC_REV` choose what is fetched.",
        "`prune` deletes what has ended, and leaves alone what waits, which Arena deletes too.",
        "`logs` waits at most 60 s for the container; `delete` until the name is free, at most "
        "5 minutes.",
        "Addresses of nodes and restart policies of single roles are not known: N/A stands there.",
    ),
)


def main() -> None:
    """Run `arena`."""
    run_program(build_dialect(DIALECT), "arena")


if __name__ == "__main__":
    main()
