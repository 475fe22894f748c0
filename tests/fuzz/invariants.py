"""What holds for every input of every parser, and for all that is written of it."""

from __future__ import annotations

import re
import resource
import unicodedata
from typing import Callable, Iterable

from envdoctor.errors import EnvdoctorError, InternalFault

from ..time_taken import least_seconds

#: Secrets of shapes that are known wherever they stand; each is a line of its own.
SECRETS = (
    "HF_TOKEN=hf_QzPlantedSecretQz0123456789",
    "https://user:QzPlantedSecretQz0123456789@host.example/simple",
    '"api_key": "QzPlantedSecretQz0123456789"',
    "AKIAQZPLANTEDSECRET0",
)
_PLANTED = re.compile("QzPlanted|QZPLANTED")
SECONDS_PER_MB, BYTES_PER_MB = 2.0, 300 << 20
#: What any input may take besides: the clock of a busy machine, what a rule loads once.
_SECONDS, _BYTES = 1.0, 100 << 20


class Broken(AssertionError):
    """An input that breaks an invariant."""


def planted(data: bytes) -> str:
    """Return an input as text, with one of the secrets between two of its lines."""
    lines = data.decode("utf-8", "replace").split("\n")
    lines.insert(len(data) % (len(lines) + 1), SECRETS[sum(data) % len(SECRETS)])
    return "\n".join(lines)


def check_texts(texts: Iterable[str], *, lines: bool = True) -> None:
    """Raise :class:`Broken` where an output steers a terminal, hides text or tells a secret."""
    for text in texts:
        kinds = {unicodedata.category(sign) for sign in set(text) - ({"\n"} if lines else set())}
        if kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}:
            signs = {
                f"U+{ord(sign):04X}"
                for sign in text
                if sign != "\n" and unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")
            }
            raise Broken(f"unescaped in an output: {', '.join(sorted(signs)[:5])}")
        leak = _PLANTED.search(text)
        if leak:
            raise Broken(
                f"a secret in an output: …{text[max(0, leak.start() - 80) : leak.end()]!r}"
            )


def hold(function: Callable[[bytes], None], data: bytes, slower: float = 1.0) -> None:
    """Run one input; raises what no user may see, or :class:`Broken`.

    ``slower``: how many times longer the code takes than without the fuzzer's counters.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = len(data) / 1e6
    bound = slower * (_SECONDS + SECONDS_PER_MB * size)
    seconds = least_seconds(lambda: _run(function, data), bound)
    if seconds > bound:
        raise Broken(f"takes {seconds:.1f} s for {size:.3f} MB")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) << 10
    if grown > _BYTES + BYTES_PER_MB * size:
        raise Broken(f"takes {grown >> 20} MiB for {size:.3f} MB")


def _run(function: Callable[[bytes], None], data: bytes) -> None:
    try:
        function(data)
    except InternalFault:
        raise
    except EnvdoctorError as error:
        # As the command line prints it: the last step before a terminal escapes and redacts.
        from envdoctor.model.redaction import redact
        from envdoctor.report.text import clean

        check_texts([clean(redact(line)) for line in str(error).split("\n")])
