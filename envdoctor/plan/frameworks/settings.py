"""Single settings: ``key=value`` as Hydra and OmegaConf take it, ``--flag value`` as argparse does,
and files of them.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...errors import InputError
from ...model.evidence import Evidence
from ...model.record import NamedTuple
from ...model.redaction import redact, redact_tree, redacted_start
from ...model.toml import parse_toml
from ..shell.reader import MARK, Word

__all__ = [
    "MAX_CONFIG_BYTES",
    "Setting",
    "as_option",
    "flags",
    "flatten",
    "override",
    "overrides",
    "read_config",
    "scalar",
    "unfolded",
]

MAX_CONFIG_BYTES = 4 << 20
_MAX_DEPTH = 100
_MAX_NODES = 100_000
_ROOT = "\x00"  # the key of the document itself
_KEY = re.compile(r"(\+\+|\+|~)?([A-Za-z_][\w./@:-]*(?:\.[\w@-]+)*)(=)?")
_INTEGER = re.compile(r"[-+]?\d[\d_]*\Z")
_FLOAT = re.compile(r"[-+]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?\Z")
_SPECIAL = {"null": None, "none": None, "true": True, "false": False}


class Setting(NamedTuple):
    """One setting as it was made.

    unclear: why the value is not known (it is None then). last: of a path that is not known as a
    whole its last part, where that is (``…/Qwen3-8B``).
    """

    key: str
    value: Any
    place: Evidence
    operator: str = ""  # "+" adds a key, "++" forces it, "~" removes it, "--" an option of argparse
    unclear: str = ""
    last: str = ""


def _last_part(text: str) -> str:
    """Return what follows the last slash of a path, where all of that is known; else ""."""
    before, slash, last = text.rstrip("/\"'").rpartition("/")
    return last if slash and MARK in before and MARK not in last else ""


def scalar(text: str) -> Any:
    """Return the value that a bare word stands for: null, a truth value, a number, or the text."""
    if text.lower() in _SPECIAL:
        return _SPECIAL[text.lower()]
    if _INTEGER.match(text) and len(text) < 30:
        return int(text.replace("_", ""))
    if _FLOAT.match(text) and len(text) < 60:
        return float(text.replace("_", ""))
    return text


@lru_cache(maxsize=4)  # every adapter asks for those of one run, some several times
def overrides(words: Tuple[Word, ...], name: str) -> Tuple[Setting, ...]:
    """Read every ``key=value``; words that are none are left out."""
    settings = [override(word, name) for word in words]
    return tuple([setting for setting in settings if setting is not None])


def override(word: Word, name: str) -> Optional[Setting]:
    """Read ``key=value`` with its ``+``, ``++`` or ``~``; None where the word is none."""
    match = _KEY.match(word.text)
    if match is None:
        return None
    operator, key, equals = match.groups(default="")
    value = word.text[match.end() :]
    if not equals and (operator != "~" or value):
        return None
    written = word.raw or word.readable
    place = Evidence(f"{name}:{word.line}" if word.line else name, redacted_start(written, 200))
    if MARK in value:
        return Setting(key, None, place, operator, word.why, _last_part(value))
    return Setting(key, _value(value), place, operator)


def flags(
    words: Sequence[Word], name: str, switches: Sequence[str] = ()
) -> Tuple[List[Setting], List[Word]]:
    """Read ``--a b``, ``--a=b`` and ``--switch``; return the settings and the words left over.

    ``switches``: options without a value, in the spelling of their keys (``zero_stage``,
    ``ds.adam_offload``).
    """
    settings, rest = _flags(tuple(words), name, tuple(switches))
    return list(settings), list(rest)


@lru_cache(maxsize=4)  # an adapter asks several times for those of one run
def _flags(
    words: Tuple[Word, ...], name: str, switches: Tuple[str, ...]
) -> Tuple[List[Setting], List[Word]]:
    settings: List[Setting] = []
    rest: List[Word] = []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not word.text.startswith("--") or len(word.text) < 3:
            rest.append(word)
            continue
        option, equals, text = word.text[2:].partition("=")
        key = option.replace("-", "_")
        start = position
        while not (equals or key in switches) and _is_value(words, position):
            position += 1
        values = [word._replace(text=text)] if equals else words[start:position]
        written = [word] if equals else [word, *values]
        settings.append(_flag(key, written, values, name))
    return settings, rest


def _is_value(words: Sequence[Word], position: int) -> bool:
    return position < len(words) and not _is_option(words[position].text)


def _flag(key: str, written: Sequence[Word], values: Sequence[Word], name: str) -> Setting:
    line = written[0].line
    text = " ".join(one.readable for one in written)
    place = Evidence(f"{name}:{line}" if line else name, redacted_start(text, 200))
    unclear = next((value.why for value in values if not value.known), "")
    if unclear:
        last = _last_part(values[0].text) if len(values) == 1 else ""
        return Setting(key, None, place, "--", unclear, last)
    scalars = [scalar(value.text) for value in values]
    return Setting(key, scalars if len(scalars) > 1 else (scalars or [True])[0], place, "--")


#: Parts of DeepSpeed's and accelerate's files.
_PARTS_OF_FILES = ("zero_optimization.", "data_types.", "deepspeed_config.", "fsdp_config.")


def as_option(key: str, prefix: str = "--") -> str:
    """Return a key as a command has it; those of a launcher are options already, and variables and
    what stands in DeepSpeed's and accelerate's files are none.
    """
    is_whole = key.isupper() or key.startswith(("--", *_PARTS_OF_FILES))
    return key if is_whole else f"{prefix}{key}"


def _is_option(text: str) -> bool:
    return text.startswith("--") or (
        text.startswith("-") and len(text) > 1 and not _FLOAT.match(text)
    )


def flatten(setting: Setting) -> Iterator[Setting]:
    """Yield the leaves of a setting whose value is a mapping."""
    if isinstance(setting.value, dict) and setting.value:
        for key, value in setting.value.items():
            yield from flatten(setting._replace(key=f"{setting.key}.{key}", value=value))
    else:
        yield setting


def _value(text: str) -> Any:
    """The value after ``=``: a list or a mapping in brackets, a quoted text, or a bare word."""
    text = text.strip()
    if text[:1] in ("[", "{"):
        reader = _Nested(text)
        value = reader.read(0)
        return value if reader.at == len(text) and not reader.failed else text
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return scalar(text)


class _Nested:
    """Reads ``[a, {b: c}]`` in Hydra's grammar, which takes JSON as well."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.failed = False

    def read(self, depth: int) -> Any:
        """Read one value; ``failed`` tells where it is none."""
        self._blanks()
        char = self.text[self.at : self.at + 1]
        if depth > 30:
            self.failed = True
            return None
        if char == "[":
            return self._list(depth)
        if char == "{":
            return self._mapping(depth)
        return self._atom(",]}")

    def _list(self, depth: int) -> List[Any]:
        self.at += 1
        values: List[Any] = []
        while not self.failed:
            self._blanks()
            if self.text.startswith("]", self.at):
                self.at += 1
                return values
            values.append(self.read(depth + 1))
            self._separator("]")
        return values

    def _mapping(self, depth: int) -> Dict[str, Any]:
        self.at += 1
        values: Dict[str, Any] = {}
        while not self.failed:
            self._blanks()
            if self.text.startswith("}", self.at):
                self.at += 1
                return values
            key = self._atom(":,}")
            self._blanks()
            if not self.text.startswith(":", self.at):
                self.failed = True
                return values
            self.at += 1
            values[str(key)] = self.read(depth + 1)
            self._separator("}")
        return values

    def _separator(self, close: str) -> None:
        self._blanks()
        if self.text.startswith(",", self.at):
            self.at += 1
        elif not self.text.startswith(close, self.at):
            self.failed = True

    def _atom(self, ends: str) -> Any:
        start = self.at
        char = self.text[start : start + 1]
        if char and char in "'\"":
            close = self.text.find(char, start + 1)
            if close < 0:
                self.failed = True
                return None
            self.at = close + 1
            return self.text[start + 1 : close]
        while self.at < len(self.text) and self.text[self.at] not in ends:
            if self.text.startswith("${", self.at):
                close = self.text.find("}", self.at)
                self.at = close if close > 0 else self.at
            self.at += 1
        return scalar(self.text[start : self.at].strip())

    def _blanks(self) -> None:
        while self.text[self.at : self.at + 1] in (" ", "\n", "\t") and self.at < len(self.text):
            self.at += 1


def read_config(text: str, name: str) -> List[Setting]:
    """Read a YAML, JSON or TOML file into its leaves, each with its place. Raises
    :class:`InputError`.
    """
    if len(text) > MAX_CONFIG_BYTES:
        raise InputError(
            f"{name}: expected a configuration, found {len(text)} characters; at most "
            f"{MAX_CONFIG_BYTES} are read"
        )
    if "\x00" in text:
        raise InputError(f"{name}: expected a configuration, found binary data")
    read = {"json": _read_json, "toml": _read_toml}.get(name.rpartition(".")[2], _read_yaml)
    settings = read(text, name)
    return [_without_secret(setting) for setting in settings]


def _without_secret(setting: Setting) -> Setting:
    """Hide the value of a setting that is a secret by its key, or by its looks."""
    value = redact_tree({setting.key: setting.value})[setting.key]
    if value == setting.value:
        return setting
    detail = redact(setting.place.detail.replace(str(setting.value), str(value)))
    return setting._replace(value=value, place=Evidence(setting.place.source, detail))


def unfolded(setting: Setting) -> Setting:
    """Return an option whose word is an object of JSON with that object as its value."""
    if not isinstance(setting.value, str) or not setting.value.startswith("{"):
        return setting
    try:
        return _without_secret(setting._replace(value=_parsed(setting.value)))
    except ValueError:
        return setting


def _parsed(text: str) -> Any:
    """Parse JSON; raises ValueError where it is none, or nested too deep."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep to be a configuration") from None


def _read_json(text: str, name: str) -> List[Setting]:
    try:
        tree = _parsed(text)
    except ValueError as error:
        raise InputError(f"{name}: expected JSON: {error}") from None
    if not isinstance(tree, dict):
        raise InputError(f"{name}: expected a JSON object, found {type(tree).__name__}")
    return _leaves_of(tree, name)


def _read_toml(text: str, name: str) -> List[Setting]:
    try:
        leaves = _leaves_of(parse_toml(text), name)
    except ValueError as error:
        raise InputError(f"{name}: expected TOML: {error}") from None
    return [
        leaf._replace(place=Evidence(name, redacted_start(f"{leaf.key} = {leaf.value}", 200)))
        for leaf in leaves
    ]


def _leaves_of(tree: Mapping[str, Any], name: str) -> List[Setting]:
    return [
        leaf
        for key, value in tree.items()
        for leaf in flatten(Setting(key, value, Evidence(name, key)))
    ]


def _read_yaml(text: str, name: str) -> List[Setting]:
    try:
        import yaml
    except ImportError:
        raise InputError(
            f"{name}: YAML is read with PyYAML, which is not installed; pip install PyYAML"
        ) from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Leaves(yaml, name).read(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}:{mark.line + 1}" if mark is not None else name
        raise InputError(f"{where}: not YAML: {getattr(error, 'problem', None) or error}") from None
    except RecursionError:
        raise InputError(f"{name}: nested too deep to be a configuration") from None


class _Leaves:
    """Collects the leaves of a stream of YAML events without recursion."""

    def __init__(self, yaml: Any, name: str) -> None:
        self.yaml = yaml
        self.name = name
        self.anchors: Dict[str, Any] = {}
        self.nodes = 0
        self.root: Dict[str, Any] = {}
        self.container: Any = self.root  # the mapping or list that is open
        self.key: Optional[str] = _ROOT  # the key that waits for its value
        self.outer: List[Any] = []  # the containers around it

    def read(self, events: Iterator[Any]) -> List[Setting]:
        """Return the leaves of the first document."""
        yaml = self.yaml
        for event in events:
            self.nodes += 1
            if self.nodes > _MAX_NODES:
                raise InputError(
                    f"{self.name}: more than {_MAX_NODES} values; this is no configuration"
                )
            if isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
                self._scalar(event)
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                self._open(event)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                self.container, self.key = self.outer.pop(), None
            elif isinstance(event, yaml.DocumentEndEvent):
                break
        tree = self.root.get(_ROOT, ({}, 1))[0]
        if not isinstance(tree, dict):
            kind = "a list" if isinstance(tree, list) else "a single value"
            raise InputError(f"{self.name}: expected keys and values, found {kind}")
        return list(self._walk(tree, "", 0))

    def _scalar(self, event: Any) -> None:
        alias = isinstance(event, self.yaml.AliasEvent)
        if isinstance(self.container, dict) and self.key is None and not alias:
            self.key = event.value
            return
        value = self.anchors.get(event.anchor) if alias else _yaml_value(event)
        if event.anchor and not alias:
            self.anchors[event.anchor] = value
        self._put(value, event)

    def _open(self, event: Any) -> None:
        opened: Any = {} if isinstance(event, self.yaml.MappingStartEvent) else []
        if event.anchor:
            self.anchors[event.anchor] = opened
        self._put(opened, event)
        self.outer.append(self.container)
        self.container = opened
        if len(self.outer) > _MAX_DEPTH:
            raise InputError(
                f"{self.name}:{event.start_mark.line + 1}: more than {_MAX_DEPTH} levels; this is "
                "no configuration"
            )

    def _put(self, value: Any, event: Any) -> None:
        entry = (value, event.start_mark.line + 1)
        if isinstance(self.container, dict):
            self.container[self.key if self.key is not None else "?"] = entry
        else:
            self.container.append(entry)
        self.key = None

    def _walk(self, tree: Mapping[str, Any], prefix: str, depth: int) -> Iterator[Setting]:
        for key, (value, line) in tree.items():
            self.nodes += 1
            if self.nodes > 2 * _MAX_NODES or depth > _MAX_DEPTH:
                raise InputError(
                    f"{self.name}:{line}: aliases that repeat themselves; this is no configuration"
                )
            name = f"{prefix}.{key}" if prefix else str(key)
            if isinstance(value, dict) and key == "<<":
                yield from self._walk(value, prefix, depth + 1)
            elif isinstance(value, dict) and value:
                yield from self._walk(value, name, depth + 1)
            else:
                plain = self._plain(value, 0)
                written = redacted_start(f"{key}: {plain}", 200)
                yield Setting(name, plain, Evidence(f"{self.name}:{line}", written))

    def _plain(self, value: Any, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > 2 * _MAX_NODES or depth > _MAX_DEPTH:
            raise InputError(
                f"{self.name}: aliases that repeat themselves; this is no configuration"
            )
        if isinstance(value, list):
            return [self._plain(item, depth + 1) for item, _ in value]
        if isinstance(value, dict):
            return {key: self._plain(item, depth + 1) for key, (item, _) in value.items()}
        return value


def _yaml_value(event: Any) -> Any:
    if not event.implicit[0]:
        return (
            event.value
            if event.tag in (None, "!", "tag:yaml.org,2002:str")
            else scalar(event.value)
        )
    text = event.value
    if text in ("", "~"):
        return None
    words = {"yes": True, "on": True, "no": False, "off": False}
    return (
        words[text.lower()]
        if text.lower() in words
        else (text if text.lower() == "none" else scalar(text))
    )
