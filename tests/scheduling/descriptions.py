"""States and decisions in few lines, for the messages of failures."""

from scheduling import GPU, ClusterState, Decision


def describe_state(state: ClusterState) -> str:
    """Return a state in few lines."""
    lines = [f"now {state.now}"]
    lines += [f"{node.name} {dict(node.allocatable)} {node.max_pods}" for node in state.nodes]
    for queue in state.queues:
        bound = queue.bounds[GPU]
        lines.append(
            f"{queue.name} < {queue.parent} quota {bound.quota} limit {bound.limit} "
            f"weight {bound.weight} priority {queue.priority} "
            f"runtimes {queue.preempt_min_runtime} {queue.reclaim_min_runtime}"
        )
    for gang in state.gangs:
        pods = [f"{pod.node or '-'}{'!' if pod.is_leaving else ''}" for pod in gang.pods]
        shape = gang.pods[0].shape
        lines.append(
            f"{gang.key} in {gang.queue} min {gang.min_member} priority {gang.priority} "
            f"{gang.preemptibility.value} created {gang.created_at} started {gang.started_at} "
            f"delay {gang.preemption_delay} {dict(shape.amounts)} {shape.share} {pods}"
        )
    return "\n".join(lines)


def describe_decision(decision: Decision) -> str:
    """Return a decision in few lines."""
    lines = [f"bind {each.pod} to {each.node} {each.devices}" for each in decision.bindings]
    lines += [f"nominate {each.pod} for {each.node}" for each in decision.nominations]
    lines += [
        f"evict {each.pod} by {each.action.value} for {each.for_gang}"
        for each in decision.evictions
    ]
    lines += [
        f"refuse {key}: {refusal.reason}: {refusal.message}"
        for key, refusal in (decision.refusals or {}).items()
    ]
    return "\n".join(lines)
