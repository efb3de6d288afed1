"""What registries, kubelets and runtimes say of pods that start, and what is made of it.

Each is a message in the words of the versions that write it; those of pods without a node are in
`test_waiting_words.py`.
"""

import pytest

from tests.workloads.objects import event, starting_pod
from tests.workloads.waiting_objects import diagnose

POD = "train1-worker-0"


@pytest.mark.parametrize(
    ("message", "meaning", "advice"),
    [
        (
            "failed to get reader from content store: content digest sha256:9a96: not found",
            "its node has lost a part of it",
            "look at the container runtime of the node",
        ),
        (
            "status code from registry 402 (Payment Required)",
            "its registry asks for a login",
            "Choose a pull credential",
        ),
        (
            "x509: certificate has expired or is not yet valid: current time is after",
            "its registry's certificate has expired, or the node's clock is wrong",
            "Ask whoever runs the registry",
        ),
        (
            "http: server gave HTTP response to HTTPS client",
            "its registry speaks no HTTPS, and the node asks for it",
            "let its nodes reach the registry without HTTPS",
        ),
        (
            "proxyconnect tcp: dial tcp 10.1.1.1:3128: connect: connection refused",
            "the proxy of its node does not answer",
            "the proxy that its nodes use",
        ),
        (
            "read tcp 10.0.0.1:1: unexpected EOF",
            "the transfer from its registry broke off",
            "tried again",
        ),
        (
            "unexpected commit digest sha256:bb, expected sha256:aa: failed precondition",
            "what came from its registry was damaged",
            "It is tried again by itself",
        ),
        (
            'media type "application/vnd.docker.distribution.manifest.v1+prettyjws" is no longer '
            "supported since containerd v2.1",
            "its registry has it in an old form",
            "Build the image anew",
        ),
    ],
)
def test_why_an_image_is_not_pulled(message: str, meaning: str, advice: str) -> None:
    diagnosis = diagnose([starting_pod(reason="ErrImagePull", message=message)])
    assert f"because {meaning}" in diagnosis.sentence
    assert advice in diagnosis.help


SETUP = 'MountVolume.SetUp failed for volume "v" :'
ATTACH = 'AttachVolume.Attach failed for volume "pvc-1" :'
NFS = f"{SETUP} mount failed: exit status 32 Output: mount.nfs:"


@pytest.mark.parametrize(
    ("message", "sentence", "advice"),
    [
        (
            f"{SETUP} mount failed: bad option; for several filesystems (e.g. nfs, cifs) you might "
            "need a /sbin/mount.<type> helper program.",
            "The node of worker 0 lacks the program or module that mounts one of its volumes.",
            "install what mounts such volumes",
        ),
        (
            f"{NFS} mounting 10.0.0.1:/x failed, reason given by server: No such file or directory",
            "A volume of worker 0 names a path that is not there.",
            "Check the path",
        ),
        (
            f"{NFS} Failed to resolve server nfs.team.svc.cluster.local: Name or service not known",
            "The node of worker 0 does not find the server nfs.team.svc.cluster.local of a volume.",
            "Check the server's name",
        ),
        (
            f"{NFS} Connection refused",
            "The server of a volume of worker 0 does not answer its node.",
            "whether the nodes may reach it",
        ),
        (
            f"{NFS} Stale file handle",
            "A volume of worker 0 is not what it was: its server has put something else in its "
            "place.",
            "mount it anew",
        ),
        (
            'AttachVolume.Attach failed for volume "pvc-1" : CSINode n1 does not contain driver '
            "ebs.csi.aws.com",
            "The node of worker 0 lacks the driver ebs.csi.aws.com of a volume.",
            "storage's driver",
        ),
        (
            f"{SETUP} rpc error: code = Aborted desc = an operation with the given Volume ID 0001 "
            "already exists",
            "The storage of a volume of worker 0 is still at work on an earlier try.",
            "The node tries again by itself",
        ),
        (
            'Unable to attach or mount volumes: persistentvolumeclaim "data" not found',
            "Worker 0 mounts the claim data, which is not there.",
            "Create it in the project's namespace",
        ),
        (
            'AttachVolume.Attach failed for volume "pv-1" : googleapi: Error 400: The disk '
            "resource 'd' is already being used by 'i'",
            "The volume pv-1 of worker 0 is in use elsewhere, and may be used in one place only.",
            "It starts when what uses it has ended",
        ),
        (
            f'{SETUP} configmap "kube-root-ca.crt" not found',
            "Worker 0 mounts the ConfigMap kube-root-ca.crt, which Kubernetes makes in each "
            "namespace, and which is not there.",
            "controller manager",
        ),
        (
            f'{SETUP} object "team-a"/"s3-creds" not registered',
            "The node of worker 0 has not read the Secrets and ConfigMaps that it mounts yet.",
            "Nothing needs to be done",
        ),
        (
            f'{SETUP} failed to fetch token: serviceaccounts "trainer" not found',
            "Worker 0 runs as the service account trainer, which is not there.",
            "the project's namespace",
        ),
        (
            "Unable to attach or mount volumes: unmounted volumes=[v], failed to process volumes="
            "[v]: error processing PVC team-a/data: PVC is not bound",
            "A claim of worker 0 has no volume yet.",
            "its storage class",
        ),
        (
            'MountVolume.MountDevice failed for volume "v" : kubernetes.io/csi: '
            "attacher.MountDevice failed to create newCsiDriverClient: driver name "
            "nfs.csi.k8s.io not found in the list of registered CSI drivers",
            "The node of worker 0 lacks the driver nfs.csi.k8s.io of a volume.",
            "the storage's driver runs on that node",
        ),
        (
            f"{SETUP} rpc error: code = DeadlineExceeded desc = context deadline exceeded",
            "A volume of worker 0 does not come: its node waited for it in vain.",
            "whether the storage answers",
        ),
        (
            f"{SETUP} rpc error: code = NotFound desc = volume vol-1 not found",
            "The storage does not give a volume of worker 0 to its node: NotFound, volume vol-1 "
            "not found.",
            "may have been deleted",
        ),
        (
            f"{SETUP} rpc error: code = Unavailable desc = error reading from server: EOF",
            "The driver of a volume of worker 0 does not answer its node: error reading from "
            "server: EOF.",
            "The node tries again by itself",
        ),
        (
            f'{SETUP} connection error: desc = "transport: Error while dialing dial unix '
            '/var/lib/kubelet/plugins/x/csi.sock: connect: connection refused"',
            "The driver of a volume does not answer on the node of worker 0.",
            "the storage's driver runs on that node",
        ),
        (
            f"{ATTACH} rpc error: code = ResourceExhausted desc = attachment limit exceeded",
            "The node of worker 0 has as many volumes as can be attached to it, and pvc-1 is one "
            "more.",
            "use fewer claims",
        ),
        (
            f"{ATTACH} timed out waiting for external-attacher of ebs.csi.aws.com CSI driver to "
            "attach volume vol-1",
            "The driver ebs.csi.aws.com does not attach a volume of worker 0: the node waited for "
            "it in vain.",
            "the controller of that driver",
        ),
        (
            f"{ATTACH} rpc error: code = Internal desc = expected device "
            "to be attached but was attaching",
            "A volume of worker 0 is still being attached, or taken away from where it was.",
            "The node tries again by itself",
        ),
        (
            'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) other-0',
            "The volume pvc-1 of worker 0 is still attached to another node, and may be used on "
            "one only.",
            "ReadWriteMany",
        ),
        (
            f"{SETUP} mount: wrong fs type, bad option, bad superblock on 10.0.0.1:/x, missing "
            "codepage or helper program; you might need a /sbin/mount.<type> helper program.",
            "The node of worker 0 lacks the program or module that mounts one of its volumes.",
            "install what mounts such volumes",
        ),
        (
            f"{SETUP} mount: wrong fs type, bad option, bad superblock on /dev/sdb",
            "The file system of a volume of worker 0 is damaged, or of a sort that its node does "
            "not know.",
            "before anything writes to it",
        ),
        (
            f"{SETUP} mkdir /var/lib/kubelet/pods/x: no space left on device",
            "The node of worker 0 has no disk space left for its volumes.",
            "make room on the node",
        ),
        (
            f"{SETUP} rpc error:\n  words of a later version",
            f"A volume of worker 0 cannot be mounted: {SETUP} rpc error: words of a later version.",
            "the volume's source",
        ),
    ],
)
def test_why_a_volume_is_not_mounted(message: str, sentence: str, advice: str) -> None:
    diagnosis = diagnose([starting_pod()], events=[event(POD, "FailedMount", message)])
    assert diagnosis.sentence == sentence
    assert advice in diagnosis.help


@pytest.mark.parametrize(
    ("reason", "message", "words", "advice"),
    [
        (
            "CreateContainerError",
            "failed to generate container spec: failed to stat /var/lib/x: stale NFS file handle",
            "because one of its volumes no longer answers on its node",
            "mount it anew",
        ),
        (
            "CreateContainerError",
            "failed to generate spec: unable to find user trainer: no matching entries in passwd",
            "because its image lacks the user or group that it is to run as",
            "Set a user ID",
        ),
        (
            "RunContainerError",
            "nvidia-container-cli: mount error: file creation failed: /run/x/libnvidia-ml.so.1: "
            "file exists: unknown",
            "because its image has files of a GPU driver, in the way of those of its node",
            "Build the image without",
        ),
        (
            "CreateContainerError",
            "reserving container name: error reserving ctr name x for id 39b0: name is reserved",
            "because the container runtime of its node does not come to an end",
            "The node tries again by itself",
        ),
        (
            "CreateContainerError",
            "container create failed: sd-bus call: Unit kubepods.slice not found: I/O error",
            "Unit kubepods.slice not found",
            "Look at what the message names",
        ),
        (
            "RunContainerError",
            'exec: "torchrun": executable file not found in $PATH',
            "executable file not found",
            "Check the command and the working directory against the image.",
        ),
        (
            "CreateContainerConfigError",
            "container has runAsNonRoot and image has non-numeric user (nobody), cannot verify",
            "its node cannot tell whether its image would",
            "Set a user ID other than 0.",
        ),
        (
            "CreateContainerConfigError",
            'configmaps "args" is forbidden: no relationship found between node and this object',
            "The node of worker 0 has not read all that it needs",
            "Nothing needs to be done",
        ),
    ],
)
def test_why_a_container_is_not_started(reason: str, message: str, words: str, advice: str) -> None:
    diagnosis = diagnose([starting_pod(reason=reason, message=message)])
    assert words in diagnosis.sentence
    assert advice in diagnosis.help
