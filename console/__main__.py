"""The command line: `python -m console up` runs everything on this machine.

`python -m console web` (worker, beat, follow, capture) runs one process in the foreground.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from console import keys, options, processes, up

USAGE = f"usage: python -m console up | {' | '.join(processes.PROCESS_NAMES)}"


def main(arguments: Sequence[str]) -> int:
    """Run the named command and return its exit status.

    2, with a line on stderr that says why, for wrong arguments, settings or keys.
    """
    if len(arguments) != 1 or arguments[0] not in ("up", *processes.PROCESS_NAMES):
        print(USAGE, file=sys.stderr)
        return 2
    os.umask(0o077)
    try:
        chosen = options.read_options()
        if refused := processes.find_refusals(chosen):
            raise options.BadOptions("\n".join(refused))
        if arguments[0] == "up":
            return up.main(chosen)
        keys.read_keys(chosen)
        _exec_command(
            processes.build_command(arguments[0], chosen), processes.build_environment(chosen)
        )
    except (options.BadOptions, keys.NoKeys) as refusal:
        print(f"Muster could not start. {refusal}", file=sys.stderr)
        return 2


def _exec_command(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by the command, under the same process id.

    So whoever started it can signal it and sees its exit status.
    """
    os.chdir(processes.BASE)
    os.execve(command[0], list(command), environment)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
