"""Lines of the dynamic loader, answered from what wheels hold: which releases of torch export a
symbol that is missing, which of CUDA's libraries a function, which systems have the C or C++
library that is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, List, Mapping, Optional, Sequence, Tuple

from ..intake.platforms import glibc_of_release, systems_with_glibc
from ..matrix.signatures import distribution_of
from ..matrix.symbols import qualified_name
from ..model.calls import InstallerCall
from ..model.evidence import Absent
from ..model.finding import Remedy
from ..model.versions import parse_version
from ..probes.elf import cxx11_abi_of
from ..rules.rule import Context, is_unindexed, vendor_of_builds
from ..rules.torch_extensions import (
    LINKED,
    built_against,
    installed_torch,
    newest_for_torch,
    newest_that_may_load,
)
from .library_functions import tell_library_function
from .logged_run import LoggedRun
from .trace_draft import TraceDraft, groups_of

if TYPE_CHECKING:
    from ..matrix.symbols import SymbolHistory
    from ..rules.torch_extensions import Torch

__all__ = ["tell_symbols"]

#: The GCC from which libstdc++ has a symbol version
#: (gcc.gnu.org/onlinedocs/libstdc++/manual/abi.html, ABI versioning history).
_GCC = (
    ("GLIBCXX_3.4.20", "4.9"), ("GLIBCXX_3.4.21", "5.1"), ("GLIBCXX_3.4.22", "6.1"),
    ("GLIBCXX_3.4.23", "7.1"), ("GLIBCXX_3.4.24", "7.2"), ("GLIBCXX_3.4.25", "8.1"),
    ("GLIBCXX_3.4.26", "9.1"), ("GLIBCXX_3.4.27", "9.2"), ("GLIBCXX_3.4.28", "9.3"),
    ("GLIBCXX_3.4.29", "11.1"), ("GLIBCXX_3.4.30", "12.1"), ("GLIBCXX_3.4.31", "13.1"),
    ("GLIBCXX_3.4.32", "13.2"), ("GLIBCXX_3.4.33", "14.1"), ("GLIBCXX_3.4.34", "15.1"),
    ("CXXABI_1.3.8", "4.9"), ("CXXABI_1.3.9", "5.1"), ("CXXABI_1.3.10", "6.1"),
    ("CXXABI_1.3.11", "7.1"), ("CXXABI_1.3.12", "9.1"), ("CXXABI_1.3.13", "11.1"),
    ("CXXABI_1.3.14", "13.1"), ("CXXABI_1.3.15", "14.1"),
)  # fmt: skip


def tell_symbols(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Say of what the loader did not find where it is, what that tells of both sides, and which
    release goes with what is installed.
    """
    for draft in drafts:
        if draft.is_made_by("undefined-symbol-torch", "undefined-symbol-torch-alone"):
            _tell_torch(draft, run.modules, run.context)
        elif draft.made_by.startswith("undefined-symbol"):
            tell_library_function(draft, run.modules, run.context)
        elif draft.made_by in _SENTENCES:
            groups = groups_of(draft.events[0], run.modules)
            text = _SENTENCES[draft.made_by](groups, installed_torch(run.context), run.context)
            message = f"{draft.finding.message} {text}".rstrip()
            draft.finding = draft.finding._replace(message=message)


def _tell_torch(draft: TraceDraft, modules: Mapping[str, str], context: Context) -> None:
    """Answer ``undefined symbol: _ZN3c104cuda9SetDeviceEi``."""
    on_arm = context.facts.value("os.architecture") == "aarch64"
    for event in draft.events:
        groups = groups_of(event, modules)
        history = context.matrix.symbol_history(groups.get("symbol", ""), on_arm)
        if history is not None:
            library = groups.get("library", "")
            package = distribution_of(library, modules) if library else _only_extension(context)
            _tell_history(draft, history, package, context)
            return


_UNNAMED = "the extension"


def _only_extension(context: Context) -> str:
    """Return the one package of those that are named that links torch."""
    named = [name for name in context.distributions if name in LINKED]
    return named[0] if len(named) == 1 else _UNNAMED


def _tell_history(
    draft: TraceDraft, history: SymbolHistory, package: str, context: Context
) -> None:
    """Say what follows for a package whose symbol only some releases of torch export."""
    torch = _torch_of_index(context)
    abi = _abi_that_decides(history)
    has = history.has(torch.version) if torch is not None else None
    if torch is not None and abi is not None and has is False and torch.abi in (None, abi):
        has = None  # a build of this release with that ABI has it, or not: nobody measured it
    said = f"Of torch's wheels those of {history.releases()} export {_name(history)}"
    these = "one of these or an older one" if history.begins else "one of these"
    if abi is not None:
        said += f" for the {_word(abi)} C++ ABI"
        these += f", or another torch with that ABI ({_label(abi)})"
    if torch is None and "torch" in context.distributions:
        said += f"; the torch here is no release, so which {package} was built against is not known"
        remedies: Tuple[Remedy, ...] = (
            Remedy(f"Install a build of {package} for the torch that is here."),
        )
    elif torch is None and vendor_of_builds(context.facts):
        said += f"; which {package} was built against is not known: builds for other devices differ"
        remedies = (Remedy(_way_without_torch(history, package, abi, context)),)
    elif torch is None or has is None:
        said += f": {package} was built against {these}"
        remedies = (Remedy(_way_without_torch(history, package, abi, context)),)
    elif has:
        said += f", also {torch}: {_why_not_found(history, torch, context)}"
        remedies = draft.finding.remedies
    else:
        said += f", {torch} does not: {package} was built against {these}"
        remedies = _remedies(history, package, torch, context)
        draft.certainty = "established"
        draft.finding = draft.finding._replace(packages=(package, "torch"))
    draft.finding = draft.finding._replace(
        message=f"{draft.finding.message} {said}.", remedies=remedies
    )


#: With which release the wheels got the new C++ ABI, by architecture: 2.6.0 aarch64, 2.7.0 x86_64.
_FIRST_NEW, _LAST_OLD = ("2.6.0", "2.7.0"), ("2.5.1", "2.6.0")


def _abi_that_decides(history: SymbolHistory) -> Optional[bool]:
    """Return the C++ ABI (is it the new one?) of a symbol that releases have or lack because the
    ABI of the wheels changed; None where its name has no ABI, or it came or went another time.
    """
    abi = cxx11_abi_of([history.symbol])
    if abi is None:
        return None
    changed = history.present[0][0] in _FIRST_NEW if abi else history.present[-1][1] in _LAST_OLD
    return abi if changed else None


def _label(abi: bool) -> str:
    return f"cxx11abi{'TRUE' if abi else 'FALSE'}"


def _way_without_torch(
    history: SymbolHistory, package: str, abi: Optional[bool], context: Context
) -> str:
    vendor = vendor_of_builds(context.facts)
    if vendor:
        return f"Install a build of {package} that is made for the torch here, and for {vendor}."
    if abi is not None:
        return (
            f"Install a build of {package} for the torch that is here and for its C++ ABI "
            f"(probably {_label(not abi)})."
        )
    return f"Install {history.requirement()}, or a build of {package} for the torch that is here."


def _name(history: SymbolHistory) -> str:
    return qualified_name(history.symbol) or history.symbol


def _word(abi: Optional[bool]) -> str:
    return "new" if abi else "old"


def _torch_of_index(context: Context) -> Optional[Torch]:
    """Return the installed torch where it is a release of an index: of others nobody measured."""
    torch = installed_torch(context)
    installed = context.distributions.get("torch")
    if torch is None or torch.version.is_prerelease:
        return None
    return None if installed is not None and is_unindexed(installed) else torch


def _why_not_found(history: SymbolHistory, torch: Torch, context: Context) -> str:
    abi = cxx11_abi_of([history.symbol])
    if abi is not None and torch.abi is not None and abi is not torch.abi:
        return f"but this build has the {_word(torch.abi)} C++ ABI"
    is_cpu = torch.version.local == "cpu" or isinstance(context.facts.get("torch.cuda"), Absent)
    if history.of_cuda and is_cpu:
        return "but in builds with CUDA, and this is one without"
    return "the program loaded another torch than this, or none before the extension" + (
        ", or a build of the other C++ ABI" if abi is not None else ""
    )


def _remedies(
    history: SymbolHistory, package: str, torch: Torch, context: Context
) -> Tuple[Remedy, ...]:
    """Return the release of the package that fits the installed torch, and the torch that the
    installed one was built for.
    """
    if package == _UNNAMED:
        way = _way_without_torch(history, package, _abi_that_decides(history), context)
        return (
            Remedy(way),
            Remedy("Or build it from source there, without isolation (--no-build-isolation)."),
        )
    ways: List[Remedy] = []
    release = newest_for_torch(context, package, torch.minor)
    if release:
        ways.append(Remedy(f"Take {package} {release}, which has wheels for torch {torch.minor}."))
    elif release := newest_that_may_load(context, package, torch):
        text = (
            f"Take {package} {release}, whose wheel needs no symbol that {torch} is known to lack."
        )
        ways.append(Remedy(text))
    ways += built_against(context, package, torch)
    if _abi_that_decides(history) is not None:
        return tuple(ways)
    requirement = history.requirement(torch.version)
    ways.append(
        Remedy(
            f"Or install the torch that it was built against: {requirement}.",
            (InstallerCall("install", (requirement,)),),
        )
    )
    return tuple(ways)


def _of_glibc(groups: Mapping[str, str], _torch: Optional[Torch], context: Context) -> str:
    """Answer ``version `GLIBC_2.32' not found``."""
    version = groups.get("version", "0")
    systems = systems_with_glibc(version)
    sentences = [f"{', '.join(systems)} and newer have it."] if systems else []
    here, name = context.facts.value("glibc.version"), context.facts.value("os.name")
    if here is not None and parse_version(here) < parse_version(version):
        # A container has another glibc than the system that a text names beside it.
        is_of_named = name is not None and glibc_of_release(name) in (None, here)
        sentences.insert(0, f"{name if is_of_named else 'This system'} has glibc {here}.")
    package = _only_extension(context) if not groups.get("library") else ""
    if package in context.distributions:
        sentences.append(f"Of what is named here {package} is compiled: its wheel asks for it.")
    return " ".join(sentences)


def _of_libstdcxx(groups: Mapping[str, str], _torch: Optional[Torch], _context: Context) -> str:
    """Answer ``version `GLIBCXX_3.4.30' not found``."""
    gcc = dict(_GCC).get(groups.get("version", ""))
    return f"The libstdc++ of GCC {gcc} and newer has it." if gcc is not None else ""


#: Libraries whose soname has the CUDA major.
_OF_MAJOR = ("libcudart", "libcublas", "libcublasLt", "libnvrtc", "libnvJitLink", "libcupti")


def _of_cuda_library(groups: Mapping[str, str], torch: Optional[Torch], _context: Context) -> str:
    """Answer ``libcudart.so.13: cannot open shared object file``."""
    if groups.get("library") not in _OF_MAJOR:
        return ""
    asker, major = groups.get("@frame", ""), groups["major"]
    text = (
        f"{f'What {asker} imports there' if asker else 'What needs it'} is built for CUDA {major}"
    )
    if torch is not None and torch.cuda and asker != "torch":
        joined = ", as" if torch.cuda.split(".")[0] == major else ", but"
        text += f"{joined} {torch} is for CUDA {torch.cuda}"
    return f"{text}."


_SENTENCES: Mapping[str, Callable[[Mapping[str, str], Optional[Torch], Context], str]] = {
    "cuda-library-not-found": _of_cuda_library,
    "glibc-not-found": _of_glibc,
    "glibcxx-not-found": _of_libstdcxx,
}
