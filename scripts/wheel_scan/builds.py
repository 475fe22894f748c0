"""A record of a wheel → a ``Build`` of the matrix, and the step that writes builds into
``matrices/packages/*.json``.

Only builds of the default index for an architecture that was read are replaced; what a wheel does
not tell (the torch and the CUDA minor that a package was built for, the label) stays as it stands
there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from matrix_refresh.documents import load_document, render, write_if_new
from matrix_refresh.errors import UsageFault
from packaging.version import Version

from envdoctor.matrix.derived_rows import DEFAULT_ENTRY, toolkit_of_ptx

from .members import PROFILES
from .record import Records

__all__ = ["builds_of", "merge"]

_MOST_KERNELS = 6
#: A package file that somebody wrote to just now is left alone: another program is at it.
_QUIET = 120.0

_CUDA_LIBRARY = re.compile(
    r"lib(?:cudart|cublas|cublasLt|cudnn\w*|nccl|nvrtc|nvJitLink|cusparse\w*|cufft\w*|curand|"
    r"cusolver\w*|nvshmem\w*|cufile|cupti|nvToolsExt)\.so\.[\d.]+"
)

#: In this order in a build; fields that stand here are measured, and replaced or removed by what a
#: scan says.
_ORDER = (
    *(
        "index_name",
        "variant",
        "cuda",
        "sass",
        "ptx",
        "ptx_cuda",
        "ptx_read",
        "entries",
        "tools",
        "cxx11abi",
        "glibc",
        "glibc_parts",
        "glibcxx",
        "torch",
    ),
    *("torch_symbols", "needed", "bundled", "architecture", "trust", "source"),
)
_MEASURED_CODE = frozenset(("sass", "ptx", "ptx_cuda", "ptx_read", "entries"))

Build = Dict[str, Any]


def _order(text: str) -> Tuple[float, str]:
    number = re.match(r"\d+\.\d", text)
    return (float(number.group()) if number else 0.0, text)


def _stem(name: str) -> str:
    """``vllm/_C.abi3.so`` → ``_C``; the folder stays where two libraries of a wheel are called the
    same.
    """
    return name.split("/", 1)[-1].split(".", 1)[0]


def entries_of(members: Mapping[str, Mapping[str, Any]]) -> List[str]:
    """Return the distinct kinds of fat binaries of a wheel:
    ``sass=8.0;ptx=8.0@8.7;in=_C,_moe_C;kernels=marlin``.

    Left out are those that hold no kernel: nvcc makes one for 5.2 of a source without device code.
    """
    holders: Dict[str, List[str]] = {}
    kernels: Dict[str, Counter[str]] = {}
    for name, member in members.items():
        for signature, entry in member.get("fatbins", {}).items():
            if not signature or (
                entry["without_kernels"] and entry["without_kernels"] == entry["count"]
            ):
                continue
            holders.setdefault(signature, []).append(_stem(name))
            families = kernels.setdefault(signature, Counter())
            for family, count in entry["kernels"].items():
                word = re.match(r"[A-Za-z0-9_]+", family.split("::", 1)[0])
                # Namespaces that libraries of headers bring are in everything.
                if word is not None and word.group() not in ("cub", "at", "thrust", "cutlass"):
                    families[word.group()] += count
    entries = []
    for signature in sorted(holders):
        text = f"{signature};in={','.join(sorted(set(holders[signature])))}"
        if "ptx=" in signature and kernels[signature]:
            names = [name for name, _ in kernels[signature].most_common(_MOST_KERNELS)]
            text += f";kernels={','.join(sorted(names))}"
        entries.append(text)
    return entries


def _code(members: Mapping[str, Mapping[str, Any]]) -> Build:
    """What the fat binaries of some libraries say together."""
    entries = entries_of(members)
    sass, ptx, versions = set(), set(), set()
    for entry in entries:
        for part in entry.split(";"):
            key, _, values = part.partition("=")
            if entry.startswith(DEFAULT_ENTRY):
                continue
            if key == "sass":
                sass |= set(values.split(","))
            elif key == "ptx":
                ptx |= {value.split("@")[0] for value in values.split(",")}
                versions |= {value.split("@")[1] for value in values.split(",")}
    toolkits = [toolkit for toolkit in map(toolkit_of_ptx, versions) if toolkit is not None]
    build: Build = {
        "sass": sorted(sass, key=_order),
        "ptx": sorted(ptx, key=_order),
        "entries": entries,
    }
    if toolkits:
        build["ptx_cuda"] = max(toolkits, key=Version)
    return build


def _linkage(members: Mapping[str, Mapping[str, Any]], main: Optional[str] = None) -> Build:
    """What the loader will want for some libraries together; glibc for those in ``main``, others
    that want more stand by themselves.
    """
    parts = [
        (name, member["elf"])
        for name, member in members.items()
        if member.get("elf") and "fault" not in member["elf"]
    ]
    build: Build = {}
    first = [item for item in parts if main is None or re.fullmatch(main, item[0])] or parts
    for key in ("glibc", "glibcxx"):
        versions = [elf[key] for _, elf in first if elf[key]]
        if versions:
            build[key] = max(versions, key=Version)
    floor = Version(build.get("glibc", "0"))
    build["glibc_parts"] = sorted(
        {
            f"{_stem(name)}={elf['glibc']}"
            for name, elf in parts
            if elf["glibc"] and Version(elf["glibc"]) > floor
        }
    )
    build["needed"] = sorted(
        {soname for _, elf in parts for soname in elf["needed"] if _CUDA_LIBRARY.fullmatch(soname)}
    )
    abis = {elf["cxx11abi"] for _, elf in parts if elf["cxx11abi"] is not None}
    if len(abis) == 1:
        build["cxx11abi"] = abis.pop()
    symbols = sorted(
        (name, elf["torch_symbols"], elf["torch_digest"])
        for name, elf in parts
        if elf["torch_symbols"]
    )
    if symbols:
        digest = hashlib.sha256(
            "\n".join(str(item[2]) for item in symbols).encode("ascii")
        ).hexdigest()[:16]
        build["torch_symbols"] = f"{sum(item[1] for item in symbols)}:{digest}"
    return build


def builds_of(package: str, record: Mapping[str, Any]) -> List[Build]:
    """Return what a record says, one build for each alternative of a package."""
    members: Mapping[str, Mapping[str, Any]] = record["members"]
    code = {name: member for name, member in members.items() if member["how"] == "code"}
    if package == "torch":
        return [_torch(members, code)]
    if package == "triton":
        return [_triton(members)]
    if PROFILES[package].cubins:
        return [_cubins(record)]
    if PROFILES[package].alternatives:
        return [
            {
                **_code({name: member}),
                **_linkage({name: member}),
                "cuda": _digits(name),
                "source": f"fat binaries, NEEDED and symbol versions of {name}",
            }
            for name, member in sorted(code.items(), key=lambda item: Version(_digits(item[0])))
            if "_nocublaslt" not in name
        ]
    if not code:
        return []
    if PROFILES[package].brief:
        whole = _code(code)
        return [
            {
                **{key: whole[key] for key in ("sass", "ptx")},
                "source": f"fat binaries of {len(code)} libraries in the wheel",
            }
        ]
    build = {**_code(code), **_linkage(code, PROFILES[package].main)}
    values = {
        key: value
        for member in members.values()
        for key, value in (member.get("values") or {}).items()
    }
    if re.fullmatch(r"\d{4}", values.get("cuda", "")):
        build["cuda"] = f"{int(values['cuda'][:2])}.{int(values['cuda'][2:])}"
    minor = re.match(r"\d+\.\d+", values.get("torch", ""))
    # Without a symbol of the C++ ABI it may use the stable ABI alone, which binds it to no minor.
    if minor is not None and "cxx11abi" in build:
        build["torch"] = minor.group()
    build["bundled"] = list(record.get("bundled", ()))
    build["source"] = (
        f"fat binaries, NEEDED and symbol versions of {len(code)} libraries in the wheel"
        + ("; CUDA from cpp_lib.json" if "cuda" in build else "")
    )
    return [build]


def _digits(name: str) -> str:
    """``libbitsandbytes_cuda128.so`` → ``12.8``."""
    match = re.search(r"_cuda(\d+)(\d)", name)
    return f"{match.group(1)}.{match.group(2)}" if match else "0"


def _torch(
    members: Mapping[str, Mapping[str, Any]], code: Mapping[str, Mapping[str, Any]]
) -> Build:
    values = {
        key: value
        for member in members.values()
        for key, value in (member.get("values") or {}).items()
    }
    build = _linkage({name: member for name, member in members.items() if member.get("elf")})
    # libc10 and libtorch are torch itself: what they want of each other says nothing about
    # extensions. All of them are loaded.
    for key in ("torch_symbols", "glibc_parts"):
        build.pop(key, None)
    # Only the runtime is wanted here: cuDNN, NCCL and others come as distributions of their own.
    build["needed"] = [soname for soname in build["needed"] if soname.startswith("libcudart.")]
    if "cxx11abi" in values:
        build["cxx11abi"] = values["cxx11abi"] == "1"
    if "cuda" in values:
        build["cuda"] = values["cuda"]
    label = re.search(r"\+(cu\d+|cpu)$", values.get("version", ""))
    if label is not None:
        build["variant"] = label.group(1)
    architectures = [name for member in members.values() for name in member.get("archs", ())]
    build["sass"] = sorted(
        (_dotted(name) for name in architectures if name.startswith("sm_")), key=_order
    )
    build["ptx"] = sorted(
        (_dotted(name) for name in architectures if name.startswith("compute_")), key=_order
    )
    source = "version.py, TorchConfig.cmake, libtorch_python.so and symbol versions in the wheel"
    if code:
        measured = _code(code)
        build["entries"] = measured["entries"]
        if "ptx_cuda" in measured and build["ptx"]:
            build["ptx_cuda"] = measured["ptx_cuda"]
        source += f"; fat binaries of {', '.join(sorted(name.rsplit('/', 1)[-1] for name in code))}"
    build["source"] = source
    return build


def _dotted(name: str) -> str:
    digits = name.split("_", 1)[1]
    number = digits.rstrip("af")
    return f"{number[:-1]}.{number[-1]}{digits[len(number) :]}"


def _triton(members: Mapping[str, Mapping[str, Any]]) -> Build:
    tools = []
    for name, member in sorted(members.items()):
        if member["how"] == "tool" and member["version"]:
            known = ",".join(
                f"{target.rstrip('af')[:-1]}.{target.rstrip('af')[-1]}"
                f"{target[len(target.rstrip('af')) :]}"
                for target in member["targets"]
            )
            tools.append(f"{name.rsplit('/', 1)[-1]}={member['version']};sm={known}")
    return {"tools": tools, "source": "version and architecture names in the wheel's ptxas"}


def _cubins(record: Mapping[str, Any]) -> Build:
    counts = dict(record["cubins"])
    unnamed = counts.pop("", 0)
    sass = sorted((_dotted(f"sm_{name}") for name in counts), key=_order)
    return {
        "sass": sass,
        "source": f"names of {sum(counts.values())} cubin files in the wheel"
        + (f"; {unnamed} more tell no architecture" if unnamed else ""),
    }


# --------------------------------------------------------------------------------------------------
# merging


def merge(folder: Path, results: Path, records: Records, write: bool = True) -> Iterator[str]:
    """Write what was read into the package files; yield a line for everything that changes.

    A file that changed in the last two minutes is left for another run.

    Raises:
        UsageFault: no results, or a file that is no package file.
    """
    try:
        known = json.loads(results.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageFault(
            f"{results}: expected the results of a scan, found none: {error}"
        ) from error
    for package, architectures in sorted(known.items()):
        path = folder / f"{package}.json"
        document = load_document(str(path), package)
        if document is None:
            yield f"{package}: has no package file"
            continue
        age = time.time() - os.stat(path).st_mtime
        if write and age < _QUIET:
            yield f"{package}: was written {age:.0f} s ago, left for another run"
            continue
        for architecture, versions in architectures.items():
            by_version = {Version(text): (text, sha256) for text, sha256 in versions.items()}
            for release in document["releases"]:
                _, sha256 = by_version.pop(Version(release["version"]), ("", ""))
                record = records.load(sha256) if sha256 else None
                if record is None or not record.get("complete"):
                    continue
                yield from _replace(package, release, builds_of(package, record), architecture)
            for text, _ in by_version.values():
                yield f"{package} {text}: is not in the package file"
        if write and write_if_new(str(path), render(document)):
            yield f"{package}: written"


def _replace(
    package: str, release: Dict[str, Any], measured: List[Build], architecture: str
) -> Iterator[str]:
    """Put measured builds in the place of those of the index and architecture; yield what differs
    from before.
    """
    builds = list(release.get("builds", ()))
    own = [build for build in builds if _is_of_index(build, architecture)]
    others = [build for build in builds if build not in own]
    made = []
    for build in measured:
        before = (
            own[0]
            if len(own) == 1 and len(measured) == 1
            else next((old for old in own if old.get("cuda") == build.get("cuda")), {})
        )
        if architecture != "x86_64":
            build = {**build, "architecture": architecture}
        made.append(_joined(package, before, build))
        where = f"{package} {release['version']} {architecture}"
        yield from _differences(where, before, made[-1])
    if made:
        first = [build for build in others if _is_of_index(build, "x86_64")]
        release["builds"] = first + made + [build for build in others if build not in first]


def _is_of_index(build: Mapping[str, Any], architecture: str) -> bool:
    return (
        build.get("index_name", "pypi") == "pypi"
        and build.get("architecture", "x86_64") == architecture
    )


def _joined(package: str, before: Mapping[str, Any], build: Mapping[str, Any]) -> Build:
    joined = dict(before)
    if "entries" in build or package == "flashinfer-cubin":
        for key in _MEASURED_CODE:
            joined.pop(key, None)
    if (
        package == "torch"
        and "glibc" in before
        and Version(before["glibc"]) > Version(build.get("glibc", "0"))
    ):
        build = {**build, "glibc": before["glibc"]}  # an earlier reading took larger libraries in
    joined.update({key: value for key, value in build.items() if value not in (None, [], ())})
    if "cuda" not in build:
        major = next(
            (
                soname.rsplit(".so.", 1)[1].split(".")[0]
                for soname in build.get("needed", ())
                if soname.startswith("libcudart.so.")
            ),
            None,
        )
        if major is not None and _major(before.get("cuda")) != major:
            joined["cuda"] = major
        elif major is None and before.get("trust") == "reported" and not build.get("sass"):
            joined.pop("cuda", None)  # nothing in the wheel is of the CUDA that was supposed
    if joined.get("trust") == "reported":
        del joined["trust"]
    return {key: joined[key] for key in _ORDER if joined.get(key) not in (None, [], ())}


def _major(text: Optional[str]) -> Optional[str]:
    return None if text is None else text.split(".", 1)[0]


def _differences(where: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[str]:
    for key in (
        "cuda",
        "sass",
        "ptx",
        "ptx_cuda",
        "cxx11abi",
        "glibc",
        "needed",
        "torch",
        "variant",
    ):
        if key in before and before[key] != after.get(key):
            yield f"{where}: {key}: {_shown(before[key])} → {_shown(after.get(key))}"


def _shown(value: Any) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)
