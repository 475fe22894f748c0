"""What bash makes of a word: quotes, parameters, arithmetic, braces, and the splitting into fields.

A piece that cannot be told stands in the text as one character of Unicode's private range;
:class:`Unclear` knows why. So every other operation on texts stays an operation on strings.
"""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional, Tuple

from ...model.record import NamedTuple
from ...model.redaction import redact
from .arithmetic import Undecided, evaluate
from .patterns import brace_words, cut_pattern, regex_of, replaced
from .quoting import closing, quoted
from .tree import SyntaxProblem

__all__ = ["Element", "Expander", "Unclear", "Variable", "is_clear"]

_FIRST, _LAST = 0xE000, 0xF8FF
_UNCLEAR = re.compile("[\ue000-\uf8ff]")
_PARAMETER = re.compile(
    r"(!?)(#?)([A-Za-z_]\w*|[@*#?$!0-9-]|\d+)(\[(?:[^\]]*)\])?(.*)\Z", re.DOTALL
)
_NAME = re.compile(r"[A-Za-z_]\w*|[@*#?$!0-9-]")
_PLAIN = re.compile(r"[^\\'\"$`<>~]+")
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}
_VOLATILE = frozenset(
    [
        "RANDOM",
        "SRANDOM",
        "SECONDS",
        "LINENO",
        "EPOCHSECONDS",
        "EPOCHREALTIME",
        "BASHPID",
        "PPID",
        "BASH_SOURCE",
        "FUNCNAME",
        "PIPESTATUS",
    ]
)
_MAX_TEXT = 1 << 20


class Element(NamedTuple):
    """One field: its text, the line where it was written, and as it was written there."""

    text: str
    line: int
    raw: str = ""


class Variable(NamedTuple):
    """A shell variable; an array has its elements, a scalar has one."""

    elements: Tuple[Element, ...]
    array: bool = False
    exported: bool = False


class Unclear:
    """The reasons behind the private characters of one reading."""

    def __init__(self) -> None:
        self._reasons: List[str] = []
        self._known: Dict[str, str] = {}

    def mark(self, reason: str) -> str:
        """Return the character that stands for a piece nobody can tell."""
        if reason not in self._known:
            if len(self._reasons) > _LAST - _FIRST - 1:
                reason = self._reasons[-1]
            else:
                self._known[reason] = chr(_FIRST + len(self._reasons))
                self._reasons.append(redact(reason))
        return self._known[reason]

    def reason(self, text: str) -> str:
        """Say why the first unclear piece of a text is unclear."""
        found = _UNCLEAR.search(text)
        return self._reasons[ord(found.group()) - _FIRST] if found else ""

    def readable(self, text: str) -> str:
        """Return the text with ``…`` for what is unclear."""
        return _UNCLEAR.sub("…", text)


def is_clear(text: str) -> bool:
    """Tell whether all of a text is known."""
    return _UNCLEAR.search(text) is None


class Expander:
    """Expands words against variables.

    ``environ`` None: the environment is not known, and what a script does not set is unclear.
    """

    def __init__(
        self,
        unclear: Unclear,
        variables: Dict[str, Variable],
        environ: Optional[Mapping[str, str]],
        arguments: List[Element],
    ) -> None:
        self.unclear = unclear
        self.variables = variables
        self.environ = environ
        self.arguments = arguments
        self.loose = ""  # why a name that is not set may be set all the same

    def lookup(self, name: str) -> Optional[str]:
        """Return the text of a variable, with marks where it is unclear; None where it is surely
        unset.
        """
        if name.isdigit():
            return self._argument(int(name))
        if name in _VOLATILE or name in ("?", "$", "!", "-"):
            return self.unclear.mark(f"${name} is known only when the script runs")
        if name == "#":
            return str(len(self.arguments))
        variable = self.variables.get(name)
        if variable is not None:
            return variable.elements[0].text if variable.elements else ""
        if self.environ is not None:
            return self.environ.get(name)
        return self.unclear.mark(self.loose) if self.loose else None

    def _argument(self, number: int) -> Optional[str]:
        if number == 0:
            return self.unclear.mark("$0 is the script's own path")
        return self.arguments[number - 1].text if number <= len(self.arguments) else None

    def words(self, raw: str, line: int) -> List[Element]:
        """Return the fields that a word expands to."""
        elements: List[Element] = []
        for single in brace_words(raw):
            fields = _Fields(line, raw)
            self._parts(single, fields, quotes=False)
            elements += fields.finish()
        return elements

    def text(self, raw: str, line: int) -> str:
        """Expand without splitting: the value of an assignment, a pattern, a here-document's
        delimiter.
        """
        fields = _Fields(line, raw, split=False)
        self._parts(raw, fields, quotes=False)
        return " ".join(element.text for element in fields.finish())

    def document(self, body: str, line: int) -> str:
        """Expand a here-document."""
        fields = _Fields(line, "", split=False)
        self._parts(body, fields, quotes=True, document=True)
        return "".join(element.text for element in fields.finish())

    def arithmetic(self, text: str) -> str:
        """Return the value of ``$(( … ))`` as text, or a mark."""
        try:
            expanded = self.text(text.replace('"', ""), 0) if "$" in text else text
            if not is_clear(expanded):
                return self.unclear.mark(self.unclear.reason(expanded))
            return str(evaluate(expanded, self._number))
        except Undecided as error:
            return self.unclear.mark(f"$(({text.strip()[:60]})) is not computed: {error}")

    def _number(self, name: str) -> Optional[str]:
        text = self.lookup(name)
        if text is None:
            return "" if self.environ is not None else None
        return text if is_clear(text) else None

    def _parts(self, raw: str, fields: _Fields, *, quotes: bool, document: bool = False) -> None:
        at, end = 0, len(raw)
        if not quotes and raw.startswith("~") and (end == 1 or raw[1] == "/"):
            home = self.lookup("HOME")
            if home and is_clear(home):
                fields.add(home)
                at = 1
        while at < end:
            char = raw[at]
            if char == "\\":
                at = self._backslash(raw, at, fields, quotes, document)
            elif char == "'" and not quotes:
                close = raw.index("'", at + 1)
                fields.add(raw[at + 1 : close], quoted=True)
                at = close + 1
            elif char == '"' and not document:
                if quotes:
                    at += 1
                    continue
                close = quoted(raw, at + 1, fields.line)
                inner = raw[at + 1 : close - 1]
                fields.add(
                    "",
                    quoted=inner not in ("$@", "${@}")
                    and not re.fullmatch(r"\$\{\w+\[@\]\}", inner),
                )
                self._parts(inner, fields, quotes=True)
                at = close
            elif char == "`":
                close = raw.index("`", at + 1)
                fields.unclear(
                    self.unclear.mark(f"what {_short(raw[at : close + 1])} prints"), quotes
                )
                at = close + 1
            elif char == "$":
                at = self._dollar(raw, at, fields, quotes)
            elif char in "<>" and raw[at + 1 : at + 2] == "(" and not quotes:
                close = closing(raw, at + 2, "(", fields.line)
                fields.unclear(
                    self.unclear.mark(f"the file behind {_short(raw[at:close])}"), quotes
                )
                at = close
            else:
                plain = _PLAIN.match(raw, at)
                upto = plain.end() if plain else at + 1
                fields.add(raw[at:upto])
                at = upto

    def _backslash(self, raw: str, at: int, fields: _Fields, quotes: bool, document: bool) -> int:
        following = raw[at + 1 : at + 2]
        if following == "\n":
            return at + 2
        if quotes and following not in ("$", "`", "\\") and (document or following != '"'):
            fields.add("\\" + following)
        else:
            fields.add(following or "\\", quoted=not quotes)
        return at + 2

    def _dollar(self, raw: str, at: int, fields: _Fields, quotes: bool) -> int:
        following = raw[at + 1 : at + 2]
        if following == "(":
            close = closing(raw, at + 2, "(", fields.line)
            if raw.startswith("((", at + 1) and raw[close - 2 : close] == "))":
                fields.expanded(self.arithmetic(raw[at + 3 : close - 2]), quotes)
            elif raw.startswith("expr ", at + 2) and not set(raw[at + 7 : close - 1]) & set(
                "\"'`|&;<>"
            ):
                fields.expanded(
                    self.arithmetic(raw[at + 7 : close - 1].replace("\\*", "*")), quotes
                )
            else:
                fields.unclear(self.unclear.mark(f"what {_short(raw[at:close])} prints"), quotes)
            return close
        if following == "{":
            close = closing(raw, at + 2, "{", fields.line, inside_quotes=quotes)
            self._parameter(raw[at + 2 : close - 1], fields, quotes)
            return close
        if following == "'" and not quotes:
            close = at + 2
            while raw[close : close + 1] != "'":
                close += 2 if raw[close] == "\\" else 1
            fields.add(_ansi(raw[at + 2 : close]), quoted=True)
            return close + 1
        if following == '"' and not quotes:
            return at + 1
        found = _NAME.match(raw, at + 1)
        if found is None:
            fields.add("$")
            return at + 1
        self._parameter(found.group(), fields, quotes)
        return found.end()

    def _parameter(self, body: str, fields: _Fields, quotes: bool) -> None:
        found = _PARAMETER.match(body)
        if found is None:
            fields.unclear(self.unclear.mark(f"${{{body[:60]}}} is not read"), quotes)
            return
        indirect, length, name, index, rest = found.groups()
        if length and not name:
            name, length = "#", ""
        if indirect and (rest or index) and not (index is None and rest):
            fields.unclear(self.unclear.mark(f"${{{body[:60]}}} is not read"), quotes)
            return
        if indirect:
            name = self.lookup(name) or ""
            if not name.isidentifier():
                fields.unclear(self.unclear.mark(f"${{{body[:60]}}} is not read"), quotes)
                return
        listed = self._listed(name, index)
        if listed is not None:
            self._many(
                body, listed, bool(length), name == "*" or index == "[*]", rest, fields, quotes
            )
            return
        text, line = self._single(name, index)
        if length:
            clear = text is not None and is_clear(text)
            fields.expanded(
                str(len(text or ""))
                if clear or text is None
                else self.unclear.mark(self.unclear.reason(text)),
                quotes,
            )
            return
        self._scalar(name, text, line, rest, fields, quotes)

    def _listed(self, name: str, index: Optional[str]) -> Optional[List[Element]]:
        if name in ("@", "*"):
            return self.arguments
        if index in ("[@]", "[*]"):
            variable = self.variables.get(name)
            if variable is None:
                text = self.lookup(name)
                return [] if text is None else [Element(text, 0)]
            return list(variable.elements)
        return None

    def _single(self, name: str, index: Optional[str]) -> Tuple[Optional[str], int]:
        variable = self.variables.get(name)
        if index is not None:
            if variable is None:
                return self.lookup(name), 0
            try:
                number = evaluate(index[1:-1], self._number)
                element = variable.elements[number]
            except Undecided:
                return self.unclear.mark(f"${{{name}{index}}} has an index that is not known"), 0
            except IndexError:
                return None, 0
            return element.text, element.line
        line = variable.elements[0].line if variable is not None and variable.elements else 0
        return self.lookup(name), line

    def _many(
        self,
        body: str,
        elements: List[Element],
        length: bool,
        starred: bool,
        rest: str,
        fields: _Fields,
        quotes: bool,
    ) -> None:
        if length:
            fields.expanded(str(len(elements)), quotes)
            return
        if rest[:1] == ":" and rest[1:2] not in ("-", "+", "=", "?"):
            part = self._slice(rest[1:], len(elements) + (1 if body[:1] in "@*" else 0))
            if part is None:
                fields.unclear(self.unclear.mark(f"${{{body[:60]}}} is not read"), quotes)
                return
            elements = ([Element("", 0), *elements] if body[:1] in "@*" else elements)[part]
        elif rest and not elements and rest.lstrip(":")[:1] in ("-", "="):
            self._parts(rest.lstrip(":")[1:], fields, quotes=quotes)
            return
        elif rest and rest.lstrip(":")[:1] == "+":
            if elements:
                self._parts(rest.lstrip(":")[1:], fields, quotes=quotes)
            return
        elif rest and rest.lstrip(":")[:1] not in ("-", "=", "?"):
            elements = [
                Element(self._altered(element.text, rest), element.line, element.raw)
                for element in elements
            ]
        if quotes and starred:
            fields.add(" ".join(element.text for element in elements), quoted=True)
        elif quotes:
            fields.many(elements)
        else:
            for number, element in enumerate(elements):
                if number:
                    fields.cut()
                fields.expanded(element.text, quotes, element)

    def _scalar(
        self, name: str, text: Optional[str], line: int, rest: str, fields: _Fields, quotes: bool
    ) -> None:
        operator = re.match(r":?[-=+?]", rest)
        if operator:
            colon, kind = operator.group()[:-1], operator.group()[-1]
            alternative = rest[operator.end() :]
            unset = text is None or (colon and text == "")
            if kind == "+":
                if not unset:
                    self._parts(alternative, fields, quotes=quotes)
                return
            if unset and kind in "-=":
                before = fields.mark()
                self._parts(alternative, fields, quotes=quotes)
                if kind == "=" and name.isidentifier():
                    self.variables[name] = Variable(
                        (Element(fields.since(before), fields.line, fields.raw),)
                    )
                return
            if unset and kind == "?":
                fields.unclear(self.unclear.mark(f"${name} is not set in the script"), quotes)
                return
            rest = ""
        if text is None:
            if self.environ is not None:
                fields.expanded("", quotes)
                return
            what = (
                f"${name} is an argument of the script"
                if name.isdigit()
                else f"${name} is not set in the script"
            )
            fields.unclear(self.unclear.mark(what), quotes)
            return
        if rest:
            fields.expanded(self._altered(text, rest), quotes)
            return
        variable = self.variables.get(name)
        origin = (
            variable.elements[0]
            if variable is not None and variable.elements
            else Element(text, line)
        )
        fields.expanded(text, quotes, origin)

    def _slice(self, text: str, length: int) -> Optional[slice]:
        start, colon, count = text.partition(":")
        try:
            first = evaluate(self.text(start, 0), self._number)
            number = evaluate(self.text(count, 0), self._number) if colon else None
        except Undecided:
            return None
        first = max(first + length, 0) if first < 0 else first
        if number is None:
            return slice(first, None)
        return slice(first, first + number if number >= 0 else length + number)

    def _altered(self, text: str, rest: str) -> str:
        """``${x#y}``, ``${x%y}``, ``${x/y/z}``, ``${x:1:2}``, ``${x^^}``."""
        if not is_clear(text):
            return self.unclear.mark(self.unclear.reason(text))
        found = re.match(r"##|#|%%|%|//|/#|/%|/|:|\^\^|,,|\^|,|@", rest)
        operator = found.group() if found else ""
        argument = rest[len(operator) :]
        if operator == ":":
            part = self._slice(argument, len(text))
            return (
                text[part]
                if part is not None
                else self.unclear.mark(f"${{…{rest[:40]}}} is not read")
            )
        if operator in ("^^", ",,") and not argument:
            return text.upper() if operator == "^^" else text.lower()
        if operator in ("^", ",") and not argument:
            return (text[:1].upper() if operator == "^" else text[:1].lower()) + text[1:]
        replacement = ""
        if operator.startswith("/"):
            argument, replacement = cut_pattern(argument)
            replacement = self.text(replacement, 0)
        pattern = self._pattern(argument)
        if not operator or operator == "@" or pattern is None or not is_clear(replacement):
            return self.unclear.mark(f"${{…{rest[:40]}}} is not read")
        return replaced(text, operator, pattern, replacement)

    def _pattern(self, raw: str) -> Optional[str]:
        """A regular expression for a glob in which quoted characters are plain."""
        fields = _Fields(0, "", split=False)
        fields.escape = True
        self._parts(raw, fields, quotes=False)
        text = "".join(element.text for element in fields.finish())
        return regex_of(text) if is_clear(text) else None


class _Fields:
    """Collects the fields of one word.

    A field's origin is another line only where all of it came from there.
    """

    def __init__(self, line: int, raw: str, *, split: bool = True) -> None:
        self.line = line
        self.raw = raw
        self.split = split
        self.escape = False  # quoted glob characters get a backslash
        self._done: List[Element] = []
        self._text: Optional[str] = None
        self._origin: Optional[Element] = None
        self._pieces = 0

    def add(self, text: str, *, quoted: bool = False, origin: Optional[Element] = None) -> None:
        """Append to the field at hand; a quoted empty text still makes a field."""
        if not text and not quoted:
            return
        if self.escape and quoted:
            text = re.sub(r"([*?\[\]\\])", r"\\\1", text)
        self._text = (self._text or "") + text
        if text:
            self._pieces += 1
            self._origin = origin if self._pieces == 1 else None
        if len(self._text) > _MAX_TEXT:
            raise SyntaxProblem(self.line, f"a word grows over {_MAX_TEXT} characters")

    def cut(self) -> None:
        """End the field at hand."""
        if self._text is not None:
            origin = self._origin
            self._done.append(
                Element(self._text, origin.line, origin.raw)
                if origin and origin.line
                else Element(self._text, self.line, self.raw)
            )
        self._text, self._origin, self._pieces = None, None, 0

    def expanded(self, text: str, quotes: bool, origin: Optional[Element] = None) -> None:
        """Add the result of an expansion, which is split where it is not quoted."""
        if quotes or not self.split:
            self.add(text, quoted=quotes, origin=origin)
            return
        if text[:1] in (" ", "\t", "\n"):
            self.cut()
        for number, piece in enumerate(text.split()):
            if number:
                self.cut()
            self.add(piece, origin=origin)
        if text[-1:] in (" ", "\t", "\n"):
            self.cut()

    def unclear(self, mark: str, quotes: bool) -> None:
        """Add a piece that nobody can tell."""
        self.add(mark, quoted=quotes)

    def many(self, elements: List[Element]) -> None:
        """Add ``"$@"`` or ``"${x[@]}"``: each element is a field."""
        for number, element in enumerate(elements):
            if number:
                self.cut()
            self.add(element.text, quoted=True, origin=element)

    def mark(self) -> Tuple[int, int]:
        """Return a place that :meth:`since` understands."""
        return len(self._done), len(self._text or "")

    def since(self, place: Tuple[int, int]) -> str:
        """Return the text that was added after :meth:`mark`."""
        texts = [element.text for element in self._done[place[0] :]] + (
            [self._text] if self._text is not None else []
        )
        return " ".join(texts)[place[1] :]

    def finish(self) -> List[Element]:
        """Return the fields."""
        self.cut()
        return self._done


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "…"


def _ansi(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        code = found.group(1)
        if code[0] in "xuU":
            return chr(min(int(code[1:], 16), 0x10FFFF))
        return (
            chr(int(code, 8) & 0xFF) if code[0] in "01234567" else _ESCAPES.get(code, "\\" + code)
        )

    return re.sub(
        r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|.)",
        one,
        text,
        flags=re.DOTALL,
    )
