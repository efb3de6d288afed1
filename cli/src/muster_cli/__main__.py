"""The entry of `muster`."""

from typing import NoReturn

from muster_cli.commands.root import root
from muster_cli.program import run_program


def main() -> NoReturn:
    """Run the command that the arguments name, and exit."""
    run_program(root, "muster")


if __name__ == "__main__":
    main()
