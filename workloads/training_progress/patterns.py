"""How frameworks write their progress: one table, an entry for each form of a line.

A line is of the first entry of which an expression matches. Expressions are RE2's; their groups are
named as `Metric` has them. METRICS are then looked for in the whole line, wherever they stand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?)\b)"
_BETWEEN = r"""['"]?(?:\s*[:=]\s*|\s+)['"\[(]*"""
"""What stands between a name and its number: `loss=`, `"loss": `, `loss `, `lr=[`."""
_BAR = r"\d{1,3}%\|[^|]*\|\s*"
"""The beginning of a bar of tqdm up to its count."""
_EQUAL_SIGNS = r"(?:\[[=>.\s]*\]|[━╸╺╍─ ]{3,})"
"""The bars of Keras 2, Keras 3 and Rich."""
OWN = "own"
TQDM = "tqdm"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One form of progress lines.

    `is_of_epoch` says that its steps count within an epoch, `first_epoch` is the number of the
    first epoch. A line in which `unless` matches is passed over, and so is one in which
    `other_work` matches and TRAINING_BAR does not. `is_beside_bar` says that a bar of another
    pattern may stand in the same line.
    """

    name: str
    title: str
    expressions: Sequence[str]
    is_of_epoch: bool = False
    first_epoch: int | None = None
    unless: str = ""
    other_work: str = ""
    is_beside_bar: bool = False


METRICS: Sequence[str] = (
    rf"(?i)(?:^|[^\w-])(?:(?:reduced_)?train(?:ing)?[_ ]?|lm[_ ]|total[_ ]|step_)?"
    rf"loss{_BETWEEN}(?:tensor\()?(?P<loss>{NUMBER})",
    rf"(?i)(?:^|[^\w])(?:lr|learning[_ ]rate){_BETWEEN}(?P<learning_rate>{NUMBER})",
    r"(?i)(?:^|[^\w]|curr|train_)(?:samples|examples|images|sequences)"
    rf"(?:[_ ]?per[_ ]?sec(?:ond)?|/s(?:ec(?:ond)?)?){_BETWEEN}(?P<samples_per_second>{NUMBER})",
    rf"(?i)(?P<samples_per_second>{NUMBER})\s*(?:samples|examples|images|sequences|imgs?)/s",
)
"""Metrics that may stand anywhere in a line of progress; of two for one metric the first holds."""

_EVALUATION = r"(?i)(?:valid|eval|test|predict|sanity)"
_EVALUATION_BAR = rf"{_EVALUATION}[^|]{{0,100}}?\d{{1,3}}%\|"
_OTHER_WORK = (
    r"(?i)(?:load|map|token|shard|fetch|infer|filter|split|cast|process|extract|generat|sav|cach|"
    r"reading|writing|files|dataset|captur|convert|compil|class +images)[^|]{0,100}?\d{1,3}%\||"
    r"<[\d:?]{1,12}, *(?:[\d.?]+ examples/s|[\d.?]+ ?[kmgt]?i?b/s|\d{6,}(?:\.\d+)?it/s)"
)
"""Descriptions of bars that are not about training steps, and rates of those that have none.

Whatever Hugging Face's datasets do to a dataset is in examples. torchvision downloads bytes, which
it calls iterations.
"""
TRAINING_BAR = r"(?i)^\W*(?:train|training|epoch)(?: on\b| *[:(\[]| *\d)"
"""How a bar begins that says itself that it is of a training."""

PATTERNS: Sequence[Pattern] = (
    Pattern(
        "megatron",
        "Megatron-LM",
        (r"\biteration\s+(?P<step>\d+)\s*/\s*(?P<total>\d+)\s*\|",),
    ),
    Pattern(
        "deepspeed",
        "DeepSpeed",
        (
            r"\[Rank \d+\] step=(?P<step>\d+), skipped=",
            r"epoch=\d+/micro_step=\d+/global_step=(?P<step>\d+),.*SamplesPerSec=",
            r"\[timer\.py:\d+:stop\] \d+/(?P<step>\d+), (?:RunningAvg)?SamplesPerSec="
            rf"(?P<samples_per_second>{NUMBER})",
            r"^\s*steps: (?P<step>\d+) loss: .* iter time \(s\): ",
        ),
        is_beside_bar=True,
    ),
    Pattern(
        "huggingface",
        "Hugging Face Trainer",
        (
            rf"\{{'loss': .*'epoch': '?(?P<epoch>{NUMBER})'?",
            rf"\{{'train_runtime': .*'epoch': '?(?P<epoch>{NUMBER})'?",
            r"\bTotal optimization steps = (?P<total>[\d,]+)",
            r"\bNum Epochs = (?P<epochs>[\d,]+)",
        ),
        is_beside_bar=True,
    ),
    Pattern(
        "lightning",
        "PyTorch Lightning",
        (
            rf"\bEpoch (?P<epoch>\d+):\s+{_BAR}(?P<step>\d+)/(?P<total>\d+) \[",
            rf"\bEpoch (?P<epoch>\d+)/\d+\s+{_EQUAL_SIGNS}\s*(?P<step>\d+)/(?P<total>\d+) ",
        ),
        is_of_epoch=True,
        first_epoch=0,
        unless=r"(?i)(?:valid|sanity|test|predict)[^|]{0,60}?\d{1,3}%\|",
    ),
    Pattern(
        "tqdm-epochs",
        "tqdm, a bar for each epoch",
        (
            rf"(?i)\bepoch:?\s*\[?(?P<epoch>\d+)\s*/\s*(?P<epochs>\d+)\]?:?\s+{_BAR}"
            r"(?P<step>\d+)/(?P<total>\d+) \[",
        ),
        is_of_epoch=True,
        unless=_EVALUATION,
    ),
    Pattern(
        "yolo",
        "Ultralytics YOLO",
        (
            rf"^\s*(?P<epoch>\d+)/(?P<epochs>\d+)\s+[\d.]+G\s[^|%]{{1,200}}:\s*"
            rf"(?:{_BAR}|\d{{1,3}}%\s+{_EQUAL_SIGNS}\s*)(?P<step>\d+)/(?P<total>\d+)\b",
        ),
        is_of_epoch=True,
    ),
    Pattern(
        TQDM,
        "tqdm",
        (rf"{_BAR}(?P<step>\d+)/(?P<total>\d+) \[",),
        unless=_EVALUATION_BAR,
        other_work=_OTHER_WORK,
    ),
    Pattern(
        "keras",
        "Keras",
        (
            r"^Epoch (?P<epoch>\d+)/(?P<epochs>\d+)\s*$",
            rf"^\s*(?P<step>\d+)/(?P<total>\d+)\s+{_EQUAL_SIGNS}",
            r"^\s*(?P<step>\d+)/(?P<total>\d+) - \d+m?s ",
        ),
        is_of_epoch=True,
        first_epoch=1,
    ),
    Pattern(
        "pytorch-example",
        "the examples of PyTorch",
        (
            r"\bTrain Epoch: (?P<epoch>\d+) \[(?P<step>\d+)/(?P<total>\d+) \(",
            r"^\s*loss: \S+\s+\[\s*(?P<step>\d+)/\s*(?P<total>\d+)\]",
            r"(?i)\bepoch:?\s*\[(?P<epoch>\d+)/(?P<epochs>\d+)\],?\s*(?:step|batch|iter(?:ation)?)"
            r":?\s*\[(?P<step>\d+)/(?P<total>\d+)\]",
        ),
        is_of_epoch=True,
        first_epoch=1,
        unless=_EVALUATION,
    ),
    Pattern(
        "imagenet-example",
        "the ImageNet example of PyTorch",
        (r"\bEpoch: \[(?P<epoch>\d+)\]\s*\[\s*(?P<step>\d+)/(?P<total>\d+)\]",),
        is_of_epoch=True,
        first_epoch=0,
    ),
    Pattern(
        "timm",
        "timm",
        (
            r"\bTrain: (?P<epoch>\d+) \[\s*(?P<step>\d+)/\s*(?P<total>\d+) .*?\bTime: [\d.]+s,"
            rf"\s*(?P<samples_per_second>{NUMBER})/s",
            r"\bTrain: (?P<epoch>\d+) \[\s*(?P<step>\d+)/\s*(?P<total>\d+) ",
        ),
        is_of_epoch=True,
        first_epoch=0,
    ),
    Pattern(
        "openmmlab-epochs",
        "MMEngine and MMCV, by epochs",
        (
            r"\bEpoch\(train\)\s+\[\s*(?P<epoch>\d+)\]\[\s*(?P<step>\d+)/(?P<total>\d+)\]",
            r"\bEpoch \[(?P<epoch>\d+)\]\[(?P<step>\d+)/(?P<total>\d+)\]\s+lr: ",
        ),
        is_of_epoch=True,
        first_epoch=1,
    ),
    Pattern(
        "openmmlab",
        "MMEngine and MMCV, by iterations",
        (
            r"\bIter\(train\)\s+\[\s*(?P<step>\d+)/(?P<total>\d+)\]",
            r"\bIter \[(?P<step>\d+)/(?P<total>\d+)\]\s+lr: ",
        ),
    ),
    Pattern(
        "fairseq",
        "fairseq",
        (r"\| epoch (?P<epoch>\d+):\s+(?P<step>\d+) / (?P<total>\d+) ",),
        is_of_epoch=True,
        first_epoch=1,
    ),
    Pattern(
        "estimator",
        "TensorFlow's Estimator",
        (rf"\bloss = (?P<loss>{NUMBER}), step = (?P<step>\d+)\b",),
    ),
    Pattern(
        "composer-epochs",
        "Composer, by epochs",
        (
            r"^\[epoch=(?P<epoch>\d+)(?:/(?P<epochs>\d+))?\]"
            r"\[batch=(?P<step>\d+)/(?P<total>\d+)\]:",
        ),
        is_of_epoch=True,
        first_epoch=1,
    ),
    Pattern(
        "composer",
        "Composer",
        (
            r"^\[batch=(?P<step>\d+)/(?P<total>\d+)\]:",
            rf"^\s*Train loss/train/total: (?P<loss>{NUMBER})",
            rf"^\s*Train throughput/samples_per_sec: (?P<samples_per_second>{NUMBER})",
            rf"^\s*Train lr-\w+/group0: (?P<learning_rate>{NUMBER})",
        ),
    ),
    Pattern(
        "boosting",
        "XGBoost and LightGBM",
        (
            r"^(?:\[[\d:]{8}\] )?\[(?P<step>\d+)\]\t+(?:train-(?:rmsle|rmse|mae|m?logloss|m?error):"
            rf"|training's (?:l1|l2|rmse|binary_logloss|multi_logloss): )(?P<loss>{NUMBER})",
            r"\[LightGBM\] \[Info\] Iteration:\s*(?P<step>\d+), training "
            rf"(?:l1|l2|rmse|binary_logloss|multi_logloss) : (?P<loss>{NUMBER})",
            r"^(?:\[[\d:]{8}\] )?\[(?P<step>\d+)\]\t+\w[\w ]{0,60}"
            r"(?:-[\w@-]{1,60}:|'s [\w@ ]{1,60}: )",
            r"\[LightGBM\] \[Info\] Iteration:\s*(?P<step>\d+), ",
        ),
        # METRICS would take a loss of validation for that of the training.
        unless=r"\]\t+(?:valid|eval|test)\w*'s loss: ",
    ),
    Pattern(
        "plain",
        "step … loss …",
        (
            r"(?i)\b(?:global[_ ])?(?:step|iter|iteration)s?\b\s*[:=#]?\s*\[?(?P<step>\d[\d,]*)"
            r"\s*(?:/|\bof\b)\s*(?P<total>\d[\d,]*)",
            r"(?i)\b(?:global[_ ])?(?:step|iter|iteration)s?\b\s*[:=#]?\s*\[?(?P<step>\d+)\b"
            r".*(?:loss|\blr\b|learning.rate|/s\b|per.sec)",
            r"^\w{1,40}: rank \d+ of \d+, (?P<total>\d+) steps$",
        ),
        unless=r"(?i)^[^\d]{0,40}\b(?:valid|eval)|\bsaving dict for global step\b",
    ),
    Pattern(
        "plain-epochs",
        "epoch … loss …",
        (
            rf"(?i)\bepochs?\b\s*[:=#]?\s*\[?(?P<epoch>{NUMBER})\s*(?:/|\bof\b)\s*"
            r"(?P<epochs>\d+)\]?.*loss",
            rf"(?i)\bepochs?\b\s*[:=#]?\s*\[?(?P<epoch>{NUMBER})\]?.*loss",
        ),
        unless=r"(?i)(?:valid|eval|test)\w*[ _-]*(?:epoch|loss)\b.*$|\bvalid on\b",
    ),
    Pattern(
        "plain-loss",
        "loss …",
        (rf"(?i)(?:^|[^\w-])(?:train(?:ing)?[_ ])?loss\s*[:=]\s*{NUMBER}",),
        unless=r"(?i)(?:valid|eval|test|dev|best|\(val\)|saving dict for global step)",
    ),
)

ALIASES = {
    "step": ("step", "global_step", "iteration", "iter", "train_step", "num_steps"),
    "total": ("total", "total_steps", "max_steps", "num_training_steps", "train_iters"),
    "epoch": ("epoch",),
    "epochs": ("epochs", "num_epochs", "total_epochs", "max_epochs", "num_train_epochs"),
    "loss": ("loss", "train_loss", "train/loss", "training_loss", "lm loss", "lm_loss"),
    "samples_per_second": (
        "samples_per_second",
        "samples_per_sec",
        "train_samples_per_second",
        "samples/s",
        "throughput",
        "examples_per_second",
        "images_per_second",
    ),
    "learning_rate": ("learning_rate", "lr", "train/learning_rate", "train/lr"),
}
"""The keys of JSON lines by metric; of several the first that is there."""
JSON = Pattern("json", "JSON lines", ())

TITLES = {each.name: each.title for each in (*PATTERNS, JSON)} | {
    OWN: "the pattern of MUSTER_PROGRESS_PATTERN",
}
PATTERN_NAMES = tuple(TITLES)
HINT = r"(?i)loss|step|iter|epoch|\d%\||\d/\d|\d\]\t|^\s*Train (?:throughput/|lr-)"
"""What every line of progress has; of most other lines one search says that nothing is in them."""
