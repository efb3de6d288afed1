"""The program of an rclone container without a command: the machine's rclone with the container's
arguments.
"""

import os
import shutil
import sys


def main() -> None:
    if shutil.which("rclone") is None:
        print(
            (
                "rclone is not on this machine, where localkube runs the commands of pods: "
                "install the package rclone"
            ),
            file=sys.stderr,
        )
        sys.exit(127)
    os.execvp("rclone", ["rclone", *sys.argv[1:]])  # noqa: S606 - this is what the image does


if __name__ == "__main__":
    main()
