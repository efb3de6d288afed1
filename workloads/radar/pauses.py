"""Lines after which a rank is silent for long and healthy: it saves, evaluates, compiles. Pure."""

import re

_PAUSE = re.compile(
    r"\b(?:sav(?:e|es|ed|ing)|writ(?:e|es|ing)|checkpoint\w*|eval|evaluat\w+|val|validat\w+|test(?:s|ing)"
    r"|compil\w+|warm(?:ing)?[ -]?up|download\w*|load(?:s|ing)|tokeniz\w+|prepar\w+|upload\w*"
    r"|sync(?:s|ing)|restor\w+|resum\w+|generat\w+|export\w*)\b",
    re.IGNORECASE,
)
MOST_CHARACTERS = 400


def tells_pause(line: str) -> bool:
    """Tell whether a rank may well be silent for long after this line."""
    return _PAUSE.search(line[:MOST_CHARACTERS]) is not None
