"""Statements in a line of text: ``subject – relation – value``, wherever people put them.

A labelled line (``Nvidia driver version: 535.129.03``, ``driver_version = 535``, ``"gpu": "8x
H100"``) states its label's subject; any other is read as sentences.
"""

from __future__ import annotations

import re
from typing import List, Optional, Sequence, Tuple

from .assigned_settings import FLAGS, put_setting, read_assigned
from .clean_text import Line, without_examples
from .container_spec import states_releases
from .distribution_names import known_distribution
from .draft import EXACT, LABEL, Draft
from .gpu_names import parse_gpus
from .marked import Marked
from .printed import in_common_words, read_printed
from .sentences import FROM_SOURCE, read_sentence
from .values import Claim, state
from .vocabulary import Topic, setting_name, subject_of

__all__ = ["StatementReader"]

_LONGEST = 400
_PAIR = re.compile(
    r"([A-Za-z/#\u4e00-\u9fff][\w ./()?\[\]+#'-]{0,60}?)\s*(?:[:=]|\.{4,}|->)\s*(\S.*)$"
)
_HEADING = re.compile(r"[A-Za-z\u4e00-\u9fff][A-Za-z_ /()?\u4e00-\u9fff-]{1,50}:?")
_PARTS = re.compile(r"\s+[/|]\s+|\s*;\s+|,\s+(?=[A-Za-z\u4e00-\u9fff])")
_OS_PARTS = re.compile(
    r"\s+[/|]\s+|\s*;\s+|,\s+(?=[A-Za-z_-]+ ?\d|\d+ ?[GT]i?B|[A-Z][A-Za-z ]{1,20}: )"
)
#: The arrow between a question of a form and its answer, with what the form says of how to find
#: it: ``Number GPUs used, use nvidia-smi => 1``. Behind a name alone it may be a range.
_ARROW = re.compile(
    r"((?:[^\s=<>,]+ ){1,11}[^\s=<>,]*[A-Za-z?)])(?:, (?:use|see|run|please|e\.g\.) [^=<>]{1,60}?)?"
    r"\s{0,8}={1,3}[>》]\s*(?=\S)"
)
#: What somebody asks a shell or an interpreter, with the answer on the next line.
_ASKED = re.compile(r"(?:print\()?([a-z]\w*(?:\.[A-Za-z_]\w*)+(?:\(\d?\))?)\)?")
_PRINTED = Marked("print(", r"\bprint\((.{3,200})\)", 0)
_ECHOED = re.compile(r"echo \$\{?([A-Z][A-Z0-9_]+)\}?")
_FLAG_ALONE = re.compile(r"--?([a-z][a-z0-9_-]{1,50})")
_UNHEARD_OF = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)+")
#: A setting of a configuration file, and one that only its neighbours tell to be one.
_CONFIG_KEY = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
_CONFIG_WORD = re.compile(r"[a-z][a-z0-9]{1,30}")
_SCALAR = re.compile(
    r"(?:[\w./:@~+-]{1,120}|\[[\w\"', ./-]{0,200}\]|\"[^\"]*\"|'[^']*')(?:\s+#.*)?"
)
#: A module that a tool lists between others.
_MODULE = re.compile(r"([A-Za-z][\w.-]{1,40})(?: version)?")
_NO_NAMES = frozenset(["version", "build", "compiler", "release", "location", "name"])
_NO_MODULE = re.compile(r"(?:Module )?[Nn]ot [Ff]ound\.?|not installed")
_NEAR = 3  # lines between two of one block
_WHOLE_VERSION = re.compile(r"\d+\.\d+\.\d+[\w.+]*")
_OPERATOR = re.compile(r"[<>=~!]")
_INNER = re.compile(r"\(([^()]{2,120})\)")
_TABLE_ROW = re.compile(r"([A-Za-z][\w.-]{1,60})(?: {2,})(\d[\w.!+-]*)(?: .*)?$")
_DOTTED = re.compile(r"\d+(?:\.[\w+!-]+)+")
_JSON_PARTS = re.compile(r",\s*(?=[\"'])")
#: What a trainer prints of a step: its memory is what the run takes, mostly of the GPU.
_STEP = re.compile(r"(?:\b|_)(?:loss|grad_norm|learning_rate)\b['\"]?\s?[:=]\s?['\"(]?-?\d")
#: Wide marks, and the particle that stands between words where others have a space.
_WIDE = str.maketrans(
    {**dict(zip("：＝（）．～的", ":=().~ ")), "，": ", ", "、": ", ", "；": "; "}
)
_INNER_CUDA = re.compile(
    r"\bCUDA(?: version)?[: ]*(\d{1,2}\.\d{1,2})|\b(cu\d{2,3})\b", re.IGNORECASE
)
#: A setting's value behind which the line goes on.
_SETTING = re.compile(r"([\w./-]{1,80}),? +((?:on|with|and|for) .+|\w+ ?=.+)")
#: Keys whose value may hold what parts other values.
_WHOLE = frozenset(["nothing", "directory", "image", "arch list", "text"])


class StatementReader:
    """Reads one line at a time; a heading may have its value, or its entries, below it."""

    def __init__(self) -> None:
        self._heading: Tuple[int, str] = (-9, "")
        self._sections: List[Tuple[int, str]] = []  # of headings, with how far they are indented
        self._listed = self._configured = -9  # the last lines of such a block
        self._row: Tuple[int, int] = (-9, 0)  # the last row of a table: line, column of the version

    def read(self, line: Line, draft: Draft) -> bool:
        """Take one line; False where nothing was understood in it."""
        text = line.text if line.text.isascii() else line.text.translate(_WIDE)
        text = in_common_words(text)
        if "=>" in text or "=》" in text:
            text = _ARROW.sub(r"\1: ", text, count=1)
        text = without_examples(text)
        heading = self._heading[1] if line.number <= self._heading[0] + 2 else ""
        self._heading = (-9, "")
        if len(text) > _LONGEST:
            return read_printed(line, draft) or read_assigned(text, line, draft)
        understood = read_printed(line, draft)
        subject = _subject_of_value(heading, text)
        if subject is not None:
            text = text.strip("\"'") or text
            if self._read_value(subject, heading, text, line, draft):
                return True
        elif heading and self._read_answer(heading, text, line, draft):
            return True
        return sum([self._read(part, line, draft) for part in _members(text)]) > 0 or understood

    def _read_value(
        self, subject: Topic, heading: str, text: str, line: Line, draft: Draft
    ) -> bool:
        """Read what stands below its heading."""
        if subject.kind == "distribution" and not text.lstrip("v")[:1].isdigit():
            return False
        if not state(Claim(subject, "labelled", text, line), draft):
            return False
        self._heading = (line.number, heading if subject.kind == "gpus" else "")
        return True

    def _read_answer(self, asked: str, text: str, line: Line, draft: Draft) -> bool:
        """Read what stands below ``print(a, b)``, ``echo $NAME`` or a flag on a line of its own."""
        echoed = _ECHOED.fullmatch(asked)
        if echoed:
            return draft.variable(echoed.group(1), text, line)
        flag = _FLAG_ALONE.fullmatch(asked)
        if flag:
            return put_setting(flag.group(1), text.strip("\"'"), line, draft)
        subjects = [subject_of(part) for part in re.split(r",\s*", asked)]
        answers = text.split()
        if len(subjects) < 2 or len(subjects) != len(answers):
            return False
        return _state_each(subjects, answers, line, draft)

    def _is_question(self, text: str, line: Line, draft: Draft) -> bool:
        """Keep a question whose answer is the next line; a flag alone may be whole."""
        asked = _PRINTED.search(text) or _ASKED.fullmatch(text)
        if asked is None and not _ECHOED.fullmatch(text) and not _FLAG_ALONE.fullmatch(text):
            return False
        self._heading = (line.number, asked.group(1) if asked else text)
        setting = setting_name(text.lstrip("-"))
        if setting in FLAGS:
            draft.request(str(setting), "true", line)
        return True

    def _read(self, text: str, line: Line, draft: Draft) -> bool:
        if not text:
            return False
        if self._is_question(text, line, draft):
            return True
        pair = _PAIR.match(text)
        if pair is not None and "/" in pair.group(1) and states_releases(text.split()[0]):
            pair = None  # an image and its tag
        if pair is not None and not _OPERATOR.match(pair.group(2)):
            understood = self._read_pair(pair.group(1), pair.group(2), line, draft)
            if understood is not None:
                return understood
        elif text.endswith(":") or _HEADING.fullmatch(text):
            heading = text.rstrip(":= ")
            self._heading = (line.number, heading)
            if text.endswith(":"):
                self._begin(line, heading)
                if subject_of(heading) is not None:
                    return True
        understood = self._read_row(text, line, draft)
        return read_sentence(text, line, draft) if understood is None else understood

    def _read_row(self, text: str, line: Line, draft: Draft) -> Optional[bool]:
        """Read a name and a version in two columns; None where these are no row of a table."""
        row = _TABLE_ROW.fullmatch(text)
        if row is None:
            return None
        in_table = self._row == (line.number - 1, row.start(2))
        self._row = (line.number, row.start(2))
        subject = subject_of(row.group(1)) if known_distribution(row.group(1)) else None
        if subject is not None and subject.kind == "distribution":
            return state(Claim(subject, "labelled", row.group(2), line), draft)
        if in_table and _DOTTED.fullmatch(row.group(2)):
            draft.distribution(row.group(1), row.group(2), line)
            return True
        return None

    def _read_pair(self, key: str, value: str, line: Line, draft: Draft) -> Optional[bool]:
        """Read ``key: value``; None leaves the line to the reader of sentences."""
        if "/" in key and _read_slashed(key, value, line, draft):
            return True
        subject = self._subject(key, line)
        if _UNHEARD_OF.fullmatch(key) and _is_whole(value) and self._may_be_listed(subject, line):
            subject = Topic(key, "distribution")
        if subject is None:
            return self._read_in_block(key, value, line, draft)
        if subject.kind == "memory" and _STEP.search(line.text):
            return True
        if subject.kind == "distribution":
            self._open_distribution(subject, key, value, line, draft)
        elif subject.kind == "setting":
            self._configured = line.number
        stated, rest = _parts_of(subject.kind, value)
        if not state(Claim(subject, "labelled", stated, line), draft):
            return None if stated == value else read_sentence(value, line, draft) or None
        _read_aside(subject, key, stated, line, draft)
        for part in rest[:40]:
            self._read(part, line, draft)
        if subject.kind == "setting":
            read_assigned(value, line, draft)
        return True

    def _may_be_listed(self, subject: Optional[Topic], line: Line) -> bool:
        """Tell whether a name is a distribution's: ``cuda-toolkit`` of a list is, too."""
        is_near = line.number <= self._listed + _NEAR
        return subject is None or (is_near and subject.kind == "toolkit")

    def _open_distribution(
        self, subject: Topic, key: str, value: str, line: Line, draft: Draft
    ) -> None:
        """Take what is indented below for the distribution's, and the next lines for its list's."""
        if subject.name:
            self._listed = line.number
        self._begin(line, key)
        if FROM_SOURCE.search(value):
            draft.built_here(subject.name, line)

    def _read_in_block(self, key: str, value: str, line: Line, draft: Draft) -> Optional[bool]:
        """Read what its neighbours tell to be a module that a tool lists, or a setting of a
        configuration file.
        """
        module = _MODULE.fullmatch(key) if key.lower() not in _NO_NAMES else None
        if module is not None and line.number <= self._listed + _NEAR:
            if _WHOLE_VERSION.fullmatch(value) or re.fullmatch(r"\d+\.\d+", value):
                self._listed = line.number
                draft.distribution(module.group(1), value, line)
                return True
            if _NO_MODULE.fullmatch(value):
                self._listed = line.number
                draft.no_distribution(module.group(1), line, LABEL)
                return True
        if _SCALAR.fullmatch(value) is None:
            return None
        near = line.number <= self._configured + _NEAR
        if _CONFIG_KEY.fullmatch(key):
            self._configured = line.number
            if near:
                draft.request(key, value.strip("\"'"), line)
            return True
        return True if near and _CONFIG_WORD.fullmatch(key) else None

    def _subject(self, key: str, line: Line) -> Optional[Topic]:
        if key.isupper() and "_" in key:  # a variable, whatever it is named after
            return subject_of(key) if key.startswith("CUDA_") else None
        subject = subject_of(key)
        if subject is not None and subject.name == "report.cuda":
            subject = None
        inner = [name for indent, name in self._sections if indent < line.indent]
        whole = subject_of(f"{inner[-1]}>{key}") if inner else None
        if subject is None and inner:
            subject = subject_of(f"{inner[-1]} {key}")
        is_known = whole is not None and whole.kind != "distribution"
        return (whole if is_known else subject) or subject_of(key)

    def _begin(self, line: Line, name: str) -> None:
        """Take what is indented further for a part of this."""
        outer = [entry for entry in self._sections if entry[0] < line.indent]
        self._sections = [*outer[-20:], (line.indent, name)]


def _is_whole(value: str) -> bool:
    return _WHOLE_VERSION.fullmatch(value) is not None


def _state_each(
    subjects: Sequence[Optional[Topic]], values: Sequence[str], line: Line, draft: Draft
) -> bool:
    """State each value of its subject; False where none was understood."""
    stated = 0
    for subject, value in zip(subjects, values):
        if subject is not None:
            stated += state(Claim(subject, "labelled", value, line), draft)
    return stated > 0


def _read_slashed(key: str, value: str, line: Line, draft: Draft) -> bool:
    """Read ``PyTorch/CUDA: 2.5.1/12.4``, and ``CUDA/cuDNN: 12.8``, whose first stands alone."""
    subjects = [subject_of(part) for part in key.split("/")]
    values = [part.strip() for part in value.split("/")]
    if None in subjects or len(values) not in (1, len(subjects)):
        return False
    if len(values) == 1 and subject_of(key) is not None:
        return False
    return _state_each(subjects, values, line, draft)


def _parts_of(kind: str, value: str) -> Tuple[str, List[str]]:
    """Divide a value into what states its key and what else stands behind a comma."""
    if kind == "gpus":  # "2x A6000, driver 545.23"
        return value, [part for part in _split(value, _PARTS)[1:] if not parse_gpus(part)]
    if kind == "release":
        return value, _PARTS.split(value)[1:] if "," in value else []
    if kind in _WHOLE:
        return value, []
    setting = _SETTING.match(value) if kind == "setting" else None
    if setting is not None:
        return setting.group(1), [setting.group(2)]
    stated, *rest = _split(value, _OS_PARTS if kind == "os" else _PARTS)
    return stated, rest


def _split(text: str, pattern: re.Pattern[str]) -> List[str]:
    """Split a text, but never inside a bracket."""
    parts: List[str] = []
    start = 0
    for match in pattern.finditer(text):
        piece = text[start : match.start()]
        if piece.count("(") <= piece.count(")"):
            parts.append(piece)
            start = match.end()
    return [*parts, text[start:]]


def _subject_of_value(heading: str, text: str) -> Optional[Topic]:
    """Return what a text below a heading may be the value of."""
    subject = subject_of(heading) if heading and _is_value(text) else None
    return subject if subject is None or subject.kind != "nothing" else None


def _members(text: str) -> List[str]:
    """Return the members of a line of JSON, or of a Python object, without their quotes; any other
    text as it is.
    """
    if text[0] not in "{\"'" and text[-1] not in ",{}":
        return [text]
    text = text.strip("{}, ")
    parts = _JSON_PARTS.split(text)
    if len(parts) < 2 and text[:1] not in "\"'":
        return [text]
    return [part.replace('"', "").strip("' ") for part in parts[:100]]


def _is_value(text: str) -> bool:
    return _PAIR.match(text) is None and len(text) < 120


def _read_aside(subject: Topic, key: str, value: str, line: Line, draft: Draft) -> None:
    """Read what a bracket behind a value adds to it: ``2.6.0 (True)``, ``0.7.3 (PyPI, CUDA 12.4)``,
    ``580.65 (open)``.
    """
    for inner in _INNER.findall(value):
        cuda = _INNER_CUDA.search(inner)
        if "?" in key and subject.name == "torch" and inner in ("True", "False", "CUDA"):
            draft.put("torch.cuda_available", inner != "False", line, EXACT)
        elif subject.kind == "distribution" and cuda:
            built = Topic(subject.name, "build")
            state(Claim(built, "labelled", next(filter(None, cuda.groups())), line), draft)
        elif subject.kind not in ("gpus", "release", "os", "python", "nothing"):
            read_sentence(inner, line, draft)
