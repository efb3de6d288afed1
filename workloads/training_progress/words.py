"""Progress in words, the same in lists, on pages and in answers."""

from workloads.training_progress.patterns import TITLES


def format_place(
    step: int | None, total: int | None, epoch: float | None, epochs: int | None
) -> str:
    """Format how far a training is: "120/1,000", "step 120", "epoch 3/10"; "" where unknown."""
    if step is not None:
        return f"{step:,}/{total:,}" if total is not None else f"step {step:,}"
    if epoch is not None:
        return f"epoch {epoch:g}/{epochs:,}" if epochs is not None else f"epoch {epoch:g}"
    return ""


def format_figure(number: float | None) -> str:
    """Format a loss or a rate with four digits; "" where there is none."""
    return "" if number is None else f"{number:.4g}"


def describe_loss(loss: float | None, *, is_bad: bool) -> str:
    """Describe a loss: its figure, or that it is no finite number; "" where none is known."""
    return "not a number" if is_bad else format_figure(loss)


def get_pattern_title(name: str) -> str:
    """Return a pattern's title; a name of another release stands for itself."""
    return TITLES.get(name, name)
