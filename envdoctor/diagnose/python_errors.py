"""What Python's own exceptions, and those of readers of tables, mean in words of the program, and
what to do, by kind and message.

The messages are those of CPython 3.11 (Objects/call.c, Objects/longobject.c, Lib/dataclasses.py,
Lib/importlib/_bootstrap.py), pandas 3.1 (pandas/_libs/src/parser/tokenizer.c) and datasets 5.2
(datasets/table.py) with pyarrow.
"""

from __future__ import annotations

from typing import Mapping, Tuple

from ..model.pattern import pattern
from .sayings import Saying, fix_of, words_of

__all__ = ["of_python", "remedy_of_python"]


def of_python(kind: str, message: str) -> str:
    """Say what an exception of Python itself means; "" where nothing is added to its words.

    kind: its name without modules.
    """
    return words_of(message, _SAYINGS.get(kind, ()))


def remedy_of_python(kind: str, message: str) -> str:
    """Say what to do about an exception of Python itself; "" where that is not known."""
    return fix_of(message, _SAYINGS.get(kind, ()))


_REFUSED = Saying(
    pattern(r"Connection refused|actively refused it"),
    "Nothing listens at that address and port: the server was not started, is still loading, has "
    "ended, or listens elsewhere (127.0.0.1 of another container or node is another address).",
    "Look whether the server runs and where it listens (ss -ltnp, its own log), and start what "
    "asks it after it is ready",
)
_SAYINGS: Mapping[str, Tuple[Saying, ...]] = {
    "ArrowInvalid": (
        Saying(
            pattern(r"^JSON parse error: .{1,200}? in row (?P<row>\d+)"),
            lambda match: (
                f"A file of the data set is no JSON from row {match.group('row')} on, counted from "
                "0 in the part that was read."
            ),
            "Look at that row: python -m json.tool --json-lines FILE names the line",
        ),
    ),
    "CastError": (
        Saying(
            pattern(r"because column names don't match"),
            "The files of the data set do not have the same columns.",
            "Give all files the same columns, or load them one by one and choose the columns "
            "(select_columns) before they are joined",
        ),
    ),
    "ConnectionRefusedError": (_REFUSED,),
    "EmptyDataError": (
        Saying(
            pattern(r"^No columns to parse"),
            "The file that is read as a table is empty.",
            "Look at what wrote the file, or at its path",
        ),
    ),
    "FrozenInstanceError": (
        Saying(
            pattern(r"^cannot (?:assign to|delete) field '(?P<field>\w{1,80})'"),
            lambda match: (
                f"{match.group('field')} is of a frozen dataclass, whose fields are set when it is "
                "made and never after."
            ),
            "Make a changed copy of it: dataclasses.replace(...)",
        ),
    ),
    "ImportError": (
        Saying(
            pattern(
                r"^attempted relative import (?:with no known parent package|beyond top-level)"
            ),
            "The file was started by its path: so it is no part of a package, and `from .` has "
            "nothing to start from.",
            "Start it as a module from the folder above its package: python -m package.module",
        ),
    ),
    "IsADirectoryError": (
        Saying(
            pattern(r"Is a directory: '(?P<path>[^'\n]{1,300})'"),
            lambda match: (
                f"{match.group('path')} is a folder, and a file is opened: its name is missing "
                "behind it, mostly since a variable is empty."
            ),
            "Give the path of the file itself",
        ),
    ),
    "NotADirectoryError": (
        Saying(
            pattern(r"Not a directory: '(?P<path>[^'\n]{1,300})'"),
            lambda match: (
                f"A part of {match.group('path')} is a file, and a folder is wanted there."
            ),
            "Look at each part of the path (ls -ld)",
        ),
    ),
    "ParserError": (
        Saying(
            pattern(r"Expected (?P<takes>\d+) fields in line (?P<line>\d+), saw (?P<has>\d+)"),
            lambda match: (
                f"Line {match.group('line')} of the table has {match.group('has')} fields, and "
                f"those before it {match.group('takes')}: a separator stands within a value that "
                "is not quoted, or the separator is another one."
            ),
            "Look at that line; give sep= and quotechar= as the file has them, or leave such lines "
            "out (on_bad_lines='skip')",
        ),
    ),
    "TypeError": (
        Saying(
            pattern(
                r"^'[<>]=?' not supported between instances of (?:'(?:float|int)' and 'str'"
                r"|'str' and '(?:float|int)')|unsupported operand type\(s\) for [*/-]=?: "
                r"(?:'(?:float|int)' and 'str'|'str' and '(?:float|int)')"
            ),
            "A text stands there where a number is wanted, or the other way round. Settings often "
            "come as texts: 1e-5 of YAML (PyYAML wants a point in it, 1.0e-5), options whose type "
            "argparse was not told, environment variables.",
            "Make it a number where it is read: float(...), int(...), type=float; in YAML 1.0e-5",
        ),
        Saying(
            pattern(r"^'module' object is not callable"),
            "What is called is the module, and not the function or class of the same name in it.",
            "Import the function itself: from module import name",
        ),
        Saying(
            pattern(
                r"^'(?P<type>int|float|str|list|tuple|dict|bool|Tensor)' object is not callable"
            ),
            lambda match: (
                f"A value of type {match.group('type')} is called like a function: a function had "
                "its name before, or a comma or an operator is missing before the bracket."
            ),
            "",
        ),
    ),
    "UnicodeDecodeError": (
        Saying(
            pattern(r"^'utf-?8' codec can't decode byte 0x(?P<byte>[0-9a-f]{2}) in position "),
            lambda match: (
                f"No text in UTF-8 has the byte 0x{match.group('byte')} there: what is read is in "
                "another encoding (GBK, Windows-1252, UTF-16), or is no text."
            ),
            "Name its encoding where it is read (encoding=...; file FILE guesses it), or convert "
            "it: iconv -f ... -t utf-8",
        ),
    ),
    "ValueError": (
        Saying(
            pattern(
                r"^invalid literal for int\(\) with base 10: '(?P<text>[+-]?(?:\d+\.\d*|\.\d+|\d+)"
                r"(?:[eE][+-]?\d+)?)'"
            ),
            lambda match: (
                f"{match.group('text')} is a number, and int() takes none with a point or an "
                "exponent."
            ),
            "Write it as a whole number, or int(float(...))",
        ),
        Saying(
            pattern(
                r"^(?:invalid literal for int\(\) with base 10|could not convert string to "
                r"float): ''"
            ),
            "The text that is to be a number is empty: a setting, a variable or a column without a "
            "value.",
            "",
        ),
    ),
}
