"""Following on a thread of its own, as the console does, so that a test can wait for what comes."""

import threading
import time
from collections.abc import Callable
from typing import Any

from clusters.kube import watch
from clusters.kube.client import Client
from clusters.kube.errors import KubeError
from clusters.kube.frames import Unreadable
from clusters.kube.resources import PODS, Resource
from clusters.kube.watch import Change, Listing, Lost, Patience

SIGNS = {"ADDED": "+", "MODIFIED": "~", "DELETED": "-"}
BRISK = Patience(watch=2, slack=1.0, first=0.02, most=0.1)


class Following:
    """Collects what `follow` yields. Use it in a with block: its end stops the following;
    `stopped_in` is how long that took.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource = PODS,
        *,
        patience: Patience = BRISK,
        **options: Any,
    ) -> None:
        self.items: list[Any] = []
        self.raised: KubeError | None = None
        self.stopped_in = 0.0
        self.stop = threading.Event()
        self._arrived = threading.Condition()
        self._items = watch.follow(client, resource, stop=self.stop, patience=patience, **options)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            for item in self._items:
                with self._arrived:
                    self.items.append(item)
                    self._arrived.notify_all()
        except KubeError as error:
            self.raised = error
        with self._arrived:
            self._arrived.notify_all()

    def __enter__(self) -> "Following":
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop.set()
        began = time.monotonic()
        assert self.ended(), "it does not stop"
        self.stopped_in = time.monotonic() - began

    def until(self, wanted: Callable[["Following"], Any], within: float = 15.0) -> Any:
        """Wait until `wanted` says yes to what has come so far, and give its answer."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: wanted(self), within), (
                f"it did not come; what came: {self.items} {self.raised!r}"
            )
            return wanted(self)

    def ended(self, within: float = 10.0) -> bool:
        self._thread.join(within)
        return not self._thread.is_alive()

    @property
    def told(self) -> list[str]:
        """What came, in short: `[a b]`, `+a`, `~a`, `-a`, `@version`, `lost`."""
        return [short(item) for item in self.items]

    @property
    def lost(self) -> list[Lost]:
        return [item for item in self.items if isinstance(item, Lost)]


def short(item: Any) -> str:
    """One item as `told` writes it."""
    if isinstance(item, Listing):
        return f"[{' '.join(sorted(found['metadata']['name'] for found in item.items))}]"
    if isinstance(item, Change):
        return f"{SIGNS[item.type]}{item.object['metadata']['name']}"
    if isinstance(item, Lost):
        return "lost"
    return f"?{item.name}" if isinstance(item, Unreadable) else f"@{item.version}"
