"""Measured statements as rows: what a range holds, what is left out by release, what a file may
say.
"""

import copy
import itertools
import json
from pathlib import Path

import pytest
from packaging.version import Version as Oracle

from envdoctor.matrix.bind import bind
from envdoctor.matrix.derive import derive_target
from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.measured_rows import (
    OVERWRITES,
    REFUSES_CUDA,
    Surfaces,
    compile_surfaces,
    surface_fault,
)
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Distribution, Facts
from envdoctor.model.toml import parse_toml
from envdoctor.model.versions import parse_version

MATRIX = load_matrix()
DOCUMENT = {
    "schema": 1,
    "name": "user",
    "date": "2026-11-22",
    "statements": [
        {
            "id": "imports-maker.gone",
            "provider": "maker",
            "module": "maker",
            "name": "gone",
            "effect": "blocks",
            "in": [["1.0", "1.2"], ["2.0", "2.0"]],
            "lacking": [["0.5", "0.9"], ["3.0", "4.0"]],
            "kind": "too-old",
            "component": "user",
            "archive": "user-2.0-py3-none-any.whl",
            "path": "user/__init__.py",
            "line": 3,
            "pin": "maker>=1.0,<=2.9",
        },
        {
            "id": "uses-maker.sub-with-third",
            "provider": "maker",
            "module": "maker.sub",
            "name": "",
            "effect": "degrades",
            "use": "training",
            "in": [["1.1", "2.0"]],
            "lacking": [["0.5", "2.0"]],
            "kind": "too-old",
            "component": "maker",
            "archive": "user-2.0-py3-none-any.whl",
            "path": "user/train.py",
            "line": 9,
            "with": [["third", ">=2"]],
        },
    ],
}
VERSIONS = (
    "0.4",
    "0.5",
    "0.9",
    "0.9.post1",
    "0.9+cu121",
    "1.0rc1",
    "1.0",
    "1.1.5",
    "1.2",
    "1.3",
    "2.0",
    "2.0.post1",
    "2.5",
    "3.0.dev1",
    "3.0",
    "4.0",
    "4.0+local",
    "4.0.post1",
    "5.0",
)


def facts_of(**versions):
    here = Evidence("test")
    found = {name: Distribution(name, version) for name, version in versions.items() if version}
    return Facts({"distributions": Known(found, here), "distributions.complete": Known(True, here)})


def violated(surfaces, filtered, **versions):
    facts = facts_of(**versions)
    target = derive_target(facts, MATRIX)
    known = {name: parse_version(text) for name, text in versions.items() if text}
    rows = surfaces.rows(known, known.get if filtered else lambda _: None)
    return {row.id for row in rows if bind(row, target).outcome == "violated"}


def within(version, spans):
    public = Oracle(Oracle(version).public)
    return any(Oracle(first) <= Oracle(version) and public <= Oracle(last) for first, last in spans)


def test_a_row_holds_where_its_ranges_do():
    surfaces = Surfaces(compile_surfaces([DOCUMENT]))
    for user, maker, third in itertools.product(VERSIONS, VERSIONS, ("", "1.0", "2.5")):
        expected = set()
        for entry, holds in zip(DOCUMENT["statements"], (True, third == "2.5")):
            if holds and within(user, entry["in"]) and within(maker, entry["lacking"]):
                expected.add(f"{entry['id']}:user")
        for filtered in (True, False):
            assert violated(surfaces, filtered, user=user, maker=maker, third=third) == expected, (
                user,
                maker,
                third,
            )


def test_a_row_says_who_what_and_where():
    row = next(Surfaces(compile_surfaces([DOCUMENT])).rows({"user", "maker"}))
    assert row.title == (
        "user 1.0 to 1.2 and 2.0 imports maker.gone, which maker 0.5 to 0.9 and 3.0 to 4.0 does "
        "not have"
    )
    assert row.sources[0] == (
        "user-2.0-py3-none-any.whl: user/__init__.py, line 3",
        "from maker import gone",
    )
    assert row.pins == ("maker>=1.0,<=2.9",)


def test_nothing_measured_is_no_row():
    assert list(Surfaces("").rows({"user", "maker"})) == []
    assert Surfaces("").consumers == ()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda document: document.update(schema=2), "schema"),
        (lambda document: document.update(name="other"), "name"),
        (lambda document: document.update(statements={}), "list"),
        (lambda document: document["statements"][0].pop("provider"), "statement 1"),
        (lambda document: document["statements"][1].update(line="9"), "statement 2"),
        (lambda document: document["statements"][1].update({"in": [["x", "1"]]}), "no version"),
        (lambda document: document["statements"][1].update({"in": ["1"]}), "statement 2"),
        (lambda document: document["statements"][1].update({"with": "third"}), "statement 2"),
        (lambda document: document["statements"][1].update(effect="breaks"), "statement 2"),
    ],
)
def test_a_faulty_file_is_refused(change, fault):
    assert surface_fault(DOCUMENT, "user") == ""
    document = copy.deepcopy(DOCUMENT)
    change(document)
    assert fault in surface_fault(document, "user")


def test_every_row_is_found_by_its_id():
    rows = [row for row in MATRIX.rows() if row.code == "ED308"]
    assert len({row.id for row in rows}) == len(rows) > 0
    for row in rows[:: max(1, len(rows) // 50)]:
        assert MATRIX.row(row.id) == row


#: Pairs that were run or read by hand before they were measured, and their neighbours that work.
KNOWN = [
    ({"trl": "1.12.0", "vllm": "0.33.0"}, {"trl": "1.12.0", "vllm": "0.27.1"}),
    ({"trl": "1.1.0", "vllm": "0.10.2"}, {"trl": "1.1.0", "vllm": "0.11.0"}),
    ({"trl": "1.11.0", "vllm": "0.11.0"}, {"trl": "1.11.0", "vllm": "0.19.0"}),
    ({"verl": "0.8.0", "transformers": "5.4.0"}, {"verl": "0.8.0", "transformers": "5.3.0"}),
    ({"verl": "0.7.1", "transformers": "5.23.0"}, {"verl": "0.7.1", "transformers": "5.3.0"}),
    (
        {"lm-format-enforcer": "0.11.3", "transformers": "5.0.0"},
        {"lm-format-enforcer": "0.11.3", "transformers": "4.57.6"},
    ),
    (
        {"compressed-tensors": "0.14.0", "transformers": "4.52.4"},
        {"compressed-tensors": "0.14.0", "transformers": "4.53.0"},
    ),
    (
        {"mamba-ssm": "2.2.4", "transformers": "5.0.0"},
        {"mamba-ssm": "2.2.4", "transformers": "4.57.6"},
    ),
    (
        {"optimum": "1.25.0", "transformers": "5.0.0"},
        {"optimum": "1.25.0", "transformers": "4.48.3"},
    ),
    (
        {"peft": "0.13.0", "huggingface-hub": "0.22.2"},
        {"peft": "0.13.0", "huggingface-hub": "0.23.0"},
    ),
    ({"peft": "0.19.0", "torchao": "0.15.0"}, {"peft": "0.19.0", "torchao": "0.16.0"}),
    (
        {"flashinfer-python": "0.6.3", "flashinfer-cubin": "0.6.2"},
        {"flashinfer-python": "0.6.3", "flashinfer-cubin": "0.6.3"},
    ),
    ({"torch": "2.9.1", "torchao": "0.18.0"}, {"torch": "2.10.0", "torchao": "0.18.0"}),
    (
        {"tensorboard": "2.19.0", "setuptools": "82.0.0"},
        {"tensorboard": "2.19.0", "setuptools": "80.9.0"},
    ),
]


@pytest.mark.parametrize(("fails", "works"), KNOWN)
def test_known_pairs(fails, works):
    def effects(versions):
        target = derive_target(facts_of(**versions), MATRIX)
        return {
            row.effect
            for row in MATRIX.rows_about(list(versions))
            if row.code in ("ED308", "ED309") and bind(row, target).outcome == "violated"
        }

    assert effects(fails) & {"blocks", "degrades"}
    assert not effects(works) & {"blocks", "degrades"}


#: A build of torch, and what is installed beside it: of file lists and of dynamic symbols.
BUILDS = [
    # no libbitsandbytes_cuda124.so in 0.43.0, the first is in 0.43.1
    (("bitsandbytes 0.43.0", "torch 2.4.0+cu124"), ("bitsandbytes 0.43.1", "torch 2.4.0+cu124")),
    (("bitsandbytes 0.43.0", "torch 2.4.0+cu124"), ("bitsandbytes 0.43.0", "torch 2.4.0+cu121")),
    # torch 2.6.0 of the default index has the old C++ ABI, that of PyTorch's own index the new
    (("torchcodec 0.5", "torch 2.6.0"), ("torchcodec 0.5", "torch 2.6.0+cu126")),
    (("torchcodec 0.5", "torch 2.6.0"), ("torchcodec 0.2.1", "torch 2.6.0")),
]


@pytest.mark.parametrize(("fails", "works"), BUILDS)
def test_known_builds(fails, works):
    def rows(lines):
        packages = dict(line.split() for line in lines)
        facts = facts_of(**packages)
        table = {
            **dict(facts),
            "variables": Known({}, Evidence("test")),
            "os.platform": Known("linux", Evidence("test")),
            "os.architecture": Known("x86_64", Evidence("test")),
        }
        target = derive_target(Facts(table), MATRIX)
        return [
            row.id
            for row in MATRIX.rows_about(list(packages))
            if row.code in ("ED409", "ED411") and bind(row, target).outcome == "violated"
        ]

    assert rows(fails)
    assert not rows(works)


def test_a_variable_that_chooses_another_library_counts():
    (term,) = [
        term
        for term in MATRIX.row("no-library-cuda-12.4:bitsandbytes").terms
        if term.scope == "var"
    ]
    assert (term.component, term.operator, term.argument) == ("BNB_CUDA_VERSION", "present", False)


def test_a_use_that_a_package_is_for_binds_a_lock() -> None:
    for purpose in ([], ["serving"], ["serving", "training"]):
        surfaces = Surfaces(compile_surfaces([{**DOCUMENT, "purpose": purpose}]))
        binding = {row.effect: row.binds for row in surfaces.rows_of("user")}
        assert binding == {"blocks": True, "degrades": "training" in purpose}
    assert surface_fault({**DOCUMENT, "purpose": "training"}, "user")


def test_what_was_measured_says_what_packages_are_for() -> None:
    folder = Path(__file__).resolve().parents[2]
    toml = (folder / "scripts" / "surface_scan" / "packages.toml").read_text("utf-8")
    stated = {
        name: values["purpose"]
        for name, values in parse_toml(toml)["package"].items()
        if "purpose" in values
    }
    documents = [
        json.loads(path.read_text("utf-8"))
        for path in (folder / "matrices" / "surfaces").glob("*.json")
    ]
    assert stated == {entry["name"]: entry["purpose"] for entry in documents if "purpose" in entry}


ASIDE = {
    **{
        key: DOCUMENT["statements"][0][key]
        for key in ("in", "kind", "component", "archive", "path")
    },
    "line": 3,
    "module": "",
    "name": "",
    "effect": "degrades",
    "lacking": [["3.9", "3.11"]],
}


def _row(**fields):
    document = {**DOCUMENT, "statements": [{**ASIDE, **fields}]}
    assert surface_fault(document, "user") == ""
    (row,) = Surfaces(compile_surfaces([document])).rows(["user", "maker"])
    return row


@pytest.mark.parametrize(
    ("python", "outcome"),
    [("3.8.20", False), ("3.9.0", True), ("3.11.14", True), ("3.12.0", False)],
)
def test_an_interpreter_that_is_refused(python, outcome):
    row = _row(id="refuses-python", provider="python", verb="refuses", text="Python 3.9 is old")
    assert "refuses Python 3.9 to 3.11" in row.title
    here = Evidence("test")
    facts = {
        "python.version": Known(python, here),
        "distributions": Known({"user": Distribution("user", "1.1")}, here),
    }
    outcome_there = bind(row, derive_target(Facts(facts), MATRIX)).outcome
    assert (outcome_there == "violated") is outcome


@pytest.mark.parametrize(
    ("version", "found"), [("0.9", []), ("1.0", ["above"]), ("1.5", ["above"]), ("2.0", [])]
)
def test_who_imports_what_cannot_be_imported(version, found):
    above = {
        "schema": 1,
        "name": "above",
        "date": "2026-11-22",
        "statements": [],
        "imports": {"user": [["1.0", "1.5"]], "maker": [["1.0", "1.5"]]},
    }
    surfaces = Surfaces(compile_surfaces([DOCUMENT, above]))
    rows = {row.id: row for row in surfaces.rows_of("user")}
    stops, of_a_use = rows["imports-maker.gone:user"], rows["uses-maker.sub-with-third:user"]
    versions = {"above": parse_version(version), "user": parse_version("1.0")}
    assert surfaces.importers(stops, ["above", "other"], versions.get) == found
    assert surfaces.importers(of_a_use, ["above"], versions.get) == []
    assert surfaces.importers(stops, ["above"], {}.get) == []


def test_what_is_said_of_attributes_and_builds():
    lacking = [["0.5", "0.9"]]
    read = _row(
        id="a",
        provider="maker",
        module="maker.sub",
        name="gone",
        text="maker.sub.gone",
        lacking=lacking,
    )
    assert read.symptom == "module 'maker.sub' has no attribute 'gone'"
    assert "uses maker.sub.gone, which maker 0.5 to 0.9 does not have" in read.title
    both = _row(
        id="b",
        provider="maker",
        name="shared/__init__.py",
        text="",
        lacking=lacking,
        verb=OVERWRITES,
    )
    assert "user and maker both install shared/__init__.py" in both.title
    assert both.fix == "Uninstall both, then install one of user and maker."
    built = _row(
        id="c",
        provider="maker",
        name="12.8",
        text="different",
        lacking=lacking,
        **{"verb": REFUSES_CUDA, "with": [["user", "cuda==12.8"], ["maker", "cuda!=12.8"]]},
    )
    assert [str(term) for term in built.terms[2:]] == [
        "user cuda ==12.8",
        "maker cuda <12.8 or >12.8",
    ]
