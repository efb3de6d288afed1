"""The two calls outside a workload of Muster change nothing."""

import muster_delivery
import taas


def test_outside_muster_the_loader_is_itself() -> None:
    loader = [[1, 2], [3]]
    assert muster_delivery.register(loader) is loader
    muster_delivery.unregister(loader)
    assert loader == [[1, 2], [3]]


def test_the_alias_offers_the_same_calls() -> None:
    assert taas.register is muster_delivery.register
    assert taas.unregister is muster_delivery.unregister
