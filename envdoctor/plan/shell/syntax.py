"""The syntax of shell scripts: bash text to a tree of commands.

Nothing is expanded here, and nothing is ever run.

The tree keeps words raw, as they stand in the script; :mod:`.shell` expands them. What bash would
refuse raises :class:`SyntaxProblem` with the line; so does nesting deeper than any script that a
person wrote.
"""

from __future__ import annotations

import re
from typing import Callable, List, Optional, Tuple, Union

from .quoting import MAX_DEPTH, after, after_ansi, closing, quoted
from .tree import (
    Arithmetic,
    Case,
    Chain,
    Function,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Simple,
    SyntaxProblem,
    Word,
)

__all__ = ["parse"]

_BLANK = " \t"
_META = frozenset("|&;()<> \t\n")
_OPERATOR = re.compile(r"\|\||&&|;;&|;&|;;|\|&|&>>|&>|<<<|<<-|<<|<&|>&|>>|>\||<>|[|&;()<>\n]")
_ARRAY = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\n]{0,200}\])?\+?=\(")
_DESCRIPTOR = re.compile(r"\d{1,3}|\{\w+\}")
_REDIRECTS = frozenset(["&>>", "&>", "<<<", "<<-", "<<", "<&", ">&", ">>", ">|", "<>", "<", ">"])
_RESERVED = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "function",
        "{",
        "}",
        "[[",
        "select",
        "!",
    ]
)
_PLAIN = re.compile(r"[^|&;()<> \t\n'\"\\$`#{]+")


def parse(text: str) -> Tuple[Node, ...]:
    """Return the commands of a script; raises :class:`SyntaxProblem`."""
    parser = _Parser(text.replace("\r\n", "\n"))
    nodes = parser.commands(frozenset(), 0)
    if not parser.at_end():
        raise SyntaxProblem(parser.line, f"unexpected {parser.peek()!r}")
    return nodes


class _Parser:
    """Recursive descent; a token is an operator (str) or a :class:`Word`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self._token: Union[str, Word, None] = None
        self._documents: List[Tuple[int, str, bool, bool, List[str]]] = []

    # Tokens.

    def peek(self) -> Union[str, Word]:
        """The next token; "" at the end."""
        if self._token is None:
            self._token = self._scan()
        return self._token

    def take(self) -> Union[str, Word]:
        """Return the next token and go on; a line's here-documents are read at its end."""
        token = self.peek()
        self._token = None
        if token == "\n":
            self._read_documents()
        return token

    def at_end(self) -> bool:
        """Tell whether the text is used up."""
        return self.peek() == ""

    def _scan(self) -> Union[str, Word]:
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char in _BLANK:
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
                self.line += 1
            elif char == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            else:
                break
        if self.at >= len(text):
            return ""
        process = text.startswith(("<(", ">("), self.at)
        found = None if process else _OPERATOR.match(text, self.at)
        if found:
            self.at = found.end()
            if found.group() == "\n":
                self.line += 1
            return found.group()
        return self._word()

    def _word(self) -> Word:
        text, start, line = self.text, self.at, self.line
        found = _ARRAY.match(text, start)
        if found:
            self.at = found.end()
            return Word(text[start : found.end() - 1], line, self._elements())
        at = start
        while at < len(text):
            char = text[at]
            if char == "\\":
                at += 2
            elif char == "'":
                at = after(text, "'", at + 1, self._line_at(at))
            elif char == '"':
                at = quoted(text, at + 1, self._line_at(at))
            elif char == "`":
                at = after(text, "`", at + 1, self._line_at(at))
            elif char == "$":
                following = text[at + 1 : at + 2]
                if following in ("{", "("):
                    at = closing(text, at + 2, following, self._line_at(at))
                elif following == "'":
                    at = after_ansi(text, at + 2, self._line_at(at))
                else:
                    at += 1
            elif char in "<>" and text.startswith("(", at + 1) and at == start:
                at = closing(text, at + 2, "(", self._line_at(at))
            elif char in _META:
                break
            else:
                plain = _PLAIN.match(text, at)
                at = plain.end() if plain else at + 1
        raw = text[start:at]
        self.line += raw.count("\n")
        self.at = min(at, len(text))
        return Word(raw, line)

    def _line_at(self, at: int) -> int:
        return self.line + self.text.count("\n", self.at, at)

    def _elements(self) -> Tuple[Word, ...]:
        elements: List[Word] = []
        while True:
            token = self._scan()
            if token == ")":
                return tuple(elements)
            if token == "":
                raise SyntaxProblem(self.line, "an array is not closed")
            if isinstance(token, Word):
                elements.append(token)
            elif token != "\n":
                raise SyntaxProblem(self.line, f"unexpected {token!r} in an array")

    def _read_documents(self) -> None:
        pending, self._documents = self._documents, []
        for _line, delimiter, strip, _literal, into in pending:
            lines: List[str] = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                row = self.text[self.at : end]
                self.at = min(end + 1, len(self.text))
                self.line += 1
                row = row.lstrip("\t") if strip else row
                if row == delimiter:
                    break
                lines.append(row)
            into.append("".join(f"{row}\n" for row in lines))

    # Grammar.

    def commands(self, until: frozenset[str], depth: int) -> Tuple[Node, ...]:
        """Read a list of commands up to a reserved word or operator in ``until`` (left in
        place).
        """
        if depth > MAX_DEPTH:
            raise SyntaxProblem(self.line, f"more than {MAX_DEPTH} commands inside each other")
        nodes: List[Node] = []
        while True:
            token = self.peek()
            if token in ("\n", ";", "&"):
                self.take()
                continue
            if token == "" or _spelling(token) in until:
                return tuple(nodes)
            if isinstance(token, str) and token not in ("(", *_REDIRECTS):
                raise SyntaxProblem(self.line, f"unexpected {token!r}")
            nodes.append(self._chain(until, depth))

    def _chain(self, until: frozenset[str], depth: int) -> Node:
        items: List[Tuple[str, Pipeline]] = [("", self._pipeline(until, depth))]
        while self.peek() in ("&&", "||"):
            operator = str(self.take())
            self._newlines()
            items.append((operator, self._pipeline(until, depth)))
        background = self.peek() == "&"
        if background:
            self.take()
            items = [(operator, pipeline._replace(background=True)) for operator, pipeline in items]
        if len(items) > 1:
            return Chain(tuple(items))
        pipeline = items[0][1]
        return (
            pipeline.commands[0]
            if len(pipeline.commands) == 1 and not pipeline.negated and not background
            else pipeline
        )

    def _pipeline(self, until: frozenset[str], depth: int) -> Pipeline:
        negated = False
        while _spelling(self.peek()) in ("!", "time"):
            negated ^= _spelling(self.take()) == "!"
        commands = [self._command(until, depth)]
        while self.peek() in ("|", "|&"):
            self.take()
            self._newlines()
            commands.append(self._command(until, depth))
        return Pipeline(tuple(commands), negated)

    def _command(self, until: frozenset[str], depth: int) -> Node:
        token = self.peek()
        if token == "(":
            return self._parenthesis(depth)
        reader = self._compounds().get(_spelling(token))
        if reader is not None:
            node = reader(depth + 1)
            self._redirects()
            return node
        if isinstance(token, str) and token not in _REDIRECTS:
            raise SyntaxProblem(self.line, f"expected a command, found {token or 'the end'!r}")
        if _spelling(token) in _RESERVED and _spelling(token) in (
            "then",
            "do",
            "done",
            "fi",
            "esac",
            "elif",
            "else",
            "}",
        ):
            raise SyntaxProblem(self.line, f"unexpected {_spelling(token)!r}")
        return self._simple(until, depth)

    def _compounds(self) -> dict[str, Callable[[int], Node]]:
        return {
            "if": self._if,
            "for": self._for,
            "select": self._for,
            "while": self._while,
            "until": self._while,
            "case": self._case,
            "{": self._brace,
            "function": self._function,
            "[[": self._test,
        }

    def _simple(self, until: frozenset[str], depth: int) -> Node:
        words: List[Word] = []
        redirects: List[Redirect] = []
        line = self.line
        while True:
            token = self.peek()
            if isinstance(token, Word):
                line = token.line if not words else line
                if _DESCRIPTOR.fullmatch(token.raw) and self.text.startswith(("<", ">"), self.at):
                    self.take()
                    continue
                words.append(token)
                self.take()
                if len(words) == 1 and self.peek() == "(" and self._opens_function():
                    self.take()
                    self.take()
                    self._newlines()
                    body = self._command(until, depth + 1)
                    return Function(words[0].raw, (body,))
            elif token in _REDIRECTS:
                redirects.append(self._redirect())
            elif token == "(":
                raise SyntaxProblem(self.line, "unexpected '('")
            else:
                break
        return Simple(tuple(words), tuple(self._settled(redirects)), line)

    def _opens_function(self) -> bool:
        return bool(re.compile(r"[ \t]*\)").match(self.text, self.at))

    def _settled(self, redirects: List[Redirect]) -> List[Redirect]:
        """Here-documents are read when the line ends, so their text is taken ahead of time."""
        if not any(redirect.operator in ("<<", "<<-") for redirect in redirects):
            return redirects
        bodies: List[List[str]] = [into for *_, into in self._documents]
        if self.peek() == "\n":
            self.take()
            self._token = "\n"  # still ends the command; its documents are read already
        else:
            self._ahead()
        texts = iter(bodies)
        return [
            redirect._replace(body="".join(next(texts, [])))
            if redirect.operator in ("<<", "<<-")
            else redirect
            for redirect in redirects
        ]

    def _ahead(self) -> None:
        """The line goes on after ``<<EOF`` (a pipe): read the documents behind it and cut them out
        of the text.
        """
        end = self.text.find("\n", self.at)
        if end < 0:
            return
        at, line = self.at, self.line
        self.at, self.line = end + 1, line + 1
        self._read_documents()
        self.text = self.text[: end + 1] + self.text[self.at :]
        self.at, self.line = at, line

    def _redirect(self) -> Redirect:
        operator = str(self.take())
        target = self.peek()
        if not isinstance(target, Word):
            raise SyntaxProblem(self.line, f"expected a file after {operator!r}")
        self.take()
        literal = any(char in target.raw for char in "'\"\\")
        if operator in ("<<", "<<-"):
            delimiter = re.sub(r"['\"\\]", "", target.raw)
            self._documents.append((target.line, delimiter, operator == "<<-", literal, []))
        return Redirect(operator, target, literal=literal)

    def _redirects(self) -> None:
        while True:
            token = self.peek()
            if (
                isinstance(token, Word)
                and _DESCRIPTOR.fullmatch(token.raw)
                and self.text.startswith(("<", ">"), self.at)
            ):
                self.take()
            elif token in _REDIRECTS:
                self._redirect()
            else:
                return

    def _newlines(self) -> None:
        while self.peek() == "\n":
            self.take()

    def _expect(self, *wanted: str) -> str:
        token = self.take()
        found = _spelling(token)
        if found not in wanted:
            raise SyntaxProblem(
                self.line, f"expected {' or '.join(wanted)!r}, found {found or 'the end'!r}"
            )
        return found

    def _if(self, depth: int) -> Node:
        line = self.line
        clauses = []
        orelse: Optional[Tuple[Node, ...]] = None
        word = self._expect("if")
        while word in ("if", "elif"):
            condition = self.commands(frozenset(["then"]), depth)
            self._expect("then")
            body = self.commands(frozenset(["elif", "else", "fi"]), depth)
            clauses.append((condition, body))
            word = self._expect("elif", "else", "fi")
        if word == "else":
            orelse = self.commands(frozenset(["fi"]), depth)
            self._expect("fi")
        return If(tuple(clauses), orelse, line)

    def _for(self, depth: int) -> Node:
        line = self.line
        kind = self._expect("for", "select")
        name = ""
        words: Optional[Tuple[Word, ...]] = None
        token = self.take()
        if token == "(":
            end = closing(self.text, self.at, "(", self.line)  # for (( …; …; … ))
            self.line += self.text.count("\n", self.at, end)
            self.at = end
            words = (Word("$?", line), Word("$?", line))
        else:
            name = _spelling(token)
            self._newlines()
            if _spelling(self.peek()) == "in":
                self.take()
                found: List[Word] = []
                while isinstance(self.peek(), Word):
                    found.append(self.take())  # type: ignore[arg-type]
                words = tuple(found)
        body = self._body(depth)
        return Loop(kind, name, words, (), body, line)

    def _while(self, depth: int) -> Node:
        line = self.line
        kind = self._expect("while", "until")
        condition = self.commands(frozenset(["do"]), depth)
        return Loop(kind, "", None, condition, self._body(depth), line)

    def _body(self, depth: int) -> Tuple[Node, ...]:
        while self.peek() in ("\n", ";"):
            self.take()
        opening = self._expect("do", "{")
        end = "done" if opening == "do" else "}"
        body = self.commands(frozenset([end]), depth)
        self._expect(end)
        return body

    def _case(self, depth: int) -> Node:
        line = self.line
        self._expect("case")
        word = self.take()
        if not isinstance(word, Word):
            raise SyntaxProblem(line, "expected a word after 'case'")
        self._newlines()
        self._expect("in")
        branches: List[Tuple[Tuple[Word, ...], Tuple[Node, ...]]] = []
        while True:
            self._newlines()
            if _spelling(self.peek()) == "esac":
                self.take()
                return Case(word, tuple(branches), line)
            if self.peek() == "(":
                self.take()
            patterns: List[Word] = []
            while True:
                token = self.take()
                if isinstance(token, Word):
                    patterns.append(token)
                elif token == ")":
                    break
                elif token != "|":
                    raise SyntaxProblem(self.line, "expected a pattern and ')' in 'case'")
            body = self.commands(frozenset([";;", ";&", ";;&", "esac"]), depth)
            branches.append((tuple(patterns), body))
            if self.peek() in (";;", ";&", ";;&"):
                self.take()

    def _brace(self, depth: int) -> Node:
        self._expect("{")
        body = self.commands(frozenset(["}"]), depth)
        self._expect("}")
        return Group(body, subshell=False)

    def _parenthesis(self, depth: int) -> Node:
        self.take()
        if self.text.startswith("(", self.at):
            start = self.at + 1
            end = closing(self.text, start, "(", self.line)
            if self.text.startswith(")", end):
                line = self.line
                self.line += self.text.count("\n", start, end)
                self.at = end + 1
                return Arithmetic(self.text[start : end - 1], line)
        body = self.commands(frozenset([")"]), depth + 1)
        if self.take() != ")":
            raise SyntaxProblem(self.line, "a '(' is not closed")
        self._redirects()
        return Group(body, subshell=True)

    def _function(self, depth: int) -> Node:
        self._expect("function")
        name = _spelling(self.take())
        if self.peek() == "(":
            self.take()
            self.take()
        self._newlines()
        return Function(name, (self._command(frozenset(), depth),))

    def _test(self, depth: int) -> Node:  # noqa: ARG002 - one signature for all
        line = self.line
        self._expect("[[")
        words: List[Word] = []
        while True:
            token = self.take()
            if token == "":
                raise SyntaxProblem(line, "[[ is not closed")
            if isinstance(token, Word):
                if token.raw == "]]":
                    return Simple(tuple(words), (), line, test=True)
                words.append(token)
            elif token != "\n":
                words.append(Word(token, self.line))


def _spelling(token: Union[str, Word, None]) -> str:
    return token.raw if isinstance(token, Word) else token or ""
