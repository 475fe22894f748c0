"""The known-bad combinations in ``matrices/errata``: every row loads, means something, and can be
traced to a source.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Tuple

import pytest
from packaging.requirements import Requirement

from envdoctor.errors import MatrixError
from envdoctor.matrix.bind import Subject, Target, bind
from envdoctor.matrix.derive import _variable
from envdoctor.matrix.entries import Faults
from envdoctor.matrix.loader import load_folder, load_matrix
from envdoctor.matrix.schema import parse_document
from envdoctor.model.evidence import Evidence, Known
from envdoctor.model.facts import Facts
from envdoctor.model.finding import KINDS
from envdoctor.model.row import Row, Term
from envdoctor.model.versions import Version, VersionSet, parse_version

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib

MATRICES = Path(__file__).parents[2] / "matrices"
FILES = sorted((MATRICES / "errata").glob("*.toml"))


def load() -> Tuple[List[Row], List[str]]:
    faults = Faults()
    rows: List[Row] = []
    for path in FILES:
        with path.open("rb") as file:
            found, tables = parse_document(tomllib.load(file), path.name, faults)
        assert not tables, f"{path.name} holds rows only"
        rows += found
    return rows, faults.found


ROWS, FAULTS = load()
GPU_NAMES = {
    name
    for entry in tomllib.loads((MATRICES / "gpus.toml").read_text("utf-8"))["gpu"]
    for name in (entry["name"], *entry.get("aliases", []))
}
ARCHITECTURES = {
    entry["architecture"]
    for entry in tomllib.loads((MATRICES / "gpus.toml").read_text("utf-8"))["gpu"]
}


@cache
def releases(name: str) -> List[Version]:
    path = MATRICES / "packages" / f"{name}.json"
    if not path.exists():
        return []
    return sorted(
        parse_version(release["version"])
        for release in json.loads(path.read_text("utf-8"))["releases"]
    )


def env_versions(row: Row) -> Iterator[Term]:
    for term in row.terms:
        if (
            term.scope == "env"
            and term.attribute == "version"
            and isinstance(term.argument, VersionSet)
        ):
            yield term


def parametrize_rows(rows: List[Row]) -> Any:
    return pytest.mark.parametrize("row", rows, ids=[row.id for row in rows])


def test_every_row_loads() -> None:
    assert FAULTS == []
    assert len(ROWS) > 200


def test_ids_are_unique() -> None:
    assert [name for name, count in Counter(row.id for row in ROWS).items() if count > 1] == []


def test_rows_that_say_the_same_are_one_row() -> None:
    seen: Dict[Any, str] = {}
    for row in ROWS:
        key = (row.component, row.kind, frozenset(map(str, row.terms)))
        assert key not in seen, f"{row.id} repeats {seen.get(key)}"
        seen[key] = row.id


@parametrize_rows(ROWS)
def test_row_is_complete(row: Row) -> None:
    assert row.kind in KINDS
    assert row.fix.endswith("."), "the fix is a sentence"
    assert not row.title.endswith("."), "the title is the subject of a message"
    assert len(row.title) <= 140
    assert any(term.scope in ("env", "gpu") for term in row.terms), (
        "rows without a package or a device would be looked at on every machine"
    )
    for pin in row.pins:
        Requirement(pin)
    for source in row.sources:
        assert source.address.startswith("https://") or len(source.address.split()) >= 2, (
            "an address, or a document by name"
        )
        assert len(source.quote) <= 160, "a short quote"
    if row.trust == "established":
        assert row.sources
        assert row.established_by or any(
            source.address.startswith("https://") for source in row.sources
        )


@parametrize_rows(ROWS)
def test_ranges_hold_known_releases(row: Row) -> None:
    """A range that no release matches is a typing error.

    A table that does not reach back that far says nothing.
    """
    for term in env_versions(row):
        known = releases(term.component)
        if not known:
            continue
        assert isinstance(term.argument, VersionSet)
        if not term.argument & VersionSet.parse(f">={known[0]}"):
            continue
        assert any(version in term.argument for version in known), (
            f"{row.id}: no release of {term.component} is in {term.argument}"
        )


@parametrize_rows([row for row in ROWS if row.pins])
def test_pins_lead_out_of_the_row(row: Row) -> None:
    """Releases follow each pin, and whoever follows all of them is out of the row: what follows one
    alone may still be in it where another leads out.
    """
    staying = []
    leads_out = False
    for pin in map(Requirement, row.pins):
        name = re.sub(r"[-_.]+", "-", pin.name).lower()
        known = releases(name)
        if not known or not str(pin.specifier):
            continue
        allowed = [
            version for version in known if pin.specifier.contains(str(version), prereleases=True)
        ]
        assert allowed, f"{row.id}: no release of {name} is in {pin.specifier}"
        terms = [term for term in env_versions(row) if term.component == name]
        inside = [
            version
            for version in allowed
            if all(
                (version in term.argument) is not (term.operator == "lacks")
                for term in terms
                if isinstance(term.argument, VersionSet)
            )
        ]
        if terms:
            staying += [f"{name} {version}" for version in inside]
            leads_out = leads_out or not inside
    assert leads_out or not staying, f"{row.id}: {staying} follow the pins and are still in the row"


@parametrize_rows([row for row in ROWS if any(term.scope == "gpu" for term in row.terms)])
def test_devices_are_known(row: Row) -> None:
    for term in row.terms:
        if term.scope == "gpu" and isinstance(term.argument, frozenset):
            if term.attribute == "model":
                assert term.argument <= GPU_NAMES
            if term.attribute == "architecture":
                assert term.argument <= ARCHITECTURES


def test_a_build_from_source_is_not_called_broken() -> None:
    """A vllm built from source calls itself 0.1.dev: what ranges say of old releases must not meet
    it.
    """
    versions = (
        "torch==2.10.0 vllm==0.1.dev15000+gabcdef transformers==4.57.6 numpy==2.2.6 "
        "openai==2.30.0 triton==3.6.0"
    )
    installed = {
        name: parse_version(version)
        for name, _, version in (part.partition("==") for part in versions.split())
    }
    device = Subject(
        True,
        {"sm": "12.0", "compute_capability": parse_version("12.0"), "model": "GeForce RTX 5090"},
    )
    absent = Subject(False)
    target = Target(
        host=Subject(
            True,
            {
                "python": parse_version("3.12.9"),
                "glibc": parse_version("2.35"),
                "driver": parse_version("580.65.06"),
            },
        ),
        gpus=(device,),
        variable=lambda _: absent,
        request=lambda _: absent,
        environment=lambda package: (
            Subject(True, {"version": installed[package], "index": "pypi"})
            if package in installed
            else absent
        ),
    )
    broken = [
        row.id
        for row in ROWS
        if row.effect == "blocks"
        and row.trust == "established"
        and bind(row, target).outcome == "violated"
    ]
    assert broken == []


#: Combinations that must be found, by the row that finds them.
BROKEN: Mapping[str, str] = {
    "vllm-transformers-5": "vllm==0.11.0 transformers==5.1.0 torch==2.8.0",
    "vllm-aimv2-transformers-4.54": "vllm==0.9.2 transformers==4.54.1",
    "accelerate-1.3-transformers-4.52": "transformers==4.52.3 accelerate==0.34.0 trl==0.9.6",
    "kernels-0.15-transformers-5": "kernels==0.15.2 transformers==5.6.0",
    "tensordict-forkingpickler-torch-2.6": "tensordict==0.5.0 torch==2.6.0",
    "flash-attn-2.7.4-torch-2.7": "flash-attn==2.7.4.post1 torch==2.7.0+cu128",
    "sgl-kernel-old-abi-torch-2.7": "sgl-kernel==0.1.2 torch==2.7.0+cu128",
    "sglang-kernel-0.4.2-torch-2.11": "sglang-kernel==0.4.4+cu130 torch==2.12.1+cu130",
    "ray-2.6-2.8-pydantic-2": "ray==2.6.3 pydantic==2.3.0",
    "openrlhf-vllm-0.16": "openrlhf==0.9.4 vllm==0.16.0",
    "numpy-2-torch-2.2": "torch==2.1.2+cu121 numpy==2.0.1",
    "bitsandbytes-triton-ops": "bitsandbytes==0.44.1 triton==3.2.0",
    "deepspeed-bufsize-numpy-2": "deepspeed==0.14.0 numpy==2.0.0",
    "trl-guided-decoding-vllm-0.12": "trl==0.25.0 vllm==0.12.0",
    "datasets-pyarrow-21": "datasets==2.14.5 pyarrow==21.0.0",
    "peft-0.16-transformers-5": "peft==0.17.1 transformers==5.0.0",
    "verl-transformers-5": "verl==0.7.0 transformers==5.1.0",
    "vllm-openai-namespace-tool": "vllm==0.26.0 openai==2.8.0",
}


@pytest.mark.parametrize("row_id", BROKEN)
def test_known_bad_sets_are_found(row_id: str) -> None:
    installed = {
        part.split("==")[0]: parse_version(part.split("==")[1]) for part in BROKEN[row_id].split()
    }
    absent = Subject(False)
    target = Target(
        host=absent,
        gpus=(),
        variable=lambda _: absent,
        request=lambda _: absent,
        environment=lambda package: (
            Subject(True, {"version": installed[package], "index": "pypi"})
            if package in installed
            else absent
        ),
    )
    (row,) = [row for row in ROWS if row.id == row_id]
    assert bind(row, target).outcome == "violated"


def test_device_uuid_prefixes_reach_the_rows() -> None:
    """The rows on UUIDs in CUDA_VISIBLE_DEVICES need the attribute that derive makes of the
    variable.
    """
    facts = Facts(
        {
            "variables": Known(
                {"CUDA_VISIBLE_DEVICES": "MIG-377e0049-554c-540b-93c6-d0976f8426cb"},
                Evidence("test"),
            )
        }
    )
    assert _variable(facts, "CUDA_VISIBLE_DEVICES").attributes["prefixes"] == frozenset(["MIG"])


def test_what_was_deleted_is_said_by_another_row() -> None:
    matrix = load_matrix()
    assert matrix.retired
    for row_id, says in matrix.retired.items():
        said = matrix.row(says)
        assert said is not None, f"{row_id}: there is no row {says}"
        assert (said.origin, matrix.row(row_id)) == ("derived", said)
        assert said.fix, f"{says} has no remedy"


def test_the_id_of_a_deleted_row_is_not_used_again(tmp_path: Path) -> None:
    folder = tmp_path / "matrices"
    shutil.copytree(MATRICES, folder)
    path = folder / "errata" / "ray.toml"
    text = path.read_text("utf-8")
    deleted = next(iter(load_matrix().retired))
    path.write_text(re.sub(r'(?m)^id = "[^"]+"', f'id = "{deleted}"', text, count=1), "utf-8")
    with pytest.raises(MatrixError, match="that of a row that was deleted"):
        load_folder(str(folder))
