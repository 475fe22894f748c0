"""What was asked for: options before the command, and the environment variables behind them.

Parsed by hand: argparse costs 6 ms, and here a wrong option must not end the start of a job.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

__all__ = ["FORMATS", "OPTIONS", "POLICIES", "Settings", "parse_settings"]

POLICIES = ("off", "warn", "enforce")
FORMATS = ("text", "line", "json", "none")

#: Option -> (metavar, help). An option without metavar is a switch.
OPTIONS: Mapping[str, Tuple[str, str]] = {
    "--policy": (
        "off|warn|enforce",
        (
            "what an error does: nothing is checked; CMD runs all the same (default); CMD is "
            "refused with exit code 78; $ENVDOCTOR_POLICY"
        ),
    ),
    "--strict": (
        "",
        "with enforce: also refuse what is undetermined, and where envdoctor itself failed",
    ),
    "--lock": (
        "DIR",
        (
            "also compare environment and machine with this lock (written by 'envdoctor lock "
            "--output DIR')"
        ),
    ),
    "--baseline": (
        "FILE",
        (
            "what 'envdoctor bake' wrote (default: share/envdoctor/baseline.json of the "
            "environment, "
            "where it is there)"
        ),
    ),
    "--timeout": ("S", "seconds that the check may take (default: 5); $ENVDOCTOR_TIMEOUT"),
    "--trust-matrix": (
        "built-in|sha256:HEX",
        (
            "the matrix that may judge: the one that envdoctor carries, or the installed update of "
            "that digest (default: any); $ENVDOCTOR_TRUST_MATRIX"
        ),
    ),
    "--report": ("FILE", "write the report there as JSON, whole or not at all"),
    "--format": (
        "text|line|json|none",
        (
            "what goes to standard error: verdict and details (default), the verdict, all as JSON; "
            "$ENVDOCTOR_FORMAT"
        ),
    ),
}

_TIMEOUT = 5.0
_LONGEST = 600.0
_NO = ("", "0", "no", "off", "false")


class Settings:
    """What was asked for. ``troubles`` are the options and variables that mean nothing; their
    defaults stand.
    """

    __slots__ = (
        "baseline",
        "command",
        "disabled",
        "format",
        "lock",
        "policy",
        "report",
        "strict",
        "timeout",
        "troubles",
        "trust_matrix",
    )

    def __init__(self) -> None:
        self.policy = "warn"
        self.strict = False
        self.lock: Optional[str] = None
        self.baseline: Optional[str] = None
        self.timeout = _TIMEOUT
        self.report: Optional[str] = None
        self.trust_matrix = ""
        self.format = "text"
        self.disabled = False
        self.command: List[str] = []
        self.troubles: List[str] = []


def parse_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Return what was asked for; an option stands over its variable, ENVDOCTOR_DISABLE over
    everything. Never raises.

    The command is what follows the first ``--``, or begins with the first word that is no option.
    Where an option is unknown and there is no ``--``, nothing tells where the command begins, and
    there is none.
    """
    settings = Settings()
    settings.disabled = environment.get("ENVDOCTOR_DISABLE", "").lower() not in _NO
    own, settings.command, sure = _split(arguments)
    given: Dict[str, str] = {}
    for name, key in (
        ("ENVDOCTOR_POLICY", "--policy"),
        ("ENVDOCTOR_TIMEOUT", "--timeout"),
        ("ENVDOCTOR_FORMAT", "--format"),
        ("ENVDOCTOR_TRUST_MATRIX", "--trust-matrix"),
    ):
        if environment.get(name):
            _apply(settings, key, environment[name], name)
    words = iter(own)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in OPTIONS:
            settings.troubles.append(f"no such option: {name}")
            settings.command = settings.command if sure else []
        elif not OPTIONS[name][0]:
            if equals:
                settings.troubles.append(f"{name}: expected no value, found {value!r}")
            given[name] = ""
        else:
            text = value if equals else next(words, None)
            if text is None:
                settings.troubles.append(f"{name}: expected {OPTIONS[name][0]}, found nothing")
            else:
                given[name] = text
    for name, value in given.items():
        _apply(settings, name, value, name)
    return settings


def _split(arguments: Sequence[str]) -> Tuple[List[str], List[str], bool]:
    """Return our options, the command, and whether a ``--`` parts them."""
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--":
            return list(arguments[:position]), list(arguments[position + 1 :]), True
        if not word.startswith("-") or word == "-":
            if "--" in arguments[position:] and _unknown(arguments[:position]):
                end = position + list(arguments[position:]).index("--")
                return list(arguments[:end]), list(arguments[end + 1 :]), True
            return list(arguments[:position]), list(arguments[position:]), False
        position += 1 if "=" in word or not OPTIONS.get(word, ("",))[0] else 2
    return list(arguments), [], False


def _unknown(words: Sequence[str]) -> bool:
    """Tell whether an unknown option is among these words: the word behind it may be its value."""
    return any(word.startswith("-") and word.partition("=")[0] not in OPTIONS for word in words)


def _apply(settings: Settings, key: str, value: str, where: str) -> None:
    if key in _CHECKED:
        _CHECKED[key](settings, value, where)
    else:
        setattr(settings, key[2:], value if OPTIONS[key][0] else True)


def _apply_policy(settings: Settings, value: str, where: str) -> None:
    if value not in POLICIES:
        settings.troubles.append(f"{where}: expected one of {', '.join(POLICIES)}, found {value!r}")
        # Who wrote neither off nor warn has asked for more than to be warned.
        value = "warn" if value.strip().lower() in ("", "off", "warn") else "enforce"
    settings.policy = value


def _apply_format(settings: Settings, value: str, where: str) -> None:
    if value in FORMATS:
        settings.format = value
    else:
        settings.troubles.append(f"{where}: expected one of {', '.join(FORMATS)}, found {value!r}")


def _apply_timeout(settings: Settings, value: str, where: str) -> None:
    seconds = _seconds(value)
    if seconds is None:
        settings.troubles.append(
            f"{where}: expected seconds between 0.05 and {_LONGEST:g}, found {value!r}"
        )
    else:
        settings.timeout = seconds


def _apply_trust(settings: Settings, value: str, where: str) -> None:
    prefix, _, digest = value.partition(":")
    if value == "built-in" or (
        prefix == "sha256" and len(digest) == 64 and not digest.strip("0123456789abcdef")
    ):
        settings.trust_matrix = value
    else:
        # What is trusted is not known, so it is the least.
        settings.trust_matrix = "built-in"
        settings.troubles.append(
            f"{where}: expected built-in or sha256: and 64 hexadecimal digits, found {value!r}"
        )


#: Options whose value may mean nothing.
_CHECKED: Mapping[str, Callable[[Settings, str, str], None]] = {
    "--policy": _apply_policy,
    "--format": _apply_format,
    "--timeout": _apply_timeout,
    "--trust-matrix": _apply_trust,
}


def _seconds(text: str) -> Optional[float]:
    # As the script envdoctor-entrypoint reads it: no sign, no exponent.
    if not text.isascii() or not text.replace(".", "", 1).isdigit():
        return None
    seconds = float(text)
    return seconds if 0.05 <= seconds <= _LONGEST else None
