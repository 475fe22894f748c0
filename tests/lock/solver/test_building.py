"""What releases ask for is read when a solution wants them, and that changes no answer."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Dict, Mapping

import pytest

from envdoctor.intake.assumptions import parse_assumptions
from envdoctor.lock.solver.building import Builder
from envdoctor.lock.solver.candidates import Catalog
from envdoctor.lock.solver.engine import solve
from envdoctor.lock.solver.objective import attempt
from envdoctor.lock.solver.problem import Problem
from envdoctor.matrix.loader import Matrix, load_folder
from envdoctor.model.facts import Facts
from envdoctor.model.request import Request, parse_root
from tests.matrix.folders import row_text, small_matrix

from .stacks import judge_stack

Packages = Mapping[str, Mapping[str, Mapping[str, object]]]


def chosen(problem: Problem, model: tuple[int, ...]) -> Dict[str, str]:
    bits = dict(zip(problem.nodes, model))
    return {
        node: str(table.at(bits[node]).version)
        for node, table in problem.tables.items()
        if bits[node] != table.absent
    }


def test_little_is_read_and_the_answer_is_that_of_everything(matrix: Matrix) -> None:
    catalog = Catalog(matrix, Request((parse_root("vllm"),), "3.11"))
    facts = (Facts(parse_assumptions(["gpu=H100", "nvidia-driver=550.54.15"])),)
    solution = attempt(catalog, facts)
    assert solution.outcome.model is not None
    whole = Builder(catalog, facts, costs=True, whole=True).problem()
    outcome = solve(whole.variables, whole.nogoods)
    assert outcome.model is not None
    assert chosen(whole, outcome.model) == chosen(solution.problem, solution.outcome.model)
    assert len(solution.problem.edges) * 3 < len(whole.edges)


@pytest.mark.parametrize(("driver", "fits"), [("450.80.02", False), ("580.95.05", True)])
def test_a_chain_of_pins_meets_an_old_driver(driver: str, fits: bool, matrix: Matrix) -> None:
    """openrlhf pins vllm, which pins a torch for CUDA 13: what that needs is not read."""
    catalog = Catalog(matrix, Request((parse_root("openrlhf[vllm]==0.11.2"),), "3.12"))
    solution = attempt(
        catalog, (Facts(parse_assumptions(["gpu=H100", f"nvidia-driver={driver}"])),)
    )
    assert (solution.outcome.model is not None) is fits
    assert fits or not any(edge.requirer == "torch" for edge in solution.problem.edges)


def test_what_nothing_asks_for_is_absent(matrix: Matrix) -> None:
    """protobuf 3 asks for setuptools: that is no reason to install it for a newer setuptools."""
    catalog = Catalog(matrix, Request((parse_root("triton==3.1.0"),), "3.11"))
    solution = attempt(catalog, (Facts({}),))
    assert solution.outcome.model is not None
    pins = chosen(solution.problem, solution.outcome.model)
    assert set(pins) == {"triton", "setuptools"}
    assert int(pins["setuptools"].split(".")[0]) < 82


#: A row misses the tool and names the first one; an older release of the tool stands in the way of
#: settling whether the others are needed before it is chosen.
TOOL = {"1.0": {"requires": ["x"]}, "2.0": {}, "3.0": {}}
MISSED = row_text(
    "app-misses-tool",
    '{ env = "app", present = true }, { env = "tool", present = false }',
    effect="degrades",
    component="tool",
    kind="missing",
    pins='"tool<3"',
)
ASKED_BY_AN_EXTRA: Packages = {
    "app": {"0.9": {"requires": ["x[more]"]}, "1.0": {"requires": ["x"]}},
    "tool": TOOL,
    "x": {"1.0": {"requires": ["tool; extra == 'more'"]}},
}
ASKED_BY_A_CIRCLE: Packages = {
    "app": {"0.9": {"requires": ["x"]}, "1.0": {}},
    "tool": TOOL,
    "x": {"1.0": {"requires": ["y"]}},
    "y": {"1.0": {"requires": ["x", "tool"]}},
}
#: Another row misses x, beside an older app.
CALLED_FOR_ANOTHER: Packages = {
    "app": {"0.9": {}, "1.0": {}},
    "tool": TOOL,
    "x": {"1.0": {"requires": ["tool"]}},
}
MISSED_BY_OLD = row_text(
    "old-app-misses-x",
    '{ env = "app", in = "<1" }, { env = "x", present = false }',
    effect="degrades",
    component="x",
    kind="missing",
    pins='"x"',
)


@pytest.mark.parametrize("packages", [ASKED_BY_AN_EXTRA, ASKED_BY_A_CIRCLE, CALLED_FOR_ANOTHER])
@pytest.mark.parametrize("whole", [False, True])
def test_what_only_asks_for_itself_is_absent(
    packages: Packages, whole: bool, tmp_path: Path
) -> None:
    """An extra that nobody asks for, two packages that ask for each other, and one that a row asks
    for beside another release, are no reason to install a newer tool than the row names.
    """
    matrix = load_folder(
        str(small_matrix(tmp_path / "matrices", MISSED + MISSED_BY_OLD, packages=packages))
    )
    builder = Builder(
        Catalog(matrix, Request((parse_root("app"),), "3.12")),
        (Facts({}),),
        costs=True,
        whole=whole,
    )
    while True:
        problem = builder.problem()
        model = solve(problem.variables, problem.nogoods).model
        assert model is not None
        if not builder.revise(problem, model):
            break
    pins = chosen(problem, model)
    assert (pins["app"], pins["tool"]) == ("1.0", "2.0")
    assert not {"x[more]", "y"} & set(pins)
    assert "x" not in pins or packages is ASKED_BY_AN_EXTRA


def test_what_was_not_read_may_ask_for_what_a_row_misses(
    tmp_path: Path, require_module: Callable[[str], None]
) -> None:
    """The row spares engine 2 where the tool is there: only the oldest release of mid asks for it,
    which is read last.
    """
    require_module("pysat")
    mids = {f"{number}.0": {} for number in range(2, 40)}
    packages: Packages = {
        "app": {"1.0": {"requires": ["engine", "mid"]}},
        "engine": {"1.0": {}, "2.0": {}},
        "mid": {"1.0": {"requires": ["tool"]}, **mids},
        "tool": {"1.0": {}},
    }
    when = '{ env = "engine", in = ">=2" }, { env = "tool", present = false }'
    row = row_text("engine-misses-tool", when, effect="degrades", component="engine")
    matrix = load_folder(str(small_matrix(tmp_path / "matrices", row, packages=packages)))
    request = Request((parse_root("app"),), "3.12")
    solution = attempt(Catalog(matrix, request), (Facts({}),))
    assert solution.outcome.model is not None
    pins = chosen(solution.problem, solution.outcome.model)
    assert (pins["engine"], pins["mid"], pins["tool"]) == ("2.0", "1.0", "1.0")
    assert not judge_stack(request, (Facts({}),), matrix).fault
