"""ED312, ED314, ED315: what the writer of a report saw cure it (another release, a setting, a
package taken out), and what it says that a package takes.

It is somebody's word, no measurement: never an error. What is measured of the same packages (what
both releases ask for), and what a setting switches, stands beside it.
"""

from __future__ import annotations

from ..model.calls import InstallerCall
from ..model.evidence import Absent, Evidence
from ..model.finding import Finding, Remedy, hint
from ..model.pattern import pattern
from ..model.record import NamedTuple
from ..model.requirement import try_requirement
from ..model.row import Source
from ..model.versions import try_version
from .packages import shown_version
from .requirement_lines import meets
from .rule import Context, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, Mapping, Optional, Tuple

__all__ = ["RULES_HERE"]


def check_stated_regression(context: Context) -> Iterator[Finding]:
    """A report says that another release works.

    What it checks:
        The releases of packages, and of driver, kernel, Python and CUDA, with which, a report
        says, what fails here works, against those that are here.

    Why it matters:
        Who tried both has narrowed the cause down to what changed between them.

    How to fix:
        Install the release that works until the other one is mended, or what the newer one asks of
        its callers.

    References:
        README
    """
    for name, good in context.facts.value("report.works_with", {}).items():
        field = _COMPARED_FIELDS.get(name)
        component, title = field or (name, name)
        distribution = context.distributions.get(name)
        if field is not None:
            here = context.facts.value(name) or ""
        else:
            here = shown_version(distribution) if distribution is not None else ""
        if not here or _is_among(here, good):
            continue
        is_release = here[0].isdigit()
        other = f"{title} {here}, which is here" if is_release else f"the {title} that is here"
        works = f"{name} {good}" if field is None else good
        message = f"By the report it fails with {other}, and works with {works}."
        if good[0] == "<":  # nobody says that an older one works
            message = f"By the report's own word it fails with {title} {good[1:]} and newer"
            message += f"; {here} is here." if is_release else "."
        changed = _requirements_changed(name, here, good, context) if field is None else ""
        yield Finding(
            code="ED312",
            component=component,
            kind=_kind_of(here, good),
            severity="warning",
            effect="may-block",
            trust="reported",
            message=f"{message}{changed}",
            evidence=context.evidence("report.works_with"),
            remedies=(_back_to(name, good, here) if field is None else _where(title, good),),
            packages=(name,) if field is None else (),
        )


#: What a text compares beside distributions, by its field: the component, and what it is called.
_COMPARED_FIELDS = {
    "driver.release": ("nvidia-driver", "NVIDIA driver"),
    "os.kernel": ("kernel", "Linux kernel"),
    "python.version": ("python", "Python"),
    "report.cuda": ("cuda", "CUDA"),
    "toolkit.version": ("cuda-toolkit", "CUDA toolkit"),
}


def _back_to(name: str, good: str, here: str) -> Remedy:
    if good == f"<{here}":  # "since I upgraded to it": which of the older ones ran, nobody says
        return hint(f"Look at what {name} {here} changed, and which release ran before.")
    asked = f"{name}{good if good[0] in '<>=' else f'=={good}'}"
    text = "Try an older release" if good[0] == "<" else "Install the release that works"
    return Remedy(f"{text}: {asked}.", (InstallerCall("install", (asked,)),))


def _where(title: str, good: str) -> Remedy:
    return Remedy(f"Run it where {title} is {good}, until what changed is known.")


def _is_among(here: str, good: str) -> bool:
    """Tell whether what is here is the release that works ("4.49" may mean any of that minor), or
    is older than the first that fails (``<4.48``).
    """
    if good[0] != "<":
        return f"{here}.".startswith((f"{good}.", f"{good}-"))
    version, first = try_version(here), try_version(good[1:])
    return version is not None and first is not None and version < first


def _kind_of(here: str, good: str) -> str:
    one, two = try_version(here), try_version(good.lstrip("<>="))
    if one is None or two is None:
        return "version-mismatch"
    if one == two:
        return "too-new" if good[0] == "<" else "version-mismatch"
    return "too-new" if one > two else "too-old"


def _requirements_changed(name: str, here: str, good: str, context: Context) -> str:
    """Say what the release that fails asks of other packages, where the one that works asks for
    something else: first of those that are here, and what they do not meet.
    """
    asked, before = _asked_by(name, here, context), _asked_by(name, good, context)
    if asked is None or before is None:
        return ""
    changed = [
        other for other in sorted(asked) if other in before and asked[other] != before[other]
    ]
    changed.sort(key=lambda other: other not in context.distributions)
    words = [
        f"{other}{asked[other]} ({good}: {before[other] or 'any'}{_here_words(other, context)})"
        for other in changed[:_MOST]
    ]
    return f" By its metadata {name} {here} asks for {', '.join(words)}." if words else ""


def _asked_by(name: str, version: str, context: Context) -> Optional[Dict[str, str]]:
    """Return the ranges that a release asks for by its metadata, None where they are not known."""
    package, number = context.matrix.package(name), try_version(version)
    release = package.release(number) if package is not None and number is not None else None
    if release is None or release.requires is None:
        return None
    requirements = [try_requirement(line) for line in release.requires]
    return {one.name: one.specifier for one in requirements if one is not None and not one.marker}


def _here_words(name: str, context: Context) -> str:
    version = context.version(name)
    return f"; {version} is here" if version is not None else ""


# --------------------------------------------------------------------------------------------------
# settings


class _Switch(NamedTuple):
    """What a setting switches off, at one of these values ("" for any), and what says so."""

    what: str
    values: Tuple[str, ...]
    source: str


_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
_VLLM = "https://docs.vllm.ai/en/latest/configuration/env_vars.html"
_ARGUMENTS = "https://docs.vllm.ai/en/latest/configuration/engine_args.html"
_SGLANG = "https://docs.sglang.ai/advanced_features/server_arguments.html"
_COMPILE = "https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html"
_CUDA = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars"
_LOADER = "https://docs.pytorch.org/docs/stable/data.html"
_OFF = ("0", "false", "none", "off")
_ON = ("1", "true", "")
#: By setting, in small letters, what fails with it where it cures.
_SWITCHES: Mapping[str, _Switch] = {
    "nccl_p2p_disable": _Switch("peer-to-peer copies between GPUs", ("1",), _NCCL),
    "nccl_p2p_level": _Switch("peer-to-peer copies over longer paths", ("loc", "nvl", "0"), _NCCL),
    "nccl_ib_disable": _Switch("InfiniBand and RoCE", ("1",), _NCCL),
    "nccl_shm_disable": _Switch("NCCL's shared memory between processes", ("1",), _NCCL),
    "nccl_cumem_enable": _Switch("NCCL's buffers of cuMem*", _OFF, _NCCL),
    "nccl_cumem_host_enable": _Switch("NCCL's host buffers of cuMem*", _OFF, _NCCL),
    "nccl_nvls_enable": _Switch("NVLink SHARP (multicast)", _OFF, _NCCL),
    "nccl_net_gdr_level": _Switch("GPUDirect RDMA over longer paths", ("loc", "0"), _NCCL),
    "nccl_cross_nic": _Switch("rings that use several NICs", _OFF, _NCCL),
    "nccl_net_plugin": _Switch("the network plugin", ("none",), _NCCL),
    "nccl_tuner_plugin": _Switch("the tuner plugin", ("none",), _NCCL),
    "vllm_use_v1": _Switch("vLLM's V1 engine", _OFF, _VLLM),
    "vllm_use_flashinfer_sampler": _Switch("FlashInfer's sampler", _OFF, _VLLM),
    "vllm_use_deep_gemm": _Switch("DeepGEMM's kernels", _OFF, _VLLM),
    "enforce_eager": _Switch("CUDA graphs and the compilation", _ON, _ARGUMENTS),
    "disable_custom_all_reduce": _Switch(
        "the engine's own all-reduce, which copies peer to peer", _ON, _ARGUMENTS
    ),
    "disable_cuda_graph": _Switch("CUDA graphs", _ON, _SGLANG),
    "disable_radix_cache": _Switch("the prefix cache", _ON, _SGLANG),
    "torch_compile_disable": _Switch("torch.compile", ("1",), _COMPILE),
    "torchdynamo_disable": _Switch("torch.compile", ("1",), _COMPILE),
    "num_workers": _Switch("worker processes of the DataLoader", ("0",), _LOADER),
    "dataloader_num_workers": _Switch("worker processes of the DataLoader", ("0",), _LOADER),
    "pin_memory": _Switch("pinned host memory of the DataLoader", _OFF, _LOADER),
    "dataloader_pin_memory": _Switch("pinned host memory of the DataLoader", _OFF, _LOADER),
}
#: By setting that only changes when things are done, at one of these values: what it makes wait.
_TIMING: Mapping[str, _Switch] = {
    "cuda_launch_blocking": _Switch("each kernel, for which the host then waits", ("1",), _CUDA),
}
#: Settings that only make a program print more, which cures nothing.
_OF_OUTPUT = pattern(r"(?:\w+_)?(?:debug|log|log_?level|logging\w*|verbose|verbosity)(?:_\w+)?$")
_MOST = 3


def check_stated_cures(context: Context) -> Iterator[Finding]:
    """A report says what cures it.

    What it checks:
        The settings, variables and packages with or without which, its writer says, what fails
        here works.

    Why it matters:
        Who tried it has narrowed the cause down to what that changes.

    How to fix:
        Do the same, until what it goes around is mended.

    References:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    cures = list(context.facts.value("report.cures", {}).items())[:_MOST]
    for change, words in cures:
        number, _, sentence = words.partition(": ")
        finding = _finding(change, (Evidence(f"report, line {number}", sentence),), context)
        if finding is not None:
            yield finding


def _finding(change: str, evidence: Tuple[Evidence, ...], context: Context) -> Optional[Finding]:
    """Return what a change says that cured, None where it is done here."""
    verb, _, name = change.partition(" ")
    packages: Tuple[str, ...] = ()
    sources: Tuple[Source, ...] = ()
    kind = "misconfigured"
    requirement = try_requirement(change)
    if verb == "uninstall":
        if isinstance(context.facts.distribution(name), Absent):
            return None
        works, kind, packages = f"once {name} is uninstalled", "conflict", (name,)
        remedy = Remedy(f"Uninstall {name}, as the writer did.", (InstallerCall(verb, (name,)),))
    elif verb == "unset" and name:
        works = f"without {name}"
        commands = () if name.startswith("-") or name.islower() else (f"unset {name}",)
        remedy = Remedy(f"Run it without {name}, as the writer did.", commands, "safe")
    elif requirement is not None and requirement.specifier:
        name, specifier = requirement.name, requirement.specifier
        version = context.version(name)
        if version is not None and meets(version, specifier):
            return None
        works, packages = f"with {change}", (name,)
        kind = {"<": "too-new", ">": "too-old"}.get(specifier[0], "bad-version")
        call = InstallerCall("install", (change,))
        remedy = Remedy(f"Install {change}, as the writer did.", (call,))
    else:
        name, _, value = change.partition("=")
        works, setting = f"with {change}", name.lstrip("-").replace("-", "_").lower()
        if _OF_OUTPUT.match(setting):
            return None
        switch, timing = _SWITCHES.get(setting), _TIMING.get(setting)
        if switch is not None and value.lower() in switch.values:
            works += f", which switches off {switch.what}: there it fails"
            sources = (Source(switch.source, name),)
        elif timing is not None and value.lower() in timing.values:
            works += f", which changes only the timing of {timing.what}: look for a race"
            sources = (Source(timing.source, name),)
        commands = (f"export {change}",) if name.isupper() and value else ()
        remedy = Remedy(f"Run it with {change}, as the writer did.", commands, "safe")
    return Finding(
        code="ED314",
        component=name.lstrip("-"),
        kind=kind,
        severity="warning",
        effect="may-block",
        trust="reported",
        message=f"By its writer's word it works {works}.",
        evidence=evidence,
        sources=sources,
        remedies=(remedy,),
        packages=packages,
    )


# --------------------------------------------------------------------------------------------------
# ranges of what the machine has

#: By what a range is about: the component, and the fields that tell what is here.
_OF_MACHINE: Mapping[str, Tuple[str, Tuple[str, ...]]] = {
    "CUDA": ("cuda", ("torch.cuda", "toolkit.version", "report.cuda")),
    "Python": ("python", ("python.version",)),
    "driver": ("nvidia-driver", ("driver.release",)),
}


def check_stated_takes(context: Context) -> Iterator[Finding]:
    """A report says that a package takes other releases of CUDA, Python or the driver.

    What it checks:
        The ranges that sentences of a report name for a package ("supports CUDA 11.7 to 12.5
        only") against every release of it that the report states.

    Why it matters:
        Its writer, or the page that was quoted, knows what the package is built for.

    How to fix:
        Take a release of the package that is built for what is here, or what it takes.

    References:
        README
    """
    for key, specifier in context.facts.value("report.takes", {}).items():
        name, _, what = key.rpartition(" ")
        component, fields = _OF_MACHINE.get(what, ("", ()))
        fields = tuple([field for field in fields if context.facts.value(field)])
        here = [str(context.facts.value(field)) for field in fields]
        sides = {_side(text, specifier) for text in here}
        if not here or "" in sides:
            continue
        yield Finding(
            code="ED315",
            component=component,
            kind=sides.pop() if len(sides) == 1 else "version-mismatch",
            severity="warning",
            effect="may-block",
            trust="reported",
            message=f"By the report {name} takes {what}{specifier}; {what} {here[0]} is here.",
            evidence=context.evidence("report.takes", *fields),
            remedies=(
                Remedy(
                    f"Take a release or a build of {name} for {what} {here[0]}, or {what}"
                    f"{specifier}."
                ),
            ),
            packages=(name,),
        )


def _side(text: str, specifier: str) -> str:
    """Tell whether a release lies below or above a range, "" where it is in it, or none; a range
    without a patch release speaks of minor ones.
    """
    bounds = specifier.split(",")
    parts = text.split(".")
    is_of_minors = all(bound.count(".") < 2 for bound in bounds)
    version = try_version(".".join(parts[:2] if is_of_minors else parts))
    if version is None or meets(version, specifier) is not False:
        return ""
    is_below = any(meets(version, bound) is False for bound in bounds if bound[0] == ">")
    return "too-old" if is_below else "too-new"


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED312",
        "stated-regression",
        "version-mismatch",
        "A report says that another release works",
        check_stated_regression,
        half="environment",
    ),
    Rule(
        "ED314",
        "stated-cures",
        "misconfigured",
        "A report says what cures it",
        check_stated_cures,
        half="environment",
    ),
    Rule(
        "ED315",
        "stated-takes",
        "version-mismatch",
        "A report says that a package takes other releases of CUDA, Python or driver",
        check_stated_takes,
        half="environment",
    ),
)
