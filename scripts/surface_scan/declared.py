"""What one Python module declares: its names, the attributes of its classes, the parameters of its
functions, read from its source without running it.

A source is cut into the blocks of its top-level classes and functions; a block that another release
had already is not parsed again. The reading is JSON:

* ``names``: bound at module level, but those that are imported from other packages; ``all``,
  ``stars``, ``trees``, ``dynamic``: as in ``module``; ``listed``: those in a literal ``__all__``,
  or that a decorator exports.
* ``imported``: name → [level, module, name] of what is imported by name.
* ``classes``: name → [bases, attributes, fields or None, whether it makes up attributes].
* ``functions``: name, or class and name, → parameters in one text (``signature_text``).
* ``registries``: table → what it names: model architectures, model types, quantisation methods;
  below ``@`` and the name of a decorator what it registers. ``options``: of command lines.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple, Union

from .module import read_module
from .parsing import UNPARSABLE, parse_quietly

__all__ = [
    "DECLARED_REVISION",
    "LISTED",
    "BlockCache",
    "listed_names",
    "read_declared",
    "read_registries",
    "signature_text",
]

#: Raised when another reading of the same source is wanted.
DECLARED_REVISION = "names 2"

#: Blocks of top-level classes and functions that were read, by their text.
BlockCache = Dict[bytes, Tuple[Dict[str, Any], Dict[str, str]]]

_HEAD = re.compile(rb"^(?:@|class |def |async +def )", re.M)
_TOP = re.compile(rb"^[^\s#)\]}]", re.M)
_NAMED = re.compile(rb"^(?:class|def|async\s+def)\s+(\w+)", re.M)
_GLOBAL = re.compile(rb"^[ \t]+global[ \t]+([\w, ]+)", re.M)
_SELF = re.compile(r"\b(?:self|cls)\.(\w+)\s*(?::[^=\n]{1,80})?=(?!=)")
_KEPT = (b"__getattr__",)
#: A literal ``__all__``.
LISTED = re.compile(r"^__all__\s*(?::[^=\n]*)?\+?=\s*[\[(](.*?)[\])]", re.DOTALL | re.MULTILINE)
_MARKED = re.compile(r"^@(?:export|requires)\b[^\n]*\n(?:@[^\n]*\n)*(?:class|def)\s+(\w+)", re.M)
_WORD = re.compile(r"[\"'](\w+)[\"']")
#: Tables by which engines and transformers find models, and quantisation methods.
_REGISTRY = re.compile(
    r"^(?:_(?:[A-Z]\w*_)?MODELS|CONFIG_MAPPING_NAMES|QUANTIZATION_METHODS|BASE_QUANTIZATION_METHODS"
    r"|AUTO_QUANTIZATION_CONFIG_MAPPING|DIFFUSERS_QUANTIZATION_METHODS|QuantizationMethods"
    r"|_QUANTIZATION_CONFIG_REGISTRY|_CONFIG_REGISTRY|EntryClass|QUANTIZATION_CHOICES"
    r"|LOAD_FORMAT_CHOICES|ATTENTION_BACKEND_CHOICES|_\w+_TO_REGISTER)$"
)
_HAS_REGISTRY = re.compile(
    r"_MODELS\b|_MAPPING_NAMES\b|_METHODS\b|_CONFIG_REGISTRY\b|\bEntryClass\b|_CHOICES\b"
    r"|_CONFIG_MAPPING\b|_TO_REGISTER\b|\bQuantizationMethods\b|add_argument|@[\w.]*\bregister"
)
_OPTION = re.compile(r"add_argument\(\s*(?:[\"']-\w[\"'],\s*)?[\"']--([\w.-]+)[\"']")
_FIELDS = frozenset(
    ("dataclass", "config", "define", "attrs", "s", "frozen", "dataclass_transform")
)
_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def read_declared(source: bytes, blocks: BlockCache) -> Dict[str, Any]:
    """Return the reading of a module; ``dynamic`` where it cannot be parsed."""
    source = source.replace(b"\r\n", b"\n").lstrip(b"\xef\xbb\xbf")
    classes: Dict[str, Any] = {}
    functions: Dict[str, str] = {}
    rest: List[bytes] = []
    for text, is_block in _blocks(source):
        name = _NAMED.search(text) if is_block else None
        if name is None or name.group(1) in _KEPT:
            rest.append(text)
            continue
        read = blocks.get(text)
        if read is None:
            tree = _parsed(text)
            if tree is None:
                return _whole(source)
            read = blocks[text] = declarations(tree.body, text.decode("utf-8", "replace"))
        _join(classes, functions, read)
        rest.append(b"def " + name.group(1) + b"(): pass\n")
    reduced = b"".join(rest)
    tree = _parsed(reduced)
    if tree is None:
        return _whole(source)
    # Classes and functions below ``if`` and ``try``, and tables.
    _join(classes, functions, declarations(tree.body, reduced.decode("utf-8", "replace"), True))
    return _reading(source, reduced, tree, classes, functions)


def _whole(source: bytes) -> Dict[str, Any]:
    """Read a source that cannot be cut: a text in it looks like code."""
    tree = _parsed(source)
    if tree is None:
        return {"names": [], "dynamic": "cannot be parsed", "classes": {}, "functions": {}}
    classes, functions = declarations(tree.body, source.decode("utf-8", "replace"))
    return _reading(source, source, tree, classes, functions)


def _reading(
    source: bytes,
    reduced: bytes,
    tree: ast.Module,
    classes: Dict[str, Any],
    functions: Dict[str, str],
) -> Dict[str, Any]:
    module = read_module(reduced)
    text = source.decode("utf-8", "replace")
    foreign: Set[str] = set()
    imported: Dict[str, List[Any]] = {}
    for node in _statements(tree.body):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imported[alias.asname or alias.name] = [node.level, node.module or "", alias.name]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                foreign.add(alias.asname or alias.name.split(".")[0])
    names = {*module["bound"], *classes, *(name for name in functions if "." not in name)}
    for words in _GLOBAL.findall(source) if b" global " in source else ():
        names.update(word.strip().decode() for word in words.split(b",") if word.strip())
    names -= foreign
    reading: Dict[str, Any] = {
        "names": sorted(name for name in names if not name.startswith("__")),
        "classes": classes,
        "functions": functions,
    }
    optional = {
        "all": module.get("all"),
        "stars": module.get("stars"),
        "dynamic": module.get("dynamic"),
        "trees": module.get("trees"),
        "imported": {name: place for name, place in imported.items() if name != "*"},
        "listed": sorted(listed_names(text)),
        **_registered(tree.body, text),
    }
    reading.update({key: value for key, value in optional.items() if value})
    return reading


def read_registries(source: bytes) -> Dict[str, Any]:
    """Return the registries and options of a source alone: where it names none, it is not
    parsed.
    """
    text = source.decode("utf-8", "replace")
    if not _HAS_REGISTRY.search(text):
        return {}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return {key: value for key, value in _registered(tree.body, text).items() if value}


def _registered(body: List[ast.stmt], text: str) -> Dict[str, Any]:
    return {
        "registries": _registries(body, text),
        "options": sorted(set(_OPTION.findall(text))) if "add_argument" in text else (),
    }


def listed_names(text: str) -> Set[str]:
    """Return the names in a source's ``__all__`` and those that a decorator exports."""
    names: Set[str] = set()
    if "__all__" in text:
        names.update(word for block in LISTED.findall(text) for word in _WORD.findall(block))
    if "@export" in text or "@requires" in text:
        names.update(_MARKED.findall(text))
    return names


def _blocks(source: bytes) -> Iterator[Tuple[bytes, bool]]:
    """Yield the texts of a source, and whether each is a class or a function with what decorates
    it.
    """
    place = 0
    while place < len(source):
        head = _HEAD.search(source, place)
        if head is None:
            yield source[place:], False
            return
        if head.start() > place:
            yield source[place : head.start()], False
        named = _NAMED.search(source, head.start())
        if named is None:
            yield source[head.start() :], False
            return
        end = _TOP.search(source, named.end())
        place = end.start() if end is not None else len(source)
        yield source[head.start() : place], True


def _parsed(text: bytes) -> Optional[ast.Module]:
    try:
        return parse_quietly(text)
    except UNPARSABLE:
        return None


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements of a body, and those below ``if``, ``try``, ``with`` and loops in it."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, field, None) or ())
            for handler in getattr(node, "handlers", None) or ():
                yield from _statements(handler.body)


def _join(
    classes: Dict[str, Any], functions: Dict[str, str], read: Tuple[Dict[str, Any], Dict[str, str]]
) -> None:
    """Add what a block declares; of two of one name with other parameters any are taken."""
    for name, entry in read[0].items():
        known = classes.get(name)
        if known is not None:
            entry = [
                [*known[0], *entry[0]],
                sorted({*known[1], *entry[1]}),
                known[2] if known[2] == entry[2] else None,
                known[3] or entry[3],
            ]
        classes[name] = entry
    for name, text in read[1].items():
        functions[name] = text if functions.get(name, text) == text else f"{functions[name]}|{text}"


def declarations(
    body: List[ast.stmt], text: str, nested: bool = False
) -> Tuple[Dict[str, Any], Dict[str, str]]:
    """Return the classes and functions of a body, of the top level where not ``nested``."""
    classes: Dict[str, Any] = {}
    functions: Dict[str, str] = {}
    top = {id(node) for node in body} if nested else frozenset()
    for node in _statements(body):
        if id(node) in top:
            continue
        if isinstance(node, ast.ClassDef):
            entry, methods = _class(node, text)
            _join(classes, functions, ({node.name: entry}, methods))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not _is_overload(node):
            _join(classes, functions, ({}, {node.name: signature_text(node, False)}))
    return classes, functions


def _class(node: ast.ClassDef, text: str) -> Tuple[List[Any], Dict[str, str]]:
    attributes: Set[str] = set()
    methods: Dict[str, str] = {}
    fields: List[str] = []
    for part in _statements(node.body):
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            attributes.add(part.name)
            if not _is_overload(part) and (not part.name.startswith("__") or part.name in _CALLED):
                static = any(_last(mark) == "staticmethod" for mark in part.decorator_list)
                sign = signature_text(part, not static)
                before = methods.get(f"{node.name}.{part.name}")
                # The setter of a property is no second signature.
                methods[f"{node.name}.{part.name}"] = before or sign
        elif isinstance(part, ast.ClassDef):
            attributes.add(part.name)
        elif isinstance(part, ast.Assign):
            attributes.update(
                item.id
                for target in part.targets
                for item in ast.walk(target)
                if isinstance(item, ast.Name)
            )
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            attributes.add(part.target.id)
            if not ast.unparse(part.annotation).startswith(("ClassVar", "typing.ClassVar")):
                fields.append(part.target.id + ("=" if part.value is not None else ""))
    dynamic = not attributes.isdisjoint(("__getattr__", "__getattribute__"))
    lines = text.split("\n")[node.lineno - 1 : node.end_lineno]
    attributes.update(_SELF.findall("\n".join(lines)))
    bases = [base for base in map(_dotted, node.bases) if base]
    is_record = any(_last(mark) in _FIELDS for mark in node.decorator_list) or any(
        base.rpartition(".")[2] == "NamedTuple" for base in bases
    )
    kept = sorted(name for name in attributes if not name.startswith("__"))
    return [bases, kept, fields if is_record else None, dynamic], methods


_CALLED = frozenset(("__init__", "__new__", "__call__"))


def signature_text(node: _Function, is_method: bool) -> str:
    """Return the parameters of a function as a text: ``a,b=,/,*,c,d=,**``.

    ``=`` has a default, ``*_`` takes more positional ones, ``**`` any keyword. Without the first of
    a method. Names that a decorator is given as text (it renames or deprecates them) are taken as
    keywords, too.
    """
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = len(plain) - len(arguments.defaults)
    parts = [item.arg + ("=" if number >= defaults else "") for number, item in enumerate(plain)]
    if arguments.posonlyargs:
        parts.insert(len(arguments.posonlyargs), "/")
    if is_method and parts:
        parts = parts[1:]
        if parts[:1] == ["/"]:
            parts = parts[1:]
    more = _words_of_decorators(node) - {part.rstrip("=") for part in parts}
    more -= {item.arg for item in arguments.kwonlyargs}
    if arguments.vararg is not None:
        parts.append("*_")
    elif arguments.kwonlyargs or more:
        parts.append("*")
    for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        parts.append(item.arg + ("=" if default is not None else ""))
    parts += [f"{word}=" for word in sorted(more)]
    if arguments.kwarg is not None:
        parts.append("**")
    return ",".join(parts)


def _words_of_decorators(node: _Function) -> Set[str]:
    return {
        part.value
        for mark in node.decorator_list
        if isinstance(mark, ast.Call)
        for part in ast.walk(mark)
        if isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and part.value.isidentifier()
    }


def _is_overload(node: _Function) -> bool:
    return any(_last(mark) in ("overload", "setter", "deleter") for mark in node.decorator_list)


_REGISTERED = re.compile(r"^@[\w.]*\b(register\w*)\(\s*((?:\[\s*)?[\"'][^)]{1,200})\)", re.M)


def _registries(body: List[ast.stmt], source: str) -> Dict[str, List[str]]:
    """Return the words of tables of model architectures, model types and quantisation methods."""
    words: Dict[str, Set[str]] = {}
    for node in _statements(body):
        targets: List[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            targets, value = [node.target], node.value
        for item in targets:
            if isinstance(item, ast.Name) and _REGISTRY.match(item.id):
                words.setdefault(item.id, set()).update(_keys(value))
    for name, text in _REGISTERED.findall(source) if "register" in source else ():
        words.setdefault(f"@{name}", set()).update(re.findall(r"[\"']([\w.-]+)[\"']", text))
    return {name: sorted(entry) for name, entry in sorted(words.items()) if entry}


def _keys(value: ast.expr) -> Iterator[str]:
    """The keys of dictionaries and of lists of pairs, the words of plain lists, and names."""
    if isinstance(value, ast.Dict):
        for key in value.keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value
    elif isinstance(value, (ast.List, ast.Set)):
        for item in value.elts:
            first = item.elts[0] if isinstance(item, ast.Tuple) and item.elts else item
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value
            elif isinstance(first, ast.Name):
                yield first.id
    elif isinstance(value, ast.Tuple):
        pass
    elif isinstance(value, ast.Call):
        for argument in value.args:
            yield from _keys(argument)
        for keyword in value.keywords:  # dict(name=…), LazyConfigDict(name=…)
            if keyword.arg:
                yield keyword.arg
    elif isinstance(value, ast.Subscript):
        for part in ast.walk(value.slice):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value
    elif isinstance(value, ast.Name):
        yield value.id


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _last(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):  # Generic[T]
        return _dotted(node.value)
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return node.id if isinstance(node, ast.Name) else ""
