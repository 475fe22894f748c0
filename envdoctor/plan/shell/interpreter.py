"""Launch scripts, read as bash would read them and never run: which commands would be started,
with which words and variables.

    script = read_script(text, "train.sh")
    script.commands[0].words      # every word with its line; unclear pieces know why they are
    unclear

Straight lines are followed exactly. Of a condition that cannot be told both ways are followed, and
what they leave different becomes unclear; what a loop assigns is unclear after it. The result of a
command is never guessed.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ...errors import InputError
from ...intake.word_lists import words
from ...model.record import NamedTuple
from .conditions import decide
from .expansion import Element, Expander, Unclear, Variable, is_clear
from .syntax import parse
from .tree import (
    Arithmetic,
    Case,
    Chain,
    Function,
    If,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Simple,
    SyntaxProblem,
)
from .tree import Word as RawWord

__all__ = ["MAX_SCRIPT_BYTES", "Command", "Remark", "Script", "read_script"]

MAX_SCRIPT_BYTES = 1 << 20
_MAX_COMMANDS = 5000
_MAX_CALLS = 20
_MAX_STEPS = 50_000
_MAX_ROUNDS = 300

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?(\+?)=")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")
_DECLARES = frozenset(["export", "declare", "typeset", "local", "readonly"])
_TESTS = frozenset(
    [
        "[",
        "test",
        "grep",
        "egrep",
        "command",
        "which",
        "type",
        "pgrep",
        "diff",
        "cmp",
        "nvidia-smi",
        "hash",
    ]
)
_PRIVATE = re.compile("[\ue000-\uf8ff]")


class Command(NamedTuple):
    """One command that the script would start.

    ``exported`` holds what its environment is known to have from the script.
    """

    words: Tuple[Element, ...]
    line: int
    exported: Mapping[str, Element]
    conditional: bool  # whether it runs cannot be told
    documents: Tuple[
        Tuple[str, str], ...
    ] = ()  # here-documents: the file that the output goes to ("" for none), text


class Remark(NamedTuple):
    """Something that bash itself would stumble over."""

    kind: str  # not-an-identifier, lost-line
    line: int
    text: str


class Script(NamedTuple):
    """What a script says."""

    name: str
    commands: Tuple[Command, ...]
    variables: Mapping[str, Variable]  # at the end
    remarks: Tuple[Remark, ...]
    unclear: Unclear


def read_script(
    text: str,
    name: str,
    *,
    environ: Optional[Mapping[str, str]] = None,
    arguments: Sequence[str] = (),
    unclear: Optional[Unclear] = None,
) -> Script:
    """Read a script. ``environ`` None: nothing is known of the environment it starts in.

    Raises :class:`InputError`.
    """
    if len(text) > MAX_SCRIPT_BYTES:
        raise InputError(
            f"{name}: expected a launch script, found {len(text)} characters; "
            f"at most {MAX_SCRIPT_BYTES} are read"
        )
    if "\x00" in text:
        raise InputError(f"{name}: expected a launch script, found binary data")
    runner = _Runner(
        unclear or Unclear(), environ, [Element(argument, 0) for argument in arguments]
    )
    try:
        runner.run_all(parse(_PRIVATE.sub("\ufffd", text)))
    except SyntaxProblem as problem:
        raise InputError(f"{name}:{problem.line or 1}: bash cannot read this: {problem}") from None
    except RecursionError:
        raise InputError(
            f"{name}: commands or brackets are nested too deep to be a launch script"
        ) from None
    except _Exit:
        pass
    return Script(
        name, tuple(runner.commands), runner.variables, tuple(runner.remarks), runner.unclear
    )


class _Exit(Exception):
    """``exit``, ``exec`` or ``return``: what follows is not reached."""


class _Runner:
    def __init__(
        self, unclear: Unclear, environ: Optional[Mapping[str, str]], arguments: List[Element]
    ) -> None:
        self.unclear = unclear
        self.variables: Dict[str, Variable] = {}
        self.expander = Expander(unclear, self.variables, environ, arguments)
        self.functions: Dict[str, Function] = {}
        self.commands: List[Command] = []
        self.remarks: List[Remark] = []
        self._conditional = 0
        self._allexport = False
        self._calls = 0
        self._steps = 0
        self._locals: List[
            Dict[str, Optional[Variable]]
        ] = []  # what each call's local names were before

    def run_all(self, nodes: Sequence[Node]) -> Optional[bool]:
        """Follow commands in order; the result is the last one's status, None where it cannot
        be told.
        """
        status: Optional[bool] = True
        for node in nodes:
            status = self.run(node)
        return status

    def run(self, node: Node) -> Optional[bool]:
        """Follow one command."""
        self._steps += 1
        if self._steps > _MAX_STEPS or len(self.commands) > _MAX_COMMANDS:
            raise SyntaxProblem(0, f"the script runs more than {_MAX_STEPS} commands")
        if isinstance(node, Simple):
            return self._test(node) if node.test else self._simple(node)
        if isinstance(node, Pipeline):
            return self._pipeline(node)
        if isinstance(node, Chain):
            return self._chain(node)
        if isinstance(node, If):
            return self._if(node)
        if isinstance(node, Loop):
            return self._loop(node)
        if isinstance(node, Case):
            return self._case(node)
        if isinstance(node, Function):
            self.functions[node.name] = node
            return True
        if isinstance(node, Arithmetic):
            return self._arithmetic(node)
        if node.subshell:
            saved = dict(self.variables)
            try:
                return self.run_all(node.body)
            except _Exit:
                return None
            finally:
                self._restore(saved)
        return self.run_all(node.body)

    # Commands.

    def _simple(self, node: Simple) -> Optional[bool]:
        words = list(node.words)
        assignments: List[RawWord] = []
        while words and (words[0].elements is not None or _ASSIGNMENT.match(words[0].raw)):
            assignments.append(words.pop(0))
        if not words:
            for word in assignments:
                self._assign(word)
            return True
        name = words[0].raw.replace("\\", "") if words[0].raw in ("\\cd",) else words[0].raw
        if name in _DECLARES:
            for word in words[1:]:
                self._declare(name, word)
            return True
        fields = [element for word in words for element in self._fields(word)]
        if not fields:
            return True
        if fields[0].text == "read" and self._read_document(node, fields):
            return None
        builtin = getattr(self, f"_builtin_{_BUILTINS.get(fields[0].text, '')}", None)
        if builtin is not None:
            result: Optional[bool] = builtin(fields)
            return result
        if fields[0].text in self.functions and is_clear(fields[0].text):
            return self._call(self.functions[fields[0].text], fields[1:])
        self._started(node, fields, assignments)
        return None

    def _read_document(self, node: Simple, fields: List[Element]) -> bool:
        """``read -r -d '' NAME <<EOF``: the variable holds the document."""
        documents = self._documents(node.redirects, node.line)
        if (
            not documents
            or "-d" not in [field.text for field in fields]
            or not _IDENTIFIER.match(fields[-1].text)
        ):
            return False
        self.variables[fields[-1].text] = Variable(
            (Element(documents[0][1].strip(), node.line + 1),)
        )
        return True

    def _fields(self, word: RawWord) -> List[Element]:
        if word.elements is not None:
            return [Element(word.raw + "(", word.line, word.raw)]
        return self.expander.words(word.raw, word.line)

    def _started(self, node: Simple, fields: List[Element], assignments: Sequence[RawWord]) -> None:
        exported = {
            name: variable.elements[0]
            for name, variable in self.variables.items()
            if variable.exported and variable.elements
        }
        for word in assignments:
            found = _ASSIGNMENT.match(word.raw)
            if found and word.elements is None:
                exported[found.group(1)] = Element(
                    self.expander.text(word.raw[found.end() :], word.line), word.line, word.raw
                )
        if re.match(r"[+~]{0,2}[a-z_]+(?:\.[A-Za-z_]\w*)+=", fields[0].text) or re.match(
            r"--?[A-Za-z][\w.-]+", fields[0].text
        ):
            self.remarks.append(Remark("lost-line", fields[0].line, fields[0].text))
        documents = tuple(self._documents(node.redirects, node.line))
        self.commands.append(
            Command(tuple(fields), node.line, exported, self._conditional > 0, documents)
        )

    def _documents(self, redirects: Sequence[Redirect], line: int) -> List[Tuple[str, str]]:
        target = next(
            (
                self.expander.text(one.target.raw, line)
                for one in redirects
                if one.operator in (">", ">|", "&>")
            ),
            "",
        )
        return [
            (target, one.body if one.literal else self.expander.document(one.body, line))
            for one in redirects
            if one.operator in ("<<", "<<-")
        ]

    def _call(self, function: Function, arguments: List[Element]) -> Optional[bool]:
        if self._calls >= _MAX_CALLS:
            raise SyntaxProblem(0, f"functions call each other more than {_MAX_CALLS} deep")
        saved, self.expander.arguments = self.expander.arguments, arguments
        self._calls += 1
        self._locals.append({})
        try:
            return self.run_all(function.body)
        except _Exit as leaving:
            if leaving.args:
                return None
            raise
        finally:
            self._calls -= 1
            self.expander.arguments = saved
            for name, before in self._locals.pop().items():
                if before is None:
                    self.variables.pop(name, None)
                else:
                    self.variables[name] = before

    # Assignments.

    def _assign(self, word: RawWord, *, exported: bool = False) -> None:
        found = _ASSIGNMENT.match(word.raw)
        if found is None:
            return
        name, index, plus = found.groups()
        old = self.variables.get(name)
        exported = exported or (old is not None and old.exported) or self._allexport
        if word.elements is not None:
            elements = [
                element
                for one in word.elements
                for element in self.expander.words(one.raw, one.line)
            ]
            if any(
                re.match(r"\[[^\]]+\]=", one.raw) for one in word.elements
            ):  # an associative array, or with holes
                elements = [Element(self.unclear.mark(f"{name} has indices of its own"), word.line)]
            self.variables[name] = Variable(
                ((*old.elements, *elements) if plus and old else tuple(elements)), True, exported
            )
            return
        raw = word.raw[found.end() :]
        text = self.expander.text(raw, word.line)
        element = Element(text, word.line, word.raw)
        if index is not None:
            self._assign_index(name, index, element, bool(plus))
        elif plus and old is not None and old.elements:
            first = old.elements[0]
            joined = Element(first.text + text, word.line, word.raw)
            self.variables[name] = Variable((joined, *old.elements[1:]), old.array, exported)
        elif old is not None and old.array:
            self.variables[name] = Variable((element, *old.elements[1:]), True, exported)
        else:
            before = (self.expander.environ or {}).get(name, "") if plus and old is None else ""
            self.variables[name] = Variable(
                (element._replace(text=before + text) if before else element,), False, exported
            )

    def _assign_index(self, name: str, index: str, element: Element, plus: bool) -> None:
        old = self.variables.get(name, Variable((), True))
        position = self.expander.arithmetic(index[1:-1])
        elements = list(old.elements)
        if not position.isdigit() or int(position) > len(elements) or plus:
            elements = [
                Element(
                    self.unclear.mark(f"{name}{index} is assigned at an index that is not known"),
                    element.line,
                )
            ]
        elif int(position) == len(elements):
            elements.append(element)
        else:
            elements[int(position)] = element
        self.variables[name] = Variable(tuple(elements), True, old.exported)

    def _declare(self, command: str, word: RawWord) -> None:
        assignment = _ASSIGNMENT.match(word.raw)
        if command in ("local", "declare", "typeset") and self._locals:
            name = assignment.group(1) if assignment else word.raw
            self._locals[-1].setdefault(name, self.variables.get(name))
        if assignment:
            self._assign(word, exported=command == "export")
            return
        for element in self._fields(word):
            text = element.text
            name, equals, value = text.partition("=")
            if text.startswith("-"):
                continue
            if _IDENTIFIER.match(name):
                old = self.variables.get(name)
                if equals:  # the name came out of an expansion
                    self.variables[name] = Variable(
                        (Element(value, element.line, element.raw),), False, command == "export"
                    )
                elif old is not None and command == "export":
                    self.variables[name] = old._replace(exported=True)
                elif command == "local":
                    self.variables[name] = Variable(())
            elif is_clear(name):
                self.remarks.append(Remark("not-an-identifier", element.line, f"{command} {text}"))

    # Builtins.

    def _builtin_nothing(self, fields: List[Element]) -> Optional[bool]:  # noqa: ARG002 - one signature for all
        return True

    def _builtin_false(self, fields: List[Element]) -> Optional[bool]:  # noqa: ARG002
        return False

    def _builtin_set(self, fields: List[Element]) -> Optional[bool]:
        words = [field.text for field in fields[1:]]
        if "-a" in words or "allexport" in words:
            self._allexport = words[0] != "+o"
        if "+a" in words:
            self._allexport = False
        if "--" in words:
            self.expander.arguments = fields[words.index("--") + 2 :]
        elif words and not words[0].startswith(("-", "+")):
            self.expander.arguments = fields[1:]
        return True

    def _builtin_shift(self, fields: List[Element]) -> Optional[bool]:
        count = int(fields[1].text) if len(fields) > 1 and fields[1].text.isdigit() else 1
        self.expander.arguments = self.expander.arguments[count:]
        return True

    def _builtin_unset(self, fields: List[Element]) -> Optional[bool]:
        for field in fields[1:]:
            self.variables.pop(field.text, None)
        return True

    def _builtin_source(self, fields: List[Element]) -> Optional[bool]:
        name = self.unclear.readable(fields[1].text) if len(fields) > 1 else "a file"
        self.expander.loose = f"{name} may set it"
        return True

    def _builtin_eval(self, fields: List[Element]) -> Optional[bool]:
        self.expander.loose = "an eval may set it"
        text = "\n" * (fields[0].line - 1) + " ".join(field.text for field in fields[1:])
        if self._calls >= _MAX_CALLS or len(text) > MAX_SCRIPT_BYTES:
            return None
        self._calls += 1
        try:
            return self.run_all(parse(text))
        except SyntaxProblem:
            return None  # with what is unclear in it, it may be no command
        finally:
            self._calls -= 1

    def _builtin_read(self, fields: List[Element]) -> Optional[bool]:
        for field in fields[1:]:
            if _IDENTIFIER.match(field.text):
                mark = self.unclear.mark(
                    f"{fields[0].text} gives {field.text} its value when the script runs"
                )
                self.variables[field.text] = Variable((Element(mark, field.line),))
        return None

    def _builtin_let(self, fields: List[Element]) -> Optional[bool]:
        for field in fields[1:]:
            self._arithmetic(Arithmetic(field.text, field.line))
        return None

    def _builtin_exit(self, fields: List[Element]) -> Optional[bool]:
        raise _Exit(*(["return"] if fields[0].text == "return" else []))

    def _builtin_exec(self, fields: List[Element]) -> Optional[bool]:
        if len(fields) == 1:  # redirections only
            return True
        self._started(Simple((), (), fields[1].line), fields[1:], [])
        raise _Exit

    def _builtin_test(self, fields: List[Element]) -> Optional[bool]:
        words = [field.text for field in fields[1:]]
        if fields[0].text == "[" and words[-1:] == ["]"]:
            words.pop()
        return decide(words)

    def _test(self, node: Simple) -> Optional[bool]:
        words: List[str] = []
        for word in node.words:
            text = self.expander.text(word.raw, word.line)
            if (
                words[-1:] in (["=="], ["="], ["!="])
                and re.search(r"[*?\[]", text)
                and not re.search(r"['\"\\]", word.raw)
            ):
                text = self.unclear.mark("a pattern")
            words.append(text)
        return decide(words)

    def _arithmetic(self, node: Arithmetic) -> Optional[bool]:
        assigned = re.findall(
            r"([A-Za-z_]\w*)\s*(?:=(?!=)|\+=|-=|\*=|\+\+|--)|(?:\+\+|--)([A-Za-z_]\w*)", node.text
        )
        for names in assigned:
            for name in filter(None, names):
                self.variables[name] = Variable(
                    (
                        Element(
                            self.unclear.mark(f"{name} is computed at line {node.line}"), node.line
                        ),
                    )
                )
        if assigned:
            return None
        value = self.expander.arithmetic(node.text)
        return value != "0" if is_clear(value) else None

    # What joins commands.

    def _pipeline(self, node: Pipeline) -> Optional[bool]:
        if len(node.commands) == 1 and not node.background:
            status = self.run(node.commands[0])
            return None if status is None else status != node.negated
        saved = dict(self.variables)
        for command in node.commands:
            with suppress(_Exit):
                self.run(command)
            self._restore(saved)
        return None

    def _chain(self, node: Chain) -> Optional[bool]:
        status: Optional[bool] = True
        asked = False  # whether the status so far is the answer of a test
        for operator, pipeline in node.items:
            if operator == "&&" and status is None and not asked:
                status = True
            wanted = operator != "||"
            if not operator or status is wanted:
                asked = _asks(pipeline)
                status = self.run(pipeline)
            elif status is None:
                self._either([(pipeline.commands, None)])
        return status

    def _if(self, node: If) -> Optional[bool]:
        ways: List[Tuple[Sequence[Node], None]] = []
        for condition, body in node.clauses:
            status = self._condition(condition)
            if status is False:
                continue
            ways.append((body, None))
            if status is True:
                break
        else:
            ways.append((node.orelse or (), None))
        if len(ways) == 1:
            return self.run_all(ways[0][0])
        self._either(ways, complete=True)
        return None

    def _condition(self, nodes: Sequence[Node]) -> Optional[bool]:
        status = self.run_all(nodes)
        last = nodes[-1] if nodes else None
        if (
            isinstance(last, Simple)
            and not last.test
            and last.words
            and last.words[0].raw not in ("[", "test", "true", ":", "false")
        ):
            return None if last.words[0].raw not in self.functions else status
        return status

    def _case(self, node: Case) -> Optional[bool]:
        subject = self.expander.text(node.word.raw, node.word.line)
        ways: List[Tuple[Sequence[Node], None]] = []
        for patterns, body in node.branches:
            matches = [self._matches(subject, pattern) for pattern in patterns]
            if any(match is True for match in matches):
                ways.append((body, None))
                break
            if any(match is None for match in matches):
                ways.append((body, None))
        else:
            ways.append(((), None))
        if len(ways) == 1:
            return self.run_all(ways[0][0])
        self._either(ways, complete=True)
        return None

    def _matches(self, subject: str, word: RawWord) -> Optional[bool]:
        if word.raw == "*":
            return True
        pattern = self.expander._pattern(word.raw)
        if pattern is None or not is_clear(subject):
            return None
        return re.fullmatch(pattern, subject, re.DOTALL) is not None

    def _loop(self, node: Loop) -> Optional[bool]:
        if node.kind in ("for", "select"):
            values = (
                [element for word in node.words for element in self._fields(word)]
                if node.words is not None
                else list(self.expander.arguments)
            )
            if not values:
                return True
            if len(values) == 1 and node.kind == "for" and is_clear(values[0].text):
                if node.name:
                    self.variables[node.name] = Variable((values[0],))
                return self.run_all(node.body)
            choices = ", ".join(self.unclear.readable(value.text) for value in values[:6])
            self.variables[node.name or "_"] = Variable(
                (Element(self.unclear.mark(f"${node.name} goes through {choices}"), node.line),)
            )
        else:
            ends = node.kind == "until"
            for _ in range(_MAX_ROUNDS):  # exactly, as long as the condition can be told
                status = self._condition(node.condition)
                if status is None or status is ends:
                    break
                self.run_all(node.body)
            if status is ends:
                return True
        for name in _assigned(node.body):
            old = self.variables.get(name, Variable(()))
            mark = self.unclear.mark(f"${name} is assigned in the loop at line {node.line}")
            kept = old.elements if old.array else ()
            self.variables[name] = Variable(
                (*kept, Element(mark, node.line)), old.array, old.exported
            )
        unrolled = dict(self.variables)
        self._either([(node.body, None)], complete=node.kind == "for")
        for name in _assigned(node.body):
            if name in unrolled:
                self.variables[name] = unrolled[name]
        return None

    def _either(
        self, ways: Sequence[Tuple[Sequence[Node], None]], *, complete: bool = False
    ) -> None:
        """Follow several ways, of which one is taken (or none, unless ``complete``), and join
        what they leave.
        """
        before = dict(self.variables)
        results: List[Dict[str, Variable]] = [] if complete else [before]
        arguments = self.expander.arguments
        self._conditional += 1
        for nodes, _ in ways:
            self._restore(before)
            self.expander.arguments = arguments
            try:
                self.run_all(nodes)
                results.append(dict(self.variables))
            except _Exit:
                pass
        self._conditional -= 1
        self._restore(before)
        if not results:
            raise _Exit
        for name in {name for result in results for name in result}:
            self.variables[name] = self._joined(name, [result.get(name) for result in results])

    def _joined(self, name: str, found: Sequence[Optional[Variable]]) -> Variable:
        first = found[0]
        texts = {
            tuple(element.text for element in variable.elements) if variable is not None else None
            for variable in found
        }
        if len(texts) == 1 and first is not None:
            return first._replace(
                exported=all(variable is not None and variable.exported for variable in found)
            )
        present = [variable for variable in found if variable is not None]
        places = sorted(
            {element.line for variable in present for element in variable.elements[-1:]}
        )
        mark = self.unclear.mark(
            f"${name} depends on a condition (line {', '.join(map(str, places))})"
        )
        kept: List[Element] = []
        if all(variable.array for variable in present) and len(present) == len(found):
            for elements in zip(*(variable.elements for variable in present)):
                if len({element.text for element in elements}) > 1:
                    break
                kept.append(elements[0])
        exported = any(variable.exported for variable in present)
        array = any(variable.array for variable in present)
        return Variable((*kept, Element(mark, places[-1] if places else 0)), array, exported)

    def _restore(self, saved: Mapping[str, Variable]) -> None:
        self.variables.clear()
        self.variables.update(saved)


_HARMLESS = words(
    ": true cd pushd popd echo printf mkdir ulimit wait trap shopt alias break continue"
)
_BUILTINS = {
    **dict.fromkeys(_HARMLESS, "nothing"),
    **dict.fromkeys(["read", "mapfile", "readarray", "getopts"], "read"),
    **dict.fromkeys(["[", "test"], "test"),
    **dict.fromkeys([".", "source"], "source"),
    **dict.fromkeys(["exit", "return"], "exit"),
    "false": "false", "set": "set", "shift": "shift", "unset": "unset", "eval": "eval",
    "let": "let", "exec": "exec",
}  # fmt: skip


def _asks(pipeline: Pipeline) -> bool:
    last = pipeline.commands[-1]
    return (
        not isinstance(last, Simple)
        or last.test
        or (bool(last.words) and last.words[0].raw in _TESTS)
    )


def _assigned(nodes: Sequence[Node]) -> List[str]:
    """Names that commands may assign, those inside compound commands too."""
    names: List[str] = []
    pending: List[object] = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, Simple):
            for word in node.words:
                found = _ASSIGNMENT.match(word.raw)
                if found and found.group(1) not in names:
                    names.append(found.group(1))
        elif isinstance(node, tuple):
            pending.extend(item for item in node if isinstance(item, tuple))
    return names
