"""Symbols of torch: by hand on a small document, and the committed ones against known facts."""

import json
from pathlib import Path

import pytest

from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.symbols import (
    as_read_on_aarch64,
    history_of,
    is_template,
    symbols_fault,
    torch_of_wheels,
)
from envdoctor.model.versions import parse_version

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENT = {
    "schema": 1,
    "date": "2026-11-23",
    "source": "wheels",
    "versions": ["2.0.0", "2.1.0", "2.2.0", "2.3.0"],
    "symbols": {"0-1": "_ZN3c101aEv _ZN3c101abEv", "1-3": "_ZN3c101bEv"},
    "cuda": {"2": "_ZN3c104cuda1aEv", "0,2-3": "_ZN3c104cuda1bEv"},
    "x86_64": {"3": "_ZN3c101bEv"},
    "fits": {"user": {"1.0": "0,2-3"}},
}


def test_a_symbol_that_went():
    history = history_of(DOCUMENT, "_ZN3c101aEv")
    assert history.releases() == "2.0.0 to 2.1.0"
    assert history.begins
    assert history.requirement() == "torch<=2.1.0"
    versions = ["2.0.0", "2.1.0+cu121", "2.2.0", "2.2.0a0", "1.13.0"]
    assert [history.has(parse_version(one)) for one in versions] == [True, True, False, None, None]


def test_a_symbol_that_came_later_in_wheels_for_x86():
    assert history_of(DOCUMENT, "_ZN3c101bEv").releases() == "2.3.0 and newer"
    assert history_of(DOCUMENT, "_ZN3c101bEv", all_wheels=True).releases() == "2.1.0 and newer"


def test_a_symbol_with_a_gap():
    history = history_of(DOCUMENT, "_ZN3c104cuda1bEv")
    assert history.of_cuda
    assert history.releases() == "2.0.0 and 2.2.0 and newer"
    assert history.requirement(parse_version("2.1.0")) == "torch>=2.2.0"


def test_a_part_of_a_symbol_is_none():
    assert history_of(DOCUMENT, "_ZN3c101") is None
    assert history_of(DOCUMENT, "aEv _ZN3c101abEv") is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 2}, "schema 1"),
        ({"versions": ["x y"]}, "versions"),
        ({"symbols": {"0-9": "a"}}, "below 4, found '0-9'"),
        ({"cuda": {"": "a"}}, "below 4"),
        ({"x86_64": {"0": 1}}, "texts as x86_64"),
        ({"fits": {"user": {"1.0": "2-4"}}}, "fits: expected spans of places below 4"),
        ({"fits": None}, "fits"),
    ],
)
def test_what_is_wrong_with_a_document(change, said):
    assert symbols_fault(DOCUMENT) == ""
    assert said in symbols_fault({**DOCUMENT, **change})


def test_on_aarch64_nothing_is_said_of_what_was_read_for_x86_64_alone():
    library = {
        "versions": ["1", "2", "3"],
        "files": ["liba.so.1"],
        "symbols": {"0": "gone", "1-2": "came", "0,2": "back"},
    }
    own = {"versions": {"a": "2 3", "user": "1.1"}, "fits": {"user": {"1.1": "2"}}}
    document = {
        **DOCUMENT,
        "fits": {"user": {"1.0": "0", "1.1": "1"}, "third": {"1.0": "0"}},
        "libraries": {"a": library, "b": library, "cuda-driver": library},
        "aarch64": own,
    }
    assert symbols_fault(document) == ""
    read = as_read_on_aarch64(document)
    assert read["fits"] == {"user": {"1.1": "2"}}
    assert read["libraries"] == {
        "a": {**library, "versions": ["2", "3"], "symbols": {"0-1": "came", "1": "back"}},
        "cuda-driver": library,
    }
    for wrong in ({"versions": {"a": ["2"]}}, {**own, "fits": {"user": {"1.1": "9"}}}, []):
        assert symbols_fault({**document, "aarch64": wrong})


def test_which_torch_a_wheel_may_load_with():
    assert torch_of_wheels(DOCUMENT, "user") == {"1.0": {"2.0.0", "2.2.0", "2.3.0"}}
    assert torch_of_wheels(DOCUMENT, "nobody") == {}


def test_instances_of_templates():
    assert is_template("_ZNK2at10TensorBase8data_ptrIfEEPT_v")
    assert not is_template("_ZN3c104cuda9SetDeviceEi")


def test_the_committed_symbols():
    content = (ROOT / "matrices" / "symbols.json").read_text("utf-8")
    document = json.loads(content)
    assert symbols_fault(document) == ""
    assert len(content) < 1 << 20
    matrix = load_matrix()
    # The parameter of c10::cuda::SetDevice became a signed char with torch 2.3 (c10::DeviceIndex).
    assert matrix.symbol_history("_ZN3c104cuda9SetDeviceEi").releases() == "2.1.0 to 2.2.2"
    assert matrix.symbol_history("_ZN3c104cuda9SetDeviceEa").present[0][0] == "2.3.0"
    # torchaudio 2.5 and 2.8 are pinned to their torch, torchtext 0.18 was made for 2.3.
    wheels = matrix.torch_of_wheels("torchaudio")
    assert wheels["2.5.1"] <= {"2.5.0", "2.5.1"}
    assert wheels["2.8.0"] == {"2.8.0"}
    # The wheels for x86_64 have the new C++ ABI from 2.7 on, those for aarch64 from 2.6 on.
    error = (
        "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    )
    assert matrix.symbol_history(error).releases() == "2.7.0 and newer"
    assert matrix.symbol_history(error, all_wheels=True).releases() == "2.6.0 and newer"


def test_the_committed_symbols_of_aarch64():
    document = json.loads((ROOT / "matrices" / "symbols.json").read_text("utf-8"))
    for name, text in document["aarch64"]["versions"].items():
        path = ROOT / "matrices" / "packages" / f"{name}.json"
        releases = json.loads(path.read_text("utf-8"))["releases"] if path.exists() else ()
        listed = {entry["version"]: entry.get("platforms", ()) for entry in releases}
        for version in set(text.split()) & set(listed):
            assert any("aarch64" in platform for platform in listed[version]), (name, version)
    matrix = load_matrix()
    # torch's wheels for aarch64 have CUDA from 2.11 on: those before ask for no NCCL.
    for symbol, package, machine, asks in (
        ("ncclCommDeregister", "nvidia-nccl-cu12", "x86_64", True),
        ("ncclCommDeregister", "nvidia-nccl-cu12", "aarch64", False),
        ("ncclAlltoAll", "nvidia-nccl-cu13", "aarch64", True),
    ):
        histories = matrix.library_histories(symbol, machine)
        (history,) = [history for history in histories if history.package == package]
        assert ("torch" in {one.package for one in matrix.askers(history, machine)}) is asks
    # Without CUDA torchvision 0.23 needs less of torch, of which it has its own build there.
    wheels = {name: matrix.torch_of_wheels("torchvision", name) for name in ("aarch64", "x86_64")}
    assert wheels["x86_64"]["0.23.0"] < wheels["aarch64"]["0.23.0"]
    assert matrix.torch_of_wheels("xformers", "aarch64") == {}  # it has no such wheel
