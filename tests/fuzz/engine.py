"""Runs one target for a while in a process of its own: ``python -m tests.fuzz.engine WAY TARGET
SECONDS FOLDER``. Each new way to break an invariant is one line, and its input a file in FOLDER.

Ways: ``guided`` by coverage (atheris, libFuzzer), ``mutations`` drawn at random where atheris is not
installed, ``pumped``: one piece of a seed repeated, which finds time that grows faster than a text.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import sys
import time
import traceback
from typing import List, Set

from . import targets
from .invariants import hold
from .targets import TARGETS, seeds

LARGEST = 1 << 15
_PUMPED = 200_000
_SLOWER = 5.0  # what atheris' counters cost


class Findings:
    """Keeps one input of each way to break."""

    def __init__(self, target: str, folder: str, slower: float) -> None:
        self.target = target
        self.folder = folder
        self.slower = slower
        self.seen: Set[str] = set()

    def try_input(self, data: bytes) -> None:
        """Run one input; write down what it breaks."""
        try:
            hold(TARGETS[self.target].run, data, self.slower)
        except Exception as error:  # noqa: BLE001 - anything is what is looked for
            self._keep(data, error)

    def _keep(self, data: bytes, error: Exception) -> None:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if f"{os.sep}envdoctor{os.sep}" in frame.filename
        ]
        place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
        what = f"{type(error).__name__} {place} {error}"[:300]
        key = re.sub(r"\d+|'.*", "", f"{type(error).__name__} {place} {error}"[:80])
        if key in self.seen or len(self.seen) > 50:
            return
        self.seen.add(key)
        name = hashlib.sha256(data).hexdigest()[:12]
        with open(os.path.join(self.folder, f"{self.target}-{name}"), "wb") as file:
            file.write(data)
        print(f"{self.target}-{name} ({len(data)} bytes): {what}", flush=True)


def guided(findings: Findings, seconds: float) -> None:
    """Let libFuzzer look for inputs that reach further; the process ends with it."""
    import importlib
    import pkgutil
    import tempfile

    import atheris

    with atheris.instrument_imports(include=["envdoctor"], enable_loader_override=False):
        import envdoctor

        for module in pkgutil.walk_packages(envdoctor.__path__, "envdoctor."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    corpus = tempfile.mkdtemp(prefix="envdoctor-corpus-")
    for number, data in enumerate(seeds(findings.target, LARGEST)):
        with open(os.path.join(corpus, str(number)), "wb") as file:
            file.write(data)
    options = [
        f"-max_total_time={int(seconds)}",
        f"-max_len={LARGEST}",
        f"-artifact_prefix={findings.folder}/{findings.target}-",
        "-timeout=120",
        "-rss_limit_mb=4096",
        "-verbosity=0",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, corpus], findings.try_input)
    atheris.Fuzz()


def mutations(findings: Findings, seconds: float) -> None:
    """Change, join and repeat pieces of seeds, drawn from a fixed start."""
    chance = random.Random(findings.target)
    known = seeds(findings.target, LARGEST)
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        findings.try_input(mutated(chance, known))
        count += 1
    print(f"{findings.target}: {count} mutations", file=sys.stderr)


def mutated(chance: random.Random, known: List[bytes]) -> bytes:
    """Return one input that is a little unlike a seed."""
    data = bytearray(chance.choice(known))
    for _ in range(chance.randint(1, 6)):
        start = chance.randint(0, len(data))
        end = min(len(data), start + chance.choice((0, 1, 4, 40, 400)))
        other = chance.choice(known)
        at = chance.randint(0, len(other))
        piece = other[at : at + chance.choice((0, 1, 8, 80))]
        piece *= chance.choice((1, 1, 1, 2, 50))
        data[start:end] = chance.choice((piece, bytes([chance.randrange(256)]), b"", b"\n"))
    return bytes(data[:LARGEST])


def pumped(findings: Findings, seconds: float) -> None:
    """Repeat one piece of a seed, behind its beginning, up to many times its size."""
    chance = random.Random(findings.target)
    known = seeds(findings.target, LARGEST)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = chance.choice(known)
        at = chance.randint(0, len(data))
        piece = data[at : at + chance.choice((1, 2, 3, 8, 30, 200))] or b"("
        piece = chance.choice((piece, piece, piece.replace(b"\n", b" "), piece[:1] + b"\n"))
        before = data[: at if chance.random() < 0.5 else 0]
        findings.try_input((before + piece * (_PUMPED // len(piece)))[:_PUMPED])


def main() -> None:
    """Run what the arguments say."""
    way, target, seconds, folder = sys.argv[1:]
    findings = Findings(target, folder, _SLOWER if way == "guided" else 1.0)
    targets.judged_every = 8 if way != "pumped" else 1
    findings.try_input(b"")  # what is loaded once counts for no input
    {"guided": guided, "mutations": mutations, "pumped": pumped}[way](findings, float(seconds))


if __name__ == "__main__":
    main()
