"""The flags with which `runai` submits: those of both versions, and those of each."""

from muster_cli.dialects import flag_readers as readers
from muster_cli.dialects.tables import Flag, Form

MANY, SWITCH = Form.MANY, Form.SWITCH
_NO_TERMINAL = "Muster opens no connection into pods yet: `muster logs NAME -f` follows them."
_NO_SERVICES = "Muster exposes no ports: `kubectl expose` does, or `kubectl port-forward`."
_NO_HOME = "Use a volume: --existing-pvc (V1: --pvc-exists) mounts one, -e HOME=PATH names it."
_BY_HAND = "Describe the master by `muster submit --master-...` or in a file: `muster submit -f`."

NAMING = (
    Flag("--project -p", "The project; that of the context."),
    Flag("--template", becomes="--template"),
    Flag("--name", "The name, where it is not an argument."),
)
PODS = (
    Flag("--image -i", becomes="--image"),
    Flag("--image-pull-policy", becomes="--image-pull-policy"),
    Flag("--working-dir", becomes="--working-dir"),
    Flag("--command", "What follows -- is the command, and not its arguments.", form=SWITCH),
    Flag("--extended-resource", becomes="--extended-resource", form=MANY),
    Flag("--large-shm", becomes="--large-shm", form=SWITCH),
    Flag(
        "--node-pools --node-pool",
        becomes="--node-pool",
        form=MANY,
        reader=readers.build_list_reader("--node-pool"),
    ),
    Flag("--node-type", becomes="--node-type"),
    Flag("--toleration", becomes="--toleration", form=MANY, reader=readers.read_pairs_toleration),
    Flag(
        "--preferred-pod-topology-key",
        becomes="--topology KEY:preferred",
        reader=readers.build_suffix_reader("--topology", ":preferred"),
    ),
    Flag(
        "--required-pod-topology-key",
        becomes="--topology KEY",
        reader=readers.build_suffix_reader("--topology", ":required"),
    ),
    Flag("--host-ipc", becomes="--host-ipc", form=SWITCH),
    Flag("--host-network", becomes="--host-network", form=SWITCH),
    Flag(
        "--run-as-user",
        "As the user who types this: --run-as-uid and --run-as-gid.",
        form=SWITCH,
        reader=readers.read_current_user,
    ),
    Flag("--backoff-limit", becomes="--backoff-limit"),
    Flag("--annotation -a", becomes="--annotation", form=MANY),
    Flag("--label -l", becomes="--label", form=MANY),
    Flag("--priority", becomes="--priority"),
    Flag("--preemptibility", becomes="--preemptibility"),
    Flag("--git-sync", becomes="--git", form=MANY, reader=readers.read_git),
    Flag("--s3", becomes="--s3", form=MANY, reader=readers.read_bucket),
    Flag("--nfs", becomes="--nfs", form=MANY, reader=readers.read_nfs),
    Flag("--attach", form=SWITCH, refused=_NO_TERMINAL),
    Flag("--stdin", form=SWITCH, refused=_NO_TERMINAL),
    Flag("--tty -t", form=SWITCH, refused=_NO_TERMINAL),
    Flag("--create-home-dir", form=SWITCH, refused=_NO_HOME),
    Flag("--port", form=MANY, refused=_NO_SERVICES),
)
WORKERS = (
    Flag("--workers", becomes="--workers"),
    Flag("--clean-pod-policy", becomes="--clean-pod-policy"),
)
MASTER = (
    Flag("--master-args", becomes="--master-args"),
    Flag("--master-environment", becomes="--master-env", form=MANY),
    Flag("--master-extended-resource", becomes="--master-extended-resource", form=MANY),
    Flag("--master-no-pvcs", form=SWITCH, refused=_BY_HAND),
)
NO_MASTER = (Flag("--no-master", becomes="--no-master", form=SWITCH),)
ELASTIC = (
    Flag("--min-replicas", becomes="--min-replicas"),
    Flag("--max-replicas", becomes="--max-replicas"),
)
SLOTS = (Flag("--slots-per-worker", becomes="--slots-per-worker"),)
RUNS = (
    Flag("--completions", becomes="--completions"),
    Flag("--parallelism", becomes="--parallelism"),
)

V1 = (
    *NAMING,
    *PODS,
    Flag("--job-name-prefix", "The name begins so, and ends in random characters."),
    Flag("--gpu -g", "GPUs of each pod, or a part of one.", "--gpus", reader=readers.read_gpus),
    Flag("--gpu-memory", becomes="--gpu-memory"),
    Flag("--cpu -c", becomes="--cpu"),
    Flag("--cpu-limit", becomes="--cpu-limit"),
    Flag("--memory", becomes="--memory"),
    Flag("--memory-limit", becomes="--memory-limit"),
    Flag("--environment -e", becomes="--env", form=MANY),
    Flag("--pvc-new", becomes="--pvc", form=MANY, reader=readers.read_new_claim),
    Flag("--pvc-exists", becomes="--pvc", form=MANY, reader=readers.read_existing_claim),
    Flag(
        "--volume -v",
        "SOURCE:MOUNT[:ro|rw][:NFS-HOST]; it becomes `--host-path` or `--nfs`.",
        form=MANY,
        reader=readers.read_old_volume,
    ),
    Flag("--nfs-server", "The NFS host of each --volume."),
    Flag("--configmap-volume", becomes="--config-map", form=MANY, reader=readers.read_config_map),
    Flag(
        "--ttl-after-finish",
        becomes="--auto-delete",
        reader=readers.build_seconds_reader("--auto-delete"),
    ),
    Flag(
        "--add-capability --capability",
        becomes="--capability",
        form=MANY,
        reader=readers.build_list_reader("--capability"),
    ),
    Flag(
        "--prevent-privilege-escalation",
        becomes="--no-allow-privilege-escalation",
        form=SWITCH,
    ),
    Flag("--service-type -s", refused=_NO_SERVICES),
    Flag("--interactive", form=SWITCH, refused="Muster runs training: leave it out."),
    Flag("--preemptible", becomes="--preemptibility=preemptible", form=SWITCH),
    Flag("--elastic", form=SWITCH, refused="Use --min-replicas and --max-replicas of PyTorch."),
    Flag("--jupyter", form=SWITCH, refused="Muster runs training, and no notebooks."),
    Flag("--mig-profile", refused="Use --extended-resource nvidia.com/mig-1g.5gb=1."),
)
MASTER_V1 = (
    *MASTER,
    Flag("--master-gpu", becomes="--master-gpus", reader=readers.read_master_gpus),
)
V2 = (
    *NAMING,
    *PODS,
    Flag("--name-prefix", "The name begins so, and ends in random characters."),
    Flag("-c", "As --command.", form=SWITCH),
    Flag("--gpu-devices-request -g", becomes="--gpus"),
    Flag(
        "--gpu-request-type",
        "portion or memory; its amount is given beside it.",
        reader=readers.read_gpu_request_type,
    ),
    Flag("--gpu-portion-request", becomes="--gpu-portion"),
    Flag(
        "--gpu-portion-limit",
        "Only as the request.",
        reader=readers.build_limit_reader("--gpu-portion-request"),
    ),
    Flag("--gpu-memory-request", becomes="--gpu-memory"),
    Flag(
        "--gpu-memory-limit",
        "Only as the request.",
        reader=readers.build_limit_reader("--gpu-memory-request"),
    ),
    Flag("--cpu-core-request", becomes="--cpu"),
    Flag("--cpu-core-limit", becomes="--cpu-limit"),
    Flag("--cpu-memory-request", becomes="--memory"),
    Flag("--cpu-memory-limit", becomes="--memory-limit"),
    Flag("--environment-variable --environment -e", becomes="--env", form=MANY),
    Flag("--existing-pvc", becomes="--pvc", form=MANY, reader=readers.read_existing_claim),
    Flag("--new-pvc", becomes="--pvc", form=MANY, reader=readers.read_new_claim),
    Flag("--host-path", becomes="--host-path", form=MANY, reader=readers.read_host_path),
    Flag(
        "--configmap-map-volume", becomes="--config-map", form=MANY, reader=readers.read_config_map
    ),
    Flag("--external-url", form=MANY, refused=_NO_SERVICES),
    Flag(
        "--auto-deletion-time-after-completion",
        becomes="--auto-delete",
        reader=readers.build_seconds_reader("--auto-delete"),
    ),
    Flag("--run-as-uid", becomes="--run-as-uid"),
    Flag("--run-as-gid", becomes="--run-as-gid"),
    Flag("--user-group-source", "Only fromTheImage.", reader=readers.read_user_source),
    Flag(
        "--supplemental-groups",
        becomes="--supplemental-groups",
        reader=readers.build_list_reader("--supplemental-groups"),
    ),
    Flag(
        "--capability",
        becomes="--capability",
        form=MANY,
        reader=readers.build_list_reader("--capability"),
    ),
    Flag("--allow-privilege-escalation", becomes="--allow-privilege-escalation", form=SWITCH),
    Flag("--seccomp-profile", becomes="--seccomp-profile-type"),
    Flag("--pod-running-timeout", refused=_NO_TERMINAL),
    Flag("--wait-for-submit", refused="A submission is answered at once: leave it out."),
)
MASTER_V2 = (
    *MASTER,
    Flag("--master-command", becomes="--master-command"),
    Flag("--master-gpu-devices-request", becomes="--master-gpus"),
    Flag("--master-gpu-portion-request", becomes="--master-gpu-portion"),
    Flag(
        "--master-gpu-portion-limit",
        "Only as the request.",
        reader=readers.build_limit_reader("--master-gpu-portion-request"),
    ),
)
FRAMEWORK = Flag(
    "--framework -f",
    "PyTorch where it is not given.",
    choices=("PyTorch", "TF", "TensorFlow", "MPI", "XGBoost", "JAX"),
)
OWN_FLAGS = {
    "pytorch": (*NO_MASTER, *ELASTIC),
    "tensorflow": NO_MASTER,
    "mpi": SLOTS,
    "xgboost": (),
    "jax": (),
}
"""What each framework has beside the rest."""
_ALL_HAVE_MASTERS = (
    Flag(
        "--no-master",
        form=SWITCH,
        refused="The framework cannot do without its master: leave it out.",
    ),
)


def _build_elastic_refusals(pytorch: str) -> tuple[Flag, ...]:
    return tuple(
        Flag(each.names, refused=f"Only PyTorch is elastic: `{pytorch}`.") for each in ELASTIC
    )


def list_lacked_flags(framework: str, pytorch: str) -> tuple[Flag, ...]:
    """Return the flags of other frameworks that a framework does not have.

    `pytorch` is the command that submits PyTorch, which alone is elastic.
    """
    own: dict[str, tuple[Flag, ...]] = {
        "pytorch": (),
        "tensorflow": _build_elastic_refusals(pytorch),
        "mpi": (*_build_elastic_refusals(pytorch), *_ALL_HAVE_MASTERS),
        "xgboost": (*_build_elastic_refusals(pytorch), *_ALL_HAVE_MASTERS),
        "jax": (
            *_build_elastic_refusals(pytorch),
            Flag("--no-master", "So it always is.", form=SWITCH),
        ),
    }
    return own[framework]


V1_PROCESSES = (Flag("--processes", becomes="--workers"),)
"""What V1 called the workers of MPI before."""
