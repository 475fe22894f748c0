"""The syntax of launch scripts: bash text to a tree of commands whose words stay raw.

Nothing is expanded here, and nothing is ever run. What bash would refuse raises
:class:`UnreadableScript` with its line; so does nesting deeper than any script that a person wrote.
"""

from __future__ import annotations

import re
from typing import List, Optional, Tuple, Union

from ...intake.word_lists import words
from ...model.record import NamedTuple

__all__ = ["LITERAL", "Node", "Raw", "UnreadableScript", "parse", "past", "past_quotes"]

_MAX_DEPTH = 60
_MOST_COMMANDS = 80_000
_OPERATOR = re.compile(r"&>>|<<<|<<-|;;&|\|\||&&|;;|;&|\|&|&>|<<|<&|>&|>>|>\||<>|[|&;()<>\n]")
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_ARRAY = re.compile(r"[A-Za-z_]\w*\+?=\(")
_QUOTED = re.compile(r"'[^']*'|\$'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`", re.DOTALL)
_QUOTED_BRACE = '"}'  # of ``${`` between double quotes, where a single quote is a plain character
_PLAIN = re.compile(r"[^\\'\"`$(){}#<>|&; \t\n]+")
#: Most words of a launch script: nothing in them is quoted, expanded or an operator.
LITERAL = re.compile(r"[\w./:=,@%+-]+(?=[ \t\n]|\Z)", re.ASCII)
_DESCRIPTOR = re.compile(r"(?:\d{1,3}|\{\w+\})(?=[<>])")
_REDIRECTS = frozenset(words("&>> &> <<< <<- << <& >& >> >| <> < >"))
_DOUBLE_QUOTES = ('"', _QUOTED_BRACE)
_SEPARATORS = ("\n", ";", "&")
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
    """A command: ``simple``, or what it opens with.

    ``words`` are those of a simple command, the values of ``for``, the subject of ``case``, the
    text of ``((``. ``parts`` are pairs of what decides (conditions of ``if`` and ``while``,
    patterns of ``case``) and the commands that follow.
    """

    kind: str  # simple, pattern, if, while, until, for, case, function, {, (, |, ((, [[
    line: int
    words: Tuple[Raw, ...] = ()
    parts: Tuple[Tuple[Tuple[Node, ...], Tuple[Node, ...]], ...] = ()
    name: str = ""  # of a function, of the variable of ``for``; ;& where branches of a case run on
    joint: str = ""  # && or ||, where one stands before it
    negated: bool = False
    documents: Tuple[Tuple[str, List[str], bool], ...] = ()  # raw file ("": none), lines, quoted


def past(text: str, start: int, line: int, *, within: str = "") -> int:
    """Return the index after a word, or after the bracket or quote that is open ``within``."""
    at = start
    inside_of = [within]
    while at < len(text):
        inside = inside_of[-1]
        char = text[at]
        closer, width = _opened(text, at, inside)
        if char == inside[-1:]:
            inside_of.pop()
            at += 1
            if not inside_of:
                return at
        elif closer:
            inside_of.append(closer)
            at += width
        elif not inside and char in "|&;()<> \t\n":
            return at
        else:
            at = _past_piece(text, at, line, inside)
        if len(inside_of) > _MAX_DEPTH:
            raise UnreadableScript(line, f"more than {_MAX_DEPTH} brackets inside each other")
    if inside_of[-1]:
        raise UnreadableScript(line, f"no {inside_of[-1][-1]} closes what is open here")
    return len(text)


def _past_piece(text: str, at: int, line: int, inside: str) -> int:
    """Return the index after what cannot close a word or open a bracket."""
    char = text[at]
    if char == "\\":
        return at + 2
    if char == "`" or (inside not in _DOUBLE_QUOTES and text.startswith(("'", "$'"), at)):
        return past_quotes(text, at, line)
    if char == "#" and inside == ")" and text[at - 1] in " \t\n;":
        return _line_end(text, at)
    plain = _PLAIN.match(text, at)
    return plain.end() if plain else at + 1


def _opened(text: str, at: int, inside: str) -> Tuple[str, int]:
    """What closes the bracket or double quote that opens here, and its width; "" for none."""
    if text[at] == '"' or (text[at] == "(" and inside == ")"):
        return ('"' if text[at] == '"' else ")"), 1
    if text.startswith("${", at):
        return (_QUOTED_BRACE if inside in _DOUBLE_QUOTES else "}"), 2
    if text.startswith("$(", at) or (not inside and text.startswith(("<(", ">("), at)):
        return ")", 2
    return "", 0


def past_quotes(text: str, at: int, line: int) -> int:
    """Return the index after ``'…'``, ``$'…'`` or a command in backquotes."""
    match = _QUOTED.match(text, at)
    if match is None:
        raise UnreadableScript(line, f"{text[at]} is not closed")
    return match.end()


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def parse(text: str, line: int = 1) -> Tuple[Node, ...]:
    """Return the commands of a script that starts at a line; raises :class:`UnreadableScript`."""
    parser = _Parser(text.replace("\r\n", "\n"), line)
    nodes = parser.commands()
    if parser.token != "":
        raise UnreadableScript(parser.line, f"unexpected {parser.spelling!r}")
    return nodes


class _Parser:
    """Recursive descent; a token is an operator ("" at the end) or a :class:`Raw`."""

    def __init__(self, text: str, line: int) -> None:
        self.text = text
        self.at = 0
        self.line = line
        self.depth = 0
        self.count = 0  # of commands
        self.documents: List[Tuple[str, bool, List[str]]] = []  # those that wait for the line's end
        self.token: Union[str, Raw] = self._scan()

    @property
    def spelling(self) -> str:
        """The token as it stands in the script."""
        return self.token.text if isinstance(self.token, Raw) else self.token

    def take(self) -> Union[str, Raw]:
        """Return the token and go on to the next."""
        token, self.token = self.token, self._scan()
        return token

    def _scan(self) -> Union[str, Raw]:
        blank = _BLANK.match(self.text, self.at)
        if blank:
            self._move(blank.end())
        literal = LITERAL.match(self.text, self.at)
        if literal:
            self.at = literal.end()
            return Raw(literal.group(), self.line)
        if self.text.startswith("#", self.at):
            self.at = _line_end(self.text, self.at)
        descriptor = _DESCRIPTOR.match(self.text, self.at)
        if descriptor:
            self.at = descriptor.end()
        array = _ARRAY.match(self.text, self.at)
        operator = _OPERATOR.match(self.text, self.at)
        if self.at >= len(self.text):
            return ""
        line = self.line
        if array:
            self.at = array.end()
            return Raw(array.group()[:-1], line, self._elements())
        if operator and not self.text.startswith(("<(", ">("), self.at):
            self.at = operator.end()
            if operator.group() == "\n":
                self.line += 1
                self._read_documents()
            return operator.group()
        start = self.at
        self._move(past(self.text, start, line))
        return Raw(self.text[start : self.at], line)

    def _move(self, at: int) -> None:
        self.line += self.text.count("\n", self.at, at)
        self.at = at

    def _elements(self) -> Tuple[Raw, ...]:
        elements: List[Raw] = []
        while True:
            token = self._scan()
            if isinstance(token, Raw) and token.elements is None:
                elements.append(token)
            elif token == ")":
                return tuple(elements)
            elif token != "\n":
                raise UnreadableScript(self.line, "an array is not closed")

    def _read_documents(self) -> None:
        pending, self.documents = self.documents, []
        for delimiter, tabs, rows in pending:
            while self.at < len(self.text):
                end = _line_end(self.text, self.at)
                row = self.text[self.at : end]
                self._move(min(end + 1, len(self.text)))
                row = row.lstrip("\t") if tabs else row
                if row == delimiter:
                    break
                rows.append(row + "\n")

    def expect(self, *wanted: str) -> str:
        """Take one of the words that have to stand here."""
        spelling = self.spelling
        if spelling not in wanted:
            what = " or ".join(wanted)
            raise UnreadableScript(self.line, f"expected {what!r}, found {spelling or 'the end'!r}")
        self.take()
        return spelling

    # Grammar.

    def commands(self, *until: str) -> Tuple[Node, ...]:
        """Read commands up to a word or operator in ``until``, which is left in place."""
        nodes: List[Node] = []
        while self.token != "" and self.spelling not in until:
            if self.token in _SEPARATORS:
                self.take()
                continue
            line = self.line
            chain = self._chain()
            if self.token == "&":  # what it assigns is lost
                chain = [Node("(", line, parts=(((), tuple(chain)),))]
            nodes += chain
            if self.token not in _SEPARATORS and self.spelling not in ("", *until):
                raise UnreadableScript(self.line, f"unexpected {self.spelling!r}")
        return tuple(nodes)

    def _chain(self) -> List[Node]:
        nodes = [self._pipeline("")]
        while self.token in ("&&", "||"):
            joint = str(self.take())
            self._newlines()
            nodes.append(self._pipeline(joint))
        return nodes

    def _pipeline(self, joint: str) -> Node:
        negated = False
        while self.spelling in ("!", "time"):
            negated ^= self.spelling == "!"
            self.take()
        members = [self._command()]
        while self.token in ("|", "|&"):
            self.take()
            self._newlines()
            members.append(self._command())
        node = members[0]
        if len(members) > 1:
            node = Node("|", node.line, parts=tuple(((), (member,)) for member in members))
        return node._replace(joint=joint, negated=negated)

    def _newlines(self) -> None:
        while self.token == "\n":
            self.take()

    def _command(self) -> Node:
        line = self.token.line if isinstance(self.token, Raw) else self.line
        self.depth += 1
        self.count += 1
        if self.count > _MOST_COMMANDS:
            raise UnreadableScript(line, f"more than {_MOST_COMMANDS} commands")
        if self.depth > _MAX_DEPTH:
            raise UnreadableScript(line, f"more than {_MAX_DEPTH} commands inside each other")
        reader = {
            "if": self._if, "for": self._for, "select": self._for, "while": self._while,
            "until": self._while, "case": self._case, "function": self._function,
            "[[": self._test, "{": self._group, "(": self._group,
        }.get(self.spelling, self._simple)  # fmt: skip
        node = reader(line)
        self._redirects([], [])
        self.depth -= 1
        return node

    def _simple(self, line: int) -> Node:
        words: List[Raw] = []
        files = [""]  # that the command writes
        documents: List[Tuple[List[str], bool]] = []
        if self.spelling in _CLOSING:
            raise self._no_command(line)
        redirected = self.token in _REDIRECTS
        while isinstance(self.token, Raw) or self.token in _REDIRECTS:
            self._redirects(files, documents)
            if isinstance(self.token, Raw):
                words.append(self.token)
                self.take()
            if self.token == "(" and len(words) == 1:
                return self._function(line, words[0].text)
        if not words and not redirected:
            raise self._no_command(line)
        return Node(
            "simple",
            line,
            tuple(words),
            documents=tuple((files[-1], *document) for document in documents),
        )

    def _no_command(self, line: int) -> UnreadableScript:
        return UnreadableScript(line, f"expected a command, found {self.spelling or 'the end'!r}")

    def _redirects(self, files: List[str], documents: List[Tuple[List[str], bool]]) -> None:
        while self.token in _REDIRECTS:
            operator = self.take()
            if not isinstance(self.token, Raw):
                raise UnreadableScript(self.line, f"expected a file after {operator!r}")
            target = self.token.text
            if operator in ("<<", "<<-"):
                delimiter = re.sub(r"['\"\\]", "", target)
                rows: List[str] = []
                self.documents.append((delimiter, operator == "<<-", rows))
                documents.append((rows, delimiter != target))
            elif operator in (">", ">|", "&>"):
                files.append(target)
            self.take()

    def _if(self, line: int) -> Node:
        parts = []
        word = self.expect("if")
        while word != "fi":
            condition = self.commands("then") if word != "else" else ()
            if word != "else":
                self.expect("then")
            parts.append((condition, self.commands("elif", "else", "fi")))
            word = self.expect(*(("elif", "else", "fi") if word != "else" else ("fi",)))
        return Node("if", line, parts=tuple(parts))

    def _for(self, line: int) -> Node:
        self.take()
        name = self.spelling
        values: Tuple[Raw, ...] = ()
        if name == "(":
            values = (Raw(self._bracketed(), line),)
        else:
            values = (Raw('"$@"', line),)
            self.take()
            self._newlines()
            if self.spelling == "in":
                self.take()
                values = self._words()
        while self.token in ("\n", ";"):
            self.take()
        close = {"do": "done", "{": "}"}[self.expect("do", "{")]
        body = self.commands(close)
        self.expect(close)
        return Node("for", line, values, (((), body),), name)

    def _words(self) -> Tuple[Raw, ...]:
        words: List[Raw] = []
        while isinstance(self.token, Raw):
            words.append(self.token)
            self.take()
        return tuple(words)

    def _while(self, line: int) -> Node:
        kind = self.expect("while", "until")
        condition = self.commands("do")
        self.expect("do")
        body = self.commands("done")
        self.expect("done")
        return Node(kind, line, parts=((condition, body),))

    def _case(self, line: int) -> Node:
        self.take()
        subject = Raw(self.spelling, line)
        self.take()
        self._newlines()
        self.expect("in")
        parts = []
        through = False
        self._newlines()
        while self.spelling != "esac":
            if self.token == "(":
                self.take()
            patterns = self._words()
            while self.token == "|":
                self.take()
                patterns += self._words()
            self.expect(")")
            parts.append(
                ((Node("pattern", self.line, patterns),), self.commands(";;", ";&", ";;&", "esac"))
            )
            if self.spelling != "esac":
                through = through or self.spelling != ";;"
                self.take()
            self._newlines()
        self.take()
        return Node("case", line, (subject,), tuple(parts), name=";&" if through else "")

    def _function(self, line: int, name: str = "") -> Node:
        if not name:
            self.take()
            name = self.spelling
            self.take()
        if self.token == "(":
            self.take()
            self.expect(")")
        self._newlines()
        return Node("function", line, parts=(((), (self._command(),)),), name=name)

    def _test(self, line: int) -> Node:
        self.take()
        words: List[Raw] = []
        while self.spelling != "]]":
            if self.token == "":
                raise UnreadableScript(line, "expected ']]', found the end")
            words.append(Raw(self.spelling, line))
            self.take()
        self.take()
        return Node("[[", line, tuple(words))

    def _group(self, line: int) -> Node:
        if self.token == "(" and self.text.startswith("(", self.at):
            return Node("((", line, (Raw(self._bracketed(), line),))
        close = {"(": ")", "{": "}"}[self.expect("(", "{")]
        body = self.commands(close)
        self.expect(close)
        return Node("(" if close == ")" else "{", line, parts=(((), body),))

    def _bracketed(self) -> str:
        """Take ``(( … ))`` and return what is in it."""
        start = self.at
        self._move(past(self.text, start, self.line, within=")"))
        inner = self.text[start + 1 : self.at - 2]
        self.token = self._scan()
        return inner
