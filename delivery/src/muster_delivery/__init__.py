"""Let data workers without GPUs load what the ranks of a training script train on.

`register` and `unregister` are all that a script needs; outside a workload of Muster with data
workers they change nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster_delivery.registration import register, unregister

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

VERSION = "0.1.0"
"""The version of this package, and of Muster whose environment variables it reads."""

__all__ = ["VERSION", "load_ipython_extension", "register", "unregister"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add `%%muster` and `#pragma taas` to a notebook: `%load_ext muster_delivery` calls this."""
    # Training images have no IPython.
    from muster_delivery.notebook.magics import MusterCommands

    MusterCommands(shell).register()
