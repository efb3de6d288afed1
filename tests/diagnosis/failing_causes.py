"""Causes for which a workload fails by a line of its log, and what is to be said of each.

The master has rank 0, the worker rank 1.
"""

from collections.abc import Sequence

from tests.diagnosis.cluster_states import end_pods
from tests.diagnosis.injected import InjectedCause

TRACE = ("Traceback (most recent call last):", '  File "train.py", line 3, in <module>')


def _fail_by_line(
    name: str, line: str, cause: str, words: str, help: str, code: int = 1
) -> InjectedCause:
    """Return the cause of a worker that ends with this line and code, while the master runs."""
    end = (
        "its command was not found (exit code 127)"
        if code == 127
        else (f"the program ended with exit code {code}")
    )
    return InjectedCause(
        name,
        end_pods(worker=code),
        f"Worker 0 (rank 1) failed first: {end}, because {words}.",
        help,
        cause,
        1,
        "likely",
        logs={"worker": (*TRACE, line) if "Error: " in line else ("step 7", line)},
    )


FAULTY = "tell an administrator of the node"
BY_LINE: Sequence[InjectedCause] = (
    _fail_by_line(
        "missing module",
        "ModuleNotFoundError: No module named 'apex'",
        "missing-module",
        "its image lacks a module or a library",
        "add it to the image",
    ),
    _fail_by_line(
        "missing library",
        "python: error while loading shared libraries: libmpi.so.40: cannot open shared object "
        "file: No such file or directory",
        "missing-module",
        "its image lacks a module or a library",
        "add it to the image",
        127,
    ),
    _fail_by_line(
        "missing file",
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'",
        "missing-file",
        "a file or directory that it names is not there",
        "where the volumes are mounted",
    ),
    _fail_by_line(
        "permission",
        "PermissionError: [Errno 13] Permission denied: '/data/out'",
        "permission",
        "it may not read or write a file",
        "the user ID",
    ),
    _fail_by_line(
        "arguments",
        "train.py: error: unrecognized arguments: --rate 3",
        "arguments",
        "the program does not take its arguments",
        "Check the arguments",
        2,
    ),
    _fail_by_line(
        "memory that the machine refuses",
        "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 8000000000 bytes",
        "memory",
        "it got no more memory",
        "ask for more CPU memory",
    ),
    _fail_by_line(
        "disk that is full",
        "OSError: [Errno 28] No space left on device",
        "disk-full",
        "a disk was full",
        "to a larger volume",
    ),
    _fail_by_line(
        "shared memory that is full",
        "RuntimeError: unable to write to file </torch_1_2>: insufficient shared memory (shm)",
        "shared-memory",
        "its shared memory was full",
        "turn on the larger shared memory",
    ),
    _fail_by_line(
        "port that is taken",
        "OSError: [Errno 98] Address already in use",
        "port-taken",
        "another program has the port that it wanted",
        "choose MASTER_PORT",
    ),
    _fail_by_line(
        "open files",
        "OSError: [Errno 24] Too many open files: '/data/7'",
        "process-limit",
        "it opened more files, or started more threads, than it may",
        "Use fewer workers of data loaders",
    ),
    _fail_by_line(
        "memory of the GPU",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
        "gpu-memory",
        "its GPU's memory was full",
        "use a smaller batch",
    ),
    _fail_by_line(
        "assert on the GPU",
        "RuntimeError: CUDA error: device-side assert triggered",
        "gpu-program",
        "a check of the program failed on the GPU",
        "an index is out of its range",
    ),
    _fail_by_line(
        "illegal access on the GPU",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "gpu-program",
        "the program, or a library of it, used memory of the GPU that is not its own",
        "CUDA_LAUNCH_BLOCKING=1",
    ),
    _fail_by_line(
        "Xid of a program",
        "NVRM: Xid (PCI:0000:3b:00): 31, pid=77, name=python, MMU Fault",
        "gpu-program",
        "the program, or a library of it, used memory of the GPU that is not its own: Xid 31, an "
        "access to memory that is not the program's",
        "CUDA_LAUNCH_BLOCKING=1",
    ),
    _fail_by_line(
        "Xid 79",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.",
        "gpu-fault",
        "its GPU is faulty: Xid 79, the device has fallen off the bus",
        FAULTY,
    ),
    _fail_by_line(
        "Xid 94",
        "kernel: NVRM: Xid (PCI:0000:65:00): 94, pid=1234, Contained: SM (0x1)",
        "gpu-fault",
        "its GPU is faulty: Xid 94, a contained memory error",
        FAULTY,
    ),
    _fail_by_line(
        "ECC of the GPU",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "gpu-fault",
        "the memory of its GPU is faulty: it could not correct an error (ECC)",
        FAULTY,
    ),
    _fail_by_line(
        "GPU that is gone",
        "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost. Reboot the "
        "system to recover this GPU",
        "gpu-fault",
        "its GPU is gone from the bus of its node",
        FAULTY,
    ),
    _fail_by_line(
        "NVLink",
        "NVLink error: fatal error detected on link 3",
        "gpu-fault",
        "a link between the GPUs of its node is faulty (NVLink)",
        FAULTY,
    ),
    _fail_by_line(
        "no GPU",
        "RuntimeError: No CUDA GPUs are available",
        "gpu-unusable",
        "it could not use a GPU",
        "check the GPU devices asked for",
    ),
    _fail_by_line(
        "GPU of another sort",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "gpu-unusable",
        "its libraries are not made for this sort of GPU",
        "built for these GPUs",
    ),
    _fail_by_line(
        "no driver",
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
        "gpu-unusable",
        "its node gave it no driver of a GPU",
        "Ask for a GPU",
    ),
    _fail_by_line(
        "two ranks on a GPU",
        "RuntimeError: NCCL error: Duplicate GPU detected : rank 0 and rank 1 both on CUDA device "
        "3b000",
        "collectives",
        "its ranks cannot work together as they are set up (NCCL)",
        "a GPU of its own",
    ),
    _fail_by_line(
        "no interface for NCCL",
        "node1:1:1 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
        "collectives",
        "its ranks cannot work together as they are set up (NCCL)",
        "the network interface",
    ),
    _fail_by_line(
        "name that is not known",
        "socket.gaierror: [Errno -2] Name or service not known",
        "network",
        "it knows no address of a name",
        "look whether the master ended first",
    ),
    _fail_by_line(
        "address that is not reached",
        "OSError: [Errno 101] Network is unreachable",
        "network",
        "it does not reach an address, or does not trust who answers there",
        "a proxy may be needed",
    ),
    _fail_by_line(
        "login that is refused",
        "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://models",
        "access",
        "a service refused it: its login is missing or may not do this",
        "Check the credential",
    ),
    _fail_by_line(
        "checkpoint of another model",
        "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for fc.weight",
        "checkpoint",
        "a checkpoint cannot be read, or is of another model",
        "the shape that it had",
    ),
    _fail_by_line(
        "loss that is no number",
        "ValueError: loss is nan at step 812",
        "not-a-number",
        "the loss, or what it is made of, is no number any more",
        "Lower the learning rate",
    ),
    _fail_by_line(
        "command in a script",
        "run.sh: line 3: nvcc: command not found",
        "missing-command",
        "a command that it runs is not in its image",
        "check the command",
    ),
    _fail_by_line(
        "process that torchrun lost to SIGKILL",
        "E1121 10:00:01 1 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: "
        "-9) local_rank: 0 (pid: 42) of binary: /usr/bin/python",
        "killed",
        "something killed it",
        "most often the memory was full",
    ),
    _fail_by_line(
        "process of a data loader that was killed",
        "RuntimeError: DataLoader worker (pid 123) is killed by signal: Killed.",
        "killed",
        "something killed it",
        "most often the memory was full",
    ),
    _fail_by_line(
        "memory of Java",
        "java.lang.OutOfMemoryError: Java heap space",
        "memory",
        "it got no more memory",
        "ask for more CPU memory",
    ),
    _fail_by_line(
        "memory of a GPU for TensorFlow",
        "ResourceExhaustedError: OOM when allocating tensor with shape[64,512] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
        "gpu-memory",
        "its GPU's memory was full",
        "use a smaller batch",
    ),
    _fail_by_line(
        "memory that may not be locked",
        "NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
        "collectives",
        "it may not lock memory for InfiniBand",
        "the limit of locked memory",
    ),
    _fail_by_line(
        "driver that was exchanged",
        "Failed to initialize NVML: Driver/library version mismatch",
        "gpu-unusable",
        "it could not use a GPU",
        "fits the driver",
    ),
    _fail_by_line(
        "key of SSH that is refused",
        "Permission denied (publickey).",
        "access",
        "a service refused it: its login is missing or may not do this",
        "Check the credential",
        255,
    ),
    _fail_by_line(
        "program for other processors",
        "exec /usr/bin/python: exec format error",
        "cannot-start",
        "a program that it runs is not made for the processors of its node",
        "nodes' architecture",
    ),
    _fail_by_line(
        "memory of the GPU that NCCL wants",
        "n3:30:66 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'",
        "gpu-memory",
        "its GPU's memory was full",
        "use a smaller batch",
    ),
    _fail_by_line(
        "memory of a GPU of old CUDA",
        "RuntimeError: cuda runtime error (2) : out of memory at THCStorage.cu:58",
        "gpu-memory",
        "its GPU's memory was full",
        "use a smaller batch",
    ),
    _fail_by_line(
        "launch that failed",
        "  what():  CUDA error: unspecified launch failure",
        "gpu-program",
        "the program, or a library of it, used memory of the GPU that is not its own",
        "CUDA_LAUNCH_BLOCKING=1",
    ),
    _fail_by_line(
        "access on a GPU of AMD",
        "Memory access fault by GPU node-2 (Agent handle: 0x55fea5) on address 0x7fc13.",
        "gpu-program",
        "the program, or a library of it, used memory of the GPU that is not its own",
        "CUDA_LAUNCH_BLOCKING=1",
    ),
    _fail_by_line(
        "assertion of a kernel",
        "/opt/ATen/native/cuda/Indexing.cu:1284: indexSelectLargeIndex: block: [37,0,0], "
        "thread: [9,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
        "gpu-program",
        "a check of the program failed on the GPU",
        "CUDA_LAUNCH_BLOCKING=1",
    ),
    _fail_by_line(
        "library of the GPU that failed",
        "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "gpu-unusable",
        "it could not use a GPU",
        "fits the driver",
    ),
    _fail_by_line(
        "driver that is too old",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
        "gpu-unusable",
        "it could not use a GPU",
        "fits the driver",
    ),
    _fail_by_line(
        "PyTorch without CUDA",
        "AssertionError: Torch not compiled with CUDA enabled",
        "gpu-unusable",
        "it could not use a GPU",
        "fits the driver",
    ),
    _fail_by_line(
        "call of CUDA that NCCL lost",
        "ncclUnhandledCudaError: Call to CUDA function failed.",
        "gpu-unusable",
        "it could not use a GPU",
        "fits the driver",
    ),
    _fail_by_line(
        "shared memory of NCCL",
        "Error while creating shared memory segment /dev/shm/nccl-ab12 (size 9637888)",
        "shared-memory",
        "its shared memory was full",
        "larger shared memory",
    ),
    _fail_by_line(
        "bus error that torchrun saw",
        "E1121 10:00:01 1 api.py:874] failed (exitcode: -7) local_rank: 0 (pid: 42)",
        "shared-memory",
        "its shared memory was full",
        "larger shared memory",
    ),
    _fail_by_line(
        "disk that is full while a checkpoint is written",
        "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 921600 vs 921588",
        "disk-full",
        "a disk was full",
        "to a larger volume",
    ),
    _fail_by_line(
        "volume that is stale",
        "OSError: [Errno 116] Stale file handle: '/ckpt/optimizer.pt'",
        "volume",
        "a volume, or what serves it, failed",
        "whoever runs the storage",
    ),
    _fail_by_line(
        "memory that Slurm's limit ended",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=113.0.",
        "memory",
        "it got no more memory",
        "ask for more CPU memory",
    ),
    _fail_by_line(
        "descriptors of data loaders",
        "RuntimeError: received 0 items of ancdata",
        "process-limit",
        "it opened more files, or started more threads, than it may",
        "Use fewer workers of data loaders",
    ),
    _fail_by_line(
        "checkpoint that is empty",
        "EOFError: Ran out of input",
        "checkpoint",
        "a checkpoint cannot be read, or is of another model",
        "the shape that it had",
    ),
    _fail_by_line(
        "scale of the loss",
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore.",
        "not-a-number",
        "the loss, or what it is made of, is no number any more",
        "Lower the learning rate",
    ),
    _fail_by_line(
        "loss of Lightning",
        "ValueError: The loss returned in `training_step` is nan.",
        "not-a-number",
        "the loss, or what it is made of, is no number any more",
        "Lower the learning rate",
    ),
    _fail_by_line(
        "model behind a gate",
        "OSError: You are trying to access a gated repo.",
        "access",
        "a service refused it: its login is missing or may not do this",
        "Check the credential",
    ),
    _fail_by_line(
        "key of a tracker",
        "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login()",
        "access",
        "a service refused it: its login is missing or may not do this",
        "Check the credential",
    ),
    _fail_by_line(
        "bucket that is refused",
        "botocore.exceptions.ClientError: An error occurred (403) when calling the HeadObject "
        "operation: Forbidden",
        "access",
        "a service refused it: its login is missing or may not do this",
        "Check the credential",
    ),
    _fail_by_line(
        "hub that is not reached",
        "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in "
        "the disk cache and outgoing traffic has been disabled.",
        "network",
        "it does not reach an address, or does not trust who answers there",
        "a proxy may be needed",
    ),
    _fail_by_line(
        "hub that does not answer",
        "requests.exceptions.ReadTimeout: "
        "(ReadTimeoutError(\"HTTPSConnectionPool(host='hub.example', port=443): Read timed "
        'out."))',
        "network",
        "it does not reach an address, or does not trust who answers there",
        "a proxy may be needed",
    ),
    _fail_by_line(
        "library of another version",
        "ImportError: flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
        "missing-module",
        "a library of its image does not fit another one",
        "built for one another",
    ),
    _fail_by_line(
        "compiler",
        "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.",
        "missing-command",
        "it builds something for which its image has no compiler",
        "the CUDA toolkit",
    ),
    _fail_by_line(
        "tokenizer",
        "OSError: Can't load tokenizer for 'bert'. Otherwise, make sure 'bert' is the correct "
        "path to a directory containing all relevant files.",
        "missing-file",
        "a file or directory that it names is not there",
        "where the volumes are mounted",
    ),
    _fail_by_line(
        "flag of Abseil",
        "FATAL Flags parsing error: Unknown command line flag 'lrr'. Did you mean: lr ?",
        "arguments",
        "the program does not take its arguments",
        "Check the arguments",
    ),
    _fail_by_line(
        "option of Click",
        "Error: No such option: --lrr (Possible options: --lr)",
        "arguments",
        "the program does not take its arguments",
        "Check the arguments",
    ),
    _fail_by_line(
        "port that the store wants",
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any "
        "local network address. port: 29500, name: EADDRINUSE, message: address already in use",
        "port-taken",
        "another program has the port that it wanted",
        "choose MASTER_PORT",
    ),
    _fail_by_line(
        "process that DeepSpeed lost",
        "[2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['python', '-u', "
        "'main.py'] exits with return code = -9",
        "killed",
        "something killed it",
        "most often the memory was full",
    ),
    _fail_by_line(
        "process that Accelerate lost",
        "subprocess.CalledProcessError: Command '['python', 'train.py']' died with "
        "<Signals.SIGKILL: 9>.",
        "killed",
        "something killed it",
        "most often the memory was full",
    ),
    _fail_by_line(
        "process that Bash lost",
        "run.sh: line 28:  8156 Killed                  python3 main.py",
        "killed",
        "something killed it",
        "most often the memory was full",
    ),
    _fail_by_line(
        "heap that is broken",
        "munmap_chunk(): invalid pointer: 0x00007fa5380304b0",
        "crash",
        "it crashed in native code",
        "the versions of its libraries",
    ),
    _fail_by_line(
        "signal that a process of Ray got",
        "(Worker pid=9, ip=10.0.0.7) *** SIGSEGV received at time=1741149596 on cpu 63 ***",
        "crash",
        "it crashed in native code",
        "the versions of its libraries",
    ),
)
