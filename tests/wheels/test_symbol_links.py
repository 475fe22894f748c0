"""With which torch a wheel cannot be loaded: from symbols to statements and rows."""

import json

import pytest
from surface_scan.links import link_statements, write_links
from wheel_scan.symbol_architectures import of_aarch64
from wheel_scan.symbol_links import links_of
from wheel_scan.symbol_spans import with_earlier

from envdoctor.matrix.measured_rows import Surfaces, compile_surfaces, surface_fault

GONE, CAME, OTHER = "_ZN3c104goneEv", "_ZN3c104cameEv", "_ZN3c105otherEv"
DOCUMENT = {
    "schema": 1,
    "date": "2026-11-23",
    "versions": ["2.0.0", "2.1.0", "2.2.0", "2.3.0"],
    "symbols": {"0-1": GONE, "2-3": CAME, "0,2-3": OTHER},
    "x86_64": {"3": OTHER},
    "cuda": {"0": "_ZN3c104cuda4warpEv"},
    "fits": {},
}


def record(**libraries):
    """A record of a wheel: undefined symbols by library, None for one that cannot be read."""
    return {
        "archive": "user-1.0.whl",
        "libraries": {
            f"user/{name}.so": {"fault": "cut off"} if symbols is None else {"undefined": symbols}
            for name, symbols in libraries.items()
        },
    }


@pytest.mark.parametrize(
    ("libraries", "lacking"),
    [
        ({"core": [GONE]}, "2-3"),
        ({"core": [GONE, CAME]}, "0-3"),
        ({"core4": [GONE], "core5": [GONE, CAME]}, "2-3"),  # one of them is enough
        ({"core": [GONE], "other": [CAME]}, "2-3"),  # is not loaded
        ({"core": [GONE], "ops": [CAME]}, "0-3"),  # both are loaded
        ({"core": [OTHER]}, "1"),  # some wheel of 2.0.0 and 2.2.0 has it
        ({"core": ["_ZN3c107unknownEv"]}, ""),
        ({"core": ["_ZN3c104cuda4warpEv"]}, "1-3"),
        ({"core": []}, ""),
        ({"core": [GONE], "core5": None}, None),
        ({"other": [GONE]}, None),
    ],
)
def test_what_a_wheel_cannot_be_loaded_with(libraries, lacking):
    links = links_of(
        DOCUMENT,
        {"user": {"1.0": record(**libraries)}, "other": {"1.0": record(core=[GONE])}},
        {"user": ["user/core*.so", "user/ops.so"]},
    )
    assert links.get("user", {}).get("1.0", {}).get("lacking") == lacking
    assert "other" not in links


def test_what_was_not_read_here_stays():
    said = {"lacking": "0,2", "symbol": GONE, "library": "user/core.so", "archive": "user.whl"}
    earlier = {
        **DOCUMENT,
        "fits": {"user": {"0.9": "1,3", "1.0": "1"}, "third": {"2.0": "0-3"}},
        "links": {"user": {"0.9": said, "1.0": said}},
    }
    now = {
        **DOCUMENT,
        "versions": ["2.0.0", "2.0.1", "2.1.0", "2.2.0", "2.3.0", "2.4.0"],
        "fits": {"user": {"1.0": "2"}},
        "links": {"user": {"1.0": {**said, "lacking": "0"}}},
    }
    assert with_earlier(now, earlier) == {
        # 2.0.1 and 2.4.0 are new: nothing is said of them and of what was not read again
        "fits": {"third": {"2.0": "0-5"}, "user": {"0.9": "1-2,4-5", "1.0": "2"}},
        "links": {"user": {"0.9": {**said, "lacking": "0,3"}, "1.0": {**said, "lacking": "0"}}},
    }
    read_nothing = {**earlier, "fits": {}, "links": {}}
    assert with_earlier(read_nothing, earlier) == {
        part: {name: earlier[part][name] for name in sorted(earlier[part])}
        for part in ("fits", "links")
    }


@pytest.fixture
def statements(tmp_path):
    wheels = {
        "1.0": record(core=[GONE]),
        "1.1": record(core=[GONE]),
        "1.2": record(other=[]),  # not judged: no statement goes over it, no cure names it
        "2.0": record(core=[CAME]),
        "2.1": record(core=[CAME, GONE]),  # for a torch that was not read
    }
    links = links_of(DOCUMENT, {"user": wheels}, {"user": ["user/core*.so"]})
    document = {**DOCUMENT, "links": links, "fits": {"user": {"1.2": "0-3"}}}
    (tmp_path / "symbols.json").write_text(json.dumps(document), "utf-8")
    return tmp_path


def test_statements_name_both_ranges_and_the_release_that_was_built_for_it(statements):
    said = {
        (str(entry["in"]), str(entry["lacking"]), entry["pin"], entry["name"])
        for entry in link_statements(statements, "user")
    }
    assert said == {
        ("[['1.0', '1.1']]", "[['2.2.0', '2.3.0']]", "user>=2.0,<=2.0", GONE),
        ("[['2.0', '2.0']]", "[['2.0.0', '2.1.0']]", "user<=1.1", CAME),
    }


def test_where_no_release_fits_another_torch_is_the_cure(tmp_path):
    links = links_of(DOCUMENT, {"user": {"1.0": record(core=[GONE])}}, {"user": ["user/core*.so"]})
    (tmp_path / "symbols.json").write_text(json.dumps({**DOCUMENT, "links": links}), "utf-8")
    (statement,) = link_statements(tmp_path, "user")
    assert (statement["lacking"], statement["pin"]) == ([["2.2.0", "2.3.0"]], "torch<=2.1.0")


def test_what_both_wheels_lack_is_said_of_both_machines(statements):
    """1.0 was read of both; the wheel of 1.1 for aarch64 needs another symbol; of 2.0 there is
    none.
    """
    path = statements / "symbols.json"
    document = json.loads(path.read_text("utf-8"))
    arm = {"user": {"1.0": record(core=[GONE]), "1.1": record(core=[CAME])}}
    loads = {"user": ["user/core*.so"]}
    document["aarch64"] = of_aarch64(document, document, arm, {}, {}, loads)
    assert document["aarch64"]["versions"] == {"user": "1.0 1.1"}
    path.write_text(json.dumps(document), "utf-8")
    said = {
        (entry["in"][0][0], entry["name"], *(asked for _, asked in entry.get("with", ())))
        for entry in link_statements(statements, "user")
    }
    assert said == {
        ("1.0", GONE),
        ("1.1", GONE, "x86_64"),
        ("1.1", CAME, "aarch64"),
        ("2.0", CAME, "x86_64"),
    }


def test_a_file_keeps_what_else_it_says_and_is_a_row_for_linux(statements):
    path = statements / "surfaces" / "user.json"
    write_links(statements, ["user"])
    first = path.read_text("utf-8")
    write_links(statements, ["user"])
    assert path.read_text("utf-8") == first
    document = json.loads(first)
    assert surface_fault(document, "user") == ""
    row = next(Surfaces(compile_surfaces([document])).rows(["user", "torch"]))
    assert (row.code, row.effect, row.pins) == ("ED409", "blocks", ("user>=2.0,<=2.0",))
    assert row.symptom == f"undefined symbol: {GONE}"
    assert [term.component for term in row.terms] == ["user", "torch", "host", "host"]
    assert {term.attribute for term in row.terms[2:]} == {"platform", "architecture"}
    imports = {**document["statements"][0], "verb": "", "id": "imports-torch.x"}
    path.write_text(json.dumps({**document, "statements": [imports]}), "utf-8")
    write_links(statements, ["user"])
    kept = json.loads(path.read_text("utf-8"))["statements"]
    assert next(entry["id"] for entry in kept) == "imports-torch.x"
    assert len(kept) == 3
