"""Lines about what is not there (a name, a module, an attribute, a parameter, a model), answered
from what the wheels of all releases hold: which releases have it, which are here, who asks for it,
and which release mends it.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Callable,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from ..model.calls import InstallerCall
from ..model.evidence import Evidence, Known
from ..model.facts import Distribution, Facts
from ..model.finding import Remedy
from ..model.log import Event, Frame, Raised, within_packages
from ..model.pattern import pattern
from ..model.requirement import try_requirement
from ..model.versions import canonicalize_name, releases_of, try_version
from ..rules.installable import is_for_cuda
from ..rules.rule import Context, is_for_other_vendor, place_of_builds, vendor_of_builds
from ..rules.wheel_tags import place_without_wheels
from .code_owner import package_of
from .logged_run import LoggedRun
from .releases_of_files import releases_of_files
from .trace_draft import TraceDraft, code_of_log, groups_of

if TYPE_CHECKING:
    from ..matrix.names import Importer, NameHistory, PackageNames
    from ..model.version import Version

__all__ = ["doubt_builds", "is_telling", "tell_histories"]

_MOST_IMPORTERS = 3
#: What a build makes: libraries of kernels, and the file in which it writes its own version. A
#: checkout, or a build for another platform, may be without it whatever its release is.
_MADE_BY_BUILD = pattern(r"(?:_|_\w+_)C\Z|_version\Z|\w+_cuda\Z")
_OLD = 2  # calendar years
_MOST_TRIED = 12  # releases that are held against what else is installed
_MOST_OWNERS = 8  # packages that have a class or a function of the same name


class _Asked:
    """What a line asks for: its groups, and the traceback that it ends."""

    def __init__(
        self,
        groups: Mapping[str, str],
        frames: Sequence[Frame],
        modules: Mapping[str, str],
        context: Context,
        component: str = "",
    ) -> None:
        self.groups = groups
        self.component = component  # which package the line is about, where its words say so
        self.matrix = context.matrix
        self.installed = _versions(context)
        self.sources: List[str] = []  # files of all tracebacks of the log
        self.files = [(package_of(frame, modules), frame) for frame in frames if frame.within]
        self._frames, self._modules = frames, modules
        #: Who raised or called: the last place that is no part of Python's own import machinery.
        self.asker = _asker(frames, modules)
        if self.asker[1] is None:  # the writer left the places unindented, or only one of them
            self.asker = groups.get("caller", groups.get("frame", "")), None

    def owners(self, word: str) -> List[PackageNames]:
        """Return who has a class or a function of a name; of a word that any program may have,
        those in the traceback and those that are installed.
        """
        owners: List[PackageNames] = self.matrix.owners_of(word)
        if is_telling(word) and len(owners) <= _MOST_OWNERS:
            return owners
        there = {*self.named, *self.installed, self.component}
        return [owner for owner in owners if owner.package in there]

    def callees(self, function: str, name: str) -> List[PackageNames]:
        """Return who has a function, or a class that is called; of a word that any program may have
        all, where the parameter is of several words: both together hardly two packages have.
        """
        word = function.split(".")[0]
        owners = self.owners(word)
        if owners or not is_telling(name):
            return owners
        every: List[PackageNames] = self.matrix.owners_of(word)
        return every if len(every) <= _MOST_OWNERS else []

    def may_lack(self, history: NameHistory) -> List[str]:
        """Say which releases may lack a name, of those that the traceback's files are of."""
        releases = releases_of_files(history.package, self._frames, self._modules, self.matrix)
        return history.sides(releases) or history.having()

    def is_like(self, other: _Asked) -> bool:
        """Whether another line asks for the same name of the same owner."""
        words = ("module", "which", "callee", "name", "part")
        return all(self.groups.get(word) == other.groups.get(word) for word in words)

    @property
    def named(self) -> FrozenSet[str]:
        """The packages whose files the traceback names."""
        shown = (self.groups.get("frame", ""), self.groups.get("caller", ""))
        return frozenset([*(name for name, _ in self.files), *filter(None, shown)])


def is_telling(word: str) -> bool:
    """Tell whether a name is of several words, as hardly two packages have it: no Linear."""
    return sum(letter.isupper() for letter in word) > 1 or "_" in word.strip("_")


Question = Callable[[_Asked], Iterator["Optional[NameHistory]"]]


def tell_histories(drafts: List[TraceDraft], run: LoggedRun) -> None:
    """Say of what is missing which releases have it and who asks for it, and how to get one; leave
    out the drafts that only such a history speaks for.
    """
    for draft in list(drafts):
        question = _QUESTIONS.get(draft.signature.id) if draft.signature is not None else None
        if question is None or draft.signature is None:
            continue
        alike = [other for other in drafts if other.signature is draft.signature]
        answer = _first_history(draft, alike, question, run.raised, run.modules, run.context)
        if answer is None and draft.signature.id in _ONLY_MEASURED:
            drafts.remove(draft)
        elif answer is None and draft.signature.id == "import-name":
            _tell_of_no_release(draft, run)
        elif answer is not None:
            if draft.signature.id in _ONLY_MEASURED and _is_said(draft, drafts):
                drafts.remove(draft)
                continue
            _tell(draft, *answer, run.context)


def _tell_of_no_release(draft: TraceDraft, run: LoggedRun) -> None:
    """Say of a name that the program itself imports that no release brought or took it: then it is
    no other release that is missing.
    """
    event = draft.events[0]
    groups = groups_of(event, run.modules)
    module, name = groups.get("module", ""), groups.get("name", "")
    asker, frame = _asker(_frames_of(event, run.raised), run.modules)
    owners = run.context.matrix.owners_of(module.split(".")[0])
    if asker or frame is None or _MADE_BY_BUILD.match(name) or len(owners) != 1:
        return
    read = owners[0].ends_without(module, name)
    if read is None:
        return
    package = owners[0].package
    draft.finding = draft.finding._replace(
        message=f"{module} has no {name}, and another release of {package} hardly brings it: all "
        f"of {releases_of(*read)} have it, or none has.",
        remedies=(
            Remedy(
                f"Import {name} from the package and module that have it, as they spell it; where "
                f"{package} itself should, install it anew: its files are not those of a release."
            ),
        ),
        component=package,
        kind="missing",
        code=code_of_log(package, "missing"),
    )


def _is_said(draft: TraceDraft, drafts: Sequence[TraceDraft]) -> bool:
    """Whether a written signature speaks of the same line."""
    lines = {(event.first.source, event.first.number) for event in draft.events}
    return any(
        (event.first.source, event.first.number) in lines
        for other in drafts
        if other is not draft and other.signature is not None and other.role == "cause"
        for event in other.events
    )


def _first_history(
    draft: TraceDraft,
    alike: Sequence[TraceDraft],
    question: Question,
    raised: Sequence[Raised],
    modules: Mapping[str, str],
    context: Context,
) -> Optional[Tuple[NameHistory, _Asked]]:
    """Return the first history that an event of a draft asks for, of a release that may lack it.

    Another line of the same words may show who asks: a title has no traceback, its log has.
    """
    about = draft.signature.component if draft.signature is not None else ""

    def asked_in(drafts: Sequence[TraceDraft]) -> List[_Asked]:
        return [
            _Asked(groups_of(event, modules), _frames_of(event, raised), modules, context, about)
            for entry in drafts
            for event in entry.events
        ]

    every = asked_in(alike)
    elsewhere: Optional[Tuple[NameHistory, _Asked]] = None
    for asked in asked_in([draft]):
        known = [history for history in question(asked) if history is not None]
        histories = [
            history
            for history in known
            if _may_lack(history, asked.installed.get(history.package))
            and not any(_is_own(history, other) for other in every if asked.is_like(other))
        ]
        chosen = _of_one_package(histories, asked)
        if chosen is not None:
            asked.sources = [frame.file for entry in raised for frame in entry.frames]
            return chosen, asked
        if len(known) == 1 and _is_there(known[0], asked):
            elsewhere = elsewhere or (known[0], asked)
    return elsewhere


def _is_there(history: NameHistory, asked: _Asked) -> bool:
    """Tell whether the release that is stated has what is imported: the line is of another one."""
    version = asked.installed.get(history.package)
    is_import = history.kind == "name" and not any(
        map(_MADE_BY_BUILD.match, history.full_name.split("."))
    )
    return is_import and version is not None and history.has(version) is True


def _may_lack(history: NameHistory, version: Optional[Version]) -> bool:
    """Whether the installed release may be without it: else the log is of another environment, or
    it was lost in another way.
    """
    if version is None:
        return True
    has = history.has(version)
    if history.kind == "required":  # there the fault is to have it
        return has is True
    return has is False or (has is None and bool(history.open))


def _is_own(history: NameHistory, asked: _Asked) -> bool:
    """Whether the package would ask its own class for what it does not have: then it is a class of
    the same name elsewhere.
    """
    is_class = history.kind in ("attribute", "parameter", "required")
    return is_class and asked.asker[0] == history.package


def _of_one_package(histories: Sequence[NameHistory], asked: _Asked) -> Optional[NameHistory]:
    """Return the first history where all are of one package, of those that the traceback names, or
    that are installed.
    """
    for wanted in (None, asked.named, asked.installed):
        left = [entry for entry in histories if wanted is None or entry.package in wanted]
        if len({entry.package for entry in left}) == 1:
            return left[0]
    return None


def _tell(draft: TraceDraft, history: NameHistory, asked: _Asked, context: Context) -> None:
    version = asked.installed.get(history.package)
    kind = {"newer": "too-new", "older": "too-old"}.get(history.side(version), "version-mismatch")
    draft.releases = history.fitting()
    if _is_there(history, asked):
        _tell_another_run(draft, history, version)
        return
    text = _doubt(history, version, asked, context)
    if text:
        draft.releases = ""
        is_elsewhere = place_without_wheels(context, history.package)
        kind, remedy = "version-mismatch", _ELSEWHERE if is_elsewhere else _REBUILT
    else:
        text = f"{history.sentence()}{_installed_and_askers(history, asked)}"
        remedy = _remedy(history, version, asked, context)
    draft.is_dated = True
    doubtful = version is None and _is_old(history, asked)
    draft.finding = draft.finding._replace(
        message=f"{draft.finding.message} {text}.",
        remedies=() if doubtful else (remedy,),
        component=history.package,
        kind=kind,
        code=code_of_log(history.package, kind),
    )


def _tell_another_run(draft: TraceDraft, history: NameHistory, version: Optional[Version]) -> None:
    """Say that the release that is told has what a line misses."""
    package, sides = history.package, " or ".join(history.sides())
    other = f"one {sides}" if sides else "another one"
    draft.is_dated = draft.is_of_another_run = True
    draft.finding = draft.finding._replace(
        message=f"{history.full_name} is missing, which {package} {version} has, the release that "
        f"is told here: {history.sentence()}. The line is of a run with {other}, or of a folder "
        "with files of two releases.",
        remedies=(
            Remedy(
                f"Find out which {package} that run imports: python -c 'import "
                f"{history.module.split('.')[0]} as it; print(it.__version__, it.__file__)' with "
                "its interpreter."
            ),
        ),
        component=package,
        kind="version-mismatch",
        code=code_of_log(package, "version-mismatch"),
    )


_REBUILT = Remedy(
    "Where it runs from sources, build and install it anew, its compiled parts with it; else "
    "install a wheel that is made for this platform."
)
_ELSEWHERE = Remedy(
    "Run it where it has wheels (Linux; on Windows inside WSL 2), or build it from sources that "
    "are made for this platform."
)


def _doubt(
    history: NameHistory, version: Optional[Version], asked: _Asked, context: Context
) -> str:
    """Say why a release proves nothing of what is missing, "" where it may: the files of releases
    are those of wheels for Linux with CUDA, as they were built.
    """
    package = history.package
    if version is not None and not version.is_devrelease:
        return ""
    if history.kind == "name" and any(map(_MADE_BY_BUILD.match, history.full_name.split("."))):
        place = place_without_wheels(context, package)
        known = f"No release of {package} has a wheel for {place}. " if place else ""
        return f"{known}A build of {package} makes it: sources that were not built are without it"
    if version is not None:
        if history.has(version) is False:
            return ""  # by the releases around it, as by what the line says
        return f"{package} {version} is no release, so releases that have it prove nothing"
    module = history.module.split(".")[0] if "." in history.module else package.replace("-", "_")
    checkout = next(
        (
            file
            for file in asked.sources
            if is_checkout(file, module) and not _is_within_another(file, module, context)
        ),
        "",
    )
    if checkout:
        return f"{package} runs from sources ({checkout}), whose release is not known"
    if place_of_builds(context) and not is_for_other_vendor(context):
        return f"Which build of {package} is here is not known: releases are for Linux with CUDA"
    return ""


def _is_within_another(file: str, module: str, context: Context) -> bool:
    """Tell whether a folder of a module's name is a part of another package that is known: vLLM
    has a folder compressed_tensors of its own, below others.
    """
    above = file.partition(f"/{module}/")[0].split("/")[:-1]
    known = context.matrix.packages_known
    return any(folder != module and canonicalize_name(folder) in known for folder in above)


def doubt_builds(drafts: Sequence[TraceDraft], run: LoggedRun) -> None:
    """Leave open why a compiled operator is missing where builds are not for CUDA: those of vLLM
    register fewer of them (``USE_ROCM`` in csrc/torch_bindings.cpp, csrc/cpu/torch_bindings.cpp,
    https://github.com/vllm-project/vllm/tree/v0.8.5/csrc).
    """
    places = {place_of_builds(context) for context in run.contexts}
    for draft in drafts:
        if not draft.is_made_by("operators-not-registered"):
            continue
        if not places <= {"ROCm", "macOS"}:
            continue
        place = min(places)
        groups = groups_of(draft.events[0], run.modules)
        draft.certainty = "candidate"
        draft.meaning = (
            f"Where the build for {place} leaves it out, no other installation of that release "
            "brings it; else the extension did not load."
        )
        draft.finding = draft.finding._replace(
            message=f"{groups['which']} has no compiled operator {groups['name']}. Builds for "
            f"{place} are without some that CUDA has; whether this is one is not known.",
            remedies=(),
        )


#: Folders that packages have within them, and no checkout lies in.
_INNER_FOLDER = pattern(
    r"/(?:layers|quantization|model_executor|models|ops|kernels|utils|trainer|engine|integrations"
    r"|backends|worker|third_party|srt)/"
)


def is_checkout(file: str, module: str) -> bool:
    """Tell whether a file lies in a folder of a module's name that nothing installed, and that is
    no part of another package's sources.
    """
    above, folder, _ = file.partition(f"/{module}/")
    if not folder or within_packages(file) or "/lib/python" in file:
        return False
    return _INNER_FOLDER.search(f"{above}/") is None


def _frames_of(event: Event, raised: Sequence[Raised]) -> Tuple[Frame, ...]:
    """Return the places of the traceback that ends in an event's line, the first or the last of
    those with the same words: a title repeats what a log ends with.
    """
    lines = {(line.source, line.number) for line in (event.first, event.last)}
    for entry in raised:
        if (entry.line.source, entry.line.number) in lines:
            return entry.frames
    return ()


def _asker(frames: Sequence[Frame], modules: Mapping[str, str]) -> Tuple[str, Optional[Frame]]:
    for frame in reversed(frames):
        if "importlib" in frame.file or frame.file.startswith("<") or frame.is_relay:
            continue
        return package_of(frame, modules), frame
    return "", None


def _versions(context: Context) -> Dict[str, Version]:
    return {
        name: version
        for name, distribution in context.distributions.items()
        if distribution.version and (version := try_version(distribution.version)) is not None
    }


# --------------------------------------------------------------------------------------------------
# what lines ask for


def _name(asked: _Asked) -> Iterator[Optional[NameHistory]]:
    groups = asked.groups
    yield asked.matrix.name_history(groups.get("module", ""), groups.get("name", ""))


def _part(asked: _Asked) -> Iterator[Optional[NameHistory]]:
    whole = ".".join(filter(None, (asked.groups.get("module"), asked.groups.get("part"))))
    yield asked.matrix.name_history(whole)
    parent, _, last = whole.rpartition(".")
    if parent:
        yield asked.matrix.name_history(parent, last)


def _attribute(asked: _Asked) -> Iterator[Optional[NameHistory]]:
    which, name = asked.groups.get("which", ""), asked.groups.get("name", "")
    if "." in which or asked.groups.get("module"):
        yield asked.matrix.name_history(asked.groups.get("module") or which, name)
        return
    yield asked.matrix.name_history(which, name)  # of a module without dots
    for owner in asked.owners(which):
        yield owner.of_attribute(which, name)
        for place in owner.bases_elsewhere(which):
            yield from _of_place(asked, place, lambda names, word: names.of_attribute(word, name))


def _of_place(
    asked: _Asked, place: str, ask: Callable[[PackageNames, str], Optional[NameHistory]]
) -> Iterator[Optional[NameHistory]]:
    """Ask of a class of another package, ``module:Class``."""
    module, _, word = place.partition(":")
    for owner in asked.matrix.owners_of(module.split(".")[0]):
        yield ask(owner, word)


def _parameter(asked: _Asked) -> Iterator[Optional[NameHistory]]:
    callee = asked.groups.get("callee") or f"{asked.groups.get('which', '')}.__init__"
    name = asked.groups.get("name", "")
    is_known = False
    for owner in asked.callees(callee, name):
        history = owner.of_parameter(callee, name)
        is_known = is_known or history is not None
        yield history
        for place in owner.inherited_from(callee):
            yield from _of_place(
                asked, place, lambda names, word: names.of_parameter(f"{word}.__init__", name)
            )
    method = callee.rpartition(".")[2]
    if callee == "__init__":  # Python before 3.10 names no class
        few = asked.installed if len(asked.installed) <= _MOST_OWNERS else ()
        # A package in the traceback calls, mostly by way of another: the class is of neither.
        for package in {*few} - asked.named:
            names = asked.matrix.names_of(package)
            yield names.of_constructors(name) if names is not None else None
    elif not is_known and not method.startswith("__"):
        caller = asked.matrix.names_of(asked.asker[0])
        yield caller.of_calls(method, name) if caller is not None else None


def _required(asked: _Asked) -> Iterator[Optional[NameHistory]]:
    callee, name = asked.groups.get("callee", ""), asked.groups.get("name", "")
    for owner in asked.callees(callee, name):
        yield owner.of_parameter(callee, name, required=True)


def _model(asked: _Asked) -> Iterator[Optional[NameHistory]]:
    word = asked.groups.get("model", "")
    frame = asked.groups.get("frame", "")
    for names in map(asked.matrix.names_of, [frame] if frame in _ENGINES else _ENGINES):
        yield names.of_registry(word) if names is not None else None


def _model_type(asked: _Asked) -> Iterator[Optional[NameHistory]]:
    names = asked.matrix.names_of("transformers")
    yield names.of_registry(asked.groups.get("model", "")) if names is not None else None


def _model_key(asked: _Asked) -> Iterator[Optional[NameHistory]]:
    """A key of transformers' table of models, where the traceback ends there; or where there is
    none, and the key is no word of any program.
    """
    word = asked.groups.get("model", "")
    last = asked.files[-1][1].file if asked.files else ""
    is_alone = asked.asker[1] is None and any(map(str.isdigit, word))
    if last.endswith(_TABLE_OF_MODELS) or is_alone:
        yield from _model_type(asked)


_TABLE_OF_MODELS = "/transformers/models/auto/configuration_auto.py"


def _engine_argument(asked: _Asked) -> Iterator[Optional[NameHistory]]:
    names = asked.matrix.names_of("vllm")
    if names is not None:
        name = asked.groups.get("name", "")
        own = names.of_parameter("AsyncEngineArgs.__init__", name)
        yield own or names.of_parameter("EngineArgs.__init__", name)


def _option(asked: _Asked) -> Iterator[Optional[NameHistory]]:
    what = asked.groups.get("what", "")
    words = [] if what.startswith(_REQUIRED) else what.split()  # an option it asks for, it knows
    program = asked.groups.get("program", "").lower()
    owners = [package for package in _ENGINES if package in program] or _SERVERS.get(program, ())
    for package in [owner for owner in owners if owner in asked.installed] or owners:
        settings = _ENGINES[package]
        names = asked.matrix.names_of(package)
        if names is None:
            continue
        for word in words:
            option = word[2:].split("=")[0]
            field = option.replace("-", "_")
            history = names.of_parameter(f"{settings}.__init__", field) or names.of_option(option)
            yield history and history._replace(name=f"--{option}", kind="registry")


_REQUIRED = "the following arguments are required"
#: Programs whose options are the fields of a class, and files by which they are started: a file of
#: another name is somebody else's program.
_ENGINES = {"vllm": "EngineArgs", "sglang": "ServerArgs"}
_SERVERS = {
    "api_server.py": ("vllm",),
    "launch_server.py": ("sglang",),
    "__main__.py": ("vllm", "sglang"),
}
_QUESTIONS: Mapping[str, Question] = {
    "import-name": _name,
    "module-missing": _part,
    "module-part-missing": _part,
    "module-attribute": _name,
    "attribute-missing": _attribute,
    "cache-class-changed": _attribute,
    "argument-not-taken": _parameter,
    "trl-argument-moved": _parameter,
    "transformers-argument-gone": _parameter,
    "engine-argument-unknown": _engine_argument,
    "argument-missing": _required,
    "transformers-unknown-model": _model_type,
    "transformers-model-key": _model_key,
    "vllm-arch-unsupported": _model,
    "arguments-refused": _option,
}
#: Lines that any program prints of its own mistakes: they count where the name was measured.
_ONLY_MEASURED = frozenset(("attribute-missing", "argument-missing", "transformers-model-key"))


# --------------------------------------------------------------------------------------------------
# what is said, and what mends it


def _installed_and_askers(history: NameHistory, asked: _Asked) -> str:
    """What the environment has of it and who asks, as the end of a sentence."""
    version = asked.installed.get(history.package)
    words = ""
    if version is not None:
        words = f"; {history.package} {version} is installed"
    else:
        sides = asked.may_lack(history)
        words = f", so the {history.package} here is {' or '.join(sides)}" if sides else ""
        if words and _is_old(history, asked):
            words = (
                f"; which {history.package} is here is not known, and so old a one is seldom used"
            )
    if history.moved:
        words += f"; later ones have it in {history.moved}"
    return words + _askers(history, asked)


def _is_old(history: NameHistory, asked: _Asked) -> bool:
    """Tell whether a class has in all releases of the last years what an object of it has not: one
    of a class of the same name, or in another mode, is as likely as a release from before.
    """
    package = asked.matrix.package(history.package)
    if history.kind != "attribute" or package is None:
        return False
    if history.sides() != ["older than " + history.present[0][0]]:
        return False
    first = try_version(history.present[0][0])
    release = package.release(first) if first is not None else None
    newest = max((entry.released or "" for _, entry in package.releases()), default="")
    day = (release.released or "") if release is not None else ""
    return bool(day) and int(newest[:4] or 0) - int(day[:4]) >= _OLD


def _askers(history: NameHistory, asked: _Asked) -> str:
    package, frame = asked.asker
    if history.kind == "override":
        return ""
    if frame is not None and package == history.package:
        return (
            f"; {package}'s own {frame.within} asks for it, so files of two releases may lie there"
            if history.kind == "name"
            else f"; {package}'s own {frame.within} asks for it"
        )
    if frame is not None and package:
        shown = f"{package} {asked.installed[package]}" if package in asked.installed else package
        return f"; {shown} asks for it ({frame.within}, line {frame.line})"
    if frame is not None:
        return f"; {frame.file}, line {frame.line}, asks for it"
    if package and package != history.package:
        return f"; {package} asks for it"
    importers = history.asked_by(asked.installed)
    if importers:
        names = [f"{entry.package} {asked.installed[entry.package]}" for entry in importers]
    else:
        names = [_importer_words(importer) for importer in history.importers]
    return f"; it is imported by {', '.join(names[:_MOST_IMPORTERS])}" if names else ""


def _importer_words(importer: Importer) -> str:
    return f"{importer.package} {', '.join(releases_of(*span) for span in importer.spans[-2:])}"


def _remedy(
    history: NameHistory, version: Optional[Version], asked: _Asked, context: Context
) -> Remedy:
    """Return the release of the package that has it and goes with what else is installed; else say
    which have it.
    """
    package, frame = asked.asker
    if history.kind == "required":
        fitting = history.fitting()
        caller = package if package and package != history.package else "what calls it"
        if not fitting:
            text = f"Pass {history.name}, or install releases of {history.package} and of {caller}"
            return Remedy(f"{text} that go together.", ())
        text = f"Pass {history.name}, or install {fitting}, or a newer release of {caller}, which"
        call = InstallerCall("install", (fitting,))
        return Remedy(f"{text} passes it.", () if frame is not None and not package else (call,))
    if frame is not None and package == history.package and history.kind == "name":
        call = InstallerCall("install", (package,), ("--force-reinstall", "--no-deps"))
        return Remedy(f"Install {package} anew, so that all its files are of one release.", (call,))
    if _is_torchs_own(history.package, context):
        name, fitting = history.package, history.requirement(version)
        way = f"the torch whose {name} has that ({fitting})"
        if "newer" in " ".join(history.sides()):
            way = f"a newer release of what asks for it, which does without, or {way}"
        return Remedy(f"Take {way}: torch pins {name}, so it is not to be changed alone.", ())
    requirement, refusing = _allowed(history, version, context)
    vendor = vendor_of_builds(context.facts)
    if vendor and is_for_cuda(history.package, vendor):
        text = f"Install a build of {history.package} for {vendor} of a release that has it "
        return Remedy(f"{text}({requirement}): what the index has is for CUDA.", ())
    if refusing:
        names = ", ".join(refusing)
        text = f"Install {requirement}, with a release of {names} that goes with it"
        return Remedy(f"{text}, or {_other_side(history, version, asked, context)}.", ())
    fix = f"Install {requirement}, or {_other_side(history, version, asked, context)}."
    if history.kind == "override":
        method = asked.groups.get("callee", "")
        fix = f"Install {requirement}, or a newer release of what defines {method}."
    elif history.kind == "registry":
        fix = f"Install {requirement}."
    return Remedy(fix, (InstallerCall("install", (requirement,)),))


def _other_side(
    history: NameHistory, version: Optional[Version], asked: _Asked, context: Context
) -> str:
    """Say which release of what asks for it does without: the one after those that import it, or
    those before.
    """
    package = asked.asker[0]
    importers = history.asked_by(asked.installed) or history.importers
    for importer in importers if len(importers) == 1 else ():
        known = context.matrix.package(importer.package)
        last = try_version(importer.spans[-1][1])
        later = [
            release
            for release in (known.versions if known is not None else ())
            if last is not None and release > last and not release.is_prerelease
        ]
        if later and package in ("", importer.package):
            return f"{importer.package} {later[0]} or newer, which does without"
        first = try_version(importer.spans[0][0])
        has_earlier = any(
            first is not None and release < first
            for release in (known.versions if known is not None else ())
        )
        if has_earlier and package in ("", importer.package):
            return f"{importer.package}<{first}, which does without"
    other = package if package and package != history.package else "what asks for it"
    side = "a newer" if history.side(version) == "newer" else "another"
    return f"{side} release of {other} that does without"


def _is_torchs_own(package: str, context: Context) -> bool:
    """Tell whether releases of torch ask for exactly one release of a package, which is not to be
    changed alone.
    """
    torch = context.matrix.package("torch")
    newest = next((entry for _, entry in reversed(list(torch.releases()))), None) if torch else None
    lines = newest.requires or () if newest is not None else ()
    asked = [entry for line in lines if (entry := try_requirement(line)) is not None]
    return any(
        entry.name == package and entry.specifier.startswith(("==", "~=")) for entry in asked
    )


def _allowed(
    history: NameHistory, version: Optional[Version], context: Context
) -> Tuple[str, Tuple[str, ...]]:
    """Return the requirement for a release that has it, and which installed packages refuse it.

    Where versions are known it is the release nearest to what is installed with which no
    requirement of another package is broken that holds now (what the release itself requires, an
    installer brings); else all releases that have it.
    """
    every = history.requirement(version)
    if context.matrix.package(history.package) is None or not context.distributions:
        return every, ()
    distribution = context.distributions.get(history.package) or Distribution(history.package, None)
    before = _broken(context, distribution)
    refusing: FrozenSet[Tuple[str, str]] = frozenset()
    for release in _nearest(history, version, context):
        changed = distribution._replace(version=str(release), requires=None, constraint="")
        broken = frozenset(
            pair for pair in _broken(context, changed) - before if pair[0] != history.package
        )
        if not broken:
            return (f"{history.package}=={release}" if version is not None else every), ()
        refusing = refusing or broken
    others = {name for pair in refusing for name in pair} - {history.package}
    return every, tuple(sorted(others))


def _nearest(history: NameHistory, version: Optional[Version], context: Context) -> List[Version]:
    """Return the releases that have it: the next newer ones, then the next older ones."""
    package = context.matrix.package(history.package)
    having = [
        release
        for release, entry in (package.releases() if package is not None else ())
        if history.has(release) and not release.is_prerelease and not entry.yanked
    ]
    older = [release for release in reversed(having) if version is None or release < version]
    if version is None and history.side() == "newer":
        return older[:_MOST_TRIED]  # those at the end of what has it are the nearest
    newer = [release for release in having if version is None or release > version]
    if version is not None and version.is_devrelease:  # what asks for it was written before it
        return [*older[:_MOST_TRIED], *newer[:_MOST_TRIED]]
    return [*newer[:_MOST_TRIED], *older[:_MOST_TRIED]]


def _broken(context: Context, changed: Distribution) -> FrozenSet[Tuple[str, str]]:
    """Return which requirements are not met, by who asks and what, with one changed release."""
    from ..rules.requirement_lines import violations

    known = {**context.distributions, changed.name: changed}
    evidence = context.facts.evidence("distributions") or Evidence("", "")
    facts = Facts({**dict(context.facts), "distributions": Known(known, evidence)})
    return frozenset(
        (violation.requirer.name, violation.requirement.name)
        for violation in violations(facts, context.matrix)
    )
