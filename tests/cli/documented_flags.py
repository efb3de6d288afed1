"""The flags and commands that Run:ai's and Arena's own documents have, as their users know them."""

_V1 = """
--project -p --name --job-name-prefix --image -i --image-pull-policy --gpu -g --gpu-memory --cpu
--cpu-limit --memory --memory-limit --extended-resource --large-shm --environment -e --command
--working-dir --pvc-new --pvc-exists --volume -v --nfs-server --git-sync --s3 --configmap-volume
--backoff-limit --ttl-after-finish --node-pools --node-type --toleration
--preferred-pod-topology-key --required-pod-topology-key --host-ipc --host-network --port
--service-type -s --annotation -a --label -l --add-capability --run-as-user --attach --stdin -t
--template
"""
_V1_DISTRIBUTED = """
--workers --min-replicas --max-replicas --no-master --master-args --master-environment --master-gpu
--master-extended-resource --master-no-pvcs --clean-pod-policy
"""
_V2 = """
--image -i --image-pull-policy --gpu-devices-request -g --gpu-request-type --gpu-portion-request
--gpu-portion-limit --gpu-memory-request --gpu-memory-limit --cpu-core-request --cpu-core-limit
--cpu-memory-request --cpu-memory-limit --extended-resource --large-shm --environment-variable -e
--command -c --working-dir --existing-pvc --new-pvc --nfs --host-path --git-sync --s3
--configmap-map-volume --external-url --port --annotation --label --backoff-limit
--auto-deletion-time-after-completion --node-pools --node-type --toleration
--preferred-pod-topology-key --required-pod-topology-key --host-ipc --host-network --run-as-user
--run-as-uid --run-as-gid --user-group-source --supplemental-groups --capability
--allow-privilege-escalation --seccomp-profile --create-home-dir --attach --stdin -t --name-prefix
--pod-running-timeout --wait-for-submit --project -p --priority --preemptibility
"""
_V2_DISTRIBUTED = """
--workers --min-replicas --max-replicas --no-master --master-args --master-command
--master-environment --master-extended-resource --master-gpu-devices-request
--master-gpu-portion-request --master-gpu-portion-limit --master-no-pvcs --clean-pod-policy
"""
_LIST = (
    "--all-projects -A --project -p --status --limit --offset --json --yaml --table --no-headers"
)
_DESCRIBE = """
--general --compute --pods --events --networks --containers --pod-limit --event-limit --sortEvents
--output -o --uuid --project -p
"""
_LOGS = "--follow -f --pod --since --since-time --tail -t --timestamps --project -p"
_LOGS_V2 = f"{_LOGS} --container -c --previous --limit-bytes --wait-timeout"
_FRAMEWORKS = ("pytorch", "tensorflow", "mpi", "xgboost", "jax")
_GROUPS = (*_FRAMEWORKS, "distributed", *(f"training {each}" for each in _FRAMEWORKS))
_ARENA = """
--name --image --gpus --device --workers --retry --working-dir --workingDir --env -e --data -d
--data-dir --dataDir --annotation -a --label -l --selector --toleration --priority -p --gang --queue
--scheduler --image-pull-secret --image-pull-policy --config-file --shell --rdma --hostNetwork
--hostIPC --hostPID --model-name --model-source --sync-mode --syncMode --sync-source --syncSource
--sync-image --syncImage --tensorboard --tensorboard-image --tensorboardImage --logdir --namespace
-n --loglevel --arena-namespace --config --pprof --trace --helm-binary
"""
_ROLES = " ".join(
    f"--{role}-{what}"
    for role in ("worker", "ps", "chief", "evaluator")
    for what in ("cpu", "cpu-limit", "memory", "memory-limit", "selector")
)

RUNAI = {
    "login": "--user -u --password -p --listen-host --listen-port --name --secret --secret-file "
    "--save --interactive",
    "list jobs": "--all-projects -A --project -p",
    "list projects": "--include-deleted",
    "describe job": "--output -o --project -p",
    "logs": f"{_LOGS} --instance -i",
    "delete job": "--all -A --project -p",
    "project list": "--json --yaml",
    **dict.fromkeys(
        (
            *(f"submit-dist {each}" for each in ("pytorch", "tf", "mpi", "xgboost")),
            *("submit-pytorch", "submit-tf"),
        ),
        f"{_V1} {_V1_DISTRIBUTED}",
    ),
    "submit": _V1,
    **{f"{each} submit": f"{_V2} {_V2_DISTRIBUTED}" for each in _GROUPS},
    "distributed submit": f"{_V2} {_V2_DISTRIBUTED} --framework -f",
    "mpi submit": f"{_V2} {_V2_DISTRIBUTED} --slots-per-worker",
    **{
        f"{group} {verb}": flags
        for group in (*_GROUPS, "training", "training standard")
        for verb, flags in {
            "list": _LIST,
            "describe": _DESCRIBE,
            "logs": _LOGS_V2,
            "delete": "--project -p --uuid -u",
            "suspend": "--project -p",
            "resume": "--project -p",
        }.items()
    },
    **{f"{each} submit": _V2 for each in ("training", "training standard")},
    "workload list": _LIST,
}
"""The flags of each command of Run:ai's, by its words."""
_ARENA_AMOUNTS = "--cpu --memory --clean-task-policy"
ARENA = {
    **dict.fromkeys(
        ("submit pytorch", "submit pytorchjob"),
        f"{_ARENA} {_ARENA_AMOUNTS} --running-timeout --ttl-after-finished --share-memory "
        "--nproc-per-node",
    ),
    **dict.fromkeys(
        ("submit tf", "submit tfjob"),
        f"{_ARENA} {_ROLES} --worker-image --ps-image --ps --ps-port --worker-port --chief "
        "--evaluator --chief-port --ps-gpus --worker-affinity-policy --ps-affinity-policy "
        "--worker-affinity-constraint --ps-affinity-constraint --success-policy "
        "--clean-task-policy --running-timeout --starting-timeout --ttl-after-finished "
        "--role-sequence --share-memory",
    ),
    **dict.fromkeys(
        ("submit mpi", "submit mpijob", "submit mj"),
        f"{_ARENA} {_ARENA_AMOUNTS} --gputopology --mounts-on-launcher",
    ),
    **dict.fromkeys(("list", "ls"), "--all-namespaces -A --type -T --output -o"),
    "get": "--type -T --events -e --gpus -g --output -o",
    **dict.fromkeys(
        ("logs", "log"),
        "--instance -i --container -c --follow -f --tail -t --since --since-time --timestamps "
        "--type -T",
    ),
    **dict.fromkeys(("delete", "del"), "--type -T"),
    "prune": "--since -s --all-namespaces -A",
    "top node": "--details -d --refresh -r --gpu-mode -m --output -o --metric",
    "top job": "--all-namespaces -A --type -T --instance -i --refresh -r --output -o",
    "data list": "",
    "whoami": "",
    "version": "",
}
"""The flags of each command of Arena's, by its words."""
ELSEWHERE = {
    "runai": (
        *("attach", "bash", "exec", "port-forward", "update", "upgrade", "workspace", "inference"),
        *("pvc", "my-credential", "kubeconfig", "diagnostics", "report", "auth", "workload-type"),
    ),
    "arena": (
        *("attach", "serve", "model", "llm", "evaluate", "cron", "logviewer", "completion"),
        *("scaleout", "scalein", "submit horovod", "submit horovodjob", "submit hj"),
        *("submit volcanojob", "submit vj", "submit etjob", "submit et", "submit deepspeedjob"),
        *("submit dp", "submit rayjob", "submit rj", "submit sparkjob", "submit spark"),
    ),
}
"""Commands of the originals that Muster refuses by name."""
