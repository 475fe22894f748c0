"""What bash makes of a word: quotes, parameters, arithmetic, and the splitting into fields.

What cannot be told stands in a text as :data:`MARK`, and the word says why. Patterns
(``${x##*/}``), braces (``{a,b}``), globs and the output of commands are not worked out: they are
unclear.
"""

from __future__ import annotations

import ast
import operator
import re
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from ...intake.word_lists import words
from ...model.record import NamedTuple
from ...model.redaction import redact, redacted_start
from ...model.sizes import whole_number
from .syntax import LITERAL, UnreadableScript, past, past_quotes

__all__ = [
    "MARK",
    "MAX_TEXT",
    "Expander",
    "ShellVariable",
    "Word",
    "assigned_names",
    "unclear_word",
]

MARK = "\ue000"  # one character of the private range; a script's own ones are replaced
MAX_TEXT = 1 << 16
_FIELD = 30  # work that any field takes, in characters
_MAX_WORK = 1 << 24
#: A name goes on in the next line where a backslash ends its own.
_NAME = re.compile(r"(?:\\\n)*(?:[A-Za-z_](?:\w|\\\n)*|[@*#?$!0-9-])")
_PARAMETER = re.compile(
    r"([A-Za-z_]\w*|[@*#?$!-]|\d+)(\[(?:[@*]|\d{1,6})\])?(?:(:?[-=+?])(.*))?\Z", re.DOTALL
)
_PLAIN = re.compile(r"[^\\'\"$`<>]+")
_COMPUTED = re.compile(
    r"(?<!\w)([A-Za-z_]\w*)\s*(?:[-+*/%&|^]?=(?!=)|<<=|>>=|\+\+|--)"
    r"|(?:\+\+|--)\s*([A-Za-z_]\w*)"
)
_EXPR = re.compile(r"expr [\s\w$+*/%\\-]+\Z")
_BLANKS = re.compile(r"[ \t\n]+")
_TILDE = re.compile(r"(?:[A-Za-z_]\w*=)?~(?=/|\Z)")
_ALL_FIELDS = re.compile(r"(?:\$@|\$\{@\}|\$\{\w+\[@\]\})\Z")
_ARRAY = re.compile(r"(\"?)(?:\$@|\$\{@\}|\$\{\w+\[@\]\})\1\Z")
_NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d{0,17})\Z")
_SUM = re.compile(r"(?:[-+*/%()\s]|\b(?:0|[1-9]\d{0,17})\b|\b[A-Za-z_]\w*\b)*\Z")
_DYNAMIC = frozenset(
    words(
        "RANDOM SRANDOM SECONDS LINENO EPOCHSECONDS EPOCHREALTIME BASHPID FUNCNAME PIPESTATUS "
        "BASH_SOURCE BASH_LINENO BASH_COMMAND OPTIND OPTARG IFS _ 0 ? $ ! -"
    )
)
_OF_BASH = frozenset(
    words(
        "PWD OLDPWD SHLVL PPID UID EUID GROUPS HOSTNAME HOSTTYPE MACHTYPE OSTYPE BASH BASH_VERSION "
        "BASH_VERSINFO BASHOPTS SHELLOPTS DIRSTACK"
    )
)


class Word(NamedTuple):
    """One word of a command: its text with :data:`MARK` for what is unclear, the line where it was
    written, how it stands there, and why it is unclear.
    """

    text: str
    line: int
    raw: str = ""
    why: str = ""

    @property
    def known(self) -> bool:
        """Whether all of the text is known."""
        return MARK not in self.text

    @property
    def readable(self) -> str:
        """The text with ``…`` for what is unclear."""
        return self.text.replace(MARK, "…")


class ShellVariable(NamedTuple):
    """A shell variable; an array has its elements, a scalar has one."""

    words: Tuple[Word, ...]
    array: bool = False
    exported: bool = False


def unclear_word(why: str, line: int, raw: str = "") -> Word:
    """A word of which nothing is known; the reason may quote the script, but no secret of it."""
    return Word(MARK, line, raw, redact(why))


class Expander:
    """Expands words against variables.

    ``environ`` None: the environment is not known, and what a script does not set is unclear.
    """

    def __init__(self, environ: Optional[Mapping[str, str]], why: str) -> None:
        self.variables: Dict[str, ShellVariable] = {"@": ShellVariable((), array=True)}
        self.frames: List[Dict[str, Optional[ShellVariable]]] = []  # what each open branch found
        self.environ = environ
        self.why = why  # why a MARK that stands in the script itself is unclear
        self.loose = ""  # why a name that is not set may be set all the same
        self.work = 0

    def assign(self, name: str, variable: Optional[ShellVariable]) -> None:
        """Set a variable, or unset it with None."""
        if self.frames:
            self.frames[-1].setdefault(name, self.variables.get(name))
        self.restore(name, variable)

    def restore(self, name: str, variable: Optional[ShellVariable]) -> None:
        """Set a variable as if nothing had happened."""
        if variable is None:
            self.variables.pop(name, None)
        else:
            self.variables[name] = variable

    def spend(self, work: int, line: int) -> None:
        """Count work; no launch script needs so much that this raises :class:`UnreadableScript`."""
        self.work += work
        if self.work > _MAX_WORK:
            raise UnreadableScript(
                line, "the script runs or expands more than a launch script does"
            )

    def words(self, raw: str, line: int) -> List[Word]:
        """Return the fields that a word expands to."""
        if LITERAL.fullmatch(raw) and len(raw) <= MAX_TEXT:
            self.spend(len(raw) + _FIELD, line)
            return [Word(raw, line, raw)]
        fields = _Fields(line, raw, ifs="IFS" in self.variables)
        self._expand(raw, fields, quoted=False)
        return fields.finish()

    def text(self, raw: str, line: int, *, document: bool = False) -> Word:
        """Expand without splitting: the value of an assignment, a pattern, a here-document."""
        fields = _Fields(line, raw, whole=True, ifs="IFS" in self.variables)
        self._expand(raw, fields, quoted=document, document=document)
        return next(iter(fields.finish()), Word("", line, raw))

    def lookup(self, name: str) -> Optional[ShellVariable]:
        """Return a variable; None where it is surely unset, as far as the script tells."""
        if name in _DYNAMIC:
            return ShellVariable((unclear_word(f"${name} is known only when the script runs", 0),))
        if name in "@*#" or name.isdecimal():
            return self._argument(name)
        if name in self.variables:
            return self.variables[name]
        if self.environ is not None and name in self.environ:
            return ShellVariable((Word(self.environ[name], 0),), exported=True)
        why = f"${name} is known only when the script runs" if name in _OF_BASH else self.loose
        return ShellVariable((unclear_word(why, 0),)) if why else None

    def _argument(self, name: str) -> Optional[ShellVariable]:
        arguments = self.variables["@"].words
        if name.isdecimal():
            argument = _element(arguments, (whole_number(name) or 0) - 1)
            return ShellVariable(argument) if argument else None
        if name != "#":
            return self.variables["@"]
        unclear = next((word for word in arguments if not word.known), None)
        return ShellVariable((unclear or Word(str(len(arguments)), 0),))

    def calculate(self, text: str, line: int) -> Word:
        """Return the value of ``$(( … ))``; what it assigns is unclear from then on."""
        why = f"$(({redacted_start(' '.join(text.split()), 60)})) is not computed"
        for name in assigned_names(text):
            self.assign(name, ShellVariable((unclear_word(why, line),)))
        expanded = self.text(text.replace('"', ""), line)
        if not expanded.known:
            return expanded._replace(text=MARK)
        reasons: List[str] = []

        def number(name: str) -> Optional[int]:
            variable = self.lookup(name)
            if variable is None:
                return None if self.environ is None else 0
            word = variable.words[0] if variable.words else Word("", line)
            reasons.append(word.why)
            return int(word.text or 0) if _NUMBER.match(word.text or "0") else None

        value = _calculated(expanded.text, number)
        why = next(filter(None, reasons), why)
        return unclear_word(why, line) if value is None else Word(str(value), line)

    # The pieces of a word.

    def _expand(self, raw: str, fields: _Fields, *, quoted: bool, document: bool = False) -> None:
        self.spend(len(raw) + _FIELD, fields.line)
        at = 0 if quoted else self._tilde(raw, fields)
        readers = _READERS["<<" if document else '"' if quoted else ""]
        while at < len(raw):
            at = readers.get(raw[at], Expander._plain)(self, raw, at, fields, quoted)

    def _plain(self, raw: str, at: int, fields: _Fields, quoted: bool) -> int:
        plain = _PLAIN.match(raw, at)
        end = plain.end() if plain else at + 1
        fields.add(raw[at:end], quoted=quoted, why=self.why)
        return end

    def _process(self, raw: str, at: int, fields: _Fields, quoted: bool) -> int:
        if not raw.startswith("(", at + 1):
            return self._plain(raw, at, fields, quoted)
        close = past(raw, at + 2, fields.line, within=")")
        fields.unclear(f"the file behind {_short(raw[at:close])}", quoted)
        return close

    def _tilde(self, raw: str, fields: _Fields) -> int:
        tilde = _TILDE.match(raw)
        home = self.lookup("HOME") if tilde else None
        if tilde is None or home is None:
            return 0
        fields.add(tilde.group()[:-1], quoted=False)
        fields.expanded(home.words[0], quoted=True)
        return tilde.end()

    def _quotes(self, raw: str, at: int, fields: _Fields, quoted: bool) -> int:
        close = past_quotes(raw, at, fields.line)
        if raw[at] == "`":
            fields.unclear(f"what {_short(raw[at:close])} prints", quoted)
        elif raw[at] == "$" and "\\" in raw[at:close]:
            fields.unclear(f"the text of {_short(raw[at:close])} is not worked out", quoted=True)
        elif raw[at] == "$":
            fields.add(raw[at + 2 : close - 1], quoted=True, why=self.why)
        else:
            fields.add(raw[at + 1 : close - 1], quoted=True, why=self.why)
        return close

    def _double_quotes(self, raw: str, at: int, fields: _Fields, quoted: bool) -> int:
        if quoted:  # inside "${x:-"…"}"
            return at + 1
        close = past(raw, at + 1, fields.line, within='"')
        inner = raw[at + 1 : close - 1]
        if not _ALL_FIELDS.match(inner):
            fields.add("", quoted=True)
        self._expand(inner, fields, quoted=True)
        return close

    def _backslash(self, raw: str, at: int, fields: _Fields, quoted: bool) -> int:
        return self._escape(raw, at, fields, '$`\\"' if quoted else "")

    def _backslash_in_document(self, raw: str, at: int, fields: _Fields, _quoted: bool) -> int:
        return self._escape(raw, at, fields, "$`\\")

    def _escape(self, raw: str, at: int, fields: _Fields, special: str) -> int:
        """``special``: the characters before which a backslash goes; before any where empty."""
        following = raw[at + 1 : at + 2]
        if following != "\n":
            goes = not special or (following and following in special)
            fields.add(following or "\\" if goes else "\\" + following, quoted=True)
        return at + 2

    def _dollar(self, raw: str, at: int, fields: _Fields, quoted: bool) -> int:
        following = raw[at + 1 : at + 2]
        if following == "(":
            return self._substitution(raw, at, fields, quoted)
        if following == "{":
            close = past(raw, at + 2, fields.line, within='"}' if quoted else "}")
            self._parameter(raw[at + 2 : close - 1], fields, quoted)
            return close
        if following == "'" and not quoted:
            return self._quotes(raw, at, fields, quoted)
        if following == '"' and not quoted:
            return at + 1
        name = _NAME.match(raw, at + 1)
        if name is None:
            fields.add("$", quoted=quoted)
            return at + 1
        self._parameter(name.group().replace("\\\n", ""), fields, quoted)
        return name.end()

    def _substitution(self, raw: str, at: int, fields: _Fields, quoted: bool) -> int:
        """Expand ``$(( … ))`` and ``$(expr …)``; what other commands print is unclear."""
        close = past(raw, at + 2, fields.line, within=")")
        inner = raw[at + 2 : close - 1]
        if inner.startswith("(") and inner.endswith(")"):
            fields.expanded(self.calculate(inner[1:-1], fields.line), quoted)
        elif _EXPR.match(inner):
            fields.expanded(self.calculate(inner[5:].replace("\\*", "*"), fields.line), quoted)
        else:
            fields.unclear(f"what {_short(raw[at:close])} prints", quoted)
        return close

    def _parameter(self, body: str, fields: _Fields, quoted: bool) -> None:
        match = _PARAMETER.match(body)
        if match is None:
            fields.unclear(f"${{{redacted_start(body, 60)}}} is not read", quoted)
            return
        name, index, sign, alternative = match.groups(default="")
        many = name in "@*" or index in ("[@]", "[*]")
        values = self._values(name, index, many)
        if sign and self._alternative(name, sign, alternative, values, fields, quoted):
            return
        if not values and not many and self.environ is None:
            fields.unclear(_unset(name), quoted)
        elif many:
            self._several(values, fields, quoted, is_text="*" in (name, index[1:-1]))
        else:
            self._separate(values, fields, quoted)

    def _several(
        self, values: Tuple[Word, ...], fields: _Fields, quoted: bool, *, is_text: bool
    ) -> None:
        """Expand an array, or the script's arguments; ``is_text``: ``*`` makes one text of them."""
        unclear = next((word for word in values if word.text == MARK), None)
        if unclear is not None and not fields.alone:
            fields.unclear(unclear.why, quoted)  # maybe no word at all: what stands beside it moves
        elif quoted and is_text:
            fields.joined(values)
        else:
            self._separate(values, fields, quoted)

    def _separate(self, values: Tuple[Word, ...], fields: _Fields, quoted: bool) -> None:
        self.spend(sum(30 + len(word.text) for word in values), fields.line)
        for number, word in enumerate(values):
            if number:
                fields.cut()
            fields.expanded(word, quoted)

    def _values(self, name: str, index: str, many: bool) -> Tuple[Word, ...]:
        variable = self.lookup(name)
        if variable is None or many:
            return () if variable is None else variable.words
        return _element(variable.words, int(index[1:-1])) if index else variable.words[:1]

    def _alternative(
        self,
        name: str,
        sign: str,
        alternative: str,
        values: Tuple[Word, ...],
        fields: _Fields,
        quoted: bool,
    ) -> bool:
        """Expand ``${X:-…}`` and its like; False where it is the value itself that counts."""
        text = "".join(word.text for word in values)
        unset = not values or (sign[0] == ":" and len(values) == 1 and not text)
        if MARK in text and not text.strip(MARK):
            fields.unclear(values[0].why, quoted)  # it may be empty
        elif unset is (sign[-1] == "+"):
            return sign[-1] == "+"
        elif sign[-1] == "?":
            fields.unclear(_unset(name), quoted)
        elif sign[-1] == "=":
            value = self.text(alternative, fields.line)
            self.assign(name, ShellVariable((value,)))
            fields.expanded(value, quoted)
        else:
            self._expand(alternative, fields, quoted=quoted)
        return True


_Reader = Callable[[Expander, str, int, "_Fields", bool], int]
_IN_QUOTES: Dict[str, _Reader] = {
    "\\": Expander._backslash,
    "`": Expander._quotes,
    "$": Expander._dollar,
    '"': Expander._double_quotes,
}
#: How a text is quoted, and what reads on from a character that means something there.
_READERS: Dict[str, Dict[str, _Reader]] = {
    "": {
        **_IN_QUOTES,
        "'": Expander._quotes,
        "<": Expander._process,
        ">": Expander._process,
    },
    '"': _IN_QUOTES,
    "<<": {
        "\\": Expander._backslash_in_document,
        "`": Expander._quotes,
        "$": Expander._dollar,
    },
}


class _Fields:
    """Collects the fields of one word.

    A field's line is another one only where all of it came from there.
    """

    def __init__(self, line: int, raw: str, *, ifs: bool, whole: bool = False) -> None:
        self.line = line
        self.raw = raw
        self.ifs = ifs  # the script sets IFS: nobody tells where blanks split
        self.whole = whole  # it stays one word: braces, globs and blanks are plain
        self._done: List[Word] = []
        self._pieces: List[Word] = []
        self._open = False  # there is a field, if an empty one
        self._outline: List[str] = []  # what is not quoted, in which braces and globs count

    def add(self, text: str, *, quoted: bool, why: str = "", origin: Optional[Word] = None) -> None:
        """Append to the field at hand; a quoted empty text still makes a field."""
        self._open = self._open or quoted or text != ""
        if text:
            self._pieces.append(origin or Word(text, 0, "", why))
        if not quoted:
            globs = "*" in text or "?" in text
            self._outline.append(
                text if origin is None else re.sub(r"[^*?=]", "", text) if globs else ""
            )

    @property
    def alone(self) -> bool:
        """Whether the word is an array and nothing beside it."""
        return not self.whole and _ARRAY.match(self.raw) is not None

    def unclear(self, why: str, quoted: bool) -> None:
        """Append a piece that nobody can tell."""
        self.add(MARK, quoted=quoted, why=redact(why))

    def cut(self) -> None:
        """End the field at hand."""
        if self.whole:
            self._pieces.append(Word(" ", 0))
        elif self._open:
            self._done.append(self._joined(self._pieces))
            self._pieces, self._open = [], False

    def _joined(self, pieces: List[Word]) -> Word:
        if len(pieces) == 1 and pieces[0].line:
            return pieces[0]
        text = "".join(piece.text for piece in pieces)
        why = next((piece.why for piece in pieces if not piece.known), "")
        if len(text) > MAX_TEXT:
            text, why = MARK, f"it grows over {MAX_TEXT} characters"
        return Word(text, self.line, self.raw, why)

    def expanded(self, word: Word, quoted: bool) -> None:
        """Add the result of an expansion, which is split where it is not quoted."""
        if quoted or self.whole:
            self.add(word.text, quoted=quoted, origin=word)
            return
        if self.ifs:
            self.unclear("IFS is set: it may be several words", quoted)
            return
        if word.text[:1].isspace():
            self.cut()
        for number, text in enumerate(
            _BLANKS.split(word.text.strip(" \t\n")) if word.text.strip(" \t\n") else ()
        ):
            if number:
                self.cut()
            self.add(text, quoted=False, origin=word._replace(text=text))
        if word.text[-1:].isspace():
            self.cut()

    def joined(self, words: Tuple[Word, ...]) -> None:
        """Add ``"$*"`` or ``"${x[*]}"``."""
        if self.ifs and words:
            self.unclear("IFS is set: it may be joined otherwise", quoted=True)
            return
        for number, word in enumerate(words):
            self.add(" " if number else "", quoted=True)
            self.add(word.text, quoted=True, origin=word)

    def finish(self) -> List[Word]:
        """Return the fields."""
        if self.whole:
            return [self._joined(self._pieces)]
        self.cut()
        outline = "".join(self._outline)
        start, end = outline.find("{"), outline.rfind("}")
        braces = 0 <= start < end and re.search(r",|\.\.", outline[start:end])
        if braces or re.match(r"[^=*?]*[*?]", outline):
            what = "braces" if braces else "names of files"
            return [
                unclear_word(f"{what} in {_short(self.raw)} are not expanded", self.line, self.raw)
            ]
        return self._done


def _unset(name: str) -> str:
    return f"${name} {'is an argument of' if name.isdecimal() else 'is not set in'} the script"


def _element(elements: Tuple[Word, ...], number: int) -> Tuple[Word, ...]:
    """One element of an array, if it has it; what is unclear may be several of them."""
    unclear = next((word for word in elements[: number + 1] if not word.known), None)
    if unclear is not None:
        return (unclear._replace(text=MARK),)
    return elements[number : number + 1]


def assigned_names(text: str) -> List[str]:
    """Return the names that an expression of ``$(( … ))`` assigns."""
    return [name for pair in _COMPUTED.findall(text) for name in pair if name]


def _calculated(text: str, number: Callable[[str], Optional[int]]) -> Optional[int]:
    """The value of a sum; None for what is more than ``+ - * / %`` of plain numbers and names."""
    text = " ".join(text.split())
    if len(text) > 200 or not _SUM.match(text) or re.search(r"\*\*|//|\+\+|--", text):
        return None
    try:
        return _value(ast.parse(text or "0", mode="eval").body, number)
    except (ArithmeticError, LookupError, SyntaxError, TypeError, ValueError):
        return None


def _value(node: ast.AST, number: Callable[[str], Optional[int]]) -> int:
    """Raises where a part has no value that can be told."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    result: Optional[int] = None
    if isinstance(node, ast.Name):
        result = number(node.id)
    elif isinstance(node, ast.UnaryOp):
        result = {ast.USub: -1, ast.UAdd: 1}[type(node.op)] * _value(node.operand, number)
    elif isinstance(node, ast.BinOp):
        operation = _OPERATIONS[type(node.op)]
        result = operation(_value(node.left, number), _value(node.right, number))
    if result is None or abs(result) >= 1 << 63:
        raise OverflowError
    return result


def _quotient(left: int, right: int) -> int:
    """Division as C has it, towards zero."""
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


_OPERATIONS: Dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _quotient,
    ast.Mod: lambda left, right: left - _quotient(left, right) * right,
}


def _short(text: str) -> str:
    text = " ".join(text[:200].split())
    return text if len(text) <= 60 else text[:57] + "…"
