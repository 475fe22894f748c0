"""ED8xx: distributions as they are on disk, and which module an import really finds."""

from __future__ import annotations

from ..model.calls import InstallerCall, OwnCall, reinstall, shell_word
from ..model.evidence import Evidence, Known
from ..model.facts import Oddity
from ..model.finding import Finding, Remedy
from ..model.pattern import pattern
from ..model.row import Source
from .rule import Context, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Optional, Sequence, Tuple

__all__ = ["RULES_HERE"]

_MOST = 8  # findings of one kind; the rest is counted in the last

_METADATA = Source(
    "https://packaging.python.org/en/latest/specifications/recording-installed-packages/"
)
_PATH = Source(
    "https://docs.python.org/3/library/sys_path_init.html",
    "the folder of the script, or the working directory, comes first",
)

#: Sub-packages that take the place of another distribution when their parent's folder is the
#: working directory.
_INNER_MODULES = {"vllm": ("ray",)}
_PACKAGE_FOLDER = pattern(r"(?:^|/)(?:site|dist)-packages/([^/]+)/?\Z")


def _oddities(context: Context, *kinds: str) -> List[Oddity]:
    return [
        oddity
        for oddity in context.facts.value("distributions.oddities", ())
        if oddity.kind in kinds
    ]


def _limited(oddities: Sequence[Oddity]) -> Iterator[Tuple[Oddity, str]]:
    """The first few, the last of them with a count of the rest."""
    for place, oddity in enumerate(oddities[:_MOST]):
        rest = len(oddities) - _MOST
        yield oddity, f" {rest} more are there." if place == _MOST - 1 and rest > 0 else ""


def check_duplicates(context: Context) -> Iterator[Finding]:
    """Two releases of one distribution are in the same folder.

    What it checks:
        Several ``.dist-info`` or ``.egg-info`` of one name in one folder.

    Why it matters:
        The files of one release cover those of the other, and which version pip,
        ``importlib.metadata`` and every start-up check see depends on the order of the folder.
        Files that only the older release had are still there.

    How to fix:
        Uninstall until nothing is left, then install once.

    References:
        https://packaging.python.org/en/latest/specifications/recording-installed-packages/
    """
    for oddity, more in _limited(_oddities(context, "duplicate")):
        yield Finding(
            code="ED801",
            component=oddity.name,
            kind="damaged",
            severity="warning",
            effect="may-block",
            subject=oddity.path,
            message=f"{oddity.name} is installed twice in one folder: {oddity.detail}.{more}",
            evidence=(Evidence(oddity.path),),
            sources=(_METADATA,),
            remedies=(
                Remedy(
                    "Uninstall it until pip finds nothing more, then install it once.",
                    (
                        InstallerCall("uninstall", (oddity.name,)),
                        InstallerCall("uninstall", (oddity.name,)),
                        reinstall(oddity.name),
                    ),
                ),
            ),
            packages=(oddity.name,),
        )


def check_leftovers(context: Context) -> Iterator[Finding]:
    """Remains of an interrupted uninstall are among the distributions.

    What it checks:
        Files and folders whose name begins with ``~``: pip renames what it removes, and deletes it
        at the end.

    Why it matters:
        pip warns "Ignoring invalid distribution ~orch" at every call, and ``importlib.metadata``
        lists the old version as installed. It also says that an install or uninstall did not end,
        so that other files may be missing.

    How to fix:
        Delete them; reinstall the package if anything is odd about it.

    References:
        https://github.com/pypa/pip/issues/11089
    """
    for oddity, more in _limited(_oddities(context, "leftover")):
        owner = _owner(context, oddity.name)
        about = f" of {owner}" if owner else ""
        yield Finding(
            code="ED802",
            component=owner or oddity.name,
            kind="damaged",
            severity="advice",
            subject=oddity.path,
            message=f"{oddity.path} is what an interrupted uninstall{about} left.{more}",
            evidence=(Evidence(oddity.path, oddity.detail),),
            sources=(Source("https://github.com/pypa/pip/issues/11089"),),
            remedies=(Remedy("Delete it.", (f"rm -r {shell_word(oddity.path)}",)),),
            packages=(owner,) if owner else (),
        )


def _owner(context: Context, name: str) -> Optional[str]:
    """Return the distribution that a leftover was: pip replaces its first letters by ``~``."""
    stem = name.lstrip("~-")
    for known in context.distributions:
        if stem and known.endswith(stem) and len(known) - len(stem) <= 2:
            return known
    return None


_UNREADABLE = {
    "no-metadata": (
        "has no METADATA",
        "warning",
        "pip cannot uninstall it, and its version and requirements are not known",
    ),
    "unreadable-metadata": (
        "has a METADATA that cannot be read",
        "warning",
        "pip and every program that lists distributions may crash on it",
    ),
    "name-mismatch": (
        "is in a folder of another name or version",
        "advice",
        "tools disagree about what is installed",
    ),
    "dangling-link": ("is a dangling link", "warning", "the package that it stood for is gone"),
    "not-a-directory": (
        "has a plain file where a .dist-info folder is expected",
        "advice",
        "tools do not see the distribution",
    ),
}


def check_unreadable_metadata(context: Context) -> Iterator[Finding]:
    """The metadata of a distribution is missing or cannot be read.

    What it checks:
        METADATA that is missing, empty, not UTF-8, or of another name or version than its folder;
        links to nothing.

    Why it matters:
        ``pip list`` ends with a traceback at one byte that is not UTF-8, version checks at start-up
        get None, and pip refuses to uninstall. It is usually the mark of a full disk, or of a copy
        that was interrupted.

    How to fix:
        Remove that folder and reinstall the package.

    References:
        https://packaging.python.org/en/latest/specifications/recording-installed-packages/
    """
    for oddity, more in _limited(_oddities(context, *_UNREADABLE)):
        what, severity, why = _UNREADABLE[oddity.kind]
        detail = f" ({oddity.detail})" if oddity.detail else ""
        folder = (
            oddity.path[: -len("/METADATA")] if oddity.path.endswith("/METADATA") else oddity.path
        )
        yield Finding(
            code="ED803",
            component=oddity.name,
            kind="damaged",
            severity=severity,
            subject=oddity.path,
            message=f"{oddity.name} {what}{detail}: {why}.{more}",
            evidence=(Evidence(oddity.path, oddity.detail),),
            sources=(_METADATA,),
            remedies=(
                Remedy(
                    "Remove the folder, then reinstall the package if it is wanted.",
                    (
                        f"rm -r {shell_word(folder)}",
                        reinstall(oddity.name),
                    ),
                ),
            ),
            packages=(oddity.name,),
        )


def check_damage(context: Context) -> Iterator[Finding]:
    """Files of a distribution are missing or were altered.

    What it checks:
        With ``--deep``: the files of torch, the NVIDIA wheels, the engines and Ray against the
        sizes in their RECORD.

    Why it matters:
        A library that is cut short or gone fails late and under another name: "file too short",
        "cannot open shared object file", "invalid device function". Edited Python files are often
        intended; they are named so that nobody forgets them.

    How to fix:
        Reinstall the distribution.

    References:
        https://packaging.python.org/en/latest/specifications/recording-installed-packages/
    """
    for oddity, more in _limited(_oddities(context, "missing-files", "altered-files")):
        missing = oddity.kind == "missing-files"
        yield Finding(
            code="ED804",
            component=oddity.name,
            kind="damaged",
            severity="warning" if missing or oddity.libraries else "advice",
            effect="blocks" if missing else "may-block",
            subject=oddity.path,
            message=f"{oddity.name}: "
            f"{'files missing' if missing else 'files of another size than when installed'}: "
            f"{oddity.detail}.{more}",
            evidence=(Evidence(f"{oddity.path}/RECORD", oddity.detail),),
            sources=(_METADATA,),
            remedies=(Remedy("Reinstall it.", (reinstall(oddity.name),)),),
            packages=(oddity.name,),
        )


def check_shadowed_modules(context: Context) -> Iterator[Finding]:
    """A module of the working directory hides an installed package.

    What it checks:
        Packages and files of the working directory, and of PYTHONPATH, that an import finds before
        the installed distribution of that name; and a working directory inside an installed
        package, whose sub-packages then come first.

    Why it matters:
        Python looks into the folder of the script, or the working directory (``-m``, ``-c``),
        before anything else: ``import ray`` takes ``vllm/ray``, ``import vllm`` takes a source
        checkout without its compiled extension.

    How to fix:
        Start from another folder, or rename the file; ``python -P`` or ``PYTHONSAFEPATH=1`` (3.11)
        leave that folder out.

    References:
        https://docs.python.org/3/library/sys_path_init.html
        https://docs.python.org/3/using/cmdline.html#cmdoption-P
    """
    working = context.facts.value("python.working_directory")
    inside = None
    if isinstance(working, str) and "-packages/" in working:  # else nothing to compile it for
        inside = _PACKAGE_FOLDER.search(working)
    for module, path in context.facts.value("shadowed_modules", ())[: _MOST * 2]:
        if module == "envdoctor":  # its own checkout hides nothing of the stack that is judged
            continue
        in_package = inside is not None and path.startswith(str(working))
        what = "the installed" if _distribution_of(context, module) else "the standard library's"
        text = f"`import {module}` finds {path} before {what} {module}."
        yield _shadowed(context, module, path or str(working), text, in_package)
    if inside is not None and not isinstance(context.facts.get("shadowed_modules"), Known):
        yield from _inside_package(context, str(working), inside[1])


def _inside_package(context: Context, working: str, package: str) -> Iterator[Finding]:
    """Judge a working directory inside a package, where no folder was read."""
    modules = _INNER_MODULES.get(package, ())
    for module in modules:
        text = (
            f"The working directory is {working}, so `import {module}` finds "
            f"{package}/{module} before the installed {module}."
        )
        yield _shadowed(context, module, working, text, True)
    if not modules and package in context.distributions:
        text = (
            f"The working directory is {working}: sub-packages of {package} come before "
            "installed packages of the same name."
        )
        yield _shadowed(context, package, working, text, False)


def _distribution_of(context: Context, module: str) -> Optional[str]:
    """Return the distribution that has a module's name, or None."""
    names = (module.replace("_", "-"), module)
    return next((name for name in names if name in context.distributions), None)


def _shadowed(context: Context, module: str, path: str, message: str, certain: bool) -> Finding:
    distribution = _distribution_of(context, module)
    if not certain:
        message += " This affects scripts in this folder, and `python -m` and `python -c`."
    return Finding(
        code="ED805",
        component=distribution or module,
        kind="shadowed",
        severity="error" if certain else "warning",
        subject=path,
        message=message,
        evidence=(Evidence(path), *context.evidence("python.working_directory")),
        sources=(_PATH,),
        remedies=(
            Remedy("Start the program from another folder.", ("cd / && …",), "safe"),
            Remedy(
                "Or leave that folder out of the search path (Python 3.11 and newer).",
                ("export PYTHONSAFEPATH=1",),
                "safe",
            ),
        ),
        packages=(distribution,) if distribution is not None else (),
    )


def check_hidden(context: Context) -> Iterator[Finding]:
    """A user-wide or PYTHONPATH copy hides the distribution of the environment.

    What it checks:
        Distributions of this stack that are twice on the search path, where the copy that wins is
        in the user site (``~/.local``) or in a folder of PYTHONPATH.

    Why it matters:
        ``pip install --user`` and PYTHONPATH reach into every environment of the same Python minor,
        and into containers that mount the home folder: what was installed into the environment is
        not what is imported.

    How to fix:
        Remove the copy, or start with PYTHONNOUSERSITE=1.

    References:
        https://docs.python.org/3/using/cmdline.html#envvar-PYTHONNOUSERSITE
    """
    hidden = [
        (oddity, context.distributions[oddity.name].location)
        for oddity in _oddities(context, "hidden")
        if oddity.name in context.distributions and _STACK.match(oddity.name)
    ]
    folders = _python_path(context)
    outside = [
        (oddity, location)
        for oddity, location in hidden
        if _USER_SITE in location or location in folders
    ]
    for oddity, location in outside[:_MOST]:
        where, remedy = "PYTHONPATH", Remedy(f"Take {location} out of PYTHONPATH.", (), "safe")
        if _USER_SITE in location:
            where = "the user site"
            remedy = Remedy("Leave the user site out.", ("export PYTHONNOUSERSITE=1",), "safe")
        yield Finding(
            code="ED806",
            component=oddity.name,
            kind="shadowed",
            severity="warning",
            subject=location,
            message=f"{oddity.name} from {where} is imported in place of the environment's: "
            f"{oddity.detail}.",
            evidence=(Evidence(location), Evidence(oddity.path)),
            sources=(
                Source("https://docs.python.org/3/using/cmdline.html#envvar-PYTHONNOUSERSITE"),
            ),
            remedies=(remedy,),
            packages=(oddity.name,),
        )


_USER_SITE = "/.local/lib/python"


def _python_path(context: Context) -> Tuple[str, ...]:
    path = context.facts.variable("PYTHONPATH")
    if not isinstance(path, Known):
        return ()
    return tuple(entry.rstrip("/") for entry in path.value.split(":") if entry)


_STACK = pattern(
    r"(torch\w*|nvidia-.*|vllm|ray|triton|flash-attn.*|xformers|sglang|sgl-kernel|sglang-kernel"
    r"|transformers|tokenizers|accelerate|deepspeed|peft|trl"
    r"|verl|openrlhf|numpy|pydantic|pydantic-core|protobuf|click|tensordict|datasets"
    r"|huggingface-hub|safetensors|bitsandbytes)\Z"
)


def check_unfinished_change(context: Context) -> Iterator[Finding]:
    """A change that envdoctor made to this environment was neither finished nor rolled back.

    What it checks:
        ``.envdoctor-change/state.json`` in the environment's prefix: ``fix --apply`` writes it
        before it touches a file, and removes it when the change is verified or rolled back.

    Why it matters:
        The process was killed in between. What is installed may be partly of before and partly of
        after, and the copy of before still holds disk space.

    How to fix:
        Roll back; then ``fix`` can be asked again.

    References:
        docs/fix.md
    """
    prefix = context.facts.value("python.prefix") or ""
    for oddity in _oddities(context, "unfinished-change"):
        yield Finding(
            code="ED807",
            component="envdoctor",
            kind="damaged",
            severity="warning",
            effect="may-block",
            subject=oddity.path,
            message=f"A change by envdoctor to {prefix} was interrupted and not rolled back.",
            evidence=(Evidence(oddity.path),),
            sources=(Source("docs/fix.md of envdoctor"),),
            remedies=(
                Remedy(
                    "Restore the environment as it was.",
                    (OwnCall("fix", ("--rollback",), prefix or None),),
                ),
            ),
        )


RULES_HERE: Tuple[Rule, ...] = (
    Rule(
        "ED801",
        "duplicate-distribution",
        "damaged",
        "Two releases of one distribution are in one folder",
        check_duplicates,
        half="environment",
    ),
    Rule(
        "ED802",
        "leftover",
        "damaged",
        "Remains of an interrupted uninstall",
        check_leftovers,
        half="environment",
    ),
    Rule(
        "ED803",
        "unreadable-metadata",
        "damaged",
        "Metadata is missing or cannot be read",
        check_unreadable_metadata,
        half="environment",
    ),
    Rule(
        "ED804",
        "damaged-files",
        "damaged",
        "Files of a distribution are missing or altered",
        check_damage,
        half="environment",
    ),
    Rule(
        "ED805",
        "shadowed-module",
        "shadowed",
        "A module of the working directory hides an installed package",
        check_shadowed_modules,
        half="environment",
    ),
    Rule(
        "ED806",
        "hidden-distribution",
        "shadowed",
        "A user-wide copy hides the distribution of the environment",
        check_hidden,
        half="environment",
    ),
    Rule(
        "ED807",
        "unfinished-change",
        "damaged",
        "A change by envdoctor was interrupted and not rolled back",
        check_unfinished_change,
        half="environment",
    ),
)
