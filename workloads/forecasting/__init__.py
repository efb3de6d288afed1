"""Forecasts of starts: what the simulator is told of a cluster, and what is kept of its answers."""

from workloads.forecasting.cluster_forecast import forecast_cluster

__all__ = ["forecast_cluster"]
