"""Plans by facts by hand: what is cured, what stays, and that ``check`` agrees with every
change.
"""

from __future__ import annotations

import pytest

from envdoctor.fix.change_plan import plan_lines, steps_of
from envdoctor.fix.repair import changed_facts, faults_of, plan
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.calls import InstallerCall
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Distribution, Facts, Oddity
from envdoctor.model.line import text_of

HERE = Evidence("test")


@pytest.fixture(scope="module")
def matrix():
    return load_matrix()


def installed(name, version, *requires, tags=("py3-none-any",)):
    return Distribution(name, version, f"/site/{name}-{version}.dist-info", requires, tags=tags)


def facts_of(*distributions, **fields):
    table = {
        "python.version": "3.12.4",
        "os.platform": "linux",
        "os.architecture": "x86_64",
        "glibc.version": "2.36",
        "distributions": {entry.name: entry for entry in distributions},
        "distributions.complete": True,
        **{name.replace("__", "."): value for name, value in fields.items()},
    }
    return Facts({name: Known(value, HERE) for name, value in table.items()})


def changes_of(facts, matrix, goal="working"):
    """Return the changes of a plan, after which ``check`` has to find what the plan says."""
    change_plan = plan(facts, matrix, alternatives=False, goal=goal)
    after = changed_facts(facts, change_plan.changes)
    assert {finding.key for finding in faults_of(after, matrix, goal)} == {
        finding.key for finding in change_plan.remaining
    }
    return [
        (change.name, change.before, change.after, change.kind) for change in change_plan.changes
    ]


def test_a_missing_requirement_of_which_no_release_is_known_is_left_to_the_installer(matrix):
    requests = installed("requests", "2.32.3", "idna<4,>=2.5", "nothing-known")
    facts = facts_of(requests)
    assert changes_of(facts, matrix) == [
        ("idna", None, ">=2.5,<4", "install"),
        ("nothing-known", None, "", "install"),
    ]
    (step,) = steps_of(plan(facts, matrix, alternatives=False))
    assert step.requirements == ("idna>=2.5,<4", "nothing-known")


def test_requirers_of_one_missing_package_are_asked_together(matrix):
    facts = facts_of(
        installed("one", "1.0", "idna>=2.5"), installed("two", "1.0", "idna<3.4", "idna!=3.0")
    )
    assert changes_of(facts, matrix) == [("idna", None, ">=2.5,<3.4,!=3.0", "install")]


def test_a_missing_requirement_that_the_matrix_knows_gets_a_release(matrix):
    facts = facts_of(
        installed("transformers", "4.46.3", "tokenizers<0.21,>=0.20", "numpy>=1.17"),
        installed("numpy", "1.26.4"),
    )
    assert ("tokenizers", None, "0.20.3", "install") in changes_of(facts, matrix)
    # What only an unknown package asks for, too.
    other = facts_of(installed("ours", "1.0", "tokenizers<0.21"))
    assert ("tokenizers", None, "0.20.3", "install") in changes_of(other, matrix)


def test_a_companion_follows_torch(matrix):
    facts = facts_of(
        installed("torch", "2.6.0"), installed("torchvision", "0.20.1", "torch==2.5.1")
    )
    changes = changes_of(facts, matrix)
    assert ("torchvision", "0.20.1", "0.21.0", "upgrade") in changes
    assert "torch" not in {name for name, *_ in changes}


@pytest.mark.parametrize(
    ("kind", "goal", "changed"),
    [
        ("missing-files", "working", True),
        ("altered-files", "working", False),
        ("altered-files", "healthy", True),
        ("duplicate", "working", False),
        ("duplicate", "healthy", True),
    ],
)
def test_damage_is_cured_by_the_same_release(matrix, kind, goal, changed):
    oddity = Oddity(kind, "ours", "/site/ours-1.0.dist-info", "1 of 2 files: a.so", True)
    facts = facts_of(installed("ours", "1.0", "six"), installed("six", "1.16"))
    facts = facts.updated({"distributions.oddities": Known((oddity,), HERE)})
    anew = [("ours", "1.0", "1.0", "reinstall")] if changed else []
    assert changes_of(facts, matrix, goal) == anew
    change_plan = plan(facts, matrix, alternatives=False, goal=goal)
    for step in steps_of(change_plan):
        assert step.call("", "python") == InstallerCall(
            "install", ("ours==1.0",), ("--no-deps", "--force-reinstall")
        )
    assert change_plan.left == (goal == "working" and not changed)


def test_conflicts_that_only_may_fail_are_cured_for_healthy_alone(matrix):
    facts = facts_of(
        installed("requests", "2.31.0", "urllib3<3,>=1.21.1"), installed("urllib3", "1.20")
    )
    assert changes_of(facts, matrix) == []
    working = text_of(plan_lines(plan(facts, matrix)))
    assert working.startswith("nothing to change: nothing fails")
    assert "1 warning remains" in working
    assert "--to healthy" in working
    assert changes_of(facts, matrix, "healthy") == [("urllib3", "1.20", ">=1.21.1,<3", "pin")]


def test_numpy_2_under_what_was_compiled_for_numpy_1(matrix):
    compiled = installed("ours", "1.0", "numpy<2,>=1.22", tags=("cp312-cp312-linux_x86_64",))
    facts = facts_of(compiled, installed("numpy", "2.2.6"))
    assert changes_of(facts, matrix) == [("numpy", "2.2.6", "1.26.4", "downgrade")]
    pure = compiled._replace(tags=("py3-none-any",))
    assert changes_of(facts_of(pure, installed("numpy", "2.2.6")), matrix) == []


def test_what_no_package_cures_stays_with_remedies_that_hold(matrix):
    """Two packages that exclude each other: no remedy that check refuses is printed."""
    facts = facts_of(
        installed("one", "1.0", "idna<3"),
        installed("two", "1.0", "idna>=3.4"),
        installed("idna", "3.6"),
    )
    change_plan = plan(facts, matrix, goal="healthy", alternatives=False)
    assert change_plan.changes == ()
    assert [finding.component for finding in change_plan.remaining] == ["idna"]
    assert change_plan.remaining[0].remedies == ()
    assert "ED301" in text_of(plan_lines(change_plan))


@pytest.mark.parametrize("has_hub", [True, False])
def test_a_remedy_may_name_another_release_of_what_is_changed_anyway(matrix, has_hub):
    """The newest transformers that vllm takes is one that its lm-format-enforcer does not; that the
    hub that it takes wants one package more is no reason for an older one.
    """
    hub = [installed("huggingface-hub", "0.36.0"), installed("hf-xet", "1.2.0")]
    facts = facts_of(
        installed("torch", "2.4.0"),
        installed("vllm", "0.6.3", "transformers>=4.45.2", "lm-format-enforcer==0.10.6"),
        installed("lm-format-enforcer", "0.10.6"),
        installed("transformers", "5.20.2"),
        *(hub if has_hub else ()),
    )
    (first, *_) = changes_of(facts, matrix)
    (second, *_) = changes_of(facts, matrix, "healthy")
    assert first == ("transformers", "5.20.2", "4.57.6", "downgrade")
    assert second == ("transformers", "5.20.2", "4.48.3", "downgrade")
    change_plan = plan(facts, matrix, goal="healthy", alternatives=False)
    assert "transformers 5 removed" in change_plan.changes[0].reason.text
    assert not [finding for finding in change_plan.remaining if finding.component == "transformers"]


@pytest.mark.parametrize(
    ("driver", "beside", "torch"),
    [
        # cuBLAS 12.1.3.1 is the pin of torch 2.1 to 2.4: no cuBLAS moves for a newer one.
        ("550.54.15", ("nvidia-cublas-cu12", "12.1.3.1"), (2, 4)),
        ("535.183.01", None, (2, 10)),  # the last whose default index is of CUDA 12
        ("580.95.05", None, None),  # the newest
    ],
)
def test_a_missing_torch_is_the_newest_that_goes_with_what_is_there(matrix, driver, beside, torch):
    """The one with the fewest requirements would be 1.13."""
    peft = installed("peft", "0.17.0", "torch>=1.13.0")
    others = [] if beside is None else [installed(*beside)]
    facts = facts_of(peft, *others, driver__release=driver)
    after = {name: version for name, _, version, _ in changes_of(facts, matrix)}
    newest = matrix.package("torch").versions[-1].release[:2]
    chosen = tuple(map(int, after["torch"].split(".")[:2]))
    assert chosen == torch or (torch is None and chosen >= (newest[0], newest[1] - 1))
    assert not set(after) & {"peft", "nvidia-cublas-cu11"}
    assert beside is None or beside[0] not in after
