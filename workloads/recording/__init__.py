"""The time machine's record: what changed in queue, nodes and quotas, turn by turn."""
