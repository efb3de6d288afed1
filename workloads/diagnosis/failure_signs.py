"""Patterns of lines that say why a program ended, with words and what would help. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from workloads.diagnosis.causes import FailureCause
from workloads.diagnosis.node_faults import FAULT_HELP
from workloads.xids import FATAL_XIDS, PROGRAM_XIDS


@dataclass(frozen=True, slots=True)
class FailureSign:
    """A pattern for a line in lower case, its meaning in words, and what would help.

    `is_echo` says that the line rather tells of another pod's failure, `is_aftermath` that a line
    with any other sign says more.
    """

    cause: FailureCause
    pattern: re.Pattern[str]
    words: str
    help: str
    is_echo: bool = False
    is_aftermath: bool = False


def _build_sign(
    cause: FailureCause,
    pattern: str,
    words: str,
    help: str,
    *,
    echo: bool = False,
    aftermath: bool = False,
) -> FailureSign:
    return FailureSign(cause, re.compile(pattern), words, help, echo, aftermath)


_PEERS = (
    "This pod lost its peers: the cause is likely in another pod's log, or in the network between "
    "the nodes."
)
_CRASHED = "it crashed in native code"
_CRASH_HELP = "The program crashed in native code: check the versions of its libraries."
_XID_LEAD = r"(?:nvrm: xid|\bxid error|\bxid(?= ?\())(?: ?\([^)]{0,40}\))?[: ]+"
"""What stands before the number of an Xid, with the address of the device in brackets. Databases
call a transaction's number xid, too.
"""
_QUIET_LEVEL = re.compile(r"^.{0,60}?\b(?:INFO|DEBUG)\b")
"""A line that its writer took for no trouble; NCCL's alone tell of troubles at INFO."""
_XID = re.compile(rf"{_XID_LEAD}(\d{{1,3}})\b")

SIGNS: Sequence[FailureSign] = (
    _build_sign(
        FailureCause.GPU_FAULT,
        rf"{_XID_LEAD}(?:{'|'.join(map(str, FATAL_XIDS))})\b",
        "its GPU is faulty",
        FAULT_HELP,
    ),
    _build_sign(
        FailureCause.GPU_FAULT,
        r"(?<!\bno )(?<!\b0 )(?:uncorrectable ecc|double.?bit error)"
        r"|(?<!\bno )(?<!\b0 )(?<!correctable )ecc error",
        "the memory of its GPU is faulty: it could not correct an error (ECC)",
        FAULT_HELP,
    ),
    _build_sign(
        FailureCause.GPU_FAULT,
        r"fallen off the bus|gpu is lost",
        "its GPU is gone from the bus of its node",
        FAULT_HELP,
    ),
    _build_sign(
        FailureCause.GPU_FAULT,
        r"nvlink(?!.{0,60}\b(?:no|0) (?:error|failure)).{0,60}(?:error|fatal|failure)"
        r"|nvswitch.{0,40}fatal",
        "a link between the GPUs of its node is faulty (NVLink)",
        FAULT_HELP,
    ),
    _build_sign(
        FailureCause.GPU_PROGRAM,
        rf"{_XID_LEAD}(?:{'|'.join(map(str, PROGRAM_XIDS))})\b"
        r"|illegal memory access|misaligned address|illegal instruction was encountered",
        "the program, or a library of it, used memory of the GPU that is not its own",
        "Run it with CUDA_LAUNCH_BLOCKING=1: the log then names the line that did it.",
    ),
    _build_sign(
        FailureCause.GPU_PROGRAM,
        r"device-side assert",
        "a check of the program failed on the GPU",
        "Most often an index is out of its range, such as a label beyond the number of classes; "
        "with CUDA_LAUNCH_BLOCKING=1 the log names the line.",
    ),
    _build_sign(
        FailureCause.GPU_MEMORY,
        r"cuda (error: )?out of memory|(?<!ray\.exceptions\.)(?<!java\.lang\.)outofmemoryerror"
        r"|cublas_status_alloc_failed|cudnn_status_alloc_failed|resource_exhausted: out of memory"
        r"|oom when allocating tensor.{0,200}gpu",
        "its GPU's memory was full",
        (
            "The GPU's memory is full: use a smaller batch or model, or ask for a larger portion "
            "of the GPU."
        ),
    ),
    _build_sign(
        FailureCause.SHARED_MEMORY,
        r"bus error|unable to (open|write to|allocate) .{0,40}shm"
        r"|insufficient shared memory|shm_open",
        "its shared memory was full",
        (
            "Shared memory is full: turn on the larger shared memory, or use fewer data loader "
            "workers."
        ),
    ),
    _build_sign(
        FailureCause.DISK_FULL,
        r"no space left on device|disk quota exceeded",
        "a disk was full",
        "A disk is full: write less, or to a larger volume.",
    ),
    _build_sign(
        FailureCause.COLLECTIVES,
        r"\bibv_\w{1,40} failed with error cannot allocate memory",
        "it may not lock memory for InfiniBand",
        "Ask the administrator of the cluster to raise the limit of locked memory on the nodes.",
    ),
    _build_sign(
        FailureCause.MEMORY,
        r"memoryerror|cannot allocate memory|std::bad_alloc|defaultcpuallocator"
        r"|node running low on memory|java\.lang\.outofmemoryerror|oom when allocating tensor",
        "it got no more memory",
        "The memory is full: ask for more CPU memory, or load less of the data at once.",
    ),
    _build_sign(
        FailureCause.PROCESS_LIMIT,
        r"too many open files|can't start new thread|fork: retry|"
        r"resource temporarily unavailable",
        "it opened more files, or started more threads, than it may",
        "Use fewer workers of data loaders, or ask the administrator to raise the limit.",
    ),
    _build_sign(
        FailureCause.CHECKPOINT,
        r"error\(s\) in loading state_dict|size mismatch for |unexpected key\(s\) in state_dict"
        r"|pytorchstreamreader|archive is corrupted|safetensorerror|unpicklingerror",
        "a checkpoint cannot be read, or is of another model",
        "Check that the checkpoint is whole, and that the model has the shape that it had.",
    ),
    _build_sign(
        FailureCause.NOT_A_NUMBER,
        r"loss (is|became|was) (nan|inf)|(found|detected) (nan|inf)|nan or inf|non-?finite"
        r"|floatingpointerror|returned nan values",
        "the loss, or what it is made of, is no number any more",
        "Lower the learning rate, clip gradients, or look for bad data; begin at a checkpoint "
        "before it.",
    ),
    _build_sign(
        FailureCause.ACCESS,
        r"\b40[13] (client error|unauthorized|forbidden)|gatedrepoerror|invalid credentials"
        r"|authentication failed|accessdenied|invalidaccesskeyid|nocredentialserror"
        r"|signaturedoesnotmatch|invalid api key|permission denied \(publickey",
        "a service refused it: its login is missing or may not do this",
        "Check the credential that it uses, and what that may read.",
    ),
    _build_sign(
        FailureCause.COLLECTIVES,
        r"duplicate gpu detected|ncclinvalidusage|no socket interface found"
        r"|mismatched nccl version|nccl version mismatch",
        "its ranks cannot work together as they are set up (NCCL)",
        "Give each rank a GPU of its own and the same image, and leave the network interface to "
        "NCCL; NCCL_DEBUG=INFO says more.",
    ),
    _build_sign(
        FailureCause.NETWORK,
        r"name or service not known|name resolution|could not resolve host|getaddrinfo failed"
        r"|nodename nor servname|no address associated with hostname|name does not resolve",
        "it knows no address of a name",
        "Check the name. A pod's name is known only while the pod is there: if it is that of the "
        "master, look whether the master ended first.",
    ),
    _build_sign(
        FailureCause.NETWORK,
        r"network is unreachable|no route to host|max retries exceeded|proxyerror"
        r"|certificate_verify_failed|certificate verify failed|could not connect to the endpoint"
        r"|couldn't connect to 'https?:",
        "it does not reach an address, or does not trust who answers there",
        "Check the address; from the cluster a proxy may be needed, or the address be closed.",
    ),
    _build_sign(
        FailureCause.GPU_UNUSABLE,
        r"libcuda\.so\S{0,20}: cannot open|could not (?:load|open) [^:]{0,40}libcuda\.so",
        "its node gave it no driver of a GPU",
        "Ask for a GPU; if it has one, tell an administrator of the node.",
    ),
    _build_sign(
        FailureCause.MISSING_MODULE,
        r"modulenotfounderror|importerror|no module named"
        r"|error while loading shared libraries|cannot open shared object file",
        "its image lacks a module or a library",
        (
            "The image lacks a module that the program needs: add it to the image, or choose "
            "another image."
        ),
    ),
    _build_sign(
        FailureCause.MISSING_FILE,
        r"no such file or directory|filenotfounderror|can't open file",
        "a file or directory that it names is not there",
        (
            "A path does not exist in the pod: check the command, its arguments and where the "
            "volumes are mounted."
        ),
    ),
    _build_sign(
        FailureCause.PERMISSION,
        r"permission denied|permissionerror|read-only file system",
        "it may not read or write a file",
        "The program may not use this file: check the volume's access and the user ID.",
    ),
    _build_sign(
        FailureCause.ARGUMENTS,
        r"unrecognized arguments|error: argument |the following arguments are required",
        "the program does not take its arguments",
        "Check the arguments of the command.",
    ),
    _build_sign(
        FailureCause.CANNOT_START,
        r"exec format error|cannot execute binary file",
        "a program that it runs is not made for the processors of its node",
        "Build the image for the nodes' architecture, or choose nodes of another one.",
    ),
    _build_sign(
        FailureCause.MISSING_COMMAND,
        r"command not found|executable file not found",
        "a command that it runs is not in its image",
        "The image has no such program: check the command.",
    ),
    _build_sign(
        FailureCause.GPU_UNUSABLE,
        r"no kernel image is available",
        "its libraries are not made for this sort of GPU",
        "Choose an image whose libraries are built for these GPUs, or nodes with others.",
    ),
    _build_sign(
        FailureCause.GPU_UNUSABLE,
        r"no cuda gpus are available|no nvidia driver|cuda driver version|cuda error"
        r"|cuda unknown error|failed to initialize nvml|cudnn_status_not_initialized",
        "it could not use a GPU",
        (
            "The GPU could not be used as the program wanted: check the GPU devices asked for, "
            "and that the image fits the driver."
        ),
    ),
    _build_sign(
        FailureCause.LOST_PEERS,
        r"connection (reset|refused|closed|aborted)|broken pipe"
        r"|connectionreseterror|connectionrefusederror|socket timeout"
        r"|rank \d+ (was lost|closed|is gone)|peer .{0,60}closed|gloo/transport"
        r"|store .{0,40}(timeout|timed out)|rendezvous(?:timeout|connection|closed)error"
        r"|diststoreerror|signalexception: .{0,40}signal: 15|barrier timed out"
        r"|got completion from peer .{0,80}ibv_wc_|ncclremoteerror"
        r"|nccl(?!.{0,80}\bno error).{0,80}(error|abort|timeout|timed out|unhandled|watchdog)"
        r"|watchdog.{0,80}timeout|distbackenderror|distnetworkerror",
        "it lost its peers",
        _PEERS,
        echo=True,
    ),
    _build_sign(
        FailureCause.PORT_TAKEN,
        r"address already in use|eaddrinuse",
        "another program has the port that it wanted",
        "Another program uses the port: let the training operator choose MASTER_PORT.",
    ),
    # NCCL's watchdog ends a rank that lost its peers with SIGABRT, too.
    _build_sign(
        FailureCause.CRASH,
        r"exitcode\s{0,4}: -6\b|aborted \(core dumped\)|fatal python error: aborted",
        _CRASHED,
        _CRASH_HELP,
        aftermath=True,
    ),
    _build_sign(
        FailureCause.CRASH,
        r"segmentation fault|fatal python error|core dumped|exitcode\s{0,4}: -(?:4|8|11)\b",
        _CRASHED,
        _CRASH_HELP,
    ),
    _build_sign(
        FailureCause.KILLED,
        r"^killed$|out of memory: kill|exitcode\s{0,4}: -9\b|exited on signal 9\b"
        r"|killed by signal: killed",
        "something killed it",
        "Something killed the program; most often the memory was full: ask for more CPU memory.",
    ),
)

_ANY_SIGN = re.compile("|".join(sign.pattern.pattern for sign in SIGNS))
"""Tells of most lines in one match that they have no sign."""


def find_sign(text: str) -> FailureSign | None:
    """Return the first sign that a line has; None without one."""
    lower = text.lower()
    if _QUIET_LEVEL.match(text) and "NCCL" not in text:
        return None
    if not _ANY_SIGN.search(lower):
        return None
    return next((sign for sign in SIGNS if sign.pattern.search(lower)), None)


def describe_sign(sign: FailureSign, line: str) -> str:
    """Return the meaning of a sign in a line; with its number where it is an Xid."""
    xid = _XID.search(line.lower())
    number = int(xid[1]) if xid else 0
    meaning = FATAL_XIDS.get(number) or PROGRAM_XIDS.get(number)
    return f"{sign.words}: Xid {number}, {meaning}" if meaning else sign.words
