"""What the places of a traceback tell of a line: in which phase memory ran out, that pip's isolated
build hides what is installed, that a name left Python's own library.
"""

from __future__ import annotations

from typing import List, Mapping, Sequence

from ..model.calls import InstallerCall
from ..model.finding import Remedy
from ..model.log import Event, Frame, Raised
from ..model.pattern import pattern
from ..rules.rule import Context
from .missing_names import is_checkout
from .python_releases import ADDED_IN, REMOVED_IN, of_python_release
from .trace_draft import TraceDraft, groups_of

__all__ = ["tell_places"]

_OUT_OF_MEMORY = ("cuda-out-of-memory", "cuda-error-oom")
#: By the name of a function on the way there: what was being done. The names are those of vLLM,
#: SGLang, transformers, torch and DeepSpeed.
_PHASES = (
    (pattern(r"captur\w*|capture_end|warm_?up_cuda_graph\w*"), "while CUDA graphs were captured"),
    (
        pattern(r"profile_run|determine_num_available_blocks|determine_available_memory|profile\w*"),
        "while the engine tried the largest batch to measure its memory",
    ),
    (pattern(r"_?allocate_kv_cache\w*|init_memory_pool|init_kv_cache"), "for the KV cache"),
    (
        pattern(r"load_weights|load_model|from_pretrained|_load_state_dict\w*|create_weights"),
        "while the weights were loaded",
    ),
    (pattern(r"backward"), "in the backward pass"),
    (pattern(r"optimizer_step|_optimizer_step|_init_group|initialize_optimizer_states"),
     "while the optimizer made its states"),
)  # fmt: skip
_LONGEST_OUTPUT = 80  # lines of one step of pip
_ISOLATED = pattern(r"pip-build-env-|/build-env-|/builds-v0/|\.tmp[\w-]{4,20}/(?:lib|bin)/")


def tell_places(
    drafts: Sequence[TraceDraft],
    raised: Sequence[Raised],
    modules: Mapping[str, str],
    context: Context,
) -> None:
    """Add to drafts what the traceback of their lines says beyond them."""
    for draft in drafts:
        if draft.signature is None or not draft.events:
            continue
        name = draft.signature.id
        frames = _frames_of(draft.events, raised)
        if name in _OUT_OF_MEMORY:
            _tell_phase(draft, frames)
        elif name == "module-missing" and (
            any(_ISOLATED.search(frame.file) for frame in frames) or _is_asked_by_pip(draft, drafts)
        ):
            _tell_isolation(draft, groups_of(draft.events[0], modules).get("module", ""))
        elif name == "module-missing":
            groups = groups_of(draft.events[0], modules)
            _tell_holder(draft, groups, context)
            _tell_own_folder(draft, frames, groups.get("module", ""))
        if name in ("module-missing", "import-name"):
            said = of_python_release(draft.events[0].first.text, "", context)
            if said:
                message = f"{draft.finding.message.rstrip('.')}. {said}"
                draft.finding = draft.finding._replace(message=message)


#: What CPython makes only where a library with its headers was there, by the package of Debian
#: (https://devguide.python.org/getting-started/setup-building/#install-dependencies).
_OF_INTERPRETER = {
    "_bz2": "libbz2-dev",
    "_ctypes": "libffi-dev",
    "_curses": "libncurses-dev",
    "_dbm": "libgdbm-compat-dev",
    "_gdbm": "libgdbm-dev",
    "_lzma": "liblzma-dev",
    "_sqlite3": "libsqlite3-dev",
    "_ssl": "libssl-dev",
    "_tkinter": "tk-dev",
    "_uuid": "uuid-dev",
    "readline": "libreadline-dev",
    "tkinter": "tk-dev",
}


def _tell_holder(draft: TraceDraft, groups: Mapping[str, str], context: Context) -> None:
    """Put in the place of the general remedy what holds a module, where that is known."""
    module = groups.get("module", "")
    if module in _OF_INTERPRETER:
        remedy = Remedy(
            "It comes with the interpreter, not from the index: build Python again where "
            f"{_OF_INTERPRETER[module]} is installed (Debian, Ubuntu), or take one that a "
            "distribution, conda or uv built."
        )
    elif module in REMOVED_IN:
        release = REMOVED_IN[module]
        remedy = Remedy(
            f"Run it with a Python before {release}, or install a newer release of what imports it."
        )
    elif module in ADDED_IN:
        remedy = Remedy(f"Run it with Python {ADDED_IN[module]} or newer.")
    else:
        package = groups.get("@module", "")
        if package not in context.matrix.packages_known or package in context.distributions:
            return
        call = InstallerCall("install", (package,))
        remedy = Remedy(f"Install {package} in the environment that runs the program.", (call,))
    draft.finding = draft.finding._replace(remedies=(remedy,))


def _is_asked_by_pip(draft: TraceDraft, drafts: Sequence[TraceDraft]) -> bool:
    """Tell whether a line stands in what pip printed of asking a package for its requirements."""
    return any(
        asked.first.source == event.first.source
        and 0 < event.first.number - asked.first.number <= _LONGEST_OUTPUT
        for other in drafts
        if other.signature is not None and other.signature.id == "pip-build-requirements"
        for asked in other.events
        if "what" in asked.groups and "egg_info" not in asked.groups["what"]
        for event in draft.events
    )


def _frames_of(events: Sequence[Event], raised: Sequence[Raised]) -> List[Frame]:
    """Return the places of the tracebacks that end in one of these lines, and of what they came
    of.
    """
    frames: List[Frame] = []
    for entry in raised:
        for event in events:
            # Of an exception that was printed more than once one of its lines stands for all.
            if any(
                line.source == entry.line.source
                and entry.line.number <= line.number <= max(entry.until, entry.line.number)
                for line in (event.first, event.last)
            ):
                frames += entry.frames
                break
    return frames


def _tell_phase(draft: TraceDraft, frames: Sequence[Frame]) -> None:
    """Say in which phase memory ran out, by the innermost function that names one."""
    for frame in reversed(frames):
        for name, words in _PHASES:
            if name.fullmatch(frame.function):
                message = f"{draft.finding.message.rstrip('.')}, {words}."
                draft.finding = draft.finding._replace(message=message)
                return


def _tell_isolation(draft: TraceDraft, module: str) -> None:
    draft.finding = draft.finding._replace(
        message=f"{module} is not in the environment of its own in which pip builds a package: the "
        "package imports it while it is built and does not say so, and what is installed beside "
        "it is hidden there.",
        remedies=(
            Remedy(
                f"Install {module} first, then build without isolation: pip install "
                "--no-build-isolation with the same arguments (uv: --no-build-isolation-package)."
            ),
        ),
    )


def _tell_own_folder(draft: TraceDraft, frames: Sequence[Frame], module: str) -> None:
    """Say of a module that is a folder around the program itself that Python does not look there:
    of a script only its own folder is on the path (docs.python.org/3/library/sys.html#sys.path).
    """
    for frame in frames:
        above, folder, inside = frame.file.partition(f"/{module}/")
        if not folder or "/" not in inside or not is_checkout(frame.file, module):
            continue
        started = inside.rpartition(".")[0].replace("/", ".")
        draft.finding = draft.finding._replace(
            message=f"{module} is the folder {above}{folder.rstrip('/')} that the program itself "
            f"lies in, and {above or '/'} is not on Python's path: of a script only its own folder "
            "is.",
            remedies=(
                Remedy(
                    f"Start it in {above or '/'} as python -m {module}.{started} (torchrun and "
                    f"deepspeed: --module), or set PYTHONPATH={above or '/'}, or run pip install "
                    "-e . there."
                ),
            ),
        )
        return
