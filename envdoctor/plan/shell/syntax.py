"""The syntax of launch scripts: bash text to commands inside each other, whose words stay raw.

Nothing is expanded here. What bash would refuse raises :class:`UnreadableScript` with its line; so
does nesting deeper than in any script that a person wrote.
"""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from ...intake.word_lists import words
from ...model.record import NamedTuple

__all__ = ["LITERAL", "Node", "Raw", "UnreadableScript", "parse", "past_piece"]

_MAX_DEPTH = 60
_MOST_COMMANDS = 40_000
_OPERATOR = re.compile(r"&>>|<<<|<<-|;;&|\|\||&&|;;|;&|\|&|&>|<<|<&|>&|>>|>\||<>|[|&;()<>\n]")
_REDIRECTS = frozenset(words("&>> &> <<< <<- << <& >& >> >| <> < >"))
_SEPARATORS = ("\n", ";", "&")
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_DESCRIPTOR = re.compile(r"(?:\d{1,3}|\{\w+\})(?=[<>])")
_ARRAY = re.compile(r"[A-Za-z_]\w*\+?=\(")
#: Most words of a launch script: nothing in them is quoted, expanded or an operator.
LITERAL = re.compile(r"[\w./:=,@%+-]+(?=[ \t\n]|\Z)", re.ASCII)
#: A name goes on in the next line where a backslash ends its own.
_VARIABLE = r"\$(?:\\\n)*(?:[A-Za-z_](?:\w|\\\n)*|[@*#?$!0-9-])"
_QUOTES = r"'[^']*'|\$'(?:[^'\\]|\\.)*'"
_UNQUOTED = re.compile(
    rf"[^\\'\"`$(){{}}#<>|&; \t\n]+|\\.|`(?:[^`\\]|\\.)*`|{_VARIABLE}|{_QUOTES}"
    r"|(?<=[ \t\n;])#[^\n]*|\{+",
    re.DOTALL,
)
_IN_QUOTES = re.compile(rf"[^\\\"`$}}]+|\\.|`(?:[^`\\]|\\.)*`|{_VARIABLE}", re.DOTALL)
_OPENS = re.compile(r"\$\{|\$\(|\$\[|[<>]\(|\"|\(")
#: What ends each compound command's parts; the last word ends all of it.
_PARTS = {
    "if": ("then", "elif", "else", "fi"),
    **dict.fromkeys(("for", "select", "while", "until"), ("do", "done")),
    "{": ("}",),
    "(": (")",),
}
_ORDER = re.compile(r"then( elif then)*( else)? fi|do done|[})]")
_CLOSING = frozenset(words("then do done fi esac elif else }"))


class UnreadableScript(ValueError):
    """A script that bash would not take, or that is no launch script; ``line`` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Raw(NamedTuple):
    """A word as it stands in the script; ``elements`` where it is ``NAME=( … )``."""

    text: str
    line: int
    elements: Optional[Tuple[Raw, ...]] = None


class Node(NamedTuple):
    """A command. ``kind`` is "" for a simple one, else what it opens with, or: ``|``, ``&``,
    ``function``, ``;&`` for a case whose branches run on, ``pattern`` for what decides in a case.

    ``parts`` are the commands between its keywords: of ``if``, ``case`` and ``while`` what decides
    and what follows, in turn.
    """

    kind: str
    line: int
    words: Tuple[
        Raw, ...
    ] = ()  # a function's name; NAME in … of for; subject, patterns; text of ((
    parts: Tuple[Tuple[Node, ...], ...] = ()
    joint: str = ""  # && or ||, where one stands before it
    negated: bool = False
    documents: Tuple[Tuple[str, List[str], bool], ...] = ()  # raw file ("": none), lines, quoted
    input: str = ""  # the raw word behind <<<


def past_piece(text: str, at: int, line: int, inside: str = "", depth: int = 0) -> int:
    """Return the index after a piece of a word: after what is quoted, one expansion, or plain text.

    ``inside``: the double quote or closing bracket that is open around it.
    """
    quoted = inside in ('"', '"}')
    piece = (_IN_QUOTES if quoted else _UNQUOTED).match(text, at)
    if piece and not (inside != ")" and piece.group()[0] == "#"):
        return piece.end()
    opens = _OPENS.match(text, at)
    token = opens.group() if opens else text[at]
    if token == "`" or (not quoted and (token == "'" or text.startswith("$'", at))):
        raise UnreadableScript(line, f"{token} is not closed")
    if token == "$[":  # $(( … )) in an older form
        return _past_sum(text, at, line)
    if token == "${":
        return _past(text, at + 2, line, '"}' if quoted else "}", depth + 1)
    if token == '"' and inside != '"':
        return _past(text, at + 1, line, '"', depth + 1)
    if token == "$(" or (token in ("<(", ">(") and not inside) or (token == "(" and inside == ")"):
        return _past(text, at + len(token), line, ")", depth + 1)
    return at + 1


def _past_sum(text: str, at: int, line: int) -> int:
    """Return the index after ``$[ … ]``, in which elements of arrays may stand."""
    depth = 0
    for place in range(at + 1, len(text)):
        depth += {"[": 1, "]": -1}.get(text[place], 0)
        if not depth:
            return place + 1
    raise UnreadableScript(line, "no ] closes what is open here")


def _past(text: str, at: int, line: int, inside: str, depth: int = 0) -> int:
    """Return the index after a word, or after the bracket or quote that is open."""
    if depth > _MAX_DEPTH:
        raise UnreadableScript(line, f"more than {_MAX_DEPTH} brackets inside each other")
    while at < len(text):
        if text[at] == inside[-1:]:
            return at + 1
        if not inside and text[at] in "|&;()<> \t\n" and text[at : at + 2] not in ("<(", ">("):
            return at
        at = past_piece(text, at, line, inside, depth)
    if inside:
        raise UnreadableScript(line, f"no {inside[-1]} closes what is open here")
    return len(text)


def parse(text: str, line: int = 1) -> Tuple[Node, ...]:
    """Return the commands of a script that starts at a line; raises :class:`UnreadableScript`."""
    parser = _Parser(text.replace("\r\n", "\n"), line)
    commands = parser.commands()
    if parser.token.text:
        raise _expected("a command", parser.token)
    return commands


class _Parser:
    """Recursive descent. A token is a :class:`Raw`, an operator too, "" at the end: no word looks
    like an operator before its quotes are off.
    """

    def __init__(self, text: str, line: int) -> None:
        self.text = text
        self.at = 0
        self.line = line
        self.depth = 0
        self.count = 0  # of commands
        self.documents: List[Tuple[str, bool, List[str]]] = []  # those that wait for the line's end
        self.token = self._scan()

    def take(self, wanted: str = "") -> Raw:
        """Return the token, which has to be the one that is ``wanted``, and go on to the next."""
        token = self.token
        if wanted and token.text != wanted:
            raise _expected(repr(wanted), token)
        self.token = self._scan()
        return token

    def _is_word(self) -> bool:
        return self.token.text != "" and not _OPERATOR.fullmatch(self.token.text)

    def _newlines(self) -> None:
        while self.token.text == "\n":
            self.take()

    def _scan(self) -> Raw:
        for skipped in (_BLANK, _COMMENT, _DESCRIPTOR):
            match = skipped.match(self.text, self.at)
            if match:
                self._move(match.end())
        line, start = self.line, self.at
        literal = LITERAL.match(self.text, start)
        array = None if literal else _ARRAY.match(self.text, start)
        operator = None if literal else _OPERATOR.match(self.text, start)
        if literal:
            self.at = literal.end()
        elif array:
            self.at = array.end()
            return Raw(array.group()[:-1], line, self._elements())
        elif operator and not self.text.startswith(("<(", ">("), start):
            self._move(operator.end())
            if operator.group() == "\n":
                self._read_documents()
            return Raw(operator.group(), line)
        else:
            self._move(_past(self.text, start, line, ""))
        return Raw(self.text[start : self.at], line)

    def _move(self, at: int) -> None:
        self.line += self.text.count("\n", self.at, at)
        self.at = at

    def _elements(self) -> Tuple[Raw, ...]:
        elements: List[Raw] = []
        while True:
            token = self._scan()
            if token.text == ")":
                return tuple(elements)
            if token.elements is not None or token.text in ("", *"|&;(<>"):
                raise UnreadableScript(token.line, "an array is not closed")
            if token.text != "\n":
                elements.append(token)

    def _read_documents(self) -> None:
        pending, self.documents = self.documents, []
        for delimiter, tabs, rows in pending:
            while self.at < len(self.text):
                end = self.text.find("\n", self.at) + 1 or len(self.text)
                row = self.text[self.at : end].rstrip("\n")
                self._move(end)
                row = row.lstrip("\t") if tabs else row
                if row == delimiter:
                    break
                rows.append(row + "\n")

    # Grammar.

    def commands(self, *until: str) -> Tuple[Node, ...]:
        """Read commands up to a word or operator in ``until``, which is left in place."""
        commands: List[Node] = []
        while self.token.text not in ("", *until):
            if self.token.text in _SEPARATORS:
                self.take()
                continue
            chain = [self._pipeline()]
            while self.token.text in ("&&", "||"):
                joint = self.take().text
                self._newlines()
                chain.append(self._pipeline()._replace(joint=joint))
            if self.token.text == "&":
                chain = [Node("&", chain[0].line, parts=(tuple(chain),))]
            commands += chain
            if self.token.text not in ("", *_SEPARATORS, *until):
                raise _expected("the end of a command", self.token)
        return tuple(commands)

    def _pipeline(self) -> Node:
        negated = False
        while self.token.text in ("!", "time"):
            negated ^= self.take().text == "!"
        members = [self._command()]
        while self.token.text in ("|", "|&"):
            self.take()
            self._newlines()
            members.append(self._command())
        command = members[0]
        if len(members) > 1:
            command = Node("|", command.line, parts=tuple((member,) for member in members))
        return command._replace(negated=True) if negated else command

    def _command(self) -> Node:
        line = self.token.line
        self.depth += 1
        self.count += 1
        if self.count > _MOST_COMMANDS:
            raise UnreadableScript(line, f"more than {_MOST_COMMANDS} commands")
        if self.depth > _MAX_DEPTH:
            raise UnreadableScript(line, f"more than {_MAX_DEPTH} commands inside each other")
        if self.token.text == "(" and self.text.startswith("(", self.at):
            command = self._arithmetic(line)
        elif self.token.text in _PARTS:
            command = self._compound(self.take())
        elif self.token.text == "case":
            command = self._case(self.take())
        elif self.token.text == "[[":
            command = self._test(self.take())
        elif self.token.text == "function":
            self.take()
            command = self._function(self.take())
        else:
            command = self._simple()
        while self.token.text in _REDIRECTS:
            self._redirect([], [], [])
        self.depth -= 1
        return command

    def _simple(self) -> Node:
        first = self.token
        if first.text in _CLOSING or not (self._is_word() or first.text in _REDIRECTS):
            raise _expected("a command", first)
        words: List[Raw] = []
        files = [""]  # that the command writes
        documents: List[Tuple[List[str], bool]] = []
        inputs = [""]
        while self._is_word() or self.token.text in _REDIRECTS:
            if self._is_word():
                words.append(self.take())
            else:
                self._redirect(files, documents, inputs)
            if self.token.text == "(" and len(words) == 1:
                return self._function(words[0])
        written = tuple((files[-1], *document) for document in documents)
        return Node("", first.line, tuple(words), documents=written, input=inputs[-1])

    def _redirect(
        self, files: List[str], documents: List[Tuple[List[str], bool]], inputs: List[str]
    ) -> None:
        operator = self.take().text
        if not self._is_word():
            raise _expected(f"a file after {operator!r}", self.token)
        target = self.token.text
        if operator in ("<<", "<<-"):
            delimiter = re.sub(r"['\"\\]", "", target)
            rows: List[str] = []
            self.documents.append((delimiter, operator == "<<-", rows))
            documents.append((rows, delimiter != target))
        elif operator == "<<<":
            inputs.append(target)
        elif operator in (">", ">|", "&>"):
            files.append(target)
        self.take()

    def _compound(self, opening: Raw) -> Node:
        ends = _PARTS[opening.text]
        parts = [self.commands(*ends)]
        keywords = [self.token.text]
        while self.token.text not in ("", ends[-1]):
            self.take()
            parts.append(self.commands(*ends))
            keywords.append(self.token.text)
        if not _ORDER.fullmatch(" ".join(keywords)):
            raise _expected(" or ".join(map(repr, ends)), self.token)
        self.take()
        words: Tuple[Raw, ...] = ()
        if opening.text in ("for", "select"):  # what stands before do reads as a command
            words = sum((command.words for command in parts.pop(0)), ())
        return Node(opening.text, opening.line, words, tuple(parts))

    def _case(self, opening: Raw) -> Node:
        subject = self.take()
        self._newlines()
        self.take("in")
        self._newlines()
        parts: List[Tuple[Node, ...]] = []
        kind = "case"
        while self.token.text not in ("", "esac"):
            words = [subject]
            while self.token.text not in ("", ")"):
                words.append(self.take())
            self.take(")")
            pattern = Node("pattern", subject.line, tuple(w for w in words if w.text not in "|("))
            parts += ((pattern,), self.commands(";;", ";&", ";;&", "esac"))
            kind = self.token.text if self.token.text in (";&", ";;&") else kind
            if self.token.text != "esac":
                self.take()
            self._newlines()
        self.take("esac")
        return Node("case" if kind == "case" else ";&", opening.line, parts=tuple(parts))

    def _function(self, name: Raw) -> Node:
        if self.token.text == "(":
            self.take()
            self.take(")")
        self._newlines()
        return Node("function", name.line, (name,), ((self._command(),),))

    def _test(self, opening: Raw) -> Node:
        words: List[Raw] = []
        while self.token.text not in ("", "]]"):
            words.append(self.take())
        self.take("]]")
        return Node("[[", opening.line, tuple(words))

    def _arithmetic(self, line: int) -> Node:
        start = self.at + 1
        self._move(_past(self.text, start - 1, line, ")"))
        text = self.text[start : self.at - 2]
        self.token = self._scan()
        return Node("((", line, (Raw(text, line),))


def _expected(what: str, token: Raw) -> UnreadableScript:
    return UnreadableScript(token.line, f"expected {what}, found {token.text or 'the end'!r}")
