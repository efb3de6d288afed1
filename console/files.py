"""Files of the data directory that only their owner may read."""

import os
import tempfile
from pathlib import Path


def write_private(file: Path, text: str) -> None:
    """Replace the file's text atomically, with mode 600: nobody ever sees half of it."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w") as out:
            out.write(text)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
