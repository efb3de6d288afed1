"""How far a training is, read from the lines of its log: patterns, readings, estimates. Pure."""

from workloads.training_progress.checkpoint_lines import tells_checkpoint
from workloads.training_progress.estimating import (
    Estimate,
    Point,
    add_point,
    estimate_rest,
    format_time,
)
from workloads.training_progress.lagging_lines import Lagging, may_name_lagging
from workloads.training_progress.loss_history import (
    LossHistory,
    LossPoint,
    decode_history,
    is_by_step,
)
from workloads.training_progress.parsing import (
    VARIABLE,
    BadPattern,
    LineParser,
    LineReading,
    check_own_pattern,
    compile_own_pattern,
)
from workloads.training_progress.patterns import OWN, PATTERN_NAMES, TITLES
from workloads.training_progress.readings import Metric, Reading
from workloads.training_progress.tracking import Place, RankState, find_place
from workloads.training_progress.words import (
    describe_loss,
    format_figure,
    format_place,
    get_pattern_title,
)

__all__ = [
    "OWN",
    "PATTERN_NAMES",
    "TITLES",
    "VARIABLE",
    "BadPattern",
    "Estimate",
    "Lagging",
    "LineParser",
    "LineReading",
    "LossHistory",
    "LossPoint",
    "Metric",
    "Place",
    "Point",
    "RankState",
    "Reading",
    "add_point",
    "check_own_pattern",
    "compile_own_pattern",
    "decode_history",
    "describe_loss",
    "estimate_rest",
    "find_place",
    "format_figure",
    "format_place",
    "format_time",
    "get_pattern_title",
    "is_by_step",
    "may_name_lagging",
    "tells_checkpoint",
]
