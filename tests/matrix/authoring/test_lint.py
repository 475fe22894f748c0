"""Lint: every check fires on what it is for, stays silent on its neighbour, and finds no fault in
our own matrix.
"""

import re

import pytest

from envdoctor.matrix.authoring.lint import CHECKS, lint
from envdoctor.matrix.authoring.pair_checks import pair_remarks
from envdoctor.matrix.authoring.provenance import source_fault
from envdoctor.matrix.authoring.remarks import Bench
from envdoctor.matrix.loader import load_builtin, load_folder, load_matrix

from ..folders import SOURCE, row_text, small_matrix

TODAY = "2026-11-21"
OLD = '{ env = "torch", in = "<2.6" }'


def findings(tmp_path, rows, **options):
    matrix = load_folder(str(small_matrix(tmp_path / "matrices", rows, **options)))
    return [(finding.level, finding.check, finding.subject) for finding in lint(matrix, TODAY)]


def test_our_own_matrix_has_no_fault():
    faults = lint(load_builtin(), "2099-01-01")
    assert [finding for finding in faults if finding.level == "fault"] == []
    assert {finding.check for finding in faults} <= set(CHECKS)


FAULTS = {
    "range-without-release": row_text("a", '{ env = "torch", in = ">=2.7" }'),
    "one alternative": row_text("a", '{ env = "torch", in = "<2.6 || >=2.6.1" }'),
    "between releases": row_text("a", '{ env = "torch", in = ">2.5.0,<2.6" }'),
    "never-holds": row_text("a", OLD + ', { env = "torch", in = ">=2.6" }'),
    "never-holds: absent": row_text("a", OLD + ', { env = "torch", present = false }'),
    "never-holds: labels": row_text(
        "a", OLD + ', { gpu = "kind", any = ["jetson"] }, { gpu = "kind", any = ["geforce"] }'
    ),
    "never-holds: mitigation": row_text(
        "a",
        OLD + ', { var = "X_Y", any = ["1"] }',
        extra='mitigations = [{ var = "X_Y", value = "1" }]\n',
    ),
    "pin-without-release": row_text("a", OLD, pins='"torch>=3"'),
    "pin-in-row": row_text("a", OLD, pins='"torch>=2.5"'),
    "pin-in-row: host": row_text(
        "a", OLD + ', { host = "driver", in = "<570" }', pins='"nvidia-driver>=550,<570"'
    ),
    "source-form": row_text("a", OLD, source="http://docs.nvidia.com/x"),
    "date": row_text("a", OLD, date="2026-12-01"),
    "date: no day": row_text("a", OLD, date="2026-02-30"),
    "unknown-label": row_text("a", OLD + ', { gpu = "model", any = ["H21"] }'),
    "unknown-label: sm": row_text("a", OLD + ', { gpu = "sm", any = ["9.9"] }'),
    "mitigation": row_text("a", OLD, extra='mitigations = [{ var = "A B", value = "1" }]\n'),
    "symptom-prose": row_text(
        "a",
        OLD,
        extra="symptom = \"with torch 2.5 ImportError: cannot import name 'x' from 'torch'\"\n",
    ),
    "override": row_text("a", OLD, extra='overrides = ["torch -> numpy"]\n'),
    "repeated": row_text("a", OLD) + row_text("b", OLD),
    "shadowed": row_text("a", OLD) + row_text("b", OLD + ', { host = "driver", in = "<570" }'),
    "contradicting": row_text("a", OLD, pins='"torch>=2.6"')
    + row_text("b", '{ env = "torch", in = ">=2.6" }', kind="bad-version"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(tmp_path, name):
    check = {
        "one alternative": "range-without-release",
        "between releases": "range-without-release",
    }.get(name, name.split(":")[0])
    faults = findings(tmp_path, FAULTS[name])
    assert [entry[:2] for entry in faults if entry[0] == "fault"] == [("fault", check)]


NOTES = {
    "releases-not-read": row_text("a", '{ env = "no-such", in = "<1.0" }', pins='"no-such>=1"'),
    "pin-elsewhere": row_text("a", OLD, pins='"vllm>=0.8.5"'),
    "mitigation": row_text("a", OLD, fix="Set NCCL_P2P_DISABLE=1."),
    "looked-at-everywhere": row_text("a", '{ host = "driver", in = "<570" }'),
    "overlapping": row_text("a", OLD + ', { host = "driver", in = "<570" }')
    + row_text("b", '{ env = "torch", in = ">=2.5" }, { host = "driver", in = "<560" }'),
    "source-form": row_text("a", OLD).replace(
        "sources = [", 'sources = [{ address = "https://github.com/pytorch/pytorch/issues/1" }, '
    ),
    "shadowed": row_text("a", OLD, pins='"torch>=2.6"')
    + row_text("b", OLD + ', { host = "driver", in = "<570" }', pins='"vllm>=0.8.5"'),
    "pin-into-row": row_text("a", OLD + ', { env = "vllm", in = "<1" }', pins='"torch>=2.6"')
    + row_text(
        "b", '{ env = "torch", in = ">=2.6" }, { env = "vllm", in = "<0.8.5" }', kind="bad-version"
    ),
}


BOTH = '{ env = "torch", in = "<2.6" }, { env = "vllm", in = "<=0.8.4" }'


@pytest.mark.parametrize(
    ("pins", "faults"),
    [
        ('"torch==2.5.0"', ["pin-in-row"]),
        ('"torch==2.5.0", "vllm==0.8.5"', []),  # whoever follows both is out of the row
        ('"torch==2.5.0", "vllm==0.8.4"', ["pin-in-row"]),
    ],
)
def test_all_pins_of_a_row_are_followed(tmp_path, pins, faults):
    said = [entry[1] for entry in findings(tmp_path, row_text("a", BOTH, pins=pins))]
    assert sorted(set(said)) == faults


@pytest.mark.parametrize("derived", [">=2.6", "<2.6"])
def test_a_pin_into_a_derived_row_is_named(tmp_path, derived):
    text = row_text("pinned", OLD, pins='"torch>=2.6"') + row_text(
        "derived", f'{{ env = "torch", in = "{derived}" }}'
    )
    matrix = load_folder(str(small_matrix(tmp_path / "matrices", text)))
    rows = {row.id: row for row in matrix.rows()}
    bench = Bench(matrix, TODAY)
    remarks = pair_remarks([rows["pinned"]], [rows["derived"]], {"pinned"}, bench)
    said = [(remark.check, remark.subject) for remark in remarks]
    assert said == ([("contradicting", "pinned")] if derived == ">=2.6" else [])


@pytest.mark.parametrize("check", NOTES)
def test_notes(tmp_path, check):
    faults = findings(tmp_path, NOTES[check])
    assert ("note", check) in [entry[:2] for entry in faults]
    assert not [entry for entry in faults if entry[0] == "fault"]


SILENT = {
    "a range that our releases do not reach back to": row_text(
        "a", '{ env = "torch", in = "<1.0" }'
    ),
    "a pin that leads out": row_text("a", OLD, pins='"torch>=2.6"'),
    "a driver pin that leads out": row_text(
        "a", OLD + ', { host = "driver", in = "<570" }', pins='"nvidia-driver>=570"'
    ),
    "a setting that is carried": row_text(
        "a", OLD, fix="Set X_Y=1.", extra='mitigations = [{ var = "X_Y", value = "1" }]\n'
    ),
    "an edge that metadata has": row_text("a", OLD, extra='overrides = ["torch -> triton"]\n'),
    "two rows that cannot meet": row_text("a", OLD)
    + row_text("b", '{ env = "torch", in = "==2.6.0" }'),
    "a narrower row that is worse": row_text("a", OLD, effect="note")
    + row_text("b", OLD + ', { host = "driver", in = "<570" }'),
    "a narrower row of another kind": row_text("a", OLD)
    + row_text("b", OLD + ', { host = "driver", in = "<570" }', kind="bad-version"),
    "a pin that leads into a lesser row": row_text("a", OLD, pins='"torch>=2.6"')
    + row_text("b", '{ env = "torch", in = ">=2.6" }', effect="note"),
    "a pin into a row that holds as well before": row_text(
        "a", OLD + ', { env = "vllm", in = ">=0" }', pins='"torch>=2.5.1"'
    )
    + row_text(
        "b", '{ env = "torch", in = "<=2.6" }, { env = "vllm", in = "<0.8.5" }', kind="bad-version"
    ),
    "a pin into a row that needs more": row_text("a", OLD, pins='"torch>=2.6"')
    + row_text(
        "b", '{ env = "torch", in = ">=2.6" }, { env = "vllm", in = "<0.8.5" }', kind="bad-version"
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_silence(tmp_path, name):
    assert findings(tmp_path, SILENT[name]) == []


def test_dates_of_packages_and_tables(tmp_path):
    folder = small_matrix(tmp_path / "matrices")
    path = folder / "packages" / "torch.json"
    path.write_text(path.read_text().replace('"2026-10-01"', '"2027-10-01"', 1))
    path = folder / "drivers.toml"
    path.write_text(path.read_text().replace("2026-11-01", "2027-11-21", 1))
    subjects = {
        finding.subject
        for finding in lint(load_folder(str(folder)), TODAY)
        if finding.check == "date"
    }
    assert "torch 2.5.0" in subjects
    assert "branch 570" in subjects


def test_models_and_conda_names(tmp_path):
    folder = small_matrix(tmp_path / "matrices")
    assert lint(load_folder(str(folder)), TODAY) == []
    for name in ("models.toml", "conda.toml"):
        text = (SOURCE / name).read_text()
        head, first, *_ = text.split("\n[[")
        body = re.sub(r"(?m)^source = .*$", 'source = "http://nowhere"', first)
        (folder / name).write_text(f"{head.replace('2026-11-21', '2099-01-01')}\n[[{body}\n")
    found = {
        (finding.check, finding.subject, finding.origin)
        for finding in lint(load_folder(str(folder)), TODAY)
    }
    assert found == {
        (check, subject, origin)
        for check in ("date", "source-form")
        for subject, origin in (
            ("model Qwen2-0.5B", "models.toml"),
            ("conda name of torch", "conda.toml"),
        )
    }


def test_the_rows_of_a_site_are_judged_by_our_tables(tmp_path):
    (tmp_path / "own.toml").write_text(row_text("ours", '{ env = "torch", in = ">=99" }'))
    matrix = load_matrix([str(tmp_path)])
    faults = lint(matrix, "2099-01-01", lambda row: row.origin.startswith(str(tmp_path)))
    assert [(finding.check, finding.subject) for finding in faults] == [
        ("range-without-release", "ours")
    ]


@pytest.mark.parametrize(
    ("address", "good"),
    [
        ("https://docs.nvidia.com/deploy/cuda-compatibility/index.html", True),
        ("https://github.com/vllm-project/vllm/issues/4392", True),
        ("https://github.com/vllm-project/vllm/pull/1 (the second comment)", True),
        ("published metadata of ray 2.47.1", True),
        ("https://github.com/vllm-project/vllm/foo", False),
        ("https://github.com/vllm-project", False),
        ("http://docs.nvidia.com/", False),
        ("ftp://docs.nvidia.com/x y", False),
        ("https://docs.nvidia.com/a b", False),
        ("https://localhost/x", False),
        ("https://example.com/x", False),
        ("https://wiki.corp.internal/x", False),
        ("rumour", False),
        (" https://docs.nvidia.com/", False),
    ],
)
def test_sources(address, good):
    assert (source_fault(address) is None) is good
