"""The code of a workload as the arguments of its command: no image has to be built for it."""

from __future__ import annotations

import base64
import zlib

from muster_delivery.notebook.errors import NotebookError

LARGEST_ARGUMENT = 96 << 10
"""Linux takes no argument of 128 KiB or more (MAX_ARG_STRLEN)."""
COMMAND = "python"
BOOTSTRAP = (
    "import base64,os,sys,tempfile,zlib;"
    "path=os.path.join(tempfile.mkdtemp(),'notebook.py');"
    "open(path,'wb').write(zlib.decompress(base64.b64decode(sys.argv[1])));"
    "os.execv(sys.executable,[sys.executable,'-u',path])"
)
"""Writes the code into a file and runs that, so that tracebacks and processes find its lines."""


def build_arguments(code: str) -> str:
    """Return the arguments that run a code with `python`. Raises NotebookError where too large."""
    packed = base64.b64encode(zlib.compress(code.encode(), 9)).decode()
    if len(packed) > LARGEST_ARGUMENT:
        raise NotebookError(
            f"The code has {len(code.encode()):,} bytes, packed {len(packed):,}; a workload takes "
            f"{LARGEST_ARGUMENT:,}. Put what is large into a file that the workload reads, or into "
            "its image."
        )
    return f'-c "{BOOTSTRAP}" {packed}'
