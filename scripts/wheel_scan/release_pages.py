"""Wheels that a project offers on the release page of its repository, by the workflow that builds
them at each git tag: for which torch, Python and CUDA, with which torch they are compiled and on
which system; and for which torch setup.py of that tag fetches one instead of building.

Read from a clone: nothing in it is run. Of the workflow count the matrix of its job, the variables
that its steps make of that, and the name that the wheel gets; of setup.py ``get_wheel_url``.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
import subprocess
from types import SimpleNamespace
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import yaml
from packaging.version import InvalidVersion, Version

from envdoctor.model.versions import cuda_of_variant

__all__ = ["SETUP", "WORKFLOW", "Torch", "UnreadText", "Wheel", "fetched_wheel", "file_at_tag"]
__all__ += ["page_builds", "torch_builds", "wheels_of"]

WORKFLOW = ".github/workflows/publish.yml"
SETUP = "setup.py"
#: What a C++ extension of torch that is compiled there needs of glibc at least: shared_ptr of GCC
#: 11 and newer asks whether there is one thread (ext/atomicity.h), by a variable of glibc 2.32,
#: where glibc has it. What else it may need is not known.
_GLIBC_OF_IMAGE = {"ubuntu-22.04": "2.32", "ubuntu-24.04": "2.32"}
_LABEL = re.compile(
    r"cu(?P<cuda>\d+)torch(?P<torch>\d+\.\d+)(?:\.\d+)?(?:cxx11abi(?P<abi>TRUE|FALSE))?"
)
_MATRIX = re.compile(r"\$\{\{ *matrix\.([\w-]+) *\}\}")
_PRINTED = re.compile(
    r"""echo "(\w+)=\$\(echo \$\{\{ *matrix\.([\w-]+) *\}\} \| awk -F \\\. \{'print ([^']+)'\}\)"""
)
_NAME = re.compile(r"^\s*tmpname=(.+)$", re.MULTILINE)
_TORCH_CUDA = re.compile(r'TORCH_CUDA_VERSION=\$\(python -c "(.*?)"\s*(?:\\\s*)?\)', re.DOTALL)


class UnreadText(Exception):
    """A workflow or a setup.py says something in a form that is not read."""


class Wheel(NamedTuple):
    """One wheel of a workflow. label: "cu12torch2.6cxx11abiFALSE"; torch: that it is compiled with;
    torch_cuda: "126", of the index from which that comes; python: "cp310"; image: the runner's.
    """

    label: str
    torch: str
    torch_cuda: str
    python: str
    image: str


class Torch(NamedTuple):
    """A build of torch that an index has: "2.6", "126", and its C++ ABI where that is known."""

    minor: str
    cuda: str
    abi: Optional[bool]


def file_at_tag(clone: str, tag: str, path: str) -> str:
    """Return a file at a tag of a clone; raises :class:`UnreadText` where there is none."""
    done = subprocess.run(
        ["git", "-C", clone, "show", f"{tag}:{path}"], capture_output=True, check=False
    )
    if done.returncode:
        raise UnreadText(f"no {path}")
    return done.stdout.decode("utf-8")


# the workflow


def wheels_of(workflow: str) -> Iterator[Wheel]:
    """Yield the wheels that a workflow builds; raises :class:`UnreadText`."""
    jobs = yaml.safe_load(workflow)["jobs"].values()
    job = next((job for job in jobs if "torch-version" in _matrix(job)), None)
    if job is None or "include" in _matrix(job):
        raise UnreadText("no job with a matrix of torch-version, or one with include")
    script = "\n".join(step.get("run", "") for step in job["steps"])
    name = _NAME.search(script)
    if name is None:
        raise UnreadText("no tmpname=, the label of the wheels")
    for chosen in _combinations(_matrix(job)):
        variables = {
            variable: _printed(chosen[key], columns)
            for variable, key, columns in _PRINTED.findall(script)
        }
        label = name[1]
        for value in _MATRIX.findall(label):
            label = re.sub(rf"\$\{{\{{ *matrix\.{value} *\}}\}}", chosen[value], label)
        for variable, value in variables.items():
            label = label.replace(f"${{{variable}}}", value)
        cuda = _torch_cuda(script, variables) or chosen["cuda-version"]
        python = "cp" + chosen["python-version"].replace(".", "")
        yield Wheel(label, chosen["torch-version"], cuda, python, chosen["os"])


def _matrix(job: Mapping[str, Any]) -> Mapping[str, Any]:
    matrix: Mapping[str, Any] = job.get("strategy", {}).get("matrix", {})
    return matrix


def _combinations(matrix: Mapping[str, Any]) -> Iterator[Dict[str, str]]:
    excluded = matrix.get("exclude", ())
    values = {key: list(map(str, matrix[key])) for key in matrix if key != "exclude"}
    for chosen in itertools.product(*values.values()):
        combination = dict(zip(values, chosen))
        if not any(
            all(combination.get(key) == str(value) for key, value in entry.items())
            for entry in excluded
        ):
            yield combination


def _printed(version: str, columns: str) -> str:
    """What awk prints of a version that is split at its dots: ``$1 "." $2``."""
    parts = version.split(".")
    words = re.findall(r'\$(\d+)|"([^"]*)"', columns)
    return "".join(
        parts[int(column) - 1] if column and int(column) <= len(parts) else text
        for column, text in words
    )


def _torch_cuda(script: str, variables: Mapping[str, str]) -> str:
    """The CUDA of the index that torch is installed from, "" where no variable says it."""
    program = _TORCH_CUDA.search(script)
    if program is None:
        return ""
    names: Dict[str, Any] = {"env": dict(variables)}
    names["os"] = SimpleNamespace(environ=names["env"])
    lines = [part.strip() for part in program[1].replace("\\\n", " ").split(";")]
    for statement in ast.parse("\n".join(lines)).body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return str(_value(statement.value.args[0], names))
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            _run([statement], names)
    raise UnreadText("nothing is printed for TORCH_CUDA_VERSION")


# setup.py


def fetched_wheel(setup: str, release: str, torch: str, cuda: str, abi: bool) -> str:
    """Return the label of the wheel that setup.py of a release asks for under a torch; raises
    :class:`UnreadText`, where it asks for none too.
    """
    tree = ast.parse(setup)
    function = next((node for node in tree.body if _is_function(node, "get_wheel_url")), None)
    if not isinstance(function, ast.FunctionDef):
        raise UnreadText("no get_wheel_url: it fetches nothing, or in another form")
    version = SimpleNamespace(cuda=cuda, hip=None)
    abis = SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=abi)
    names: Dict[str, Any] = {
        "torch": SimpleNamespace(__version__=torch, version=version, _C=abis),
        "sys": SimpleNamespace(version_info=SimpleNamespace(major=3, minor=12)),
        "IS_ROCM": False,
        "get_platform": lambda: "linux_x86_64",
        "get_package_version": lambda: release,
        "parse": Version,
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            _run([node], names)
    asked = _run(function.body, names)
    if not isinstance(asked, tuple):
        raise UnreadText("get_wheel_url returns no address with a file")
    return str(asked[1]).partition("+")[2].partition("-")[0]


def _is_function(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name


def _run(statements: Iterable[ast.stmt], names: Dict[str, Any]) -> Any:
    """Follow assignments and branches; return what is returned."""
    for statement in statements:
        if isinstance(statement, ast.Return) and statement.value is not None:
            return _value(statement.value, names)
        if isinstance(statement, ast.If):
            branch = statement.body if _value(statement.test, names) else statement.orelse
            returned = _run(branch, names)
            if returned is not None:
                return returned
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            names[statement.targets[0].id] = _value(statement.value, names)
        else:
            raise UnreadText(f"a statement that is not read: {ast.dump(statement)[:80]}")
    return None


_COMPARED = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_CALLED = {"int": int, "max": max, "min": min, "str": str}
_METHODS = frozenset(("format", "upper"))


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an expression of names, versions and texts; raises :class:`UnreadText`."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.Attribute):
        return _attribute(_value(node.value, names), node.attr)
    if isinstance(node, ast.IfExp):
        return _value(node.body if _value(node.test, names) else node.orelse, names)
    if isinstance(node, ast.Tuple):
        return tuple(_value(item, names) for item in node.elts)
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = [_value(key, names) for key in node.keys if key is not None]
        return dict(zip(keys, (_value(item, names) for item in node.values)))
    if isinstance(node, ast.Subscript):
        held, key = _value(node.value, names), _value(node.slice, names)
        if isinstance(held, dict) and key in held:
            return held[key]
        raise UnreadText(f"no value for {key!r}")
    if isinstance(node, ast.JoinedStr):
        return "".join(str(_value(part, names)) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _value(node.value, names)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        compared = _COMPARED[type(node.ops[0])]
        return compared(_value(node.left, names), _value(node.comparators[0], names))
    if isinstance(node, ast.BoolOp):
        joined = all if isinstance(node.op, ast.And) else any
        return joined(_value(item, names) for item in node.values)
    if isinstance(node, ast.Call):
        return _called(node, names)
    raise UnreadText(f"an expression that is not read: {ast.dump(node)[:80]}")


def _attribute(value: Any, name: str) -> Any:
    if isinstance(value, SimpleNamespace) and hasattr(value, name):
        return getattr(value, name)
    if isinstance(value, Version) and name in ("major", "minor"):
        return getattr(value, name)
    raise UnreadText(f"an attribute that is not read: {name}")


def _called(node: ast.Call, names: Mapping[str, Any]) -> Any:
    arguments = [_value(argument, names) for argument in node.args]
    keywords = {word.arg: _value(word.value, names) for word in node.keywords if word.arg}
    if isinstance(node.func, ast.Name):
        function = names.get(node.func.id, _CALLED.get(node.func.id))
        if callable(function):
            return function(*arguments, **keywords)
    elif isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        text = _value(node.func.value, names)
        if isinstance(text, str):
            return getattr(text, node.func.attr)(*arguments, **keywords)
    raise UnreadText(f"a call that is not read: {ast.dump(node.func)[:80]}")


# builds


def torch_builds(document: Mapping[str, Any]) -> List[Torch]:
    """Return the builds of torch for CUDA on x86_64, of a document such as packages/torch.json."""
    return [
        Torch(_minor(release["version"]), build["variant"][2:], build.get("cxx11abi"))
        for release in document["releases"]
        for build in release.get("builds", ())
        if build.get("variant", "").startswith("cu") and "architecture" not in build
    ]


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def page_builds(
    release: Mapping[str, Any], workflow: str, setup: str, torch: Sequence[Torch]
) -> List[Dict[str, Any]]:
    """Return the builds of a release with those of its workflow in place of what was read of it
    before; others, of files that were uploaded later, keep what they say.

    Raises:
        UnreadText: the workflow, or setup.py, has another form, or fetches no wheel.
    """
    version = release["version"]
    fetched_wheel(setup, version, "2.0.0", "12.0", False)
    source = f"publish.yml at the tag of {version}"
    kept = [
        build
        for build in release.get("builds", ())
        if not str(build.get("source", "")).startswith(source)
    ]
    made: Dict[str, Dict[str, Any]] = {}
    pythons: Dict[str, List[str]] = {}
    for wheel in wheels_of(workflow):
        key = re.sub(r"torch(\d+\.\d+)\.\d+", r"torch\1", wheel.label)
        made.setdefault(key, _build(wheel, source, torch))
        pythons.setdefault(key, []).append(wheel.python)
    for key, build in made.items():
        build["pythons"] = sorted(set(pythons[key]), key=lambda tag: int(tag[3:]))
    ordered = sorted(made.values(), key=_order)
    return [_with_fetching(build, version, setup, torch) for build in (*ordered, *kept)]


def _order(build: Mapping[str, Any]) -> Any:
    abi = build.get("labelled_abi", build["cxx11abi"])
    return Version(build["torch"]), Version(build["cuda"]), abi


def _build(wheel: Wheel, source: str, torch: Sequence[Torch]) -> Dict[str, Any]:
    """The build of a wheel. Its label names an ABI that setup.py can only raise from the old to the
    new one (``FORCE_CXX11_ABI``): beside a torch of the new one, FALSE is the new one as well.
    """
    label = _LABEL.fullmatch(wheel.label)
    if label is None:
        raise UnreadText(f"a label that is not read: {wheel.label}")
    variant = f"cu{label['cuda']}"
    said = label["abi"] == "TRUE"
    nightly = _is_nightly(wheel.torch)
    of_torch = {
        each.abi for each in torch if (each.minor, each.cuda) == (label["torch"], wheel.torch_cuda)
    }
    is_new = said or (of_torch == {True} and not nightly)
    build: Dict[str, Any] = {
        "index_name": "github",
        "variant": variant,
        "cuda": cuda_of_variant(variant),
        "cxx11abi": is_new,
        "torch": label["torch"],
        "source": source,
    }
    if nightly:
        build.update(source=f"{source}: torch {wheel.torch}", nightly=True)
    if is_new is not said:
        build.update(
            source=f"{source}: torch {wheel.torch}+cu{wheel.torch_cuda}", labelled_abi=said
        )
    if wheel.image in _GLIBC_OF_IMAGE:
        build["glibc"] = _GLIBC_OF_IMAGE[wheel.image]
    return build


def _is_nightly(version: str) -> bool:
    try:
        return Version(version).is_devrelease
    except InvalidVersion:
        raise UnreadText(f"a torch that is not read: {version}") from None


def _with_fetching(
    build: Dict[str, Any], release: str, setup: str, torch: Sequence[Torch]
) -> Dict[str, Any]:
    """A build with the CUDA majors other than its own of torch's builds under which setup.py asks
    for it.
    """
    build = {key: value for key, value in build.items() if key != "fetched_under"}
    if build["index_name"] != "github" or build.get("architecture", "x86_64") != "x86_64":
        return build
    abi = build.get("labelled_abi", build["cxx11abi"])
    label = f"{build['variant']}torch{build['torch']}cxx11abi{str(abi).upper()}"
    own = build["cuda"].split(".")[0]
    majors = []
    for other in torch:
        major = other.cuda[:-1]
        if other.minor != build["torch"] or major in (own, *majors) or other.abi is not abi:
            continue
        asked = fetched_wheel(setup, release, f"{other.minor}.0", f"{major}.0", abi)
        if asked == label:
            majors.append(major)
    return {**build, "fetched_under": majors} if majors else build
