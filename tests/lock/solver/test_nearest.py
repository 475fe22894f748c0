"""The smallest set of changes: proven against brute force and a SAT solver, judged by ``check``."""

from __future__ import annotations

import collections
import random
from itertools import product
from typing import Callable, List, Tuple, Union

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.fix.repair import changed_facts, faults_of, plan
from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver.engine import Nogood, Variable
from envdoctor.lock.solver.nearest import Item, settle
from envdoctor.matrix.loader import Matrix
from envdoctor.model.change import Plan
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Distribution, Facts
from envdoctor.model.resolution import Explanation
from envdoctor.rules import judge

from .environments import compare_with_oracle, judge_repair, objective, random_environment
from .oracle import values


def random_environments(few: int, many: int) -> pytest.MarkDecorator:
    """Run a test with a few random environments, and as a slow one with many."""
    return pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.slow)])


@st.composite
def small_problems(draw: st.DrawFn) -> Tuple[List[Variable], List[Nogood], List[Item], List[Item]]:
    variables = []
    for _ in range(draw(st.integers(1, 5))):
        size = draw(st.integers(1, 4))
        variables.append(Variable((1 << size) - 1, draw(st.sampled_from((0, 1 << (size - 1))))))
    nogoods = []
    for _ in range(draw(st.integers(0, 10))):
        chosen = draw(
            st.lists(st.integers(0, len(variables) - 1), min_size=1, max_size=3, unique=True)
        )
        terms = [
            (number, draw(st.integers(1, variables[number].domain))) for number in sorted(chosen)
        ]
        nogoods.append(Nogood(tuple(terms)))
    items = [
        (number, draw(st.integers(0, variable.domain)))
        for number, variable in enumerate(variables)
        if draw(st.booleans())
    ]
    roots = [
        item for place, item in enumerate(items) if item[0] == place
    ]  # the first variables, as far as they are items
    return variables, nogoods, roots[: draw(st.integers(0, len(roots)))], items


@settings(max_examples=600)
@given(small_problems())
def test_optimum_is_that_of_brute_force(
    problem: Tuple[List[Variable], List[Nogood], List[Item], List[Item]],
) -> None:
    variables, nogoods, roots, items = problem
    possible = [
        model
        for model in product(*(list(values(variable)) for variable in variables))
        if not any(all(model[number] & mask for number, mask in nogood.terms) for nogood in nogoods)
    ]
    found = settle(variables, nogoods, roots, items).model
    if not possible:
        assert found is None
        return
    assert found == min(possible, key=lambda model: objective(model, variables, roots, items))


@random_environments(3, 8)
def test_optimum_is_that_of_a_sat_solver(
    count: int, matrix: Matrix, require_module: Callable[[str], None]
) -> None:
    require_module("pysat")
    chance = random.Random(11)
    faults = [
        fault
        for _ in range(count)
        for fault in [compare_with_oracle(random_environment(chance, matrix), matrix)]
        if fault
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("count", "seed"), [(8, 5), pytest.param(24, 20261121, marks=pytest.mark.slow)]
)
def test_random_environments(count: int, seed: int, matrix: Matrix) -> None:
    """After the changes ``check`` finds no error but those that the plan names, every change has
    its reason.
    """
    chance = random.Random(seed)
    outcomes = collections.Counter[str]()
    for _ in range(count):
        facts = random_environment(chance, matrix)
        outcome, fault = judge_repair(facts, matrix)
        assert not fault, f"{facts.value('distributions')}: {fault}"
        outcomes[outcome] += 1
    assert outcomes["repaired"] > count // 6, outcomes


@random_environments(3, 8)
def test_no_change_can_be_left_out(count: int, matrix: Matrix) -> None:
    """Each change alone taken back brings an error or an unmet requirement of something that
    changes.
    """
    chance = random.Random(3)
    judged = 0
    while judged < count:
        facts = random_environment(chance, matrix)
        found = plan(facts, matrix, alternatives=False) if faults_of(facts, matrix) else None
        if not isinstance(found, Plan) or found.remaining or not 0 < len(found.changes) < 4:
            continue
        judged += 1
        for change in found.changes:
            kept = [other for other in found.changes if other != change]
            taken_back = changed_facts(facts, kept)
            warned = {finding.row for finding in judge(taken_back, matrix, today=matrix.date)}
            if change.reason.row and change.reason.row in warned:
                continue  # it rests on a torch that is presumed, and so is no error
            if not faults_of(taken_back, matrix):
                names = {other.name for other in kept}
                assert change.reason.kind in ("required", "follows"), change
                assert any(name in change.reason.text for name in names), change


# --------------------------------------------------------------------------------------------------
# cases


def environment(
    listed: str, *assumed: str, complete: bool = False, **requires: Tuple[str, ...]
) -> Facts:
    here = Evidence("test")
    entries = {}
    for line in listed.split():
        name, _, version = line.partition("==")
        entries[name] = Distribution(name, version, requires=requires.get(name.replace("-", "_")))
    facts = Facts(
        {
            "distributions": Known(entries, here),
            "distributions.complete": Known(complete, here),
            "python.version": Known("3.11.9", here),
            "os.platform": Known("linux", here),
            "os.architecture": Known("x86_64", here),
        }
    )
    return facts.updated(parse_assumptions(["glibc=2.35", *assumed]))


def changes_of(facts: Facts, matrix: Matrix) -> Union[Plan, Explanation]:
    """What has to change, without a look at what else would help, which costs three times as
    much.
    """
    return plan(facts, matrix, alternatives=False)


def moves(found: object) -> List[Tuple[str, object, object, str]]:
    assert isinstance(found, Plan), found
    return [(change.name, change.before, change.after, change.kind) for change in found.changes]


def test_the_driver_stays_and_the_engine_moves_no_further_than_it_must(matrix: Matrix) -> None:
    facts = environment(
        "vllm==0.20.0 torch==2.11.0 ray==2.50.0", "nvidia-driver=550.54.15", "gpu=H100"
    )
    change_plan = plan(facts, matrix)
    assert moves(change_plan) == [
        ("vllm", "0.20.0", "0.19.1", "downgrade"),
        ("torch", "2.11.0", "2.10.0", "downgrade"),
    ]
    assert isinstance(change_plan, Plan)
    assert [change.reason.row for change in change_plan.changes] == [
        "driver-for-cuda-13:vllm",
        "driver-for-cuda-13:torch",
    ]
    assert any("driver 580.65.06" in text for text in change_plan.alternatives)


def test_another_build_of_the_same_version_only_where_its_index_is_allowed(matrix: Matrix) -> None:
    facts = environment("torch==2.6.0+cu124", "nvidia-driver=470.82.01", "gpu=A100")
    change_plan = plan(facts, matrix)
    assert isinstance(change_plan, Plan)
    assert change_plan.changes[0].kind != "build"
    assert any(
        "--allow-index pytorch" in text and "2.6.0+cu118" in text
        for text in change_plan.alternatives
    )
    assert moves(plan(facts, matrix, allow_index=("pytorch",))) == [
        ("torch", "2.6.0+cu124", "2.6.0+cu118", "build")
    ]


def test_what_the_engine_needs_moves_and_not_the_engine(matrix: Matrix) -> None:
    facts = environment(
        "vllm==0.8.5 torch==2.7.0 numpy==1.26.4", "nvidia-driver=570.86.15", "gpu=H100"
    )
    changes = changes_of(facts, matrix)
    assert moves(changes) == [("torch", "2.7.0", "2.6.0", "downgrade")]
    assert isinstance(changes, Plan)
    assert changes.changes[0].reason.text == "vllm 0.8.5 requires torch==2.6.0"


def test_warnings_move_nothing(matrix: Matrix) -> None:
    """numpy 2 under a vllm that asks for numpy 1 is a warning: it stays, though other things
    change.
    """
    facts = environment(
        "vllm==0.8.2 torch==2.7.0 numpy==2.0.2", "nvidia-driver=570.86.15", "gpu=H100"
    )
    assert not [finding for finding in faults_of(facts, matrix) if finding.component == "numpy"]
    assert moves(changes_of(facts, matrix)) == [("torch", "2.7.0", "2.6.0", "downgrade")]


def test_distributions_that_the_matrix_does_not_know_are_respected(matrix: Matrix) -> None:
    """An own package asks for transformers below 4.57: of the releases that cure, one that it
    accepts is taken.
    """
    listed = "vllm==0.8.5 transformers==5.1.0 own-package==1.0"
    free = changes_of(environment(listed, own_package=()), matrix)
    bound = changes_of(environment(listed, own_package=("transformers<4.57",)), matrix)
    assert moves(free) == [("transformers", "5.1.0", "4.57.6", "downgrade")]
    assert moves(bound) == [("transformers", "5.1.0", "4.56.2", "downgrade")]


def test_what_would_be_broken_is_said(matrix: Matrix) -> None:
    facts = environment(
        "vllm==0.8.5 transformers==5.1.0 own-package==1.0",
        own_package=("transformers>=5", "vllm==0.8.5"),
    )
    changes = changes_of(facts, matrix)
    assert isinstance(changes, Plan)
    assert moves(changes) == [("transformers", "5.1.0", "4.57.6", "downgrade")]
    assert changes.broken == (
        "own-package 1.0 requires transformers>=5, and transformers will be 4.57.6",
    )


def test_what_packages_cannot_cure_is_listed_as_such(matrix: Matrix) -> None:
    facts = environment(
        "torch==2.6.0 numpy==2.2.0",
        "nvidia-driver=570.86.15",
        "gpu=H100:8",
        "fabric-manager=570.124.06",
    )
    errors = faults_of(facts, matrix)
    assert errors
    changes = changes_of(facts, matrix)
    assert isinstance(changes, Plan)
    assert not changes.changes
    assert [finding.key for finding in changes.remaining] == [finding.key for finding in errors]


def test_nothing_wrong(matrix: Matrix) -> None:
    changes = changes_of(environment("torch==2.6.0", "nvidia-driver=570.86.15", "gpu=H100"), matrix)
    assert isinstance(changes, Plan)
    assert changes.errors == changes.changes == ()


def test_no_set_is_explained(matrix: Matrix) -> None:
    """No sglang release is for a driver of 2019: the causes name it, the ways out a newer one."""
    facts = environment("sgl-kernel==0.1.2 torch==2.6.0", "nvidia-driver=418.40.04", "gpu=H100")
    change_plan = plan(facts, matrix)
    assert isinstance(change_plan, Explanation), moves(change_plan)
    assert any("driver" in cause.text for cause in change_plan.causes)
    assert any("driver" in way for way in change_plan.ways_out)


def test_the_override_that_a_row_asks_for(matrix: Matrix) -> None:
    facts = environment(
        "torch==2.4.0 nvidia-cublas-cu12==12.1.3.1", "nvidia-driver=535.129.03", "gpu=H20"
    )
    changes = changes_of(facts, matrix)
    assert ("nvidia-cublas-cu12", "12.1.3.1", "12.3.4.1", "upgrade") in moves(changes)
    assert isinstance(changes, Plan)
    assert [override.row for override in changes.overrides] == ["cublas-12.1-sigfpe-h20"]
