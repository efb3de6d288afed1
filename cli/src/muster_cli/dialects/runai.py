"""`runai`, spoken by Muster: the commands of both versions of Run:ai's command line."""

from muster_cli.commands.absent import ABSENT_COMMANDS
from muster_cli.dialects import runai_flags as flags
from muster_cli.dialects.parsing import build_dialect
from muster_cli.dialects.tables import Command, Dialect, Flag, Form
from muster_cli.program import run_program
from muster_cli.resources import RESOURCES

MANY, SWITCH = Form.MANY, Form.SWITCH
PROJECT = Flag("--project -p", "The project; that of the context.")
ALL = Flag("--all-projects -A", "Those of all projects.", form=SWITCH)
UUID = Flag("--uuid -u", "The id of the workload, instead of its name.")
JSON, YAML, TABLE = (
    Flag("--json", "As REST answers it.", form=SWITCH),
    Flag("--yaml", "The same as YAML.", form=SWITCH),
    Flag("--table", "A table, as it is anyway.", form=SWITCH),
)
OUTPUT = Flag("--output -o", "How it is written.", choices=("table", "wide", "json", "yaml"))
LIST_FLAGS = (
    PROJECT,
    ALL,
    Flag("--status", "Only those of this status.", form=MANY),
    Flag("--limit", "At most so many; 50."),
    Flag("--offset", "Leave out so many first."),
    JSON,
    YAML,
    TABLE,
    Flag("--no-headers", "Rows alone.", form=SWITCH),
)
RESOURCE_FLAGS = (PROJECT, ALL, Flag("--limit", "At most so many; 200."), JSON, YAML, TABLE)
_SECTIONS = ("general", "compute", "pods", "events", "networks")
DESCRIBE_FLAGS = (
    PROJECT,
    UUID,
    OUTPUT,
    *(
        Flag(f"--{each}", f"Show {each}; those that are named, or all.", form=SWITCH)
        for each in _SECTIONS
    ),
    Flag("--containers", form=SWITCH, refused="`muster get NAME -o json` has what REST says."),
    Flag("--pod-limit", "At most so many pods; 10."),
    Flag("--event-limit", "At most so many events; 50."),
    Flag("--sortEvents --sort-events", "The order of events.", choices=("asc", "desc")),
)
LOG_FLAGS = (
    PROJECT,
    Flag("--follow -f", "Go on until the workload has ended.", "--follow", SWITCH),
    Flag("--pod --instance -i", "The pod; the master, or the pod of rank 0."),
    Flag("--container -c", becomes="--container"),
    Flag("--tail -t", "The last so many lines; -1 is all."),
    Flag("--since", becomes="--since"),
    Flag("--since-time", becomes="--since"),
    Flag("--timestamps", becomes="--timestamps", form=SWITCH),
)
LOG_FLAGS_V2 = (
    *LOG_FLAGS,
    Flag("--previous", becomes="--previous", form=SWITCH),
    Flag("--wait-timeout", "How long to wait for the container; 60s."),
    Flag("--limit-bytes", refused="Use `runai ... logs NAME | head -c BYTES`."),
)
GROUPS = {
    "distributed": ("Distributed", ""),
    "training": ("", ""),
    "pytorch": ("Distributed", "pytorch"),
    "tensorflow": ("Distributed", "tensorflow"),
    "mpi": ("Distributed", "mpi"),
    "xgboost": ("Distributed", "xgboost"),
    "jax": ("Distributed", "jax"),
    "training pytorch": ("Distributed", "pytorch"),
    "training tensorflow": ("Distributed", "tensorflow"),
    "training mpi": ("Distributed", "mpi"),
    "training xgboost": ("Distributed", "xgboost"),
    "training jax": ("Distributed", "jax"),
    "training standard": ("Training", ""),
}
"""The groups of V2, each with the type and the framework of its workloads."""
_V1_NAMES = {"pytorch": "pytorch", "tf": "tensorflow", "mpi": "mpi", "xgboost": "xgboost"}


def _describe_submission(framework: str) -> str:
    if not framework:
        return "Submit a standard workload."
    return f"Submit a workload of {framework}; --workers does not count the master."


def _build_submission_v1(words: str, framework: str) -> Command:
    own: tuple[Flag, ...] = flags.RUNS
    if framework:
        lacked = flags.list_lacked_flags(framework, "runai submit-dist pytorch")
        own = (*flags.WORKERS, *flags.MASTER_V1, *flags.OWN_FLAGS[framework], *lacked)
    return Command(
        words,
        _describe_submission(framework),
        "submitting:submit_runai",
        (*flags.V1, *own, *(flags.V1_PROCESSES if framework == "mpi" else ())),
        "[NAME]",
        takes_words=True,
        settings={"framework": framework},
    )


def _build_submission_v2(group: str, framework: str) -> Command:
    own: tuple[Flag, ...] = flags.RUNS
    if framework:
        lacked = flags.list_lacked_flags(framework, "runai pytorch submit")
        own = (*flags.WORKERS, *flags.MASTER_V2, *flags.OWN_FLAGS[framework], *lacked)
    elif group == "distributed":
        every = dict.fromkeys(each for own in flags.OWN_FLAGS.values() for each in own)
        own = (*flags.WORKERS, *flags.MASTER_V2, *every, flags.FRAMEWORK)
    return Command(
        f"{group} submit",
        _describe_submission(framework)
        if group != "distributed"
        else "Submit a distributed workload of any framework.",
        "submitting:submit_runai",
        (*flags.V2, *own),
        "[NAME]",
        takes_words=True,
        settings={"framework": framework or ("pytorch" if group == "distributed" else "")},
    )


def _build_group(group: str, kind: str, framework: str) -> list[Command]:
    settings = {"type": kind, "framework": framework}
    about = f"{group} workload"
    return [
        _build_submission_v2(group, framework),
        Command(
            f"{group} list",
            f"List {about}s.",
            "listing:list_workloads",
            LIST_FLAGS,
            settings=settings,
        ),
        Command(
            f"{group} describe",
            f"Show a {about}.",
            "describing:describe_workload",
            DESCRIBE_FLAGS,
            "[NAME]",
        ),
        Command(
            f"{group} logs",
            f"Show the log of a {about}'s pod.",
            "log_reading:show_runai_logs",
            (*LOG_FLAGS_V2, UUID),
            "[NAME]",
        ),
        Command(
            f"{group} delete",
            f"Delete {about}s; it returns when the name is free.",
            "changing:delete",
            (PROJECT, UUID),
            "[NAME...]",
        ),
        Command(
            f"{group} suspend", f"Stop a {about}.", "changing:suspend", (PROJECT, UUID), "[NAME]"
        ),
        Command(
            f"{group} resume",
            f"Run a {about} again.",
            "changing:resume",
            (PROJECT, UUID),
            "[NAME]",
        ),
    ]


def _build_resource(words: str, noun: str) -> Command:
    return Command(
        words,
        RESOURCES[noun].help,
        "passing:list_resource",
        RESOURCE_FLAGS,
        settings={"noun": noun},
    )


_ONLY_TRAINING = "Muster's part is training."
_ELSEWHERE = (
    ("workspace", _ONLY_TRAINING, "Use `runai training submit` for what ends by itself."),
    ("inference", _ONLY_TRAINING, "`muster submit --help` says what can be submitted."),
    ("auth", "One command signs in.", "Use `runai login`."),
    ("pvc", "Claims are data sources here.", "Use `runai datasource list`."),
    ("my-credential", "Credentials belong to a scope.", "Use `muster credential`."),
    ("kubeconfig", "Muster hands out no access to clusters.", "Ask the cluster's administrator."),
    ("workload-type", "They are fixed.", "`muster submit --help` lists them."),
    ("diagnostics", "The console knows more.", "Use `muster cluster get NAME`."),
    ("report", "Muster sends no reports.", "Use `muster list -o csv`, or `muster audit list`."),
    ("upgrade", *ABSENT_COMMANDS["update"]),
)
"""Groups of V2 without a counterpart, each with why, and what to use instead."""

COMMANDS = [
    Command(
        "login",
        "Sign in to the current server: by a code that a browser confirms, or with a password.",
        "passing:sign_in",
        (
            Flag("--user -u", "Sign in with this user name; the password is asked for."),
            Flag(
                "--password -p",
                refused="A password in a command is seen by others: it is asked for, or read by "
                "`muster login --user NAME --password-stdin`.",
            ),
            Flag("--name", refused="Set MUSTER_CLIENT_ID and MUSTER_CLIENT_SECRET."),
            Flag("--secret", refused="Set MUSTER_CLIENT_ID and MUSTER_CLIENT_SECRET."),
            Flag("--secret-file", refused="Set MUSTER_CLIENT_ID and MUSTER_CLIENT_SECRET."),
            Flag(
                "--save",
                form=SWITCH,
                refused="Secrets of programs are kept nowhere: set MUSTER_CLIENT_ID and "
                "MUSTER_CLIENT_SECRET.",
            ),
            Flag(
                "--interactive",
                form=SWITCH,
                refused="Set MUSTER_CLIENT_ID and MUSTER_CLIENT_SECRET.",
            ),
            Flag("--listen-host", refused="A code is confirmed on a page: nothing listens here."),
            Flag("--listen-port", refused="A code is confirmed on a page: nothing listens here."),
        ),
        "[METHOD]",
    ),
    Command("logout", "Forget the token.", "passing:run_alike", settings={"words": "logout"}),
    Command("whoami", "Say who is signed in.", "passing:run_alike", settings={"words": "whoami"}),
    Command("version", "Print the version.", "passing:show_version"),
    Command("config project", "Choose the project.", "passing:set_project", (), "PROJECT"),
    Command(
        "config cluster",
        "",
        refused="A project is in one cluster: choosing it chooses both.",
        instead="Use `runai config project NAME`; servers are chosen by `muster config use`.",
    ),
    Command("project set", "Choose the project.", "passing:set_project", (), "PROJECT"),
    _build_resource("project list", "project"),
    Command(
        "list jobs",
        "List workloads, the newest first.",
        "listing:list_jobs",
        (PROJECT, ALL, OUTPUT),
    ),
    Command("list nodes", "List nodes.", "passing:list_nodes", (OUTPUT,)),
    Command(
        "list projects",
        "List projects.",
        "listing:list_projects",
        (
            OUTPUT,
            Flag(
                "--include-deleted",
                form=SWITCH,
                refused="A deleted project leaves nothing behind; `muster audit list` has its end.",
            ),
        ),
    ),
    _build_resource("list clusters", "cluster"),
    _build_resource("list templates", "template"),
    Command(
        "describe job", "Show a workload.", "describing:describe_job", (PROJECT, OUTPUT), "NAME"
    ),
    Command("describe node", "Show a node.", "describing:describe_node", (OUTPUT,), "NAME"),
    Command(
        "logs",
        "Show the log of a workload's pod.",
        "log_reading:show_runai_logs",
        LOG_FLAGS,
        "NAME",
    ),
    Command(
        "delete job",
        "Delete workloads; it returns when their names are free.",
        "changing:delete",
        (PROJECT, Flag("--all -A", "All of the project.", form=SWITCH)),
        "[NAME...]",
    ),
    Command("suspend", "Stop a workload.", "changing:suspend", (PROJECT,), "NAME"),
    Command("resume", "Run a workload again.", "changing:resume", (PROJECT,), "NAME"),
    Command("top node", "Show how full the nodes are.", "passing:list_nodes", (OUTPUT,)),
    _build_submission_v1("submit", ""),
    *(_build_submission_v1(f"submit-dist {word}", each) for word, each in _V1_NAMES.items()),
    _build_submission_v1("submit-pytorch", "pytorch"),
    _build_submission_v1("submit-tf", "tensorflow"),
    _build_submission_v1("submit-mpi", "mpi"),
    *(
        each
        for group, (kind, framework) in GROUPS.items()
        for each in _build_group(group, kind, framework)
    ),
    Command(
        "workload list",
        "List workloads.",
        "listing:list_workloads",
        LIST_FLAGS,
        settings={"type": "", "framework": ""},
    ),
    _build_resource("node list", "node"),
    _build_resource("nodepool list", "node-pool"),
    _build_resource("cluster list", "cluster"),
    _build_resource("department list", "department"),
    _build_resource("compute list", "compute"),
    _build_resource("environment list", "environment"),
    _build_resource("datasource list", "datasource"),
    _build_resource("template list", "template"),
    *(Command(each, "", refused=why, instead=instead) for each, why, instead in _ELSEWHERE),
]
_SETTINGS = "Muster keeps its settings in $XDG_CONFIG_HOME/muster: set XDG_CONFIG_HOME."
DIALECT = Dialect(
    "runai",
    "Run:ai's command line, versions 1 and 2",
    COMMANDS,
    (
        Flag("--loglevel", "debug shows tracebacks; error leaves out notices."),
        Flag("--debug -d", "Show tracebacks.", form=SWITCH),
        Flag("--verbose", "Notices, as there are anyway.", form=SWITCH),
        Flag("--quiet -q", "No notices.", form=SWITCH),
        Flag("--config-file", refused=_SETTINGS),
        Flag("--config-path", refused=_SETTINGS),
    ),
    (
        "`--workers` does not count the master, as in Run:ai: 2 workers and a master are 3 pods.",
        "`list jobs` shows the newest 500.",
        "`logs` waits at most 60 s for the container, `delete` until the name is free and "
        "`suspend` until the workload has stopped, each at most 5 minutes.",
        "Defaults are Muster's: workloads stay when they have ended, for example.",
    ),
)


def main() -> None:
    """Run `runai`."""
    run_program(build_dialect(DIALECT), "runai")


if __name__ == "__main__":
    main()
