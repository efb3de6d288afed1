"""Causes for which pods do not start, in the words of kubelets, runtimes, networks and drivers."""

from collections.abc import Sequence
from typing import Any

from tests.diagnosis.cluster_states import IMAGE, build_event, start_pod
from tests.diagnosis.injected import BuildObjects, InjectedCause, observe
from tests.workloads.cluster_objects import ClusterObjects
from tests.workloads.objects import condition

PULL = f"The image {IMAGE} of worker 0 cannot be pulled (ErrImagePull), because"
SANDBOX = "Failed to create pod sandbox: rpc error: code = Unknown desc ="
SETUP = 'MountVolume.SetUp failed for volume "v" :'


def fail_mount(*texts: str) -> BuildObjects:
    """Return the builder of a worker whose volume fails to mount, the last text the newest."""

    def build(kube: ClusterObjects) -> Any:
        worker = kube.starting("worker")
        events = [
            build_event(kube, worker, "FailedMount", text, lastTimestamp=f"2099-01-01T00:00:0{at}Z")
            for at, text in enumerate(texts)
        ]
        job = kube.job(condition("Created"), workers=1)
        return observe(kube, job, kube.pod("master"), worker, *events)

    return build


def _pull(name: str, message: str, meaning: str, help: str) -> InjectedCause:
    return InjectedCause(
        name, start_pod("ErrImagePull", message), f"{PULL} {meaning}: {message}.", help
    )


PULLS: Sequence[InjectedCause] = (
    _pull(
        "image of another platform",
        f'failed to pull and unpack image "{IMAGE}": no match for platform in manifest: not found',
        "it is not made for the processors of its node",
        "nodes' architecture",
    ),
    _pull(
        "registry that fails",
        f'failed to resolve reference "{IMAGE}": unexpected status from HEAD request to '
        "https://registry.example/v2/train/manifests/1: 503 Service Unavailable",
        "its registry fails",
        "whoever runs the registry",
    ),
    _pull(
        "registry that does not answer in time",
        "pinging container registry registry.example: net/http: request canceled while waiting "
        "for connection (Client.Timeout exceeded while awaiting headers)",
        "the node does not reach its registry",
        "Check the registry's name",
    ),
    _pull(
        "too many pulls of a node",
        "pull QPS exceeded",
        "the node pulls as many images at once as it may",
        "nothing needs to be done",
    ),
    InjectedCause(
        "image whose last pull failed, between two pulls",
        start_pod(
            "ImagePullBackOff",
            f'Back-off pulling image "{IMAGE}"',
            events=(
                ("Failed", "Error: ErrImagePull"),
                ("Failed", f'Failed to pull image "{IMAGE}": rpc error: manifest unknown'),
                ("Failed", 'Failed to pull image "other:1": connection refused'),
            ),
        ),
        f"The image {IMAGE} of worker 0 cannot be pulled (ImagePullBackOff), because there is no "
        "such image or tag: rpc error: manifest unknown.",
        "name and tag",
    ),
    InjectedCause(
        "image without a signature",
        start_pod(
            "SignatureValidationFailed",
            "Source image rejected: A signature was required, but no signature exists",
        ),
        f"The image {IMAGE} of worker 0 cannot be pulled (SignatureValidationFailed), because the "
        "node takes signed images alone, and does not trust this one's signature: Source image "
        "rejected: A signature was required, but no signature exists.",
        "Choose an image that is signed",
    ),
    InjectedCause(
        "pull credential that is not there",
        start_pod(
            "ErrImagePull",
            "unauthorized: authentication required",
            events=(
                (
                    "FailedToRetrieveImagePullSecret",
                    "Unable to retrieve some image pull secrets (regcred); attempting to pull the "
                    "image may not succeed.",
                ),
            ),
        ),
        f"{PULL} its pull credential regcred is not there: unauthorized: authentication required.",
        "Create that Secret",
    ),
)
CONTAINERS: Sequence[InjectedCause] = (
    InjectedCause(
        "cache of a node that is late",
        start_pod(
            "CreateContainerConfigError",
            "failed to sync configmap cache: timed out waiting for the condition",
        ),
        "The node of worker 0 has not read all that it needs: failed to sync configmap cache: "
        "timed out waiting for the condition.",
        "the node tries again by itself",
    ),
    InjectedCause(
        "path within a volume",
        start_pod(
            "CreateContainerConfigError",
            'failed to create subPath directory for volumeMount "data" of container "pytorch"',
        ),
        "A volume of worker 0 has not the path that is to be mounted of it, and it cannot be made: "
        'failed to create subPath directory for volumeMount "data" of container "pytorch".',
        "Check the path within the volume",
    ),
    InjectedCause(
        "driver of a GPU that is not loaded",
        start_pod(
            "RunContainerError",
            "OCI runtime create failed: error running hook #0: nvidia-container-cli: "
            "initialization error: nvml error: driver not loaded: unknown",
        ),
        "The container of worker 0 cannot be started (RunContainerError), because the GPU of its "
        "node cannot be given to it: OCI runtime create failed: error running hook #0: "
        "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.",
        "about the node",
    ),
    InjectedCause(
        "driver of a GPU that is too old",
        start_pod(
            "RunContainerError",
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please "
            "update your driver to a newer version",
        ),
        "The container of worker 0 cannot be started (RunContainerError), because its image needs "
        "a newer driver, or another GPU, than its node has: nvidia-container-cli: requirement "
        "error: unsatisfied condition: cuda>=12.4, please update your driver to a newer version.",
        "an image for an older CUDA",
    ),
    InjectedCause(
        "limit of memory that is too small to start",
        start_pod(
            "RunContainerError",
            "OCI runtime create failed: container init was OOM-killed (memory limit too low?)",
        ),
        "The container of worker 0 cannot be started (RunContainerError), because its limit of "
        "memory is too small to start anything: OCI runtime create failed: container init was "
        "OOM-killed (memory limit too low?).",
        "Ask for more CPU memory",
    ),
    InjectedCause(
        "command of a postStart hook that fails",
        start_pod("PostStartHookError", "exit status 3"),
        "The container of worker 0 cannot be started (PostStartHookError): exit status 3.",
        "Look into its log, and check the command of its postStart hook.",
    ),
    InjectedCause(
        "wait of a container that is not known",
        start_pod("PreStartHookError", "device plugin failed"),
        "The container of worker 0 cannot be started (PreStartHookError): device plugin failed.",
        "look at the node",
    ),
    InjectedCause(
        "devices of a claim that are not ready",
        start_pod(
            events=(
                (
                    "FailedPrepareDynamicResources",
                    "Failed to prepare dynamic resources: NodePrepareResources: rpc error: code = "
                    "DeadlineExceeded",
                ),
            )
        ),
        "The devices of worker 0 cannot be made ready: Failed to prepare dynamic resources: "
        "NodePrepareResources: rpc error: code = DeadlineExceeded.",
        "look at the node",
    ),
    InjectedCause(
        "network of a node that is not ready",
        start_pod(
            events=(("NetworkNotReady", "network is not ready: cni plugin not initialized"),)
        ),
        "The network of worker 0 cannot be set up: network is not ready: cni plugin not "
        "initialized.",
        "look at the node",
    ),
    InjectedCause(
        "runtime that a node has not",
        start_pod(
            events=(
                (
                    "FailedCreatePodSandBox",
                    f'{SANDBOX} no runtime for "nvidia" is configured',
                ),
            )
        ),
        "The node of worker 0 has not the container runtime nvidia.",
        "look at the node",
    ),
    InjectedCause(
        "image of a node's own that is not reached",
        start_pod(
            events=(
                (
                    "FailedCreatePodSandBox",
                    f'{SANDBOX} failed to get sandbox image "registry.k8s.io/pause:3.9"',
                ),
            )
        ),
        f"The node cannot prepare worker 0: {SANDBOX} failed to get sandbox image "
        '"registry.k8s.io/pause:3.9".',
        "look at the node",
    ),
)
MOUNTS: Sequence[InjectedCause] = (
    InjectedCause(
        "cache of mounts that is late",
        fail_mount(f"{SETUP} failed to sync secret cache: timed out waiting for the condition"),
        "The node of worker 0 has not read the Secrets and ConfigMaps that it mounts yet.",
        "Nothing needs to be done",
    ),
    InjectedCause(
        "driver of storage that a node has not",
        fail_mount(
            f"{SETUP} kubernetes.io/csi: driver name nfs.csi.k8s.io not found in the list of "
            "registered CSI drivers"
        ),
        "The node of worker 0 lacks the driver nfs.csi.k8s.io of a volume.",
        "storage's driver",
    ),
    InjectedCause(
        "server of a volume that does not answer",
        fail_mount(f"{SETUP} mount failed: exit status 32 Output: mount.nfs: Connection timed out"),
        "A volume of worker 0 does not come: its node waited for it in vain.",
        "whether the storage answers",
    ),
    InjectedCause(
        "mount whose cause was said before",
        fail_mount(
            f'{SETUP} secret "token" not found',
            "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], "
            "failed to process volumes=[]: context deadline exceeded",
        ),
        "Worker 0 mounts the Secret token, which is not there.",
        "another data source",
    ),
)
RUNTIMES: Sequence[InjectedCause] = (*PULLS, *CONTAINERS, *MOUNTS)
