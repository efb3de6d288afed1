"""Following on its own thread, as the console does, so that a test can wait for events."""

import threading
import time
from collections.abc import Callable
from typing import Any

from clusters.kube import watch
from clusters.kube.client import Client
from clusters.kube.errors import KubeError
from clusters.kube.frames import UnreadableObject
from clusters.kube.resources import PODS, Resource
from clusters.kube.watch import Listing, ObjectChange, WatchFailed, WatchTimings

CHANGE_SIGNS = {"ADDED": "+", "MODIFIED": "~", "DELETED": "-"}
QUICK_TIMINGS = WatchTimings(watch=2, slack=1.0, first_retry=0.02, longest_retry=0.1)


class Following:
    """Collects what `follow` yields. Use it in a with block, whose end stops the following;
    `stopped_in` is the seconds that took.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource = PODS,
        *,
        patience: WatchTimings = QUICK_TIMINGS,
        **options: Any,
    ) -> None:
        self.items: list[Any] = []
        self.raised: KubeError | None = None
        self.stopped_in = 0.0
        self.stop = threading.Event()
        self._arrived = threading.Condition()
        self._items = watch.follow(client, resource, stop=self.stop, timings=patience, **options)
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
        assert self.wait_end(), "it does not stop"
        self.stopped_in = time.monotonic() - began

    def wait_for(self, wanted: Callable[["Following"], Any], within: float = 45.0) -> Any:
        """Wait until `wanted` accepts what has come so far, and return its answer."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: wanted(self), within), (
                f"it did not come; what came: {self.items} {self.raised!r}"
            )
            return wanted(self)

    def wait_end(self, within: float = 30.0) -> bool:
        self._thread.join(within)
        return not self._thread.is_alive()

    @property
    def summary(self) -> list[str]:
        """What came, in short: `[a b]`, `+a`, `~a`, `-a`, `@version`, `lost`."""
        return [summarize(item) for item in self.items]

    @property
    def failures(self) -> list[WatchFailed]:
        return [item for item in self.items if isinstance(item, WatchFailed)]


def summarize(item: Any) -> str:
    """Return one item as `summary` writes it."""
    if isinstance(item, Listing):
        return f"[{' '.join(sorted(found['metadata']['name'] for found in item.items))}]"
    if isinstance(item, ObjectChange):
        return f"{CHANGE_SIGNS[item.type]}{item.object['metadata']['name']}"
    if isinstance(item, WatchFailed):
        return "lost"
    return f"?{item.name}" if isinstance(item, UnreadableObject) else f"@{item.version}"
