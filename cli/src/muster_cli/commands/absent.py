"""What Run:ai's and Arena's command lines have and Muster does not: refused by name, with why."""

_NO_SHELL = "Muster opens no connection into pods yet."

ABSENT_COMMANDS = {
    "bash": (_NO_SHELL, "`muster logs` shows what a pod writes, `muster why` why it waits."),
    "exec": (_NO_SHELL, "`muster logs` shows what a pod writes, `muster why` why it waits."),
    "attach": (_NO_SHELL, "`muster logs NAME -f` follows what a pod writes."),
    "port-forward": (_NO_SHELL, "`kubectl port-forward` does it, with the rights in the cluster."),
    "update": (
        "The command line does not replace itself.",
        "It is updated as it was installed: `pip install --upgrade`, or `make up` after a pull.",
    ),
}
"""Each command with why it is not there, and what to use instead."""
