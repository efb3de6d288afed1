"""The flags with which `arena` submits."""

from muster_cli.dialects import flag_readers as readers
from muster_cli.dialects.tables import Flag, Form

MANY, SWITCH = Form.MANY, Form.SWITCH
_TENSORBOARD = (
    "Muster starts no TensorBoard: write its logs to a claim (--data), and read them there."
)
_NO_EVALUATOR = "Muster's TensorFlow has no evaluator: submit it alone."
_BY_TOPOLOGY = "Use `muster submit tensorflow --topology KEY`."
_BY_ROLE = "Roles with resources of their own: `muster submit tensorflow`, or a file."

COMMON = (
    Flag("--name", "The name; it must be given."),
    Flag("--image", becomes="--image"),
    Flag("--gpus", becomes="--gpus"),
    Flag("--workers", "How many; of PyTorch the master counts as one of them."),
    Flag("--device", becomes="--extended-resource", form=MANY, reader=readers.read_device),
    Flag("--retry", becomes="--backoff-limit"),
    Flag(
        "--working-dir --workingDir", "It becomes `--working-dir`; code lands in its folder code."
    ),
    Flag("--env -e", becomes="--env", form=MANY),
    Flag("--data -d", becomes="--pvc", form=MANY, reader=readers.read_claim_mount),
    Flag("--data-dir --dataDir", becomes="--host-path", form=MANY, reader=readers.read_host_mount),
    Flag("--annotation -a", becomes="--annotation", form=MANY),
    Flag("--label -l", becomes="--label", form=MANY),
    Flag("--selector", becomes="--node-selector", form=MANY),
    Flag("--toleration", becomes="--toleration", form=MANY, reader=readers.read_arena_toleration),
    Flag("--priority -p", becomes="--priority"),
    Flag("--gang", "So it always is: all pods of a workload start, or none.", form=SWITCH),
    Flag("--image-pull-secret", becomes="--image-pull-secret", form=MANY),
    Flag("--image-pull-policy", becomes="--image-pull-policy"),
    Flag("--shell", "The shell that runs the command; sh."),
    Flag(
        "--rdma",
        becomes="--extended-resource=rdma/hca=1",
        form=SWITCH,
    ),
    Flag("--hostNetwork", becomes="--host-network", form=SWITCH),
    Flag("--hostIPC", becomes="--host-ipc", form=SWITCH),
    Flag("--sync-mode --syncMode", "git; the code is fetched before the pods start."),
    Flag("--sync-source --syncSource", "The repository's address."),
    Flag(
        "--ttl-after-finished",
        becomes="--auto-delete",
        reader=readers.build_seconds_reader("--auto-delete"),
    ),
    Flag(
        "--clean-task-policy --cleanTaskPolicy",
        becomes="--clean-pod-policy",
    ),
    Flag("--share-memory", "The size of /dev/shm.", reader=readers.read_shared_memory),
    Flag("--hostPID", form=SWITCH, refused="No pod gets its host's processes: leave it out."),
    Flag("--queue", form=SWITCH, refused="It always waits in its project's queue: leave it out."),
    Flag("--scheduler", refused="The cluster's administrator chose it: leave it out."),
    Flag("--config-file", form=MANY, refused="Make a ConfigMap: `muster submit --config-map`."),
    Flag(
        "--sync-image --syncImage", refused="MUSTER_GIT_IMAGE of the server sets it: leave it out."
    ),
    Flag("--model-name", refused="Muster keeps no models: write it to a claim (--data)."),
    Flag("--model-source", refused="Muster keeps no models: write it to a claim (--data)."),
    Flag("--tensorboard", form=SWITCH, refused=_TENSORBOARD),
    Flag("--tensorboard-image --tensorboardImage", refused=_TENSORBOARD),
    Flag("--logdir", refused=_TENSORBOARD),
    Flag("--running-timeout", refused="The project has a time limit: leave it out."),
)
AMOUNTS = (
    Flag(
        "--cpu",
        "It becomes `--cpu` and `--cpu-limit`.",
        reader=readers.build_both_reader("--cpu", "--cpu-limit"),
    ),
    Flag(
        "--memory",
        "It becomes `--memory` and `--memory-limit`.",
        reader=readers.build_both_reader("--memory", "--memory-limit"),
    ),
)
PYTORCH = (
    *COMMON,
    *AMOUNTS,
    Flag(
        "--nproc-per-node",
        refused="Start with `torchrun --nproc-per-node N` in the command.",
    ),
)
MPI = (
    *COMMON,
    *AMOUNTS,
    Flag("--gputopology", form=SWITCH, refused="Use `muster submit mpi --topology KEY`."),
    Flag("--mounts-on-launcher", "So it always is.", form=SWITCH),
)
TENSORFLOW = (
    *COMMON,
    Flag("--ps", becomes="--parameter-servers"),
    Flag("--chief", "With a chief; without, workers only.", form=SWITCH),
    Flag(
        "--worker-cpu --cpu",
        becomes="--cpu",
    ),
    Flag("--worker-cpu-limit", becomes="--cpu-limit"),
    Flag("--worker-memory --memory", becomes="--memory"),
    Flag("--worker-memory-limit", becomes="--memory-limit"),
    Flag("--worker-selector", becomes="--node-selector", form=MANY),
    Flag("--worker-image", becomes="--image"),
    Flag("--chief-cpu", becomes="--master-cpu"),
    Flag("--chief-cpu-limit", becomes="--master-cpu-limit"),
    Flag("--chief-memory", becomes="--master-memory"),
    Flag("--chief-memory-limit", becomes="--master-memory-limit"),
    Flag("--chief-selector", becomes="--master-node-selector", form=MANY),
    Flag("--ps-image", refused=_BY_ROLE),
    Flag("--ps-gpus", refused=_BY_ROLE),
    Flag("--ps-cpu", refused=_BY_ROLE),
    Flag("--ps-cpu-limit", refused=_BY_ROLE),
    Flag("--ps-memory", refused=_BY_ROLE),
    Flag("--ps-memory-limit", refused=_BY_ROLE),
    Flag("--ps-selector", refused=_BY_ROLE),
    Flag("--evaluator", form=SWITCH, refused=_NO_EVALUATOR),
    *(
        Flag(f"--evaluator-{each}", refused=_NO_EVALUATOR)
        for each in ("cpu", "cpu-limit", "memory", "memory-limit", "selector")
    ),
    Flag("--ps-port", refused="The training operator chooses it: leave it out."),
    Flag("--worker-port", refused="The training operator chooses it: leave it out."),
    Flag("--chief-port", refused="The training operator chooses it: leave it out."),
    Flag(
        "--success-policy",
        refused="It has succeeded when the chief, or worker 0, has: leave it out.",
    ),
    Flag("--starting-timeout", refused="`muster wait --for running --timeout` waits so long."),
    Flag("--role-sequence", refused="All pods start together: leave it out."),
    *(
        Flag(f"--{role}-affinity-{each}", refused=_BY_TOPOLOGY)
        for role in ("worker", "ps")
        for each in ("policy", "constraint")
    ),
)
