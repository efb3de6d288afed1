"""What goes wrong with a delivery, for the person whose script it is."""


class DeliveryError(RuntimeError):
    """The delivery cannot go on; the text says why and what to do."""


class LoadFailed(DeliveryError):
    """The loader raised on a data worker; the text ends with its traceback."""


class EpochOver(Exception):
    """The rank has been handed all batches of the epoch."""
