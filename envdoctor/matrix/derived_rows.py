"""Rows that follow from the tables: ordinary ``Row`` values, so that check and the solver share
them as well.

* a build's CUDA major against the driver (minor-version compatibility):
  ``driver-for-cuda-13:torch``
* a GPU against the code in a build: ``code-for-7.0:vllm``
* PTX in a build that is newer than the driver: ``ptx-12.8-on-9.0:vllm``
* a GPU generation against the driver branch: ``driver-since-10.0``, ``driver-until-7.0``
* a GPU against the assembler in a wheel of triton: ``ptxas-without-12.0:triton``
* the CUDA and the C++ ABI of a build against those of torch: ``cuda-12-beside-another:vllm``,
  ``cxx11abi-false-beside-true:vllm``
* what the metadata of a release asks for: ``vllm-0.8.5-requires-torch``

The part behind the colon is the distribution that a rule about all of them ("*") was applied to.
"""

from __future__ import annotations

from functools import lru_cache

from ..model.row import Row, Source, Term
from ..model.sizes import whole_number
from ..model.versions import VersionSet, parse_version, try_version
from .tables import Capability, CodeDemand, CudaMajor, DriverBranch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        AbstractSet,
        Any,
        Dict,
        FrozenSet,
        Iterable,
        List,
        Mapping,
        Optional,
        Sequence,
        Tuple,
    )

__all__ = [
    "DEFAULT_ENTRY",
    "LINKED",
    "UNREAD",
    "WORK_WITHOUT",
    "assembled",
    "assembler_gaps",
    "assembler_rows",
    "code_rows",
    "cuda_major_rows",
    "entry_demands",
    "generation_rows",
    "ptx_demands",
    "ptx_rows",
    "runs_on",
    "sass_for",
    "toolkit_of_ptx",
    "torch_build_rows",
    "torch_builds",
]

#: Distributions whose extensions link libtorch's C++ API. Builds for the stable ABI (torchao,
#: torchaudio from 2.9) carry no torch in the matrix.
LINKED = (
    "vllm",
    "flash-attn",
    "flash-attn-3",
    "vllm-flash-attn",
    "sgl-kernel",
    "sglang-kernel",
    "xformers",
    "torchvision",
    "torchaudio",
    "causal-conv1d",
    "mamba-ssm",
    "flashinfer",
    "flashinfer-python",
    "transformer-engine-torch",
    "apex",
    "auto-gptq",
    "deep-ep",
    "deep-gemm",
    "exllamav2",
    "fbgemm-gpu",
    "grouped-gemm",
    "natten",
    "sageattention",
    "torch-cluster",
    "torch-scatter",
    "torch-sparse",
    "torch-spline-conv",
)
#: They load their extension under a guard and work without it, more slowly: the __init__ of torchao
#: 0.5 to 0.18 says so in their wheels, and 0.9.0 quantises a layer beside torch 2.9.1.
WORK_WITHOUT = ("torchao",)

#: Compute capabilities that binaries may hold code for, in order; PTX of each compiles for every
#: later one.
_CAPABILITIES = (
    *(
        "2.0",
        "3.0",
        "3.5",
        "3.7",
        "5.0",
        "5.2",
        "5.3",
        "6.0",
        "6.1",
        "6.2",
        "7.0",
        "7.2",
        "7.5",
        "8.0",
        "8.6",
        "8.7",
        "8.8",
        "8.9",
    ),
    *("9.0", "10.0", "10.1", "10.3", "10.7", "11.0", "12.0", "12.1"),
)

_MINOR_VERSION = (
    "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"
)
_BINARY_COMPATIBILITY = Source(
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#binary-compatibility",
    "binary compatibility is guaranteed from one minor revision to the next one, not across major "
    "revisions; PTX compiles on any later one",
)


def _order(capability: str) -> Tuple[int, int]:
    major, _, minor = capability.partition(".")
    return int(major), int(minor)


@lru_cache(maxsize=64)
def sass_for(capability: str) -> FrozenSet[str]:
    """Return the machine code that runs on a device: same major and a minor not above, and code
    made for exactly this one.

    ``sass:9.0a`` (architecture-specific) runs on 9.0 alone; ``sass:10.0f`` (family) on its family,
    which is the same major.
    """
    major, minor = _order(capability)
    same = [
        known
        for known in (*_CAPABILITIES, capability)
        if _order(known)[0] == major and _order(known)[1] <= minor
    ]
    return frozenset(
        [f"sass:{known}" for known in same]
        + [f"sass:{known}f" for known in same]
        + [f"sass:{capability}a"]
    )


@lru_cache(maxsize=64)
def ptx_for(capability: str) -> FrozenSet[str]:
    """Return the PTX that a driver compiles for a device: of any capability not above;
    architecture-specific PTX for exactly this one.
    """
    place = _order(capability)
    below = [known for known in (*_CAPABILITIES, capability) if _order(known) <= place]
    family = [f"ptx:{known}f" for known in below if _order(known)[0] == place[0]]
    return frozenset([f"ptx:{known}" for known in below] + family + [f"ptx:{capability}a"])


@lru_cache(maxsize=64)
def runs_on(capability: str) -> FrozenSet[str]:
    """Return all entries of ``code`` that serve a device."""
    return sass_for(capability) | ptx_for(capability)


def _row(row_id: str, terms: Sequence[Term], **values: Any) -> Row:
    fields: Dict[str, Any] = {
        "effect": "blocks",
        "trust": "established",
        "symptom": "",
        "pins": (),
        "overrides": (),
        "mitigations": (),
        "established_by": "follows from the tables",
        "origin": "derived",
    }
    fields.update(values)
    return Row(id=row_id, terms=tuple(terms), **fields)


@lru_cache(maxsize=256)
def _set(text: str) -> VersionSet:
    return VersionSet.parse(text)


@lru_cache(maxsize=64)
def _major_terms(major: int) -> Tuple[VersionSet, Term]:
    return _set(f">={major},<{major + 1}"), Term("host", "host", "cuda", "in", _set(f"<{major}"))


def cuda_major_rows(
    majors: Iterable[CudaMajor], name: str, demand: Optional[CodeDemand], date: str
) -> List[Row]:
    """Return for each CUDA major: this distribution is built for it, and the driver does not serve
    it (ED101).

    demand: What it means that it has no code for a GPU, None where nobody said: code that the
        driver does not take means no more. Without either nothing of the distribution runs.
    """
    rows = []
    effect = "note" if name in WORK_WITHOUT else demand.effect if demand is not None else "blocks"
    for entry in majors:
        built, host = _major_terms(entry.major)
        rows.append(
            _row(
                f"driver-for-cuda-{entry.major}:{name}",
                (host, Term("env", name, "cuda", "in", built)),
                effect=effect,
                component="nvidia-driver",
                kind="too-old",
                code="ED101",
                title=f"The driver is too old for CUDA {entry.major}, which needs "
                f"{entry.min_driver} or newer",
                symptom="CUDA driver version is insufficient for CUDA runtime version; The NVIDIA "
                "driver on your system is too old",
                fix=f"Update the driver to {entry.min_driver} or newer, or install builds for an "
                "older CUDA major.",
                pins=(f"nvidia-driver>={entry.min_driver}",),
                sources=(entry.source,),
                date=date,
            )
        )
    return rows


def code_rows(capabilities: Iterable[Capability], demand: CodeDemand, date: str) -> List[Row]:
    """Return for each compute capability: a device of it is there, and the build has no code for it
    (ED120 torch, ED121 others).
    """
    name = demand.package
    rows = []
    for entry in capabilities:
        serving = runs_on(entry.capability)
        what = f"compute capability {entry.capability} ({entry.architecture})"
        fix = (
            f"Install a release or build of {name} that has code for "
            f"sm_{entry.capability.replace('.', '')}"
        )
        if entry.last_cuda is not None:
            fix += (
                f": builds for CUDA 13 have none for {entry.architecture}, so take one for CUDA 12"
            )
        elif parse_version(entry.first_cuda) >= parse_version("12"):
            fix += f": one built with CUDA {entry.first_cuda} or newer"
        rows.append(
            _row(
                f"code-for-{entry.capability}:{name}",
                (
                    Term("gpu", "gpu", "sm", "any", frozenset((entry.capability,))),
                    Term("env", name, "version", "present", True),
                    Term("env", name, "code", "lacks", serving),
                ),
                effect=demand.effect,
                trust=demand.trust,
                component=name,
                kind="arch-missing",
                code="ED120" if name == "torch" else "ED121",
                title=f"This build of {name} has no code for GPUs of {what}",
                symptom=demand.symptom
                or "CUDA error: no kernel image is available for execution on the device",
                fix=fix + ".",
                sources=(_BINARY_COMPATIBILITY, demand.source),
                date=date,
            )
        )
    return rows


#: The first toolkit whose ptxas takes a version of the PTX language; from 9.0 (CUDA 13.0) on both
#: count alike.
_TOOLKITS = {
    **{f"7.{minor}": f"11.{minor}" for minor in range(9)},
    **{f"8.{minor}": f"12.{minor}" for minor in range(6)},
    "8.6": "12.7",
    "8.7": "12.8",
    "8.8": "12.9",
}

#: How a fat binary begins whose source was compiled without any architecture, for nvcc's default of
#: CUDA 11 and 12.
DEFAULT_ENTRY = "sass=5.2;ptx=5.2@"

#: ``jit`` of a build whose fat binaries were not read one by one.
UNREAD: FrozenSet[str] = frozenset(("unread",))


def toolkit_of_ptx(version: str) -> Optional[str]:
    """Return the first CUDA version that compiles a version of the PTX language: "8.7" gives
    "12.8"; None where that is not known.

    docs.nvidia.com/cuda/parallel-thread-execution, "Release notes"; measured from 7.8 to 9.2 on
    libraries that are built with one toolkit each.
    """
    major, _, minor = version.partition(".")
    number = whole_number(major)
    if number is not None and number >= 9 and whole_number(minor) is not None:
        return f"{number + 4}.{minor}"
    return _TOOLKITS.get(version)


@lru_cache(maxsize=256)
def _entry(text: str) -> Tuple[FrozenSet[str], Tuple[Tuple[str, str], ...], Tuple[str, ...]]:
    """Machine code, (PTX, its version), and kernels of one of ``Build.entries``."""
    fields = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
    sass = frozenset(f"sass:{sm}" for sm in fields.get("sass", "").split(",") if sm)
    pairs = [item.split("@", 1) for item in fields.get("ptx", "").split(",") if "@" in item]
    return (
        sass,
        tuple((f"ptx:{sm}", version) for sm, version in pairs),
        tuple(filter(None, fields.get("kernels", "").split(","))),
    )


@lru_cache(maxsize=256)
def _left_to_the_driver(entries: Tuple[str, ...]) -> Mapping[Tuple[str, str, str], FrozenSet[str]]:
    """What fat binaries leave to the driver's compiler: (CUDA that made the PTX, capability, kind)
    and the kernels.

    A fat binary without machine code for a device is compiled from its PTX of the highest
    architecture that is not above the device's. Kind "all": so it is for every fat binary that
    serves such a device. "some": machine code of others serves it. Of several versions of PTX the
    newest counts. What was compiled for no architecture in particular serves no device by itself.
    """
    parsed = [(*_entry(text), text.startswith(DEFAULT_ENTRY)) for text in entries]
    left: Dict[Tuple[str, str, str], FrozenSet[str]] = {}
    for capability in _CAPABILITIES:
        sass, ptx = sass_for(capability), ptx_for(capability)
        served = any(not held.isdisjoint(sass) and not default for held, _, _, default in parsed)
        newest = ""
        kernels: FrozenSet[str] = frozenset()
        for held, offered, names, default in parsed:
            if not held.isdisjoint(sass) or (default and not served):
                continue
            toolkit = _newest_toolkit(offered, ptx)
            if toolkit is None:
                continue
            if not newest or parse_version(toolkit) > parse_version(newest):
                newest, kernels = toolkit, frozenset(names)
            elif toolkit == newest:
                kernels |= frozenset(names)
        if newest:
            left[newest, capability, "some" if served else "all"] = kernels
    return left


def _newest_toolkit(offered: Iterable[Tuple[str, str]], fitting: AbstractSet[str]) -> Optional[str]:
    """Return the CUDA that made the PTX of the highest architecture among those that fit."""
    versions = [
        (_order(name[4:].rstrip("af")), version) for name, version in offered if name in fitting
    ]
    return toolkit_of_ptx(max(versions)[1]) if versions else None


@lru_cache(maxsize=256)
def entry_demands(entries: Tuple[str, ...]) -> FrozenSet[str]:
    """Return what ``jit`` of a build holds: "some:9.0@12.8" where single fat binaries are PTX of
    CUDA 12.8 alone for a 9.0 device.
    """
    return frozenset(
        f"{kind}:{capability}@{cuda}" for cuda, capability, kind in _left_to_the_driver(entries)
    )


def ptx_demands(builds: Iterable[Mapping[str, Any]]) -> List[List[str]]:
    """Return [CUDA that made the PTX, capability, kind] for what builds leave to the driver's
    compiler.

    Of builds whose fat binaries were read one by one (``entries``), with the kernels as a fourth
    item:

    "all": for such a device the build is PTX throughout.
    "some": single fat binaries are PTX alone, others have machine code for the device.

    Of builds of which only a union over the wheel is known:

    "only": no machine code of the build serves such a device, PTX does.
    "partly": machine code serves it, but the build also lists PTX of a lower major, so that single
    kernels may be there as that PTX alone (vllm compiles some sources for ``8.0+PTX``, which a 9.0
    device gets as PTX). PTX of the device's own major beside its machine code says nothing of the
    kind: that is what ``9.0+PTX`` for all sources looks like.
    """
    demands = set()
    measured: Dict[Tuple[str, str, str], FrozenSet[str]] = {}
    for build in builds:
        if build.get("entries"):
            for demand, kernels in _left_to_the_driver(tuple(build["entries"])).items():
                measured[demand] = measured.get(demand, frozenset()) | kernels
            continue
        cuda, ptx = build.get("ptx_cuda"), build.get("ptx", ())
        if cuda is None or try_version(cuda) is None:
            continue
        sass = frozenset(f"sass:{sm}" for sm in build.get("sass", ()))
        offered = frozenset(f"ptx:{sm}" for sm in ptx)
        for capability in _CAPABILITIES:
            if sass.isdisjoint(sass_for(capability)):
                if not offered.isdisjoint(ptx_for(capability)):
                    demands.add((cuda, capability, "only"))
            elif not offered.isdisjoint(_older_ptx(capability)):
                demands.add((cuda, capability, "partly"))
    return [list(demand) for demand in sorted(demands)] + [
        [*demand, _few(measured[demand])] for demand in sorted(measured)
    ]


def _few(names: Iterable[str]) -> str:
    shown = sorted(names, key=lambda name: (len(name), name))
    return ", ".join(shown[:4]) + (", …" if len(shown) > 4 else "")


def _older_ptx(capability: str) -> FrozenSet[str]:
    """The PTX of majors below a device's."""
    major = _order(capability)[0]
    return frozenset(f"ptx:{known}" for known in _CAPABILITIES if _order(known)[0] < major)


def ptx_rows(
    demand: CodeDemand,
    ptx: Iterable[Sequence[str]],
    first_ptx: Mapping[str, Optional[str]],
    date: str,
) -> List[Row]:
    """Return the rows about PTX newer than the driver (ED102).

    ``first_ptx`` maps each known capability to the CUDA version of the first driver branch that
    knows it (None: older than all that are known). Where that is not older than the PTX, no driver
    of such a device can fail, and there is no row. "only" and "all" mean for the package what no
    code at all means; "some" degrades, and it is established: the kernels that are named fail when
    they are called, the others run. "partly" is reported, since a union over the wheel does not
    tell which kernels are PTX alone.
    """
    rows = []
    name = demand.package
    for cuda, capability, kind, *kernels in ptx:
        oldest = first_ptx.get(capability, cuda)
        if cuda.endswith(".0") or (
            oldest is not None and parse_version(oldest) >= parse_version(cuda)
        ):
            continue  # a driver below x.0 does not serve the major at all, which is ED101
        terms = [
            Term("host", "host", "ptx", "in", _set(f"<{cuda}")),
            Term("gpu", "gpu", "sm", "any", frozenset((capability,))),
        ]
        if kind in ("all", "some"):
            terms.append(
                Term("env", name, "jit", "has", frozenset((f"{kind}:{capability}@{cuda}",)))
            )
        else:
            terms.append(Term("env", name, "jit", "has", UNREAD))
            terms.append(Term("env", name, "ptx_cuda", "in", _set(f"=={cuda}")))
            terms.append(
                Term(
                    "env",
                    name,
                    "code",
                    "has",
                    ptx_for(capability) if kind == "only" else _older_ptx(capability),
                )
            )
        if kind == "only":
            terms.append(Term("env", name, "code", "lacks", sass_for(capability)))
        whole = kind in ("only", "all")
        what = (
            f"PTX of CUDA {cuda} alone for compute capability {capability}, which takes a "
            f"driver that reports CUDA {cuda} or newer"
        )
        which = f" ({kernels[0]})" if kernels and kernels[0] else ""
        rows.append(
            _row(
                f"ptx-{cuda}-on-{capability}{'' if kind == 'only' else '-' + kind}:{name}",
                terms,
                effect=demand.effect if whole else "degrades",
                trust="reported" if kind == "partly" else "established",
                component="nvidia-driver",
                kind="too-old",
                code="ED102",
                title=f"{name} has {what}"
                if whole
                else f"Some kernels of {name}{which} are {what}",
                symptom="the provided PTX was compiled with an unsupported toolchain "
                "(cudaErrorUnsupportedPtxVersion)",
                fix=f"Update the driver to one that reports CUDA {cuda} or newer (or use "
                "cuda-compat on a data-centre GPU), "
                f"or install a build of {name} made with an older CUDA.",
                sources=(
                    Source(
                        _MINOR_VERSION,
                        "minor-version compatibility does not cover PTX compiled by a "
                        "newer toolkit",
                    ),
                ),
                date=date,
            )
        )
    return rows


def assembler_gaps(releases: Iterable[Mapping[str, Any]]) -> Dict[str, str]:
    """Return the compute capabilities for which the assembler in some release's wheel makes no
    machine code, and the first release from which on all do, "" where the newest does not.

    Args:
        releases: Of a package, oldest first.
    """
    read = [
        (release["version"], build["tools"])
        for release in releases
        for build in release.get("builds", ())
        if build.get("tools")
    ]
    gaps: Dict[str, str] = {}
    for capability in _CAPABILITIES if read else ():
        lacking = [not serves(tuple(tools), capability) for _, tools in read]
        if any(lacking):
            last = max(place for place, lacks in enumerate(lacking) if lacks)
            gaps[capability] = read[last + 1][0] if last + 1 < len(read) else ""
    return gaps


def assembled(tools: Tuple[str, ...]) -> FrozenSet[str]:
    """Return the devices ("9.0", "9.0a") that a wheel of triton makes machine code for, from
    ``ptxas=12.8.93;sm=9.0,9.0a``.

    From 10.0 on triton takes ``ptxas-blackwell`` where it brings one (``get_ptxas`` in its
    backends/nvidia/compiler.py).
    """
    parts = [tool.partition(";sm=") for tool in tools]
    by_name = {tool.partition("=")[0]: frozenset(targets.split(",")) for tool, _, targets in parts}
    usual = by_name.get("ptxas", frozenset())
    newer = by_name.get("ptxas-blackwell", usual)
    return frozenset(
        [sm for sm in usual if _order(sm.rstrip("af"))[0] < 10]
        + [sm for sm in newer if _order(sm.rstrip("af"))[0] >= 10]
    )


def serves(tools: Tuple[str, ...], capability: str) -> bool:
    """Tell whether the assembler in a wheel makes machine code for a device."""
    return capability in assembled(tools)


def assembler_rows(
    name: str, gaps: Mapping[str, str], capabilities: Mapping[str, Capability], date: str
) -> List[Row]:
    """Return for each compute capability: the assembler in the wheel does not know it (ED122).

    Another assembler, which a variable names, was not looked at.
    """
    rows = []
    for capability, first in gaps.items():
        if capability not in capabilities:
            continue
        known = capabilities[capability]
        target = f"sm_{capability.replace('.', '')}"
        rows.append(
            _row(
                f"ptxas-without-{capability}:{name}",
                (
                    Term("env", name, "ptxas", "lacks", frozenset((capability,))),
                    Term("gpu", "gpu", "sm", "any", frozenset((capability,))),
                    Term("env", name, "version", "present", True),
                    Term("var", "TRITON_PTXAS_PATH", "value", "present", False),
                    Term("var", "TRITON_PTXAS_BLACKWELL_PATH", "value", "present", False),
                ),
                effect="degrades",
                component=f"{name}-ptxas",
                kind="arch-missing",
                code="ED122",
                title=f"The ptxas of this {name} does not know {target} ({known.architecture})",
                symptom=f"Value '{target}' is not defined for option 'gpu-name'",
                fix=f"Where torch.compile or Triton kernels are used: install {name} {first} or "
                "newer, and the torch that asks for it."
                if first
                else "Where torch.compile or Triton kernels are used: name the ptxas of a CUDA "
                f"toolkit that knows {known.architecture} in TRITON_PTXAS_PATH.",
                pins=(f"{name}>={first}",) if first else (),
                sources=(Source(f"ptxas in the wheels of {name}", "its names of architectures"),),
                date=date,
            )
        )
    return rows


def torch_builds(name: str, releases: Iterable[Mapping[str, Any]]) -> Tuple[List[int], List[bool]]:
    """Return the CUDA majors and the C++ ABIs of the builds of a package that is compiled against
    torch; none of others.
    """
    if name not in LINKED and name not in WORK_WITHOUT:
        return [], []
    builds = [build for release in releases for build in release.get("builds", ())]
    majors = {int(build["cuda"].split(".")[0]) for build in builds if build.get("cuda")}
    abis = {build["cxx11abi"] for build in builds if build.get("cxx11abi") is not None}
    return sorted(majors), sorted(abis)


def torch_build_rows(
    name: str, majors: Iterable[int], abis: Iterable[bool], date: str
) -> List[Row]:
    """Return what a build of a package that is compiled against torch does not load beside: a torch
    for another CUDA major (ED407), or with the other C++ ABI (ED410).
    """
    shared: Dict[str, Any] = {
        "effect": "note" if name in WORK_WITHOUT else "degrades",
        "component": name,
        "sources": (_LOADER,),
        "date": date,
    }
    rows = []
    for major in majors:
        span = _set(f">={major},<{major + 1}")
        rows.append(
            _row(
                f"cuda-{major}-beside-another:{name}",
                (
                    Term("env", name, "cuda", "in", span),
                    Term("env", "torch", "cuda", "lacks", span),
                    Term("env", "torch", "version", "present", True),
                ),
                kind="cuda-major-mismatch",
                code="ED407",
                title=f"This {name} is built for CUDA {major}, and torch for another: it fails to "
                "load unless that CUDA runtime is on the loader's path too",
                symptom=f"libcudart.so.{major}: cannot open shared object file",
                fix=f"Install the build of {name} for torch's CUDA, or a torch for CUDA {major}.",
                **shared,
            )
        )
    for abi in abis:
        own, other = ("true", "false") if abi else ("false", "true")
        words = {"true": "new", "false": "old"}
        rows.append(
            _row(
                f"cxx11abi-{own}-beside-{other}:{name}",
                (
                    Term("env", name, "cxx11abi", "any", frozenset((own,))),
                    Term("env", "torch", "cxx11abi", "any", frozenset((other,))),
                ),
                kind="abi-mismatch",
                code="ED410",
                title=f"This {name} is built with the {words[own]} C++ ABI, and torch with the "
                f"{words[other]} one: its library does not load",
                symptom="",
                fix=f"Install a {name} that is built with the ABI of this torch, or the torch that "
                f"this {name} was built for.",
                **shared,
            )
        )
    return rows


_LOADER = Source(
    "https://man7.org/linux/man-pages/man8/ld.so.8.html",
    "a library that is needed has to be found, with every symbol that is not defined",
)


def generation_rows(
    capabilities: Iterable[Capability], branches: Mapping[str, DriverBranch], date: str
) -> List[Row]:
    """Return for each compute capability: the driver is of a branch before or after those that know
    it (ED109).
    """
    rows = []
    for entry in capabilities:
        device = Term("gpu", "gpu", "sm", "any", frozenset((entry.capability,)))
        shared: Dict[str, Any] = {
            "trust": entry.trust,
            "component": "nvidia-driver",
            "code": "ED109",
            "sources": (entry.source,),
            "date": date,
        }
        what = f"{entry.architecture} GPUs (compute capability {entry.capability})"
        if entry.first_driver is not None:
            rows.append(
                _row(
                    f"driver-since-{entry.capability}",
                    (device, Term("host", "host", "driver", "in", _set(f"<{entry.first_driver}"))),
                    kind="too-old",
                    title=f"{what} are supported from driver branch R{entry.first_driver} on",
                    symptom="No devices were found; the GPU is not listed by nvidia-smi",
                    fix=f"Install driver R{entry.first_driver} or newer.",
                    pins=(f"nvidia-driver>={entry.first_driver}",),
                    **shared,
                )
            )
        if entry.last_driver is not None:
            later = sorted(
                int(branch) for branch in branches if int(branch) > int(entry.last_driver)
            )
            first = later[0] if later else int(entry.last_driver) + 1
            rows.append(
                _row(
                    f"driver-until-{entry.capability}",
                    (device, Term("host", "host", "driver", "in", _set(f">={first}"))),
                    kind="too-new",
                    title=f"R{entry.last_driver} is the last driver branch for {what}",
                    symptom="NVRM: The NVIDIA GPU is supported by the NVIDIA Legacy drivers; No "
                    "devices were found",
                    fix=f"Install driver R{entry.last_driver}.",
                    pins=(f"nvidia-driver>={entry.last_driver},<{int(entry.last_driver) + 1}",),
                    **shared,
                )
            )
    return rows
