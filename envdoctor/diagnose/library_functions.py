"""``undefined symbol: ncclCommShrink``, answered from what NVIDIA's wheels hold: which releases of
the library, or which driver, have a function, who asks for it, and what that tells here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Mapping, Optional, Sequence, Tuple

from ..matrix.measured_rows import DRIVER
from ..matrix.spans import span_holds
from ..model.calls import InstallerCall
from ..model.finding import Remedy
from ..model.pattern import pattern
from ..model.requirement import try_requirement
from ..model.versions import Version, parse_version, releases_of, try_version
from ..rules.packages import requirement_sets
from ..rules.rule import Context
from ..rules.torch_extensions import installed_torch
from .trace_draft import TraceDraft, groups_of

if TYPE_CHECKING:
    from ..matrix.symbols import Asker, SymbolHistory

__all__ = ["tell_library_function"]

#: The CUDA major in the name of a package; those without one are of CUDA 13.
_MAJOR = pattern(r"-cu(\d\d)$")
#: ``version libcublasLt.so.12``, which the loader adds where the symbol has a version.
_ASKED_FILE = pattern(
    r"\bversion lib(?:cudart|cublas|cublasLt|nvrtc|nvJitLink|cupti)\.so\.(\d\d)\b"
)
_MOST_ASKERS = 3
#: What findings call the library whose functions begin so.
_LIBRARIES = (
    ("nvJitLink", "libnvJitLink"),
    ("nccl", "nvidia-nccl"),
    ("cublas", "libcublas"),
    ("cudnn", "libcudnn"),
    ("cusparse", "libcusparse"),
    ("nvshmem", "libnvshmem"),
    ("cuda", "cuda-runtime"),
)


def tell_library_function(draft: TraceDraft, modules: Mapping[str, str], context: Context) -> None:
    """Say where a function of CUDA's libraries or of the driver is that the loader did not find."""
    for event in draft.events:
        symbol = groups_of(event, modules).get("symbol", "")
        for begin, library in _LIBRARIES:
            if symbol.lstrip("_").startswith(begin):
                draft.finding = draft.finding._replace(component=library)
        histories = context.matrix.library_histories(symbol, context.facts.value("os.architecture"))
        chosen = _of_this_cuda(histories, event.first.text, context)
        if chosen:
            _tell(draft, chosen, context)
            return


def _of_this_cuda(
    histories: Sequence[SymbolHistory], text: str, context: Context
) -> List[SymbolHistory]:
    """Return the histories of the packages that are installed, else of torch's CUDA or of the file
    that the line names, else all.
    """
    installed = [one for one in histories if context.version(one.package) is not None]
    if installed:
        return installed
    torch = installed_torch(context)
    match = _ASKED_FILE.search(text)
    major = torch.cuda.split(".")[0] if torch is not None and torch.cuda else ""
    major = match[1] if match is not None else major
    of_major = [one for one in histories if one.package == DRIVER or _major(one.package) == major]
    return of_major or list(histories)


def _major(package: str) -> str:
    match = _MAJOR.search(package)
    return match[1] if match is not None else "13"


def _tell(draft: TraceDraft, histories: Sequence[SymbolHistory], context: Context) -> None:
    first = histories[0]
    if first.package == DRIVER:
        _tell_driver(draft, first, context)
        return
    said = " and ".join(f"{one.package} {one.releases()}" for one in histories)
    version = context.version(first.package)
    has = first.has(version) if version is not None else None
    asker, words = _asker_words(first, context)
    text = f"It is in {said}"
    if has is False:
        text += f", not in the {version} that is installed"
    elif has:
        text += f", so also in the {version} that is installed: another copy was loaded instead"
    text += f"; {words}" if words else ""
    remedies = draft.finding.remedies
    if len(histories) > 1 and version is None:  # which CUDA it is for is not known
        choices = " or ".join(one.requirement() for one in histories)
        remedies = (Remedy(f"Install {choices}, as torch is built for."), *remedies)
    elif not has:
        remedies = (_install(first, version, asker, context), *(remedies if has is None else ()))
    stranger = context.version("torch") if asker is None else None
    if stranger is not None and any(one.package == "torch" for one in _askers(first, context)):
        text += f". torch {stranger} does not need it: files of another torch lie there"
        call = InstallerCall("install", (f"torch=={stranger.public}",), ("--force-reinstall",))
        words = f"Install torch {stranger} anew, so that all its files are of one release."
        remedies = (Remedy(words, (call,)),)
    other = _other_copy(draft.finding.component, context) if has is not False else ""
    if other:  # what was found first is the culprit, whatever is installed
        text += f". {other}"
        remedies = draft.finding.remedies
    if has is False and asker is not None:
        draft.certainty = "established"
    names = (first.package, asker.package) if asker is not None else (first.package,)
    draft.finding = draft.finding._replace(
        message=f"{draft.finding.message} {text}.", remedies=remedies, packages=names
    )


def _other_copy(component: str, context: Context) -> str:
    """Return in words which other copy of a library is in front of that of the wheels, or may be;
    "" where nothing tells.
    """
    word = component.rpartition("-")[2].lower().removeprefix("lib")
    for library in context.facts.value("libraries", ()):
        is_own = library.distribution or "site-packages/" in library.path
        if word in library.name.lower() and not is_own:
            release = f" {library.version}" if library.version else ""
            return f"{library.path}{release} is another copy of it"
    folders = context.facts.value("variables", {}).get("LD_LIBRARY_PATH", "").split(":")
    named = [folder for folder in folders if word in folder.lower()]
    others = named or [folder for folder in folders if "cuda" in folder.lower()]
    return f"LD_LIBRARY_PATH names {others[0]}, which is looked through first" if others else ""


def _askers(history: SymbolHistory, context: Context) -> List[Asker]:
    return context.matrix.askers(history, context.facts.value("os.architecture"))


def _asker_words(history: SymbolHistory, context: Context) -> Tuple[Optional[Asker], str]:
    """Return who of those installed needs the function, and who does in words."""
    askers = _askers(history, context)
    for asker in askers:
        version = context.version(asker.package)
        if version is not None and span_holds(asker.releases, asker.versions, version.public):
            file = asker.file.rsplit("/", 1)[-1]
            return asker, f"{file} of {asker.package} {version.public} needs it"
    words = [
        f"{asker.package} {' and '.join(releases_of(*span) for span in asker.releases)}"
        for asker in askers[:_MOST_ASKERS]
    ]
    return None, f"it is needed by {', '.join(words)}" if words else ""


def _install(
    history: SymbolHistory, version: Optional[Version], asker: Optional[Asker], context: Context
) -> Remedy:
    """Return the release that who needs it asks for itself, else those that have it."""
    requirement, why = history.requirement(version), ""
    for name, specifier in _asked_by(asker, context) if asker is not None else ():
        own = try_version(specifier[2:]) if specifier.startswith("==") else None
        if name == history.package and own is not None and history.has(own):
            requirement, why = f"{name}{specifier}", ", which what needs it asks for itself"
    return Remedy(f"Install {requirement}{why}.", (InstallerCall("install", (requirement,)),))


def _asked_by(asker: Asker, context: Context) -> List[Tuple[str, str]]:
    """Return what the installed release of a package asks for; of a platform that is not told what
    it asks for on any.
    """
    consumer = context.distributions.get(asker.package)
    if consumer is None:
        return []
    asked = requirement_sets(context, consumer)
    package, version = context.matrix.package(asker.package), try_version(consumer.version)
    release = package.release(version) if package is not None and version is not None else None
    lines = map(try_requirement, (release.requires or ()) if release is not None else ())
    return [*asked, *((line.name, line.specifier) for line in lines if line is not None)]


def _tell_driver(draft: TraceDraft, history: SymbolHistory, context: Context) -> None:
    needed = history.present[0][0]
    text = f"The driver has it from CUDA {needed} on"
    served = context.target.host.attributes.get("ptx")
    if isinstance(served, Version):
        text += f"; the one here serves CUDA {served}"
        if served >= parse_version(needed):
            text += ": another libcuda.so.1 was loaded instead"
    _, words = _asker_words(history, context)
    text += f"; {words}" if words else ""
    draft.finding = draft.finding._replace(message=f"{draft.finding.message} {text}.")
