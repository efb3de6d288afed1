"""How many workers elastic workloads have: when Muster raises and lowers their number, and why."""
