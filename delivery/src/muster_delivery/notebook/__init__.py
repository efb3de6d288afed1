"""`%%muster` and `#pragma taas`: a cell of a notebook as a workload. The only part with IPython."""
