"""Patterns of lines that say why a program ended, with words and what would help. Pure."""

import functools
import re
from collections.abc import Sequence
from typing import Any

import re2

from workloads.diagnosis.causes import FailureCause
from workloads.diagnosis.node_faults import FAULT_HELP
from workloads.diagnosis.service_signs import SERVICE_SIGNS
from workloads.diagnosis.sign_forms import FailureSign, Weight, build_sign
from workloads.xids import FATAL_XIDS, PROGRAM_XIDS

_PEERS = (
    "This pod lost its peers: the cause is likely in another pod's log, or in the network between "
    "the nodes."
)
_CRASHED = "it crashed in native code"
_CRASH_HELP = "The program crashed in native code: check the versions of its libraries."
_KILLED = "something killed it"
_KILLED_HELP = (
    "Something killed the program; most often the memory was full: ask for more CPU memory."
)
_GPU_MEMORY_FULL = "its GPU's memory was full"
_GPU_MEMORY_HELP = (
    "The GPU's memory is full: use a smaller batch or model, or ask for a larger portion of the "
    "GPU."
)
_GPU_UNUSABLE = "it could not use a GPU"
_GPU_UNUSABLE_HELP = (
    "The GPU could not be used as the program wanted: check the GPU devices asked for, and that "
    "the image fits the driver."
)
_EXIT_LEAD = (
    r"(?:\bexitcode {0,4}: |exits with return code = |status failed cmd .{0,300} code "
    r"|\b(?:crash|di|end|exit|fail|finish|terminat)(?:e?d|s|es)? with (?:an? )?"
    r"(?:(?:exit|return|error|status) ?){0,2}(?:code|status)[ :=]{1,3})"
)
"""What stands before the signal of a process that a launcher lost, as a number.

A number alone, such as an "error code -4", may be anything's.
"""
_EXIT_END = r"\b(?:exit|return) ?(?:code|status)[ :=]{1,3}"
"""What may stand so before the number at the end of a line; it names no process."""


def _match_signals(*numbers: int) -> str:
    """Return a pattern for the codes of processes that these signals ended.

    Python has their numbers below zero, shells above 128.
    """
    return f"(?:{'|'.join(f'-{number}|{128 + number}' for number in numbers)})"


_TIMEOUT = r"timeout(?!s?\b ?(?:\(\w{1,4}\))?[:=]|s?\b (?:\d|is\b|of\b|set\b|to\b)|\w)"
"""A timeout that came, and not one that is configured."""
_SIGNAL_LEAD = r"(?:with|by) (?:<signals\.|signal )"
_XID_LEAD = r"(?:nvrm: xid|\bxid error|\bxid(?= ?\())(?: ?\([^)]{0,40}\))?[: ]+"
"""What stands before the number of an Xid, with the address of the device in brackets. Databases
call a transaction's number xid, too.
"""
_QUIET_LEVEL = re.compile(
    r"^.{0,60}?(?:\b(?:INFO|DEBUG)\b|(?:^|\[)I\d{3,4}[ \]]|(?:^|: )I (?=\S+/))"
)
"""A line that its writer took for no trouble; NCCL's alone tell of troubles at INFO."""
_WARNING_LEVEL = re.compile(
    r"^.{0,60}?(?:(?<!NCCL )\bWARN(?:ING)?\b"
    r"|\bW\d{4} |\[W\d{0,4}[ \]]|(?:^|: )W (?=\S+/)|Warning: )"
    r"|^\S{1,300}:\d+: \w{0,60}Warning: "
)
"""A line that its writer took for a warning; NCCL writes its errors so."""
_HANDLED = re.compile(
    r"\b(?:retrying|trying again|restarting (?:it|the)"
    r"|will (?:be )?(?:retr(?:y|ied)|restart(?:ed)?)"
    r"|(?:is|are|was|were) ignored|ignoring|as expected)\b",
    re.IGNORECASE,
)
"""A line that says itself that the program goes on."""
_BEARABLE = frozenset(
    {
        FailureCause.ACCESS,
        FailureCause.ARGUMENTS,
        FailureCause.CHECKPOINT,
        FailureCause.GPU_UNUSABLE,
        FailureCause.MISSING_COMMAND,
        FailureCause.MISSING_FILE,
        FailureCause.MISSING_MODULE,
        FailureCause.NETWORK,
        FailureCause.NOT_A_NUMBER,
        FailureCause.PERMISSION,
        FailureCause.PORT_TAKEN,
    }
)
"""Causes despite which a program that only warns of them goes on, such as an optional library."""
_XID = re.compile(rf"{_XID_LEAD}(\d{{1,3}})\b")

SIGNS: Sequence[FailureSign] = (
    build_sign(
        FailureCause.GPU_FAULT,
        rf"{_XID_LEAD}(?:{'|'.join(map(str, FATAL_XIDS))})\b",
        "its GPU is faulty",
        FAULT_HELP,
    ),
    build_sign(
        FailureCause.GPU_FAULT,
        r"(?<!\bno )(?<!\b0 )(?:uncorrectable ecc|double.?bit error)"
        r"|(?<!\bno )(?<!\b0 )(?<!correctable )ecc error",
        "the memory of its GPU is faulty: it could not correct an error (ECC)",
        FAULT_HELP,
    ),
    build_sign(
        FailureCause.GPU_FAULT,
        r"fallen off the bus|gpu is lost",
        "its GPU is gone from the bus of its node",
        FAULT_HELP,
    ),
    build_sign(
        FailureCause.GPU_FAULT,
        r"nvlink(?!.{0,60}\b(?:no|0) (?:error|failure)).{0,60}(?:error|fatal|failure)"
        r"|nvswitch.{0,40}fatal",
        "a link between the GPUs of its node is faulty (NVLink)",
        FAULT_HELP,
    ),
    build_sign(
        FailureCause.GPU_PROGRAM,
        rf"{_XID_LEAD}(?:{'|'.join(map(str, PROGRAM_XIDS))})\b"
        r"|illegal memory access|misaligned address|illegal instruction was encountered"
        r"|unspecified launch failure|cuda_error_launch_failed|memory access fault by gpu",
        "the program, or a library of it, used memory of the GPU that is not its own",
        "Run it with CUDA_LAUNCH_BLOCKING=1: the log then names the line that did it.",
    ),
    build_sign(
        FailureCause.GPU_PROGRAM,
        r"device-side assert|\.cuh?:\d+.{0,160}assertion .{1,200}fail",
        "a check of the program failed on the GPU",
        "Most often an index is out of its range, such as a label beyond the number of classes; "
        "with CUDA_LAUNCH_BLOCKING=1 the log names the line.",
    ),
    build_sign(
        FailureCause.GPU_MEMORY,
        r"\b(?:cuda|hip|xpu|npu) (?:error: |failure )?(?:\d+ )?'?out of memory"
        r"|cuda runtime error \(2\)|cuda_error_out_of_memory|cudaerrormemoryallocation"
        r"|(?<!ray\.exceptions\.)(?<!java\.lang\.)outofmemoryerror"
        r"|cublas_status_alloc_failed|cudnn_status_alloc_failed"
        r"|resource_exhausted: (?:out of memory|(?:failed|attempting) to (?:allocate|reserve))"
        r"|no available memory for the cache blocks"
        r"|oom when allocating tensor.{0,200}gpu|free memory on device .{0,80} is less than"
        r"|out of memory error on gpu",
        _GPU_MEMORY_FULL,
        _GPU_MEMORY_HELP,
    ),
    # TensorFlow names the device in a later line.
    build_sign(
        FailureCause.GPU_MEMORY,
        r"resourceexhaustederror(?!.{0,200}oom when allocating)",
        _GPU_MEMORY_FULL,
        _GPU_MEMORY_HELP,
        Weight.VAGUE,
    ),
    build_sign(
        FailureCause.SHARED_MEMORY,
        r"\bbus error(?:(?! [a-z])| encountered)|unable to (open|write to|allocate) .{0,40}shm"
        r"|insufficient shared memory|shm_open|failed to extend /dev/shm"
        rf"|error while creating shared memory|{_EXIT_LEAD}{_match_signals(7)}\b"
        r"|\(sigbus\) received",
        "its shared memory was full",
        (
            "Shared memory is full: turn on the larger shared memory, or use fewer data loader "
            "workers."
        ),
    ),
    build_sign(
        FailureCause.DISK_FULL,
        r"no space left on device|disk quota exceeded|pytorchstreamwriter failed writing"
        r"|\bunexpected pos \d+ vs \d+",
        "a disk was full",
        "A disk is full: write less, or to a larger volume.",
    ),
    build_sign(
        FailureCause.VOLUME,
        r"stale (?:nfs )?file handle|input/output error|remote i/o error"
        r"|(?<!\[errno 107\] )transport endpoint is not connected"
        r"|transport endpoint is not connected: '",
        "a volume, or what serves it, failed",
        "Run it again; if this repeats, tell whoever runs the storage about the volume.",
    ),
    build_sign(
        FailureCause.COLLECTIVES,
        r"\bibv_\w{1,40} failed with error cannot allocate memory",
        "it may not lock memory for InfiniBand",
        "Ask the administrator of the cluster to raise the limit of locked memory on the nodes.",
    ),
    build_sign(
        FailureCause.MEMORY,
        r"memoryerror|cannot allocate memory|std::bad_alloc|defaultcpuallocator"
        r"|node running low on memory|java\.lang\.outofmemoryerror|oom when allocating tensor"
        r"|detected \d+ oom.kill|exceeded k8s pod memory",
        "it got no more memory",
        "The memory is full: ask for more CPU memory, or load less of the data at once.",
    ),
    build_sign(
        FailureCause.PROCESS_LIMIT,
        r"too many open files|can't start new thread|fork: retry|"
        r"resource temporarily unavailable|received 0 items of ancdata",
        "it opened more files, or started more threads, than it may",
        "Use fewer workers of data loaders, or ask the administrator to raise the limit.",
    ),
    build_sign(
        FailureCause.CHECKPOINT,
        r"error\(s\) in loading state_dict|size mismatch for |unexpected key\(s\) in state_dict"
        r"|pytorchstreamreader|archive is corrupted|safetensorerror|unpicklingerror"
        r"|eoferror: ran out of input|storage has wrong size|unable to open table file"
        r"|not an sstable|truncated file\b|protobuf parsing failed"
        r"|(?:missing|unexpected) key in checkpoint|tree structures? do(?:es)? not match",
        "a checkpoint cannot be read, or is of another model",
        "Check that the checkpoint is whole, and that the model has the shape that it had.",
    ),
    build_sign(
        FailureCause.NOT_A_NUMBER,
        r"\bloss\b.{0,60}\b(?:is|became|was) (?:nan|inf(?:inite|inity)?)\b"
        r"|(?:found|detected) (?:nan|inf)s?\b(?! ?[:=])|nan or inf\b|(?<!_)non-?finite"
        r"|floatingpointerror|returned nan values|loss scale already at minimum"
        r"|minimum loss scale reached",
        "the loss, or what it is made of, is no number any more",
        "Lower the learning rate, clip gradients, or look for bad data; begin at a checkpoint "
        "before it.",
    ),
    *SERVICE_SIGNS,
    build_sign(
        FailureCause.COLLECTIVES,
        r"duplicate gpu detected|ncclinvalidusage|no socket interface found"
        r"|mismatched nccl version|nccl version mismatch",
        "its ranks cannot work together as they are set up (NCCL)",
        "Give each rank a GPU of its own and the same image, and leave the network interface to "
        "NCCL; NCCL_DEBUG=INFO says more.",
    ),
    build_sign(
        FailureCause.GPU_UNUSABLE,
        r"libcuda\.so\S{0,20}: cannot open|could not (?:load|open) [^:]{0,40}libcuda\.so",
        "its node gave it no driver of a GPU",
        "Ask for a GPU; if it has one, tell an administrator of the node.",
    ),
    build_sign(
        FailureCause.MISSING_MODULE,
        r"undefined symbol: |version [`'].{1,40}' not found \(required by"
        r"|may indicate binary incompatibility|cuda version .{1,40} does not match the version",
        "a library of its image does not fit another one",
        "Choose versions that are built for one another, such as a library that is built for this "
        "version of PyTorch and CUDA.",
    ),
    build_sign(
        FailureCause.MISSING_COMMAND,
        r"cuda_home (?:environment variable is not set|does not exist)|failed to find c compiler"
        r"|ninja is required",
        "it builds something for which its image has no compiler",
        "Choose an image with a compiler and the CUDA toolkit, or one where this is built already.",
    ),
    build_sign(
        FailureCause.MISSING_MODULE,
        r"modulenotfounderror|importerror|no module named"
        r"|error while loading shared libraries|cannot open shared object file"
        r"|failed to import \S{1,120} because of|no matching distribution found for"
        r"|could not find a version that satisfies",
        "its image lacks a module or a library",
        (
            "The image lacks a module that the program needs: add it to the image, or choose "
            "another image."
        ),
    ),
    build_sign(
        FailureCause.MISSING_FILE,
        r"no such file or directory|filenotfounderror|can't open file"
        r"|is the correct path to a directory containing|does not appear to have a file named"
        r"|is not a local folder and is not a valid model identifier"
        r"|\b(?:can't|cannot|could not|unable to) (?:find|open) (?:\w{1,20} ){0,2}"
        r"(?:file |'[^' ]{0,200}[./])",
        "a file or directory that it names is not there",
        (
            "A path does not exist in the pod: check the command, its arguments and where the "
            "volumes are mounted."
        ),
    ),
    build_sign(
        FailureCause.PERMISSION,
        r"permission denied|permissionerror|read-only file system",
        "it may not read or write a file",
        "The program may not use this file: check the volume's access and the user ID.",
    ),
    build_sign(
        FailureCause.ARGUMENTS,
        r"unrecognized arguments|error: argument |the following arguments are required"
        r"|unknown command line flag|no such option|unrecognized option|could not override '"
        r"|arguments are not used by the \w{0,40}argumentparser",
        "the program does not take its arguments",
        "Check the arguments of the command.",
    ),
    build_sign(
        FailureCause.CANNOT_START,
        r"exec format error|cannot execute binary file",
        "a program that it runs is not made for the processors of its node",
        "Build the image for the nodes' architecture, or choose nodes of another one.",
    ),
    build_sign(
        FailureCause.MISSING_COMMAND,
        r"command not found|executable file not found",
        "a command that it runs is not in its image",
        "The image has no such program: check the command.",
    ),
    build_sign(
        FailureCause.GPU_UNUSABLE,
        r"no kernel image is available|device kernel image is invalid",
        "its libraries are not made for this sort of GPU",
        "Choose an image whose libraries are built for these GPUs, or nodes with others.",
    ),
    build_sign(
        FailureCause.GPU_UNUSABLE,
        r"no cuda gpus are available|no nvidia driver|cuda driver version"
        r"|(?<!unhandled )cuda (?:runtime )?error\b(?! rate)|cuda unknown error"
        r"|failed to initialize nvml"
        r"|(?:cublas|cudnn|cusolver|cusparse)_status_(?!success)|invalid device ordinal"
        r"|nvidia driver on your system is too old|system not yet initialized"
        r"|not compiled with cuda|torch\.cuda\.is_available\(\) is false"
        r"|\bno (?:visible gpu|(?:supported|cuda-capable) devices? )"
        r"|unable to initialize backend '(?:cuda|gpu|rocm|tpu)'"
        r"|dnn library (?:is not found|initialization failed)"
        r"|\bcuda_error_(?!out_of_memory|launch_failed)|only supports? \w{1,20} gpus",
        _GPU_UNUSABLE,
        _GPU_UNUSABLE_HELP,
    ),
    # NCCL names the error of CUDA in another line.
    build_sign(
        FailureCause.GPU_UNUSABLE,
        r"unhandled cuda error|ncclunhandledcudaerror",
        _GPU_UNUSABLE,
        _GPU_UNUSABLE_HELP,
        Weight.VAGUE,
    ),
    build_sign(
        FailureCause.PORT_TAKEN,
        r"address already in use(?! check)|eaddrinuse",
        "another program has the port that it wanted",
        "Another program uses the port: let the training operator choose MASTER_PORT.",
    ),
    build_sign(
        FailureCause.ASKED_TO_END,
        r"signalexception: .{0,40}signal: (?:1|2|15)\b|received (?:1|2|15) death signal",
        "it was asked to end",
        "Look for what stopped it: an eviction, a preemption or another pod's failure.",
        Weight.ECHO,
    ),
    build_sign(
        FailureCause.LOST_PEERS,
        r"connection (reset|refused|closed|aborted)(?! (?:count|enabled|rate))"
        r"|broken pipe(?! (?:count|rat))"
        r"|connectionreseterror|connectionrefusederror|socket timeout"
        r"|rank \d+ (was lost|closed|is gone)|peer .{0,60}closed|gloo/transport"
        r"|store .{0,40}(timeout|timed out)"
        r"|rendezvous(?:timeout|connection|closed|gracefulexit)error"
        r"|diststoreerror|barrier timed out|horovod has been shut ?down|unavailableerror"
        r"|horovodinternalerror|(?:node|owner)diederror|could not find any running ray instance"
        r"|failed to connect to (?:all addresses|remote host|gcs)|lost communication with"
        r"|coordination.?service.{0,200}(?:error|unavailable|timeout)|another task died"
        r"|remote (?:task has failed|process exited)|failed to recv, got 0 bytes"
        r"|transport retry count exceeded|daemon has unexpectedly failed"
        r"|\b(?:allreduce|allgather|broadcast) failed"
        r"|got completion (?:from peer .{0,80})?with (?:error|status)|ncclremoteerror"
        rf"|(?:[nhr]|one)ccl(?!.{{0,80}}\bno error).{{0,80}}(?:(?<!dl)(?<!_)error(?!_)|abort(?!_)"
        rf"|timed out|unhandled|exception|{_TIMEOUT})"
        rf"|watchdog.{{0,80}}(?:operation timeout|{_TIMEOUT})"
        r"|(?:collective|operation) timeout\b(?!:? ?(?:\d|set|is|to|of|=))"
        r"|\btimeout at nccl work|distbackenderror|distnetworkerror",
        "it lost its peers",
        _PEERS,
        Weight.ECHO,
    ),
    # NCCL's watchdog ends a rank that lost its peers with SIGABRT, too.
    build_sign(
        FailureCause.CRASH,
        rf"{_EXIT_LEAD}{_match_signals(6)}\b|aborted \(core dumped\)|fatal python error: aborted"
        rf"|terminate called|\bsigabrt received\b|{_SIGNAL_LEAD}sigabrt\b|exited on signal 6\b",
        _CRASHED,
        _CRASH_HELP,
        Weight.AFTERMATH,
    ),
    build_sign(
        FailureCause.CRASH,
        r"(?<!on )segmentation fault\b(?:(?! [a-z])| (?:is detected|encountered|occurred|at ))"
        rf"|fatal python error: |\(core dumped|{_EXIT_LEAD}{_match_signals(4, 8, 11)}\b"
        rf"|{_SIGNAL_LEAD}sig(?:segv|ill|fpe)\b|exited on signal (?:4|8|11)\b"
        r"|\bsig(?:segv|ill|fpe)(?: (?:received|\(@)|\) received|\(-\d)"
        r"|exitcode=-sig(?:segv|ill|fpe)\b"
        r"|assertion [`'\"‘].{1,200}['\"’] failed|double free or corruption \("
        r"|corrupted (?:double-linked list|size vs|unsorted chunks)"
        r"|\b(?:free|malloc|realloc|munmap_chunk)\(\): ",
        _CRASHED,
        _CRASH_HELP,
    ),
    build_sign(
        FailureCause.KILLED,
        rf"^killed$|line \d+: +\d+ killed\b|out of memory: kill|{_EXIT_LEAD}{_match_signals(9)}\b"
        r"|\bsigkill(?:\) received|\(-9\))|exitcode=-sigkill\b"
        r"|exited on signal 9\b|killed by (?:signal: killed|sigkill)|\bkilledworker\b"
        rf"|{_SIGNAL_LEAD}sigkill\b",
        _KILLED,
        _KILLED_HELP,
    ),
    build_sign(
        FailureCause.CRASH,
        rf"{_EXIT_END}{_match_signals(4, 6, 8, 11)}\W{{0,3}}$",
        _CRASHED,
        _CRASH_HELP,
        Weight.VAGUE,
    ),
    build_sign(
        FailureCause.KILLED,
        rf"{_EXIT_END}{_match_signals(9)}\W{{0,3}}$",
        _KILLED,
        _KILLED_HELP,
        Weight.VAGUE,
    ),
)

_LOOKAROUND = re.compile(r"\(\?<?[=!](?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)")
_GAP = re.compile(r"\{([01]),\d+\}")


@functools.cache
def _compile_quick() -> tuple[Any, Sequence[tuple[Any, FailureSign]]]:
    """Return an expression that tells of most lines that they have no sign, and one for each sign.

    RE2 takes microseconds for it where `re`, which tries each alternative at each place, takes a
    millisecond. It knows no lookarounds, and bounds cost it memory: without both more lines match.
    """
    patterns = [_GAP.sub(_widen_gap, _LOOKAROUND.sub("", sign.pattern.pattern)) for sign in SIGNS]
    each = [(re2.compile(pattern), sign) for pattern, sign in zip(patterns, SIGNS, strict=True)]
    return re2.compile("|".join(patterns)), each


def _widen_gap(gap: re.Match[str]) -> str:
    return "*" if gap[1] == "0" else "+"


def is_below_error(text: str) -> bool:
    """Return whether the writer of a line took it for less than an error."""
    return bool(_QUIET_LEVEL.match(text) or _WARNING_LEVEL.match(text))


def find_sign(text: str) -> FailureSign | None:
    """Return the first sign that a line has; None without one."""
    lower = text.lower()
    is_quiet = _QUIET_LEVEL.match(text) is not None
    if is_quiet and "NCCL" not in text:
        return None
    any_sign, signs = _compile_quick()
    if not any_sign.search(lower) or _HANDLED.search(text):
        return None
    is_bearable = is_quiet or _WARNING_LEVEL.match(text) is not None
    return next(
        (
            sign
            for quick, sign in signs
            if not (is_bearable and sign.cause in _BEARABLE)
            and quick.search(lower)
            and sign.pattern.search(lower)
        ),
        None,
    )


def describe_sign(sign: FailureSign, line: str) -> str:
    """Return the meaning of a sign in a line; with its number where it is an Xid."""
    xid = _XID.search(line.lower())
    number = int(xid[1]) if xid else 0
    meaning = FATAL_XIDS.get(number) or PROGRAM_XIDS.get(number)
    return f"{sign.words}: Xid {number}, {meaning}" if meaning else sign.words
