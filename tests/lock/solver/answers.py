"""Prints the answers to some requests, for comparison between interpreters and hash seeds: ``python
-m tests.lock.solver.answers``.
"""

from __future__ import annotations

import sys

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.emit import explanation_lines, render
from envdoctor.lock.solver import resolve
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.facts import Facts
from envdoctor.model.line import text_of
from envdoctor.model.request import Request, parse_root
from envdoctor.model.resolution import Explanation

REQUESTS = (
    (("vllm==0.6.3",), "3.10", (("gpu=H20:8", "nvidia-driver=535.129.03"),)),
    (("verl[vllm]", "ray", "flash-attn"), "3.11", ((),)),
    (
        ("openrlhf[vllm]>=0.9", "ray>=2.50", "transformers<5"),
        "3.11",
        (("gpu=H100", "nvidia-driver=550.54.15"),),
    ),
    (("vllm>=0.20",), "3.11", (("gpu=H100", "nvidia-driver=550.54.15"),)),
)


def main() -> None:
    matrix = load_matrix()
    for requests, python, targets in REQUESTS:
        request = Request(tuple(map(parse_root, requests)), python, as_of="2026-11-21")
        resolution = resolve(
            request, tuple(Facts(parse_assumptions(assumed)) for assumed in targets), matrix
        )
        if isinstance(resolution, Explanation):
            sys.stdout.write(text_of(explanation_lines(resolution)))
        else:
            sys.stdout.write("".join(render(resolution, "0", matrix).values()))


if __name__ == "__main__":
    main()
