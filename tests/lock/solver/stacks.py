"""Random stacks: what people might ask for, on machines that they might have."""

from __future__ import annotations

import random
import time
from typing import List, NamedTuple, Optional, Sequence, Tuple

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver.building import build_problem
from envdoctor.lock.solver.candidates import Catalog
from envdoctor.lock.solver.engine import solve
from envdoctor.lock.solver.explanation import minimal_groups
from envdoctor.lock.solver.objective import Attempt, applied, attempt, resolution_of
from envdoctor.lock.solver.problem import (
    MONTHS_BEHIND,
    MONTHS_OF_REQUIRED,
    YEARS_BEHIND,
    Problem,
)
from envdoctor.matrix.loader import Matrix
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from envdoctor.rules import judge

from .oracle import AgeOracle, in_order

ROOTS = (
    "vllm",
    "torch",
    "ray",
    "transformers",
    "verl",
    "verl[vllm]",
    "verl[sglang]",
    "openrlhf",
    "openrlhf[vllm]",
    "sglang",
    "flash-attn",
    "trl",
    "deepspeed",
    "accelerate",
    "peft",
    "xformers",
    "torchvision",
    "torchaudio",
    "triton",
    "bitsandbytes",
    "liger-kernel",
    "tensordict",
    "outlines",
    "ms-swift",
    "torchao",
    "nvidia-cublas-cu12",
    "nvidia-nccl-cu12",
)
DRIVERS = (
    "470.82.01",
    "525.60.13",
    "535.129.03",
    "550.54.15",
    "570.86.15",
    "580.65.06",
    "595.45.04",
)
GPUS = ("V100", "T4", "A100", "RTX 4090", "H100", "H20", "B200", "RTX 5090")


class Verdict(NamedTuple):
    """What became of one stack. ``fault`` says what is wrong with the answer, or is empty."""

    words: str
    feasible: bool
    seconds: float  # of the search alone
    conflicts: int
    fault: str


def random_stack(chance: random.Random, matrix: Matrix) -> Tuple[Request, Tuple[Facts, ...]]:
    """Two to six roots with random bounds, for one or two machines."""
    roots = []
    taken = set()
    for text in chance.sample(ROOTS, chance.randint(1, 5)):
        name = text.partition("[")[0]
        if name in taken or name not in matrix.package_names:
            continue
        taken.add(name)
        package = matrix.package(name)
        assert package is not None
        versions = [version for version in package.versions if not version.is_prerelease]
        pick = chance.choice(versions[-40:])
        bound = chance.choice(
            ("", "", "", f">={pick}", f"<={pick}", f"=={pick}", f">={pick}", f"<{pick}")
        )
        roots.append(parse_root(text + bound))
    targets = []
    for _ in range(chance.choice((1, 1, 1, 2))):
        assumed = []
        if chance.random() < 0.8:
            assumed.append(f"nvidia-driver={chance.choice(DRIVERS)}")
        if chance.random() < 0.8:
            assumed.append(f"gpu={chance.choice(GPUS)}")
        if chance.random() < 0.5:
            assumed.append(f"glibc={chance.choice(('2.17', '2.28', '2.31', '2.35', '2.39'))}")
        targets.append(Facts(parse_assumptions(assumed)))
    request = Request(
        tuple(roots),
        chance.choice(("3.9", "3.10", "3.11", "3.12")),
        as_of=chance.choice((None, None, "2025-06-01", "2026-03-01")),
        allow_index=chance.choice(((), (), ("pytorch",), ("github", "pytorch"))),
    )
    return request, tuple(targets)


def judge_stack(
    request: Request, facts: Sequence[Facts], matrix: Matrix, base: Optional[Catalog] = None
) -> Verdict:
    """Solve one stack, and compare the answer with everything that can tell whether it is right."""
    words = (
        " ".join(root.text for root in request.roots)
        + f" (Python {request.python}, as of {request.as_of}, {request.allow_index})"
    )
    catalog = Catalog(matrix, request) if base is None else base.changed(request)
    solution = attempt(catalog, facts)
    problem = solution.problem
    start = time.perf_counter()
    outcome = solve(problem.variables, problem.nogoods, sums=problem.sums)
    seconds = time.perf_counter() - start
    # The oracle reads everything that the request reaches, and orders it as the answer does.
    whole = build_problem(catalog, facts, overrides_allowed=solution.overrides, costs=True)
    whole = in_order(whole, problem.nodes)
    best = AgeOracle(whole, request.roots, problem.edges).optimum()
    fault: Optional[str] = None
    if (best is None) != (outcome.model is None):
        fault = f"the oracle says {'unsatisfiable' if best is None else 'satisfiable'}"
    elif best is not None and outcome.model is not None and _differs(whole, best, solution):
        fault = f"the oracle has another optimum, first for {_differs(whole, best, solution)}"
    elif outcome.model is not None:
        fault = _fault_of_resolution(solution, catalog, facts, matrix)
    else:
        fault = _fault_of_conflict(catalog, facts)
    return Verdict(words, outcome.model is not None, seconds, outcome.conflicts, fault or "")


def _differs(whole: Problem, best: Sequence[int], found: Attempt) -> str:
    """The first node of which an oracle says something else; what the answer did not reach has to
    be absent, and no row about it violated.
    """
    chosen = dict(zip(found.problem.nodes, found.outcome.model or ()))
    for node, variable, bit in zip(whole.nodes, whole.variables, best):
        counts = node in (YEARS_BEHIND, MONTHS_BEHIND, MONTHS_OF_REQUIRED)  # theirs alone
        if not counts and bit != chosen.get(node, variable.absent):
            return node
    return ""


def _fault_of_resolution(
    found: object, catalog: Catalog, facts: Sequence[Facts], matrix: Matrix
) -> Optional[str]:
    """Every pin has a reason, and no resolution may trigger an error of check that the machine does
    not have anyway.
    """
    resolution = resolution_of(found, catalog, facts)  # type: ignore[arg-type]
    bare_pins = [pin.name for pin in resolution.pins if not pin.reasons]
    if bare_pins:
        return f"without a reason: {', '.join(bare_pins)}"
    for entry in facts:
        bare = {finding.key for finding in judge(entry, matrix, today=matrix.date, propagate=True)}
        for finding in judge(applied(resolution, entry), matrix, today=matrix.date, propagate=True):
            if (
                finding.severity == "error"
                and finding.verdict == "violated"
                and finding.key not in bare
            ):
                return f"check refuses it: {finding.code} {finding.message}"
    return None


def _fault_of_conflict(catalog: Catalog, facts: Sequence[Facts]) -> Optional[str]:
    """Every cause must be needed: without any one of them the others have a solution."""
    whole = attempt(catalog, facts, complete=True)
    if whole.outcome.model is not None:
        return "the complete problem has a solution"
    groups = minimal_groups(whole.problem, whole.outcome.core)
    structure = [
        nogood for nogood in whole.problem.nogoods if nogood.why.kind in ("extra", "override")
    ]
    variables = whole.problem.variables
    if (
        solve(
            variables, [*structure, *(nogood for listed in groups.values() for nogood in listed)]
        ).model
        is not None
    ):
        return "the causes do not refute the request"
    for key in groups:
        rest = [nogood for other, listed in groups.items() if other != key for nogood in listed]
        if solve(variables, [*structure, *rest]).model is None:
            return f"the cause {key} is not needed"
    return None


def run(count: int, seed: int, matrix: Matrix) -> List[Verdict]:
    """Judge random stacks."""
    chance = random.Random(seed)
    base = Catalog(matrix, Request((), "3.11"))  # what was read once serves all
    return [judge_stack(*random_stack(chance, matrix), matrix, base) for _ in range(count)]
