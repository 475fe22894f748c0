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

import fnmatch
import re
from contextlib import suppress
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from ...errors import InputError
from ...intake.word_lists import words
from ...model.record import NamedTuple
from .expansion import MARK, Expander, Variable, Word, assigned_names, unclear_word
from .syntax import Node, Raw, Unreadable, parse

__all__ = ["MARK", "MAX_SCRIPT_BYTES", "Command", "Remark", "Script", "Word", "read_script"]

MAX_SCRIPT_BYTES = 1 << 20
_MAX_CALLS = 20
_MAX_ROUNDS = 100

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
_HARMLESS = frozenset(
    words(": true cd pushd popd echo mkdir ulimit wait trap shopt alias umask hash")
)
_COMPARISONS: Dict[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "-eq": lambda a, b: int(a) == int(b), "-ne": lambda a, b: int(a) != int(b),
    "-lt": lambda a, b: int(a) < int(b), "-le": lambda a, b: int(a) <= int(b),
    "-gt": lambda a, b: int(a) > int(b), "-ge": lambda a, b: int(a) >= int(b),
}  # fmt: skip


class Command(NamedTuple):
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
    commands: Tuple[Command, ...]
    remarks: Tuple[Remark, ...]


def read_script(
    text: str,
    name: str,
    *,
    environ: Optional[Mapping[str, str]] = None,
    arguments: Sequence[str] = (),
    why: str = "",
) -> Script:
    """Read a script. ``environ`` None: nothing is known of the environment it starts in.

    ``why``: the text holds :data:`MARK` for what is unclear in it, and this is the reason.
    Raises :class:`InputError`.
    """
    if len(text) > MAX_SCRIPT_BYTES:
        raise InputError(
            f"{name}: expected a launch script, found {len(text)} characters; "
            f"at most {MAX_SCRIPT_BYTES} are read"
        )
    if "\x00" in text:
        raise InputError(f"{name}: expected a launch script, found binary data")
    reader = _Reader(environ, why)
    reader.variables["@"] = Variable(tuple(Word(one, 0) for one in arguments), array=True)
    text = text if why else text.replace(MARK, "\ufffd")
    try:
        reader.run_all(parse(text + "\n"))  # a backslash that ends the file continues nothing
    except Unreadable as problem:
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
        self.commands: List[Command] = []
        self.remarks: List[Remark] = []
        self.calls = 0
        self.leaves = False  # a way that may be taken left the function or loop
        self.allexport = False
        self.local: Dict[str, Optional[Variable]] = {}  # what a call's local names were before
        self.exported: Optional[Dict[str, Word]] = None

    def assign(self, name: str, variable: Optional[Variable]) -> None:
        """Set a variable, or unset it with None."""
        self.exported = None
        super().assign(name, variable)

    def run_all(self, nodes: Sequence[Node]) -> Optional[bool]:
        """Follow commands in order."""
        status: Optional[bool] = True
        for node in nodes:
            if node.joint and status is None:
                self.either([(node,)])
            elif not node.joint or status is (node.joint == "&&"):
                status = self.run(node)
                status = not status if node.negated and status is not None else status
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
        count = 0
        while count < len(node.words) and _ASSIGNMENT.match(node.words[count].text):
            count += 1
        assignments, rest = node.words[:count], node.words[count:]
        if not rest:
            for raw in assignments:
                self._assign(raw)
            return None if any(re.search(r"\$\(|`", raw.text) for raw in assignments) else True
        if rest[0].text in _DECLARES:
            self._declare(rest[0].text, rest[1:])
            return True
        fields = [word for raw in rest for word in self._words(raw)]
        if not fields:
            return True
        name = fields[0].text
        if name in self.functions:
            return self._call(self.functions[name], fields[1:])
        if name in _HARMLESS:
            if name in ("cd", "pushd", "popd"):
                self.assign("PWD", Variable((unclear_word("$PWD follows cd", node.line),)))
            return True
        if name in _FILLS:
            self._fill(fields, self._documents(node))
            return None
        builtin = {
            "set": self._set, "shift": self._shift, "eval": self._eval, "source": self._source,
            ".": self._source, "[": self._bracket, "test": self._bracket,
        }.get(name)  # fmt: skip
        if builtin is not None:
            return builtin(fields)
        if name == "false":
            return False
        if name in ("exit", "return", "break", "continue"):
            raise _Left(name)
        if name == "exec":
            if len(fields) == 1:  # redirections only
                return True
            self._started(node, fields[1:], ())
            raise _Left("exit")
        self._started(node, fields, assignments)
        return None

    def _words(self, raw: Raw) -> List[Word]:
        if raw.elements is not None:
            return [Word(raw.text + "(", raw.line, raw.text)]
        return self.words(raw.text, raw.line)

    def _started(self, node: Node, fields: List[Word], assignments: Sequence[Raw]) -> None:
        if self.exported is None:
            self.spend(len(self.variables), node.line)
            self.exported = {
                name: variable.words[0]
                for name, variable in self.variables.items()
                if variable.exported and variable.words
            }
        exported = dict(self.exported) if assignments else self.exported
        for raw in assignments:
            match = _ASSIGNMENT.match(raw.text)
            if match and raw.elements is None:
                value = self.text(raw.text[match.end() :], raw.line)
                exported[match.group(1)] = value._replace(line=raw.line, raw=raw.text)
        if _SETTING.match(fields[0].text):
            self.remarks.append(Remark("lost-line", fields[0].line, fields[0].text))
        self.spend(len(fields), node.line)
        documents = tuple(
            one for one in self._documents(node) if one[0] and MARK not in "".join(one)
        )
        self.commands.append(Command(tuple(fields), exported, documents))

    def _documents(self, node: Node) -> List[Tuple[str, str]]:
        found = []
        for file, rows, quoted in node.documents:
            text = "".join(rows)
            with suppress(Unreadable):  # which bash would report, and go on
                text = text if quoted else self.text(text, node.line, document=True).text
                found.append((self.text(file, node.line).text, text))
        return found

    def _define(self, node: Node) -> Optional[bool]:
        known = self.functions.get(node.name)
        if known is not None and self.frames and known != node:
            node = node._replace(parts=(*known.parts, *node.parts))
        self.functions[node.name] = node
        return True

    def _call(self, function: Node, arguments: Sequence[Word]) -> Optional[bool]:
        if self.calls >= _MAX_CALLS:
            raise Unreadable(function.line, f"functions call each other over {_MAX_CALLS} deep")
        before = self.variables["@"], self.local, self.leaves
        self.assign("@", Variable(tuple(arguments), array=True))
        self.calls, self.local, self.leaves = self.calls + 1, {}, False
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
            self.calls -= 1
            if self.leaves:
                self._forget(
                    [function], f"{function.name} may return before it sets it", keeping=False
                )
            for name, variable in self.local.items():
                self.assign(name, variable)
            self.assign("@", before[0])
            _, self.local, self.leaves = before
        return status

    # Assignments.

    def _assign(self, raw: Raw, *, exported: bool = False) -> None:
        match = _ASSIGNMENT.match(raw.text)
        if match is None:
            return
        name, index, plus = match.groups()
        old = self.lookup(name)
        exported = exported or self.allexport or (old is not None and old.exported)
        earlier = old.words if old is not None else ()
        if raw.elements is not None:
            found = [word for one in raw.elements for word in self._words(one)]
            if any(re.match(r"\[[^\]]+\]=", one.text) for one in raw.elements):
                found = [unclear_word(f"{name} has indices of its own", raw.line)]
            value = (*earlier, *found) if plus else tuple(found)
            self.spend(len(value), raw.line)
            self.assign(name, Variable(value, True, exported))
            return
        word = self.text(raw.text[match.end() :], raw.line)
        word = word._replace(line=raw.line, raw=raw.text)
        if index is not None:
            word = unclear_word(f"{name}{index} is assigned alone", raw.line)
            self.assign(name, Variable((word,), True, exported))
            return
        if plus and earlier:
            text = earlier[0].text + word.text
            self.spend(len(text), raw.line)
            why = word.why if earlier[0].known else earlier[0].why
            if len(text) > 1 << 16:
                text, why = MARK, "it grows too long"
            word = word._replace(text=text, why=why)
        array = old is not None and old.array
        self.assign(name, Variable((word, *(earlier[1:] if array else ())), array, exported))

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
        if self.calls and command in ("local", "declare", "typeset") and "g" not in options:
            self.local.setdefault(name, self.variables.get(name))
            if command == "local" and not _ASSIGNMENT.match(given.text):
                self.assign(name, Variable(()))
        exported = command == "export" or "x" in options
        if isinstance(given, Raw):
            self._assign(given, exported=exported)
        elif "=" in given.text:  # the name came out of an expansion
            value = given._replace(text=given.text.partition("=")[2])
            self.assign(name, Variable((value,), False, exported))
        elif exported and name in self.variables:
            self.assign(name, self.variables[name]._replace(exported=True))
        if set(options) & set("iulnA"):
            why = f"{command} {options} {name} changes what is assigned"
            self.assign(name, Variable((unclear_word(why, given.line),)))

    def _forget(self, nodes: Sequence[Node], why: str, *, keeping: bool) -> None:
        """Make unclear what commands may assign; ``keeping`` what an array has, which is only added
        to.
        """
        line = nodes[0].line if nodes else 0
        names: Dict[str, bool] = {}
        for name, plus in self._assigned(nodes, set()):
            names[name] = names.get(name, True) and plus
        for name, plus in names.items():
            old = self.variables.get(name)
            kept = old.words if keeping and plus and old is not None and old.array else ()
            if not (kept and kept[-1].text == MARK):
                kept = (*kept, unclear_word(f"${name} is assigned where {why}", line))
            array, exported = (old.array, old.exported) if old is not None else (False, False)
            self.assign(name, Variable(kept, array or name == "@", exported))

    def _assigned(self, nodes: Sequence[Node], called: Set[str]) -> Iterator[Tuple[str, bool]]:
        """The names that commands may assign, and whether an array is only added to."""
        for node in nodes:
            self.spend(1 + len(node.words), node.line)
            first = node.words[0].text if node.kind == "simple" and node.words else ""
            if first in ("eval", "source", "."):
                yield from ((name, False) for name in list(self.variables) if name != "@")
            if first in ("shift", "set"):
                yield "@", False
            if first in self.functions and first not in called:
                called.add(first)
                yield from self._assigned([self.functions[first]], called)
            if node.kind == "for":
                yield node.name, False
            for raw in node.words:
                match = _ASSIGNMENT.match(raw.text)
                if match:
                    yield match.group(1), bool(match.group(3)) and raw.elements is not None
                elif first in _FILLS or first in _DECLARES:
                    yield from ((name, False) for name in re.findall(r"[A-Za-z_]\w*", raw.text))
                if "$" in raw.text or node.kind == "((":
                    yield from ((name, False) for name in _DEFAULT.findall(raw.text))
                    yield from ((name, False) for name in assigned_names(raw.text))
            for condition, body in node.parts:
                yield from self._assigned(condition, called)
                yield from self._assigned(body, called)

    def _fill(self, fields: Sequence[Word], documents: Sequence[Tuple[str, str]]) -> None:
        command, texts = fields[0].text, [word.text for word in fields]
        if documents and "-d" in texts and _IDENTIFIER.match(texts[-1]):
            text = documents[0][1].strip()  # read -r -d '' NAME <<EOF
            why = f"the document at line {fields[0].line} is unclear in part"
            self.assign(texts[-1], Variable((Word(text, fields[0].line + 1, "", why),)))
            return
        for name in re.findall(r"[A-Za-z_]\w*", " ".join(texts[1:])):
            if command == "unset" and name in texts:
                self.assign(name, None)
            elif command != "printf" or texts[1] == "-v":
                why = f"{command} gives {name} its value when the script runs"
                self.assign(name, Variable((unclear_word(why, fields[0].line),)))

    # Builtins.

    def _set(self, fields: Sequence[Word]) -> Optional[bool]:
        texts = [word.text for word in fields[1:]]
        if "-a" in texts or "allexport" in texts:
            self.allexport = texts[0] != "+o"
        elif "+a" in texts:
            self.allexport = False
        start = texts.index("--") + 2 if "--" in texts else 1
        if start == 2 or (texts and texts[0][:1] not in "-+"):
            self.assign("@", Variable(tuple(fields[start:]), array=True))
        return True

    def _shift(self, fields: Sequence[Word]) -> Optional[bool]:
        count = fields[1].text if len(fields) > 1 else "1"
        arguments = self.variables["@"].words
        known = count.isdigit() and all(word.known for word in arguments)
        rest = arguments[int(count) :] if known else (unclear_word("arguments are shifted", 0),)
        if not known or int(count) <= len(arguments):
            self.assign("@", Variable(rest, array=True))
        return True

    def _loosen(self, why: str, line: int) -> None:
        """Any variable may have another value from here on."""
        self.loose = why
        for name in list(self.variables):
            if name != "@":
                self.assign(name, Variable((unclear_word(why, line),)))

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
        if self.calls >= _MAX_CALLS:
            return None
        self.calls += 1
        try:
            return self.run_all(parse(text, fields[0].line))
        except Unreadable:
            return None  # with what is unclear in it, it may be no command
        finally:
            self.calls -= 1
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

    def _way(self, nodes: Sequence[Node]) -> Tuple[Dict[str, Optional[Variable]], str]:
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
        """Follow several ways, of which one is taken (or none, unless ``complete``), and join what
        they leave.
        """
        results: List[Dict[str, Optional[Variable]]] = [] if complete else [{}]
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
        if len(ways) == 1:
            return self.run_all(ways[0])
        self.either(ways, complete=True)
        return None

    def _case(self, node: Node) -> Optional[bool]:
        subject = self.text(node.words[0].text, node.line) if node.words else Word("", 0)
        ways: List[Sequence[Node]] = []
        for (patterns,), body in node.parts:
            answers = [self._matches(subject, raw.text) for raw in patterns.words]
            answer = True if True in answers else None if None in answers else False
            answer = None if node.name else answer
            if answer is not False:
                ways.append(body)
            if answer:
                break
        else:
            ways.append(())
        if len(ways) == 1:
            return self.run_all(ways[0])
        self.either(ways, complete=True)
        return None

    def _matches(self, subject: Word, pattern: str) -> Optional[bool]:
        if pattern == "*":
            return True
        text = self.text(pattern, subject.line)
        if not (subject.known and text.known) or re.search(r"[\[\\(]", pattern):
            return None
        if re.search(r"[*?]", text.text) and re.search(r"['\"$]", pattern):
            return None
        return fnmatch.fnmatchcase(subject.text, text.text)

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
            self.assign(node.name, Variable((values[0] if only else unclear_word(why, node.line),)))
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


def _over_arguments(condition: Sequence[Node]) -> bool:
    """Whether a loop's condition looks at the script's arguments."""
    return any(_ARGUMENT.search(raw.text) for node in condition for raw in node.words)


def _joined(name: str, results: Sequence[Optional[Variable]]) -> Optional[Variable]:
    """What is left of a variable that several ways leave."""
    present = [variable for variable in results if variable is not None]
    if not present:
        return None
    exported = len(present) == len(results) and all(variable.exported for variable in present)
    texts = {tuple(word.text for word in variable.words) for variable in present}
    if len(texts) == 1 and len(present) == len(results):
        return present[0]._replace(exported=exported)
    lines = sorted({word.line for variable in present for word in variable.words[-1:]})
    why = f"${name} depends on a condition (line {', '.join(map(str, lines))})"
    kept: List[Word] = []
    arrays = all(variable.array for variable in present) and len(present) == len(results)
    for words_here in zip(*(variable.words for variable in present)) if arrays else ():
        if len({word.text for word in words_here}) > 1:
            break
        kept.append(words_here[0])
    end = unclear_word(why, lines[-1] if lines else 0)
    return Variable((*kept, end), any(variable.array for variable in present), exported)


def _decided(texts: Sequence[str]) -> Optional[bool]:
    """The answer of ``test``, where its words are known; None where it is about files or
    unclear.
    """
    if len(texts) == 3 and texts[1] in _COMPARISONS:
        if MARK in texts[0] + texts[2]:
            return None
        try:
            return _COMPARISONS[texts[1]](texts[0], texts[2])
        except ValueError:
            return None
    for operators, absorbing in ((("||", "-o"), True), (("&&", "-a"), False)):
        for at, text in enumerate(texts[:-1]):
            if at and text in operators:
                answers = (_decided(texts[:at]), _decided(texts[at + 1 :]))
                if absorbing in answers:
                    return absorbing
                return None if None in answers else not absorbing
    if texts[:1] == ["!"]:
        answer = _decided(texts[1:])
        return None if answer is None else not answer
    if any(MARK in text for text in texts):
        return None
    if len(texts) == 2:
        return {"-n": texts[1] != "", "-z": texts[1] == ""}.get(texts[0])
    return bool(texts and texts[0]) if len(texts) < 2 else None
