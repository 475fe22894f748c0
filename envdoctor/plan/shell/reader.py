"""Launch scripts, read as bash would read them and never run: which commands would be started,
with which words and variables.

    script = read_script(text, "train.sh")
    script.commands[0].words      # every word with its line; what is unclear in one says why

Straight lines are followed exactly, as are functions where they are called, and conditions that
the script itself decides. What else stands under ``if``, ``case``, ``&&`` and ``||`` is followed
both ways, and what the ways leave different is unclear. A loop is followed once, and what it
assigns is unclear; a ``while`` over the script's arguments is followed as often as it runs.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import takewhile
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from ...errors import InputError
from ...intake.word_lists import words
from ...model.record import NamedTuple
from ...model.sizes import whole_number
from .expansion import MARK, MAX_TEXT, Expander, ShellVariable, Word, assigned_names, unclear_word
from .syntax import Node, Raw, UnreadableScript, parse

__all__ = ["MARK", "MAX_SCRIPT_BYTES", "Remark", "Script", "SimpleCommand", "Word", "read_script"]

MAX_SCRIPT_BYTES = 1 << 20
_MAX_DEPTH = 80
_MAX_ROUNDS = 100
_MAX_TEST = 40  # words of a condition

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?(\+?)=")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")
_SETTING = re.compile(r"[+~]{0,2}[a-z_]+(?:\.[A-Za-z_]\w*)+=|--?[A-Za-z][\w.-]+")
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):?=")
_ARGUMENT = re.compile(r"\$\{?[#1@*]")
#: What sets up a shell or an environment, and no variables of a training script.
_SETS_UP = re.compile(
    r"(?:^|/)(?:activate|conda\.sh|\.bashrc|\.(?:bash_)?profile|setvars\.sh)\Z|\$\((?:conda|mamba) "
)
_DECLARES = frozenset(words("export declare typeset local readonly"))
_FILLS = frozenset(words("read mapfile readarray getopts printf let unset"))
_LOCAL = frozenset(words("local declare typeset"))
_STATUS = {
    **dict.fromkeys(words(": true echo mkdir ulimit wait trap shopt alias umask hash"), True),
    "false": False,
}
_COMPARISONS: Dict[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "-eq": lambda a, b: int(a) == int(b), "-ne": lambda a, b: int(a) != int(b),
    "-lt": lambda a, b: int(a) < int(b), "-le": lambda a, b: int(a) <= int(b),
    "-gt": lambda a, b: int(a) > int(b), "-ge": lambda a, b: int(a) >= int(b),
}  # fmt: skip


class SimpleCommand(NamedTuple):
    """One command that the script would start, or may start.

    ``exported`` holds what its environment is known to have from the script.
    """

    words: Tuple[Word, ...]
    exported: Mapping[str, Word]
    documents: Tuple[Tuple[str, str], ...] = ()  # here-documents: file that it writes, text


class Remark(NamedTuple):
    """Something that bash itself would stumble over."""

    kind: str  # not-an-identifier, lost-line
    line: int
    text: str


class Script(NamedTuple):
    """What a script says."""

    name: str
    commands: Tuple[SimpleCommand, ...]
    remarks: Tuple[Remark, ...]


def read_script(
    text: str,
    name: str,
    *,
    environ: Optional[Mapping[str, str]] = None,
    arguments: Sequence[str] = (),
    line: int = 1,
    why: str = "",
) -> Script:
    """Read a script. ``environ`` None: nothing is known of the environment it starts in.

    ``line`` is that of the text's start. ``why``: the text holds :data:`MARK` for what is unclear
    in it, and this is the reason. Raises :class:`InputError`.
    """
    if len(text) > MAX_SCRIPT_BYTES:
        raise InputError(
            f"{name}: expected a launch script, found {len(text)} characters; "
            f"at most {MAX_SCRIPT_BYTES} are read"
        )
    if "\x00" in text:
        raise InputError(f"{name}: expected a launch script, found binary data")
    reader = _Reader(environ, why)
    reader.variables["@"] = ShellVariable(tuple(Word(one, 0) for one in arguments), array=True)
    text = text if why else text.replace(MARK, "\ufffd")
    try:
        reader.run_all(parse(text + "\n", line))  # a backslash that ends the file continues nothing
    except UnreadableScript as problem:
        raise InputError(f"{name}:{problem.line or 1}: bash cannot read this: {problem}") from None
    except _Left:
        pass
    return Script(name, tuple(reader.commands), tuple(reader.remarks))


class _Left(Exception):
    """``exit``, ``exec``, ``return``, ``break`` or ``continue``: what follows is not reached."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class _Reader(Expander):
    """Follows commands; the result of each is its status, None where it cannot be told."""

    def __init__(self, environ: Optional[Mapping[str, str]], why: str) -> None:
        super().__init__(environ, why)
        self.functions: Dict[str, Node] = {}
        self.commands: List[SimpleCommand] = []
        self.remarks: List[Remark] = []
        self.depth = 0
        self.leaves = False  # a way that may be taken left the function or loop
        self.local: Optional[Dict[str, Optional[ShellVariable]]] = None  # before a call
        self.exported: Optional[Dict[str, Word]] = None

    def assign(self, name: str, variable: Optional[ShellVariable]) -> None:
        """Set a variable, or unset it with None."""
        self.exported = None
        super().assign(name, variable)

    def run_all(self, nodes: Sequence[Node]) -> Optional[bool]:
        """Follow commands in order."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise UnreadableScript(
                nodes[0].line, f"commands and functions are over {_MAX_DEPTH} deep"
            )
        status: Optional[bool] = True
        try:
            for node in nodes:
                if node.joint and status is None:
                    self.either([(node,)])
                elif not node.joint or status is (node.joint == "&&"):
                    status = self.run(node)
                    status = _negated(status) if node.negated else status
        finally:
            self.depth -= 1
        return status

    def run(self, node: Node) -> Optional[bool]:
        """Follow one command."""
        self.spend(200, node.line)
        return {
            "simple": self._simple, "if": self._if, "case": self._case, "for": self._for,
            "while": self._while, "until": self._while, "function": self._define,
            "[[": self._test, "((": self._arithmetic, "{": self._group, "(": self._apart,
            "|": self._apart,
        }[node.kind](node)  # fmt: skip

    # Commands.

    def _simple(self, node: Node) -> Optional[bool]:
        assignments = tuple(takewhile(lambda raw: _ASSIGNMENT.match(raw.text), node.words))
        rest = node.words[len(assignments) :]
        if not rest:
            return self._assign_all(assignments)
        if rest[0].text in _DECLARES:
            self._declare(rest[0].text, rest[1:])
            return True
        fields = [word for raw in rest for word in self._words(raw)]
        name = fields[0].text if fields else ":"
        if name in self.functions:
            return self._call(self.functions[name], fields[1:])
        if name in _STATUS:
            return _STATUS[name]
        if name in _FILLS:
            self._fill(fields, self._documents(node))
            return None
        builtin = _BUILTINS.get(name)
        if builtin is not None:
            return builtin(self, fields)
        self._start(fields, assignments, self._documents(node))
        return None

    def _words(self, raw: Raw) -> List[Word]:
        if raw.elements is not None:
            return [Word(raw.text + "(", raw.line, raw.text)]
        return self.words(raw.text, raw.line)

    def _start(
        self,
        fields: Sequence[Word],
        assignments: Sequence[Raw],
        documents: Sequence[Tuple[str, str]],
    ) -> None:
        exported = self._exported(fields[0].line)
        if assignments:
            exported = {**exported, **dict(self._assigned_before(assignments))}
        if _SETTING.match(fields[0].text):
            self.remarks.append(Remark("lost-line", fields[0].line, fields[0].text))
        self.spend(len(fields), fields[0].line)
        known = (one for one in documents if one[0] and MARK not in "".join(one))
        self.commands.append(SimpleCommand(tuple(fields), exported, tuple(known)))

    def _exported(self, line: int) -> Dict[str, Word]:
        """What the environment of a command is known to have."""
        if self.exported is None:
            self.spend(len(self.variables), line)
            self.exported = {
                name: variable.words[0]
                for name, variable in self.variables.items()
                if variable.exported and variable.words
            }
        return self.exported

    def _assigned_before(self, assignments: Sequence[Raw]) -> Iterator[Tuple[str, Word]]:
        """What stands before a command, for its environment alone."""
        for raw in assignments:
            name, _, value = raw.text.partition("=")
            if raw.elements is None and name.isidentifier():
                word = self.text(value, raw.line)
                yield name, word._replace(line=raw.line, raw=raw.text)

    def _documents(self, node: Node) -> List[Tuple[str, str]]:
        documents = []
        for file, rows, quoted in node.documents:
            text = "".join(rows)
            with suppress(UnreadableScript):  # which bash would report, and go on
                text = text if quoted else self.text(text, node.line, document=True).text
                documents.append((self.text(file, node.line).text, text))
        return documents

    def _define(self, node: Node) -> Optional[bool]:
        known = self.functions.get(node.name)
        if known is not None and self.frames and known != node:
            node = node._replace(parts=(*known.parts, *node.parts))
        self.functions[node.name] = node
        return True

    def _call(self, function: Node, arguments: Sequence[Word]) -> Optional[bool]:
        before = self.variables["@"], self.local, self.leaves
        self.assign("@", ShellVariable(tuple(arguments), array=True))
        self.local, self.leaves = {}, False
        status = None
        try:
            if len(function.parts) == 1:
                status = self.run_all(function.parts[0][1])
            else:  # which of its definitions counts depends on a condition
                self.either([body for _, body in function.parts], complete=True)
        except _Left as left:
            if left.kind == "exit":
                raise
        finally:
            if self.leaves:
                why = f"{function.name} may return before it sets it"
                self._forget([function], why, keeping=False)
            for name, variable in self.local.items():
                self.assign(name, variable)
            self.assign("@", before[0])
            _, self.local, self.leaves = before
        return status

    # Assignments.

    def _assign_all(self, raws: Sequence[Raw]) -> Optional[bool]:
        """Follow a command that only assigns; its status is that of the commands in its values."""
        for raw in raws:
            self._assign(raw)
        return None if any(re.search(r"\$\(|`", raw.text) for raw in raws) else True

    def _assign(self, raw: Raw, *, exported: bool = False) -> None:
        match = _ASSIGNMENT.match(raw.text)
        if match is None:
            return
        name = match.group(1)
        old = self.lookup(name)
        value, array = self._assigned_value(raw, match, old or ShellVariable(()))
        self.spend(sum(len(word.text) + 1 for word in value), raw.line)
        exported = exported or (old is not None and old.exported)
        self.assign(name, ShellVariable(value, array, exported))

    def _assigned_value(
        self, raw: Raw, match: re.Match[str], old: ShellVariable
    ) -> Tuple[Tuple[Word, ...], bool]:
        """Return the words that an assignment gives, and whether they are an array's."""
        name, index, plus = match.groups()
        if raw.elements is not None:
            return (*(old.words if plus else ()), *self._elements(raw)), True
        if index is not None:
            return (unclear_word(f"{name}{index} is assigned alone", raw.line),), True
        word = self.text(raw.text[match.end() :], raw.line)
        word = _sum(old.words[0], word) if plus and old.words else word
        word = word._replace(line=raw.line, raw=raw.text)
        return (word, *(old.words[1:] if old.array else ())), old.array

    def _elements(self, raw: Raw) -> Tuple[Word, ...]:
        elements = raw.elements or ()
        if any(re.match(r"\[[^\]]+\]=", element.text) for element in elements):
            return (unclear_word(f"{raw.text} has indices of its own", raw.line),)
        return tuple(word for element in elements for word in self._words(element))

    def _declare(self, command: str, raws: Sequence[Raw]) -> None:
        options = ""
        for raw in raws:
            match = _ASSIGNMENT.match(raw.text)
            fields = [Word(raw.text, raw.line)] if match else self._words(raw)
            for word in fields:
                name = match.group(1) if match else word.text.partition("=")[0]
                if name[:1] in "-+" and name:
                    options += name
                elif not _IDENTIFIER.match(name):
                    if word.known:
                        self.remarks.append(
                            Remark("not-an-identifier", word.line, f"{command} {word.text}")
                        )
                else:
                    self._declare_name(command, name, options, raw if match else word)

    def _declare_name(self, command: str, name: str, options: str, given: Union[Raw, Word]) -> None:
        if self.local is not None and command in _LOCAL and "g" not in options:
            self.local.setdefault(name, self.variables.get(name))
            self.assign(name, ShellVariable(()))
        exported = command == "export" or "x" in options
        if isinstance(given, Raw):
            self._assign(given, exported=exported)
        elif "=" in given.text:  # the name came out of an expansion
            value = given._replace(text=given.text.partition("=")[2])
            self.assign(name, ShellVariable((value,), False, exported))
        elif exported and name in self.variables:
            self.assign(name, self.variables[name]._replace(exported=True))
        if set(options) & set("iulnA"):
            why = f"{command} {options} {name} changes what is assigned"
            self.assign(name, ShellVariable((unclear_word(why, given.line),)))

    def _forget(self, nodes: Sequence[Node], why: str, *, keeping: bool) -> None:
        """Make unclear what commands may assign; ``keeping`` what an array already has."""
        names: Dict[str, bool] = {}
        for name, adds in self._assigned(nodes):
            names[name] = names.get(name, True) and adds
        for name, adds in names.items():
            old = self.variables.get(name, ShellVariable((), array=name == "@"))
            kept = old.words if keeping and adds and old.array else ()
            if not kept or kept[-1].text != MARK:
                why_here = f"${name} is assigned where {why}"
                kept = (*kept, unclear_word(why_here, nodes[0].line))
            self.assign(name, old._replace(words=kept))

    def _assigned(self, nodes: Sequence[Node]) -> Iterator[Tuple[str, bool]]:
        """The names that commands may assign, and whether an array is only added to."""
        for node in self._reached(nodes):
            first = _first_word(node)
            if first in ("shift", "set"):
                yield "@", False
            if first in ("eval", "source", "."):
                yield from ((name, False) for name in list(self.variables) if name != "@")
            if node.kind == "for":
                yield node.name, False
            for raw in node.words:
                yield from _assigned_by(raw, names=first in _FILLS or first in _DECLARES)

    def _reached(self, nodes: Sequence[Node]) -> Iterator[Node]:
        """Commands with all that lie in them, and in the functions that they call."""
        pending = list(nodes)
        called: Set[str] = set()
        while pending:
            node = pending.pop()
            self.spend(1 + len(node.words), node.line)
            for condition, body in node.parts:
                pending += [*condition, *body]
            name = _first_word(node)
            if name in self.functions and name not in called:
                called.add(name)
                pending.append(self.functions[name])
            yield node

    def _fill(self, fields: Sequence[Word], documents: Sequence[Tuple[str, str]]) -> None:
        command, texts = fields[0].text, [word.text for word in fields]
        if documents and "-d" in texts and _IDENTIFIER.match(texts[-1]):
            text = documents[0][1].strip()  # read -r -d '' NAME <<EOF
            why = f"the document at line {fields[0].line} is unclear in part"
            self.assign(texts[-1], ShellVariable((Word(text, fields[0].line + 1, "", why),)))
            return
        for name in re.findall(r"[A-Za-z_]\w*", " ".join(texts[1:])):
            if command == "unset" and name in texts:
                self.assign(name, None)
            elif command != "printf" or texts[1] == "-v":
                why = f"{command} gives {name} its value when the script runs"
                self.assign(name, ShellVariable((unclear_word(why, fields[0].line),)))

    # Builtins.

    def _leave(self, fields: Sequence[Word]) -> Optional[bool]:
        raise _Left(fields[0].text)

    def _set(self, fields: Sequence[Word]) -> Optional[bool]:
        texts = [word.text for word in fields]
        options = texts[1 : texts.index("--")] if "--" in texts else texts[1:]
        if "--" in texts:
            self.assign("@", ShellVariable(tuple(fields[texts.index("--") + 1 :]), array=True))
        elif options and options[0][:1] not in ("-", "+"):
            self.assign("@", ShellVariable(tuple(fields[1:]), array=True))
        return True

    def _exec(self, fields: Sequence[Word]) -> Optional[bool]:
        if len(fields) > 1:  # else it is redirections only
            self._start(fields[1:], (), ())
            raise _Left("exit")
        return True

    def _cd(self, fields: Sequence[Word]) -> Optional[bool]:
        self.assign("PWD", ShellVariable((unclear_word("$PWD follows cd", fields[0].line),)))
        return True

    def _shift(self, fields: Sequence[Word]) -> Optional[bool]:
        count = fields[1].text if len(fields) > 1 else "1"
        arguments = self.variables["@"].words
        number = whole_number(count) if all(word.known for word in arguments) else None
        unclear = (unclear_word("arguments are shifted", 0),)
        rest = unclear if number is None else arguments[number:]
        if number is None or number <= len(arguments):
            self.assign("@", ShellVariable(rest, array=True))
        return True

    def _loosen(self, why: str, line: int) -> None:
        """Any variable may have another value from here on."""
        self.loose = why
        for name in list(self.variables):
            if name != "@":
                self.assign(name, ShellVariable((unclear_word(why, line),)))

    def _source(self, fields: Sequence[Word]) -> Optional[bool]:
        name = fields[1].readable if len(fields) > 1 else "a file"
        if not _SETS_UP.search(name):
            self._loosen(f"{name} may set it", fields[0].line)
        return True

    def _eval(self, fields: Sequence[Word]) -> Optional[bool]:
        text = " ".join(word.text for word in fields[1:])
        saved = self.why
        self.why = next((word.why for word in fields if not word.known), saved)
        if MARK in text and not _SETS_UP.search(self.why):
            self._loosen(f"{fields[0].readable} may set it", fields[0].line)
        try:
            return self.run_all(parse(text, fields[0].line))
        except UnreadableScript:
            return None  # with what is unclear in it, it may be no command
        finally:
            self.why = saved

    def _bracket(self, fields: Sequence[Word]) -> Optional[bool]:
        texts = [word.text for word in fields[1:]]
        return _decided(texts[:-1] if fields[0].text == "[" else texts)

    def _test(self, node: Node) -> Optional[bool]:
        texts: List[str] = []
        for raw in node.words:
            text = self.text(raw.text, raw.line).text
            pattern = texts[-1:] in (["=="], ["="], ["!="]) and re.search(r"[*?\[(]", text)
            texts.append(MARK if pattern else text)
        return _decided(texts)

    def _arithmetic(self, node: Node) -> Optional[bool]:
        text = node.words[0].text
        match = re.fullmatch(r"\s*([^<>=!?:&|]+)([<>]=?|[=!]=)([^<>=!?:&|]+)", text)
        if match is None or assigned_names(text):
            value = self.calculate(text, node.line)
            return value.text != "0" if value.known else None
        operator = {"<": "-lt", "<=": "-le", ">": "-gt", ">=": "-ge", "==": "-eq", "!=": "-ne"}
        left, right = (self.calculate(match.group(side), node.line).text for side in (1, 3))
        return _decided([left, operator[match.group(2)], right])

    # What joins commands.

    def _group(self, node: Node) -> Optional[bool]:
        return self.run_all(node.parts[0][1])

    def _apart(self, node: Node) -> Optional[bool]:
        """Subshells, members of a pipe, what runs in the background: what they assign is lost."""
        for _, body in node.parts:
            self._way(body)
        return None

    def _way(self, nodes: Sequence[Node]) -> Tuple[Dict[str, Optional[ShellVariable]], str]:
        """Follow a way and take back what it did; return that, and how it left, if it did."""
        self.frames.append({})
        kind = ""
        try:
            self.run_all(nodes)
        except _Left as left:
            kind = left.kind
        finally:
            frame = self.frames.pop()
            after = {name: self.variables.get(name) for name in frame}
            for name, variable in frame.items():
                self.restore(name, variable)
            self.exported = None
        return after, kind

    def either(self, ways: Sequence[Sequence[Node]], *, complete: bool = False) -> None:
        """Follow several ways, of which one is taken (or none), and join what they leave."""
        results: List[Dict[str, Optional[ShellVariable]]] = [] if complete else [{}]
        kind = ""
        for nodes in ways:
            after, kind = self._way(nodes)
            if not kind:
                results.append(after)
            self.leaves = self.leaves or kind not in ("", "exit")
        if not results:
            raise _Left(kind)
        for name in {name: None for result in results for name in result}:
            now = self.variables.get(name)
            self.assign(name, _joined(name, [result.get(name, now) for result in results]))

    def _if(self, node: Node) -> Optional[bool]:
        ways: List[Sequence[Node]] = []
        for condition, body in node.parts:
            status = self.run_all(condition) if condition else True
            if status is not False:
                ways.append(body)
            if status is True:
                break
        else:
            ways.append(())
        return self._one_of(ways)

    def _case(self, node: Node) -> Optional[bool]:
        subject = self.text(node.words[0].text, node.line) if node.words else Word("", 0)
        ways: List[Sequence[Node]] = []
        for (patterns,), body in node.parts:
            answers = [self._matches(subject, raw.text) for raw in patterns.words]
            answer = True in answers and not node.name
            if answer or None in answers or node.name:
                ways.append(body)
            if answer:
                break
        else:
            ways.append(())
        return self._one_of(ways)

    def _one_of(self, ways: Sequence[Sequence[Node]]) -> Optional[bool]:
        if len(ways) == 1:
            return self.run_all(ways[0])
        self.either(ways, complete=True)
        return None

    def _matches(self, subject: Word, pattern: str) -> Optional[bool]:
        if pattern == "*":
            return True
        text = self.text(pattern, subject.line)
        if not (subject.known and text.known) or re.search(r"[*?\[\\(]", pattern + text.text):
            return None
        return subject.text == text.text

    def _while(self, node: Node) -> Optional[bool]:
        condition, body = node.parts[0]
        exactly = _over_arguments(condition)
        before, self.leaves = self.leaves, False
        for _ in range(_MAX_ROUNDS if exactly else 1):
            status = self.run_all(condition)
            if status is (node.kind == "until"):
                self.leaves = before
                return True
            if status is None or not exactly or self.leaves:
                break
            try:
                self.run_all(body)
            except _Left as left:
                if left.kind == "break":
                    return None
                if left.kind != "continue":
                    raise
        whole, self.leaves = not self.leaves, before
        self._loop(node, [(*condition, *body)], keeping=whole)
        return None

    def _for(self, node: Node) -> Optional[bool]:
        values = [word for raw in node.words for word in self._words(raw)]
        if not values:
            return True
        choices = ", ".join(word.readable for word in values[:6])
        if node.name != "(":
            why = f"${node.name} goes through {choices}"
            only = len(values) == 1 and values[0].known
            self.assign(
                node.name, ShellVariable((values[0] if only else unclear_word(why, node.line),))
            )
        self._loop(node, [node.parts[0][1]], keeping=True)
        return None

    def _loop(self, node: Node, ways: Sequence[Sequence[Node]], *, keeping: bool) -> None:
        """Follow what may run any number of times."""
        why = f"the loop at line {node.line} may or may not run"
        before = self.variables.get(node.name)
        self._forget([node], why, keeping=keeping)
        if node.kind == "for" and before is not None:
            self.assign(node.name, before)  # what it goes through
        self.either(ways)
        self._forget([node], why, keeping=True)


_BUILTINS: Dict[str, Callable[[_Reader, Sequence[Word]], Optional[bool]]] = {
    **dict.fromkeys(words("exit return break continue"), _Reader._leave),
    **dict.fromkeys(words("cd pushd popd"), _Reader._cd),
    **dict.fromkeys(words("source ."), _Reader._source),
    **dict.fromkeys(words("[ test"), _Reader._bracket),
    "set": _Reader._set,
    "shift": _Reader._shift,
    "eval": _Reader._eval,
    "exec": _Reader._exec,
}


def _first_word(node: Node) -> str:
    return node.words[0].text if node.kind == "simple" and node.words else ""


def _assigned_by(raw: Raw, *, names: bool) -> Iterator[Tuple[str, bool]]:
    """The names that a word may assign; ``names``: its command takes them as arguments."""
    match = _ASSIGNMENT.match(raw.text)
    if match:
        yield match.group(1), bool(match.group(3)) and raw.elements is not None
    elif names:
        yield from ((name, False) for name in re.findall(r"[A-Za-z_]\w*", raw.text))
    for name in (*_DEFAULT.findall(raw.text), *assigned_names(raw.text)):
        yield name, match is not None and name == match.group(1)


def _sum(first: Word, second: Word) -> Word:
    text = first.text + second.text
    if len(text) > MAX_TEXT:
        return unclear_word("it grows too long", second.line)
    return second._replace(text=text, why=second.why if first.known else first.why)


def _over_arguments(condition: Sequence[Node]) -> bool:
    """Whether a loop's condition looks at the script's arguments."""
    return any(_ARGUMENT.search(raw.text) for node in condition for raw in node.words)


def _joined(name: str, results: Sequence[Optional[ShellVariable]]) -> Optional[ShellVariable]:
    """What is left of a variable that several ways leave."""
    present = [variable for variable in results if variable is not None]
    if not present:
        return None
    arrays = [variable.array for variable in present]
    end = _depends_on_condition(name, present)
    if len(present) < len(results):
        return ShellVariable((end,), any(arrays))
    exported = all(variable.exported for variable in present)
    return ShellVariable(_kept(present, end, all(arrays)), any(arrays), exported)


def _kept(variables: Sequence[ShellVariable], end: Word, arrays: bool) -> Tuple[Word, ...]:
    """The words that several variables share, with ``end`` for what differs."""
    kept = _common([variable.words for variable in variables])
    if all(len(variable.words) == len(kept) for variable in variables):
        return kept
    return (*kept, end) if arrays else (end,)


def _depends_on_condition(name: str, variables: Sequence[ShellVariable]) -> Word:
    lines = sorted({word.line for variable in variables for word in variable.words[-1:]})
    why = f"${name} depends on a condition (line {', '.join(map(str, lines))})"
    return unclear_word(why, lines[-1] if lines else 0)


def _common(values: Sequence[Tuple[Word, ...]]) -> Tuple[Word, ...]:
    """The words with which all of several arrays begin."""
    count = 0
    for together in zip(*values):
        if any(word.text != together[0].text for word in together):
            break
        count += 1
    return values[0][:count]


def _decided(texts: Sequence[str]) -> Optional[bool]:
    """The answer of ``test``; None where it is about files, or a word is unclear."""
    if len(texts) == 3 and texts[1] in _COMPARISONS:
        return _compared(*texts)
    if len(texts) >= _MAX_TEST:
        return None
    for operators, absorbing in ((("||", "-o"), True), (("&&", "-a"), False)):
        at = next((at for at, text in enumerate(texts[:-1]) if at and text in operators), 0)
        if at:
            answers = (_decided(texts[:at]), _decided(texts[at + 1 :]))
            return _absorbed(answers, absorbing)
    if texts[:1] == ["!"]:
        return _negated(_decided(texts[1:]))
    return _tested_alone(texts)


def _negated(answer: Optional[bool]) -> Optional[bool]:
    return None if answer is None else not answer


def _absorbed(answers: Sequence[Optional[bool]], absorbing: bool) -> Optional[bool]:
    """The answer of ``||`` (which True absorbs) or ``&&`` (which False does)."""
    if absorbing in answers:
        return absorbing
    return None if None in answers else not absorbing


def _tested_alone(texts: Sequence[str]) -> Optional[bool]:
    """The answer of ``test`` for one text: ``-n`` and ``-z``, or whether it is not empty."""
    if MARK in "".join(texts) or len(texts) > 2:
        return None
    if len(texts) == 2:
        return {"-n": texts[1] != "", "-z": texts[1] == ""}.get(texts[0])
    return texts not in ([], [""])


def _compared(left: str, operator: str, right: str) -> Optional[bool]:
    try:
        return None if MARK in left + right else _COMPARISONS[operator](left, right)
    except ValueError:
        return None
