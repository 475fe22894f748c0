"""Conditions under which a statement runs, as far as they speak of packages and versions.

A condition is a list, so that it is JSON:

* ``["version", package, operator, "4.50"]``: the installed version, compared; of ``python`` the
  interpreter's;
* ``["text", package, operator, "0.8.1"]``: the installed version, compared as a text; of the
  operators ``^=`` is "begins with", ``!^=`` the contrary;
* ``["use", "multimodal models"]``: what people choose to do;
* ``["chosen", "attention_backend", "flashinfer"]``: a setting that has a value;
* ``["present", package]``;
* ``["call", "is_x_available", [arguments]]`` and ``["name", "x"]``: to be looked up in the module;
* ``["and", …]``, ``["or", …]``, ``["not", condition]``, ``["const", true]``;
* ``["typing"]``: TYPE_CHECKING, which never runs;
* ``["unknown"]``: anything else.

Packages stand as the source names them: a module or a distribution.
"""

from __future__ import annotations

import ast
import operator as operators
import re
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from .parsing import is_version, last_name, strings_in

__all__ = [
    "AS_TEXT",
    "CUDA",
    "NEGATED",
    "NEVER",
    "Condition",
    "Cut",
    "Limits",
    "LookUp",
    "available_name",
    "clause_holds",
    "condition_of",
    "cut_of",
    "evaluate",
    "returned_condition",
    "version_of",
]

Condition = List[Any]
UNKNOWN: Condition = ["unknown"]

_OPERATORS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
NEGATED = {
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "==": "!=",
    "!=": "==",
    "^=": "!^=",
    "!^=": "^=",
}
_VERSION_NAME = re.compile(r"_*([a-z][a-z0-9_]*?)_*(?:version|ver)_*", re.IGNORECASE)
_RELEASE_NAME = re.compile(r"_*([a-z][a-z0-9_]*?)_release", re.IGNORECASE)
#: is_transformers_version(">=", "4.50"), is_torch_greater_or_equal("2.5"),
#: is_vllm_min_version("0.9")
_COMPARING = re.compile(
    r"_?is_(?:greater_or_equal_)?([a-z][a-z0-9_]*?)_"
    r"(version|greater_or_equal(?:_than)?|less_than|min_version|ge|at_least)"
)
#: required_torch_version(min_version=1.11)
_BOUNDED = re.compile(r"_?(?:required|requires|is|has)_([a-z][a-z0-9_]*?)_version")
_AVAILABLE = re.compile(r"_?(?:is|has|check)_([a-z][a-z0-9_]*?)_(?:available|installed|importable)")
#: What attributes say that people chose to do.
_USES = {"is_multimodal": "multimodal models"}
#: Packages whose ``__version__`` compares with a text as a version does (torch/torch_version.py).
_COMPARES_TEXTS = frozenset(("torch",))
#: Libraries of NVIDIA whose version a call of torch gives as a number: 91400 is 9.14.0.
_NUMBERED = frozenset(("cudnn",))


def condition_of(node: ast.expr, scope: Optional[Scope] = None) -> Condition:
    """Return the condition that an expression is."""
    scope = scope or Scope()
    if isinstance(node, ast.Constant):
        return ["const", bool(node.value)]
    if isinstance(node, ast.BoolOp):
        word = "and" if isinstance(node.op, ast.And) else "or"
        return [word, *[condition_of(value, scope) for value in node.values]]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ["not", condition_of(node.operand, scope)]
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(node, scope)
    if isinstance(node, ast.Call):
        return _called(node, scope)
    if isinstance(node, ast.Subscript):  # (is it there?, its version)[0]
        return condition_of(node.value, scope) if isinstance(node.value, ast.Call) else UNKNOWN
    name = last_name(node)
    if name == "TYPE_CHECKING":
        return ["typing"]
    if isinstance(node, ast.Name):
        return scope.conditions.get(name, ["name", name])
    return ["use", _USES[name]] if name in _USES else UNKNOWN


class Scope(NamedTuple):
    """What is known of names: texts (None for the value None), conditions, the packages whose
    versions they hold, and which part of these.
    """

    texts: Mapping[str, Optional[str]] = {}
    conditions: Mapping[str, Condition] = {}
    versions: Mapping[str, str] = {}
    cuts: Mapping[str, Cut] = {}


class Cut(NamedTuple):
    """What was taken of a version: ``major``, its first number; ``text``, so many of its letters;
    ``other``; "" for the whole.
    """

    part: str = ""
    letters: int = 0


def returned_condition(node: ast.FunctionDef, texts: Mapping[str, Optional[str]]) -> Condition:
    """Return what a function answers that only asks something, called without arguments.

    ``texts``: module-level names that hold texts.
    """
    known = dict(texts)
    arguments = [*node.args.posonlyargs, *node.args.args]
    defaults = node.args.defaults
    for argument, default in zip(arguments[len(arguments) - len(defaults) :], defaults):
        if isinstance(default, ast.Constant) and isinstance(default.value, (str, type(None))):
            known[argument.arg] = default.value
        elif isinstance(default, ast.Name) and default.id in known:
            known[argument.arg] = known[default.id]
    return _returned(node.body, known, {}, 0)


def _returned(
    body: Sequence[ast.stmt],
    texts: Dict[str, Optional[str]],
    conditions: Dict[str, Condition],
    depth: int,
) -> Condition:
    for number, statement in enumerate(body):
        scope = Scope(texts, conditions)
        if isinstance(statement, ast.Return):
            return condition_of(statement.value, scope) if statement.value else ["const", False]
        if isinstance(statement, ast.Raise):
            return ["const", False]
        if isinstance(statement, ast.If) and depth < 8:
            rest = body[number + 1 :]
            test = condition_of(statement.test, scope)
            yes = _returned([*statement.body, *rest], texts, dict(conditions), depth + 1)
            no = _returned([*statement.orelse, *rest], texts, dict(conditions), depth + 1)
            if yes == no:
                return yes
            return ["or", ["and", test, yes], ["and", ["not", test], no]]
        if isinstance(statement, ast.Assign):
            target = statement.targets[0]
            if isinstance(target, ast.Tuple) and target.elts:
                target = target.elts[0]
            if isinstance(target, ast.Name):
                conditions[target.id] = condition_of(statement.value, scope)
        elif isinstance(statement, (ast.Try, ast.For, ast.While, ast.With, ast.If)):
            return UNKNOWN
    return ["const", False]


def _package_of(node: ast.expr) -> Tuple[str, str]:
    """The package whose version an expression is, and which part of it ("" or "major")."""
    part = ""
    if isinstance(node, ast.Attribute) and node.attr in ("major", "minor", "micro", "release"):
        part, node = node.attr, node.value
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr in ("__version__", "VERSION"):
            return last_name(inner.value), part
        if isinstance(inner, ast.Call) and last_name(inner.func) in (
            "version",
            "get_distribution",
            "get_version",
            "_get_version",
            "get_package_version",
            "_get_package_version",
        ):
            words = [text for text in strings_in(inner) if not is_version(text)]
            if words:
                return words[0], part
            if isinstance(inner.func, ast.Attribute) and not inner.args:
                return last_name(inner.func.value), part  # torch.backends.cudnn.version()
    name = last_name(node)
    if isinstance(node, ast.Call) and node.args:
        name = last_name(node.args[0])
    match = _VERSION_NAME.fullmatch(name)
    return (match.group(1).lower(), part) if match else ("", part)


def _package_in(node: ast.expr, scope: Scope) -> Tuple[str, str]:
    inner = node.args[0] if isinstance(node, ast.Call) and node.args else node
    name = last_name(inner)
    if isinstance(inner, ast.Attribute) and f"{last_name(inner.value)}.{name}" in scope.versions:
        return scope.versions[f"{last_name(inner.value)}.{name}"], ""
    return (scope.versions[name], "") if name in scope.versions else _package_of(node)


def version_of(node: ast.expr) -> str:
    """Return the package whose version an expression is, as the source names it, or ""."""
    package, part = _package_of(node)
    return "" if part or isinstance(node, ast.Name) else package


def cut_of(node: ast.expr, cuts: Mapping[str, Cut]) -> Cut:
    """Return which part of a version an expression is: ``v[0]`` and ``v[:3]`` letters of it,
    ``v.split(".")[0]`` and ``parse(v).release[0]`` its first number.
    """
    while isinstance(node, ast.Call) and len(node.args) == 1 and last_name(node.func) in _NUMBERS:
        node = node.args[0]
    if isinstance(node, ast.Name):
        return cuts.get(node.id, Cut())
    if not isinstance(node, ast.Subscript):
        return Cut()
    separator = _separator(node.value)
    of_numbers = last_name(node.value) == "release" or separator == "."
    index = node.slice.upper if isinstance(node.slice, ast.Slice) else node.slice
    number = index.value if isinstance(index, ast.Constant) else None
    is_head = isinstance(node.slice, ast.Slice) and not node.slice.lower and not node.slice.step
    if separator == "+":  # without what a build adds to it
        return Cut() if number == 0 and not is_head else Cut("other")
    if of_numbers:
        return Cut("major") if number == 0 and not is_head else Cut("other")
    if separator:
        return Cut("other")
    if number == 0 and not is_head:
        return Cut("text", 1)
    return Cut("text", number) if is_head and isinstance(number, int) else Cut("other")


def _separator(node: ast.expr) -> str:
    """What a text is split by; "" where it is not."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in ("split", "partition"):
        return ""
    words = strings_in(node)
    return words[-1] if words else "?"


_NUMBERS = frozenset(("int", "float", "str"))


def _number(node: ast.expr, scope: Scope) -> Optional[str]:
    inner = node.args[0] if isinstance(node, ast.Call) and node.args else node
    if isinstance(inner, ast.Name) and inner.id in scope.texts:
        return scope.texts[inner.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return str(node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        # 9.1 may be meant for 9.10.
        return str(node.value) if re.fullmatch(r"\d+\.\d[1-9]", str(node.value)) else None
    words = [text for text in strings_in(node) if is_version(text)]
    # A bound without what a build adds to it.
    return words[0].partition("+")[0] if len(words) == 1 else None


def _of_numbered(number: str) -> str:
    """The version that one of NVIDIA's numbers stands for: 8902 is 8.9.2, 91400 is 9.14.0."""
    if not number.isdigit() or len(number) < 4:
        return number
    value = int(number)
    major, rest = divmod(value, 10000 if value >= 90000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _of_release(left: ast.expr, right: ast.expr, operator: str) -> Optional[Condition]:
    """The condition that ``x_release[:3] == (2, 9, 1)`` is, or ``Version(…).release >= (2, 9)``;
    None for another comparison.
    """
    numbers = (
        [item.value for item in right.elts if isinstance(item, ast.Constant)]
        if (isinstance(right, ast.Tuple))
        else []
    )
    cut = left.value if isinstance(left, ast.Subscript) else left
    match = _RELEASE_NAME.fullmatch(last_name(cut))
    package = match.group(1).lower() if match else _package_of(cut)[0]
    is_release = bool(match) or last_name(cut) == "release"
    # What is cut to fewer numbers is equal for many releases.
    sure = operator in ("<", ">=") or (operator in ("==", "!=") and len(numbers) == 3)
    if not package or not is_release or not sure or not all(map(str.isdigit, map(str, numbers))):
        return None
    return ["version", package, operator, ".".join(map(str, numbers))] if numbers else None


def _of_python(node: ast.Compare, operator: str) -> Optional[Condition]:
    """The condition that ``sys.version_info >= (3, 12)`` is; None for another comparison."""
    left, right = node.left, node.comparators[0]
    cut = isinstance(left, ast.Subscript) and isinstance(left.slice, ast.Slice)
    asked = left.value if isinstance(left, ast.Subscript) and cut else left
    is_tuple = isinstance(right, ast.Tuple)
    numbers = (
        [item.value for item in right.elts if isinstance(item, ast.Constant)] if is_tuple else []
    )
    if ast.unparse(asked) != "sys.version_info" or len(numbers) < 2:
        return None
    major, minor = numbers[:2]
    # (3, 12, 1, …) is above (3, 12), and what is cut to two numbers is not.
    if operator in (">", "<=") and len(numbers) == 2:
        minor, operator = minor + cut, {">": ">=", "<=": "<"}[operator]
    elif operator in ("==", "!="):
        return UNKNOWN if not cut else ["version", "python", operator, f"{major}.{minor}.*"]
    return ["version", "python", operator, ".".join(map(str, [major, minor, *numbers[2:3]]))]


def _compared(node: ast.Compare, scope: Scope) -> Condition:
    operator = _OPERATORS.get(type(node.ops[0]))
    left, right = node.left, node.comparators[0]
    if isinstance(right, ast.Constant) and right.value is None:
        return _compared_with_none(left, isinstance(node.ops[0], (ast.IsNot, ast.NotEq)), scope)
    if operator is None:
        return UNKNOWN
    if operator == "==" and isinstance(left, ast.Attribute) and _is_word(right):
        return ["chosen", left.attr, strings_in(right)[0]]
    of_numbers = _of_python(node, operator) or _of_release(left, right, operator)
    if of_numbers is not None:
        return of_numbers
    if operator in ("==", "!=") and _is_no_version(right):  # x_version != "N/A"
        package, part = _package_in(left, scope)
        if not package or part or isinstance(left, ast.Attribute):
            return UNKNOWN
        there: Condition = ["present", package]
        return there if operator == "!=" else ["not", there]
    if not _package_in(left, scope)[0] or _number(right, scope) is None:
        left, right, operator = right, left, _MIRRORED[operator]
    package, part = _package_in(left, scope)
    number = _number(right, scope)
    if not package or number is None or package in ("sys", "python", "cuda", "driver"):
        return UNKNOWN
    cut = cut_of(left, scope.cuts)
    if cut.part == "text":
        word = {"==": "^=", "!=": "!^=", "<": "<", ">=": ">="}.get(operator)
        is_sure = word is not None and len(number) == cut.letters
        return ["text", package, word, number] if is_sure else UNKNOWN
    if cut.part == "other":
        return UNKNOWN
    part = part or cut.part
    return _compared_with_bound(package, part, operator, number, _is_text(left) and _is_bare(right))


def _is_word(node: ast.expr) -> bool:
    return _is_bare(node) and all(text.isidentifier() for text in strings_in(node))


def _compared_with_none(left: ast.expr, wanted: bool, scope: Scope) -> Condition:
    """The condition that ``x is not None`` is, where ``wanted``, or that it is None."""
    if isinstance(left, ast.Name) and left.id in scope.texts:
        return ["const", (scope.texts[left.id] is not None) is wanted]
    package, _ = _package_in(left, scope)
    named = isinstance(left, ast.Name) and scope.versions.get(left.id) == package
    held: Condition = ["present", package] if package and named else condition_of(left, scope)
    return held if wanted else ["not", held]


def _compared_with_bound(
    package: str, part: str, operator: str, number: str, as_text: bool
) -> Condition:
    if part == "major":
        # major > 4 is "5 or newer": numbers of majors, not of releases.
        if operator in (">", "<="):
            number = str(int(number) + 1) if number.isdigit() else number
            operator = ">=" if operator == ">" else "<"
        elif operator in ("==", "!="):
            number += ".*"
    elif part:
        return UNKNOWN
    if package in _NUMBERED:
        number = _of_numbered(number)
    ordered = operator not in ("==", "!=") and package not in _COMPARES_TEXTS
    return ["text" if ordered and as_text else "version", package, operator, number]


def _is_bare(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is a version that nothing parsed."""
    return not isinstance(node, ast.Call) or last_name(node.func) in (
        "version",
        "get_version",
        "str",
    )


def _is_no_version(node: ast.expr) -> bool:
    """Whether an expression is what stands for the version of a package that is not there."""
    return isinstance(node, ast.Constant) and node.value in ("N/A", "")


def _called(node: ast.Call, scope: Scope) -> Condition:
    name = last_name(node.func)
    bounds = _bounds(name, node)
    if bounds is not None:
        return bounds
    words = [*_literals(node)]
    match = _COMPARING.fullmatch(name)
    if match:
        found = _comparing_call(match.group(1), match.group(2), words)
        if found is not None:
            return found
    if name in ("find_spec", "_is_package_available", "is_package_available", "module_exists"):
        return ["present", words[0]] if words and set(words[1:]) <= {"?"} else UNKNOWN
    if name == "bool" and len(node.args) == 1:
        return condition_of(node.args[0], scope)
    if isinstance(node.func, ast.Name) or _AVAILABLE.fullmatch(name):
        return ["call", name, words]
    return UNKNOWN


def _bounds(name: str, node: ast.Call) -> Optional[Condition]:
    """Return the condition that required_x_version(min_version=1.11, max_version=2) asks for."""
    match = _BOUNDED.fullmatch(name)
    clauses: List[Condition] = []
    for keyword in node.keywords if match and not node.args else ():
        operator = {"min_version": ">=", "max_version": "<="}.get(keyword.arg or "")
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if operator is None or not match or not is_version(str(value)):
            return None
        clauses.append(["version", match.group(1), operator, str(value)])
    return ["and", *clauses] if clauses else None


def _literals(node: ast.Call) -> List[str]:
    values = [*node.args, *[keyword.value for keyword in node.keywords]]
    return [
        value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else "?"
        for value in values
    ]


def _comparing_call(package: str, kind: str, words: List[str]) -> Optional[Condition]:
    if kind == "version" and len(words) == 2 and words[0] in NEGATED and is_version(words[1]):
        return ["version", package, words[0], words[1]]
    if words and is_version(words[0]) and kind != "version":
        return ["version", package, "<" if kind == "less_than" else ">=", words[0]]
    return None


class Limits(NamedTuple):
    """What has to hold of installed packages for a condition to hold.

    versions: (package, operator, version) clauses. present, absent: packages.
    """

    versions: Tuple[Tuple[str, str, str], ...] = ()
    present: Tuple[str, ...] = ()
    absent: Tuple[str, ...] = ()

    def joined(self, other: Limits) -> Limits:
        """Return both together."""
        return Limits(
            tuple(dict.fromkeys(self.versions + other.versions)),
            tuple(dict.fromkeys(self.present + other.present)),
            tuple(dict.fromkeys(self.absent + other.absent)),
        )


#: Stands among what is present for a torch that is built for CUDA.
CUDA = "torch[cuda]"
#: What functions ask of the machine that answer so on one with NVIDIA's GPUs.
_MACHINE = {
    **dict.fromkeys(("is_cuda", "is_cuda_alike"), True),
    **dict.fromkeys(("is_hip", "is_npu", "is_xpu", "is_hpu", "is_musa", "is_cpu"), False),
}

#: Functions that ask for a variable of the environment that nobody sets by default.
_SWITCHES = frozenset(
    (
        *("get_bool_env_var", "get_env_flag", "env_flag"),
        # transformers/utils/import_utils.py reads SM_HP_MP_PARAMETERS and SM_FRAMEWORK_PARAMS.
        *("is_sagemaker_mp_enabled", "is_sagemaker_dp_enabled"),
    )
)

#: Stands before the operator of a clause that compares versions as texts.
AS_TEXT = "text"


def clause_holds(operator: str, bound: str, version: Version) -> bool:
    """Tell whether a release meets one clause of ``Limits.versions``."""
    if operator.startswith(AS_TEXT):
        return _AS_TEXTS[operator[len(AS_TEXT) :]](str(version), bound)
    return SpecifierSet(f"{operator}{bound}").contains(version, prereleases=True)


_AS_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "^=": str.startswith,
    "!^=": lambda text, start: not text.startswith(start),
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}

#: (name, arguments) → the condition behind it and the look-up of the place where that stands.
LookUp = Callable[[str, List[str]], Optional[Tuple[Condition, Any]]]

#: A condition that cannot hold.
NEVER = Limits((), ("?",), ("?",))


def evaluate(
    condition: Condition,
    holds: bool,
    look_up: LookUp,
    distribution: Callable[[str], Optional[str]],
    there: FrozenSet[str] = frozenset(),
    depth: int = 0,
) -> Optional[Limits]:
    """Return what must be installed for a condition to hold (or not to), None where that cannot be
    said, ``NEVER`` where it cannot be.

    ``look_up`` gives the condition behind a name or a call, with the look-up of the module that it
    stands in; ``distribution`` the package that a source's word means; ``there``: packages that are
    installed.
    """
    kind = condition[0]
    if depth > 12 or kind in ("unknown", "chosen"):
        return None
    if kind == "typing":
        return NEVER if holds else Limits()
    if kind == "const":
        return Limits() if condition[1] is holds else NEVER
    if kind == "not":
        return evaluate(condition[1], not holds, look_up, distribution, there, depth + 1)
    if kind in ("and", "or"):
        parts = [
            evaluate(part, holds, look_up, distribution, there, depth + 1) for part in condition[1:]
        ]
        return _all_of(parts) if (kind == "and") is holds else _any_of(parts)
    if kind in ("version", "text"):
        package = distribution(condition[1])
        if package is None:
            return None
        operator = condition[2] if holds else NEGATED[condition[2]]
        if kind == "text":
            operator = f"{AS_TEXT}{operator}"
        return Limits(versions=((package, operator, condition[3]),), present=(package,))
    if kind == "present":
        package = distribution(condition[1])
        if package is None:
            return None
        if package in there:
            return Limits() if holds else NEVER
        return Limits(present=(package,)) if holds else Limits(absent=(package,))
    if kind == "call" and condition[1] in _MACHINE:
        return Limits(present=(CUDA,)) if _MACHINE[condition[1]] is holds else NEVER
    if kind == "call" and condition[1] in _SWITCHES:
        return NEVER if holds else Limits()
    found = look_up(condition[1], condition[2] if kind == "call" else [])
    if found is None:
        return None
    behind, look_up_there = found
    return evaluate(behind, holds, look_up_there, distribution, there, depth + 1)


def _all_of(parts: List[Optional[Limits]]) -> Optional[Limits]:
    if NEVER in parts:
        return NEVER
    joined = Limits()
    for part in parts:
        if part is None:
            return None
        joined = joined.joined(part)
    return NEVER if set(joined.present) & set(joined.absent) else joined


def _any_of(parts: List[Optional[Limits]]) -> Optional[Limits]:
    """Of alternatives, the one that is left where all others cannot be."""
    left = [part for part in parts if part != NEVER]
    if not left:
        return NEVER
    if Limits() in left:
        return Limits()
    return left[0] if len(left) == 1 else None


def available_name(name: str) -> Optional[str]:
    """Return the package that an ``is_x_available`` asks for, or None."""
    match = _AVAILABLE.fullmatch(name)
    return match.group(1) if match else None
