"""What `up` keeps of an installation from run to run: its ports and passwords, in STATE_FILE of its
data directory. Commands beside it find its Redis there.
"""

import json
from pathlib import Path

from console.redis_server import RedisServer

STATE_FILE = "up.json"
_STATE_KEYS = ("redis_port", "redis_password", "localkube_port", "follower")


def load_state(file: Path) -> dict[str, str]:
    """Load the kept ports and passwords; {} if the file is missing or unreadable.

    All of it can be made anew.
    """
    try:
        stored = json.loads(file.read_text())
        state = {name: str(stored[name]) for name in _STATE_KEYS if name in stored}
        return {
            name: text
            for name, text in state.items()
            if not name.endswith("_port") or int(text) in range(1, 65536)
        }
    except (OSError, ValueError, TypeError):
        return {}


def find_redis_url(data_dir: Path) -> str:
    """Return the address of the Redis that `up` last started there, "" where it started none."""
    state = load_state(data_dir / STATE_FILE)
    if "redis_port" not in state or "redis_password" not in state:
        return ""
    return RedisServer(data_dir / "redis", int(state["redis_port"]), state["redis_password"]).url
