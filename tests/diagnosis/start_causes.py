"""Causes of waiting for pods that are refused, and for pods that do not start."""

from collections.abc import Sequence

from tests.diagnosis.cluster_states import IMAGE, refuse_pods, start_pod
from tests.diagnosis.injected import InjectedCause
from tests.diagnosis.special_states import fail_probe, leave_job_alone, pull_image, run_init

PODS: Sequence[InjectedCause] = (
    InjectedCause(
        "quota of the namespace",
        refuse_pods(
            'pods "x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=4, '
            "used: requests.nvidia.com/gpu=6, limited: requests.nvidia.com/gpu=8"
        ),
        "The cluster refuses to make its pods: the namespace's quota gpus allows 8 of "
        "requests.nvidia.com/gpu, 6 are in use, and one more pod asks for 4.",
        "a quota of its own",
    ),
    InjectedCause(
        "pod security of the namespace",
        refuse_pods(
            'pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged '
            '(container "pytorch" must not set securityContext.privileged=true)'
        ),
        'The cluster refuses to make its pods: pods "x" is forbidden: violates PodSecurity '
        '"restricted:latest": privileged (container "pytorch" must not set '
        "securityContext.privileged=true).",
        "The namespace allows no such pods",
    ),
    InjectedCause(
        "webhook that denies it",
        refuse_pods('admission webhook "rules.example" denied the request: no owner label'),
        'The cluster refuses to make its pods: admission webhook "rules.example" denied the '
        "request: no owner label.",
        "A rule of the cluster forbids it",
    ),
    InjectedCause(
        "ratio of limits to requests",
        refuse_pods(
            'pods "x" is forbidden: cpu max limit to request ratio per Container is 2, but '
            "provided ratio is 4.000000"
        ),
        'The cluster refuses to make its pods: pods "x" is forbidden: cpu max limit to request '
        "ratio per Container is 2, but provided ratio is 4.000000.",
        "(LimitRange)",
    ),
    InjectedCause(
        "API server that has to be asked again",
        refuse_pods(
            'Operation cannot be fulfilled on resourcequotas "q": the object has been modified'
        ),
        "The cluster refuses to make its pods: Operation cannot be fulfilled on resourcequotas "
        '"q": the object has been modified.',
        "tried again by itself",
    ),
    InjectedCause(
        "store of the API server that is late",
        refuse_pods("etcdserver: request timed out, possibly due to previous leader failure"),
        "The cluster refuses to make its pods: etcdserver: request timed out, possibly due to "
        "previous leader failure.",
        "tried again by itself",
    ),
    InjectedCause(
        "store of the API server that is full",
        refuse_pods("etcdserver: mvcc: database space exceeded"),
        "The cluster refuses to make its pods: etcdserver: mvcc: database space exceeded.",
        "or ask the administrator of the cluster",
    ),
    InjectedCause(
        "object that is too large for the store of the API server",
        refuse_pods("etcdserver: request is too large"),
        "The cluster refuses to make its pods: etcdserver: request is too large.",
        "Change what the message names",
    ),
    InjectedCause(
        "operator that makes no pods",
        leave_job_alone(),
        "Its pods have not been made yet.",
        "training operator may be missing or down",
    ),
)
STARTS: Sequence[InjectedCause] = (
    InjectedCause(
        "image that is being pulled, with its size",
        pull_image(),
        f"0 of 2 pods are ready; the image {IMAGE} of the master is being pulled since 1 Jan, "
        "00:00:00 UTC; it has 9.2 GiB, and elsewhere its pull took 1m2.5s.",
        "as long as its image is large",
    ),
    InjectedCause(
        "image whose registry asks for a login",
        start_pod(
            "ErrImagePull",
            "pull access denied, repository does not exist or may require authorization: "
            "authorization failed",
        ),
        f"The image {IMAGE} of worker 0 cannot be pulled (ErrImagePull), because its registry asks "
        "for a login, or does not allow this one: pull access denied, repository does not exist or "
        "may require authorization: authorization failed.",
        "Choose a pull credential",
    ),
    InjectedCause(
        "image that does not exist",
        start_pod("ImagePullBackOff", f"{IMAGE}: manifest unknown"),
        f"The image {IMAGE} of worker 0 cannot be pulled (ImagePullBackOff), because there is no "
        f"such image or tag: {IMAGE}: manifest unknown.",
        "name and tag",
    ),
    InjectedCause(
        "registry that is not reached",
        start_pod("ErrImagePull", "dial tcp: lookup registry.example: no such host"),
        f"The image {IMAGE} of worker 0 cannot be pulled (ErrImagePull), because the node does not "
        "reach its registry: dial tcp: lookup registry.example: no such host.",
        "Check the registry's name",
    ),
    InjectedCause(
        "Secret that a variable names",
        start_pod("CreateContainerConfigError", 'secret "token" not found'),
        "Worker 0 refers to the Secret token, which is not there.",
        "Create the Secret",
    ),
    InjectedCause(
        "key that a ConfigMap has not",
        start_pod(
            "CreateContainerConfigError", "couldn't find key rate in ConfigMap muster-team-a/args"
        ),
        "Worker 0 refers to the key rate of the ConfigMap args, which has no such key.",
        "names and keys",
    ),
    InjectedCause(
        "Secret that a volume names",
        start_pod(
            events=(
                (
                    "FailedMount",
                    'MountVolume.SetUp failed for volume "v" : secret "token" not found',
                ),
            )
        ),
        "Worker 0 mounts the Secret token, which is not there.",
        "another data source",
    ),
    InjectedCause(
        "volume that another node has",
        start_pod(
            events=(
                (
                    "FailedAttachVolume",
                    'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached '
                    "to one node and can't be attached to another",
                ),
            )
        ),
        "The volume pvc-1 of worker 0 is still attached to another node, and may be used on one "
        "only.",
        "ReadWriteMany",
    ),
    InjectedCause(
        "network of a pod",
        start_pod(events=(("FailedCreatePodSandBox", "failed to assign an IP address"),)),
        "The network of worker 0 cannot be set up: failed to assign an IP address.",
        "look at the node",
    ),
    InjectedCause(
        "init container that runs",
        run_init(),
        "1 of 2 pods are ready; init-pytorch of worker 0 runs, which has to end well before the "
        "program starts.",
        "the master has to start",
    ),
    InjectedCause(
        "readiness probe",
        fail_probe(),
        "1 of 2 pods are ready; worker 0 runs, and does not say yet that it is ready: Readiness "
        "probe failed: HTTP probe failed with statuscode: 503.",
        "readiness probe",
    ),
    InjectedCause(
        "container that keeps ending",
        start_pod("CrashLoopBackOff", last={"terminated": {"exitCode": 3}}, restarts=4),
        "Worker 0 keeps ending with exit code 3 and waits before it is started again, after 4 "
        "restarts.",
        "Look into its log",
    ),
)
