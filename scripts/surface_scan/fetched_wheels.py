"""Statements about wheels that setup.py of a release fetches from the project's release page, which
do not load where it fetches them: they follow from the builds of the matrix
(``scripts/read_release_pages``), with those of torch.

pip may as well have built the package, and its version does not tell: such a statement stops
nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from packaging.version import Version

from envdoctor.matrix.measured_rows import FETCHES, GLIBC

from .documents import runs

__all__ = ["fetched_statements"]

#: The constructor of c10::Error with a std::string of the new ABI, which every extension calls.
_NEW_ABI = "undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_string"
#: The variable by which setup.py of a package builds without looking for a wheel.
_FORCES = {"flash-attn": "FLASH_ATTENTION_FORCE_BUILD"}
_OF_WORKFLOW = "publish.yml"
_OLDEST_GLIBC = "2.17"


class _Fault(NamedTuple):
    """What is wrong with a fetched wheel. provider: torch of a minor version, or glibc before one.
    others: as in a statement.
    """

    provider: str
    version: str
    others: Tuple[Tuple[str, str], ...]
    effect: str
    text: str
    symptom: str
    kind: str


def fetched_statements(matrices: Path, consumer: str) -> List[Dict[str, Any]]:
    """Return the statements about a package, none where setup.py of none of its releases fetches
    wheels.
    """
    releases = _releases(matrices, consumer)
    if not any(build["index_name"] == "github" for one in releases for build in _builds(one)):
        return []
    torch = _releases(matrices, "torch")
    faults: Dict[_Fault, List[int]] = {}
    for number, release in enumerate(releases):
        for fault in dict.fromkeys(_faults(release, torch)):
            faults.setdefault(fault, []).append(number)
    versions = [release["version"] for release in releases]
    return [
        _statement(consumer, fault, versions, numbers, torch, releases)
        for fault, numbers in faults.items()
    ]


def _releases(matrices: Path, name: str) -> List[Mapping[str, Any]]:
    path = matrices / "packages" / f"{name}.json"
    document = json.loads(path.read_text("utf-8")) if path.exists() else {"releases": []}
    return sorted(document["releases"], key=lambda release: Version(release["version"]))


def _builds(release: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    """The builds of a release for x86_64, each with its index."""
    return [
        {"index_name": "pypi", **build}
        for build in release.get("builds", ())
        if "architecture" not in build
    ]


def _faults(release: Mapping[str, Any], torch: Sequence[Mapping[str, Any]]) -> Iterator[_Fault]:
    fetched = [build for build in _builds(release) if build["index_name"] == "github"]
    of_workflow = [build for build in fetched if build["source"].startswith(_OF_WORKFLOW)]
    glibc = {build.get("glibc", "") for build in of_workflow}
    if glibc and "" not in glibc:
        yield _of_glibc(min(glibc, key=Version))
    for build in fetched:
        if "labelled_abi" in build and _has_torch(torch, build):
            yield _of_abi(build)
        for major in build.get("fetched_under", ()):
            yield _of_cuda(build, major)


def _of_glibc(glibc: str) -> _Fault:
    text = f"wheels that need glibc {glibc}"
    return _Fault(
        GLIBC, glibc, (), "degrades", text, f"version `GLIBC_{glibc}' not found", "too-old"
    )


def _has_torch(torch: Sequence[Mapping[str, Any]], build: Mapping[str, Any]) -> bool:
    """Tell whether there is a torch for which setup.py takes a build by its label, and which has
    the ABI that the label names.
    """
    return any(
        other.get("cxx11abi") is build["labelled_abi"] and _major(other) == _major(build)
        for release in _of_minor(torch, build["torch"])
        for other in _builds(release)
    )


def _of_minor(torch: Sequence[Mapping[str, Any]], minor: str) -> List[Mapping[str, Any]]:
    return [release for release in torch if release["version"].startswith(f"{minor}.")]


def _major(build: Mapping[str, Any]) -> str:
    return str(build.get("cuda", "")).split(".")[0]


def _of_abi(build: Mapping[str, Any]) -> _Fault:
    minor = build["torch"]
    old = str(build["labelled_abi"]).lower()
    others = (("torch", _cuda(_major(build))), ("torch", f"cxx11abi={old}"))
    text = (
        f"a wheel for torch {minor} that is built with the new C++ ABI, whatever its label says: "
        "it does not load with a torch of the old one"
    )
    return _Fault("torch", minor, others, "degrades", text, _NEW_ABI, "abi-mismatch")


def _of_cuda(build: Mapping[str, Any], major: str) -> _Fault:
    own, minor = _major(build), build["torch"]
    pythons = "||".join(f"=={tag[2]}.{tag[3:]}.*" for tag in build.get("pythons", ()))
    others = (("torch", _cuda(major)), *((("python", pythons),) if pythons else ()))
    text = f"the wheel for CUDA {own} under a torch {minor} for CUDA {major}"
    symptom = "libcudart.so.11.0" if own == "11" else f"libcudart.so.{own}"
    symptom += ": cannot open shared object file"
    return _Fault("torch", minor, others, "note", text, symptom, "cuda-major-mismatch")


def _cuda(major: str) -> str:
    return f"cuda>={major},<{int(major) + 1}"


def _statement(
    consumer: str,
    fault: _Fault,
    versions: Sequence[str],
    numbers: Sequence[int],
    torch: Sequence[Mapping[str, Any]],
    releases: Sequence[Mapping[str, Any]],
) -> Dict[str, Any]:
    minors = [release["version"] for release in _of_minor(torch, fault.version)]
    lacking = [minors[0], minors[-1]] if minors else []
    if fault.provider == GLIBC:
        major, minor = fault.version.split(".")
        lacking = [_OLDEST_GLIBC, f"{major}.{int(minor) - 1}"]
    pin = _with_such_wheel(consumer, fault, releases) if fault.kind == "abi-mismatch" else ""
    cures = {
        "too-old": f"Use a system with glibc {fault.version} or newer",
        "abi-mismatch": f"Install {pin}" if pin else "Take a torch of the new ABI",
        "cuda-major-mismatch": "Install the wheel for torch's CUDA by its address, where the "
        "release page has one",
    }
    forced = f"{_FORCES[consumer]}=TRUE, " if consumer in _FORCES else ""
    words = [fault.provider, fault.version, fault.kind, versions[numbers[0]]]
    statement: Dict[str, Any] = {
        "id": "-".join(["fetches", *words]),
        "provider": fault.provider,
        "module": "",
        "name": fault.symptom,
        "effect": fault.effect,
        "verb": FETCHES,
        "text": fault.text,
        "in": runs(versions, numbers),
        "lacking": [lacking],
        "kind": fault.kind,
        "component": GLIBC if fault.provider == GLIBC else consumer,
        "archive": f"{consumer} {versions[numbers[-1]]}",
        "path": ".github/workflows/publish.yml and setup.py at its tag",
        "line": 0,
        "fix": f"{cures[fault.kind]}, or build {consumer} from source ({forced}pip install "
        "--no-cache-dir --no-build-isolation).",
    }
    if fault.others:
        statement["with"] = [list(pair) for pair in fault.others]
    if pin:
        statement["pin"] = pin
    return statement


def _with_such_wheel(consumer: str, fault: _Fault, releases: Sequence[Mapping[str, Any]]) -> str:
    """The requirement for the newest release with a wheel for a torch of the old ABI."""
    for release in reversed(releases):
        for build in _builds(release):
            if (
                (build["index_name"], build.get("torch")) == ("github", fault.version)
                and build.get("cxx11abi") is False
                and not build.get("nightly")
            ):
                return f"{consumer}=={release['version']}"
    return ""
