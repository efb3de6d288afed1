"""The product's core: workloads, from submission over the cluster's view to what a person sees."""
