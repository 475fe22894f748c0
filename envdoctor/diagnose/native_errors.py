"""What the words of errors mean that Python and torch raise themselves: of which type a tensor is,
what was read that is no JSON and no text, and which operand of the line is at fault.
"""

from __future__ import annotations

import re
from typing import Callable, Mapping, Tuple

from ..model.log import Raised
from ..model.pattern import pattern
from .failed_operation import made_in_line, of_operation
from .python_errors import of_python, remedy_of_python
from .tensor_errors import of_tensors, remedy_of_tensors

__all__ = ["inner_message", "of_native", "remedy_of_native"]

_NO_TEXT = pattern(
    r"^'\S{1,20}' codec can't decode byte 0x(?P<byte>[0-9a-f]{2}) in position (?P<place>[01]): "
)
#: The first byte that is not of ASCII, by its place (file(1), "magic").
_BEGINNINGS: Mapping[Tuple[str, str], str] = {
    ("8b", "1"): "a file that gzip packed",
    ("b5", "1"): "a file that Zstandard packed",
    ("80", "0"): "a pickle, as torch.save of old wrote",
    ("93", "0"): "an array of NumPy",
    ("89", "0"): "an image of PNG, or a file of HDF5",
    ("ff", "0"): "a text of UTF-16, or an image of JPEG",
    ("fe", "0"): "a text of UTF-16",
}
_NEAR = 4  # innermost frames, one of which is of what reads a pickle
_PICKLING = pattern(r"(?:^|[/\\])(?:pickle\.py|_weights_only_unpickler\.py|serialization\.py)$")
#: Python's own reader is compiled, and has no place of its own in a traceback.
_UNPICKLES = pattern(r"\bpickle\.(?:loads?|Unpickler)\(")
#: What pickle and torch's own reader of it say of a first byte that begins none
#: (``torch/_weights_only_unpickler.py`` of 2.6 to 2.13 gives its number).
_NO_PICKLE = pattern(r"invalid load key, '(?P<key>.)'|Unsupported operand (?P<code>\d{1,3})\b")
#: What readers of packed files say of one that is none (``gzip``, ``zipfile``, ``tarfile`` of
#: Python 3.9 to 3.13), with its first bytes where they give them.
_NO_PACK = pattern(
    r"^Not a gzipped file \(b'(?P<first>[^']{1,16})'\)|^File is not a zip file|^file could not be "
    r"opened successfully|^EOCD not found|^not a gzip file|^invalid header"
)
_NO_PICKLES: Mapping[str, str] = {
    "<": "a page of HTML, a server's answer",
    "v": "a pointer of Git LFS (its files were not fetched: git lfs pull)",
    "{": "a text of JSON",
    "P": "a packed file (zip)",
}
#: How FastAPI answers a request that does not fit (422): pydantic's errors (``ErrorDetails`` of
#: pydantic_core 2), as JSON or as Python prints them.
_SCHEMA = pattern(
    r"['\"]loc['\"]: ?[\[(](?P<place>['\"](?:body|query|path|header)['\"][^\])]{0,200})[\])], ?"
    r"['\"]msg['\"]: ?['\"](?P<says>[^'\"\n]{3,200})['\"], ?['\"]input['\"]: ?(?P<first>\S)"
)
_JSON: Mapping[str, str] = {
    "[": "a list", "{": "an object", '"': "a text", "'": "a text", "n": "null", "N": "None",
    "t": "true", "T": "True", "f": "false", "F": "False",
}  # fmt: skip
_UNASSIGNED = pattern(
    r"^(?:cannot access local variable|local variable) '(?P<name>\w{1,80})' "
    r"(?:where it is not associated|referenced before assignment)"
)
_PLAIN = pattern(r"'(dict|str|list|tuple|set)' object has no attribute '(\w{1,80})'$")
#: What each model with an embedding has, by the names of transformers' PretrainedConfig
#: (``attribute_map``), and only the parts of a composed one.
_OF_PART = pattern(
    r"'(?P<config>\w{1,80}Config)' object has no attribute "
    r"'(?P<name>hidden_size|num_attention_heads|num_key_value_heads|num_hidden_layers|vocab_size"
    r"|intermediate_size|max_position_embeddings|rope_theta)'$"
)
_NOT_COMPILED = pattern(r"^<function .{1,200}> is not a code object$")
#: Digests of no data, in MD5, SHA-1 and SHA-256 (``hashlib.sha256(b"").hexdigest()``).
_OF_NOTHING = pattern(
    r"d41d8cd98f00b204e9800998ecf8427e|da39a3ee5e6b4b0d3255bfef95601890afd80709"
    r"|e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)


#: What an exception quotes of the one that it came of (``torch/_dynamo/utils.py`` of 2.0 to 2.15).
_INNER = pattern(
    r"\bgot (?P<kind>[A-Z]\w{2,60}(?:Error|Exception))\((?P<quote>['\"])(?P<text>.{3,2000}?)"
    r"(?P=quote),?\)"
)
#: A folder of Hydra's search path that is looked for below the working directory.
_SEARCHED = pattern(r"\bpath=file://(?P<folder>(?!/)[^\s,]{1,200})")


def inner_message(message: str) -> str:
    """Return what a message quotes of the exception that it came of, else its first line."""
    first = message.partition("\n")[0].strip()
    match = _INNER.search(first)
    return match.group("text") if match is not None else first


#: Who raises KeyError for a column that is not there (datasets 2.14 to 5.2, pandas 1.5 to 3.1).
_TABLES = (
    (pattern(r"(?:^|/)datasets/(?:formatting/formatting|arrow_dataset|table)\.py$"), "data set"),
    (pattern(r"(?:^|/)pandas/(?:core/indexes/\w+\.py|_libs/\S+)$"), "table"),
)
#: What only looks it up for whoever asks.
_OF_TABLES = pattern(r"-packages/(?:datasets|pandas|pyarrow)/|\.px[di]$|\.pyx$")
_COLUMN = pattern(r"^'(?P<column>[^'\n]{1,100})'$")


def _lacking_column(raised: Raised) -> Tuple[str, str]:
    """Return the column that a table does not have, and what the table is; "" where it is none."""
    match = _COLUMN.match(raised.message.strip())
    file = raised.frames[-1].file if raised.frames else ""
    if raised.kind == "KeyError" and match is not None:
        for form, table in _TABLES:
            if form.search(file):
                return match.group("column"), table
    return "", ""


def _of_column(raised: Raised) -> str:
    column, table = _lacking_column(raised)
    if not column:
        return ""
    asking = [entry for entry in raised.frames if not _OF_TABLES.search(entry.file)]
    asker = f", which {asking[-1].file}, line {asking[-1].line}, asks for" if asking else ""
    return f"The {table} has no column '{column}'{asker}."


def remedy_of_native(raised: Raised) -> str:
    """Say what to do about what an exception's words mean; "" where that is not known."""
    column, table = _lacking_column(raised)
    if column:
        rename = "rename_column(s)" if table == "data set" else "rename(columns=...)"
        return (
            f"Print the columns that the {table} has; then rename one to '{column}' ({rename}), or "
            "give what asks for it the name that is there"
        )
    searched = _SEARCHED.search(raised.message)
    if searched is not None:
        return (
            f"Start the program in the folder that {searched.group('folder')} lies in, or name "
            "that folder by its whole path"
        )
    message, kind = inner_message(raised.message), raised.kind.rpartition(".")[2]
    return remedy_of_tensors(message) or remedy_of_python(kind, raised.message)


def of_native(raised: Raised) -> str:
    """Say what the words of an exception of Python or torch mean; "" where nothing is added."""
    message = inner_message(raised.message)
    kind = raised.kind.rpartition(".")[2]
    searched = _SEARCHED.search(raised.message)
    if searched is not None:
        return (
            f"{searched.group('folder')} of the search path is relative: it is looked for below "
            "the folder in which the program was started."
        )
    digest = _OF_NOTHING.search(raised.message)
    if digest is not None:
        return (
            f"{digest.group()[:8]}… is the digest of no data: the file is empty, its download or "
            "copy was cut off; remove it, so that it is fetched again."
        )
    column = _of_column(raised)
    if column:
        return column
    schema = _SCHEMA.search(raised.message)
    if schema is not None:
        return _of_schema(schema)
    if kind in _OF_PICKLE:
        is_of_pickle = any(
            _PICKLING.search(frame.file) or _UNPICKLES.search(frame.code)
            for frame in raised.frames[-_NEAR:]
        )
        return _OF_PICKLE[kind](raised.message) if is_of_pickle else ""
    means = _BY_KIND[kind](message) if kind in _BY_KIND and not made_in_line(raised) else ""
    means = means or of_tensors(message) or of_python(kind, raised.message)
    return " ".join(filter(None, (of_operation(raised), means)))


def _of_schema(match: re.Match[str]) -> str:
    """Say what a server takes and what it was sent, of an answer that its schema gave."""
    place = ".".join(re.findall(r"\w+", match.group("place")))
    sent = _JSON.get(match.group("first"), "a number")
    return (
        f"The server says of {place}: {match.group('says')}, and it was sent {sent}: client and "
        "server do not mean the same request, or are of different releases."
    )


def _of_plain(message: str) -> str:
    """Say what stands where an object with attributes was expected."""
    part = _OF_PART.match(message)
    if part is not None:
        return (
            f"A model of several parts (text, image, audio) keeps {part.group('name')} in the "
            f"configuration of one of them: what asks {part.group('config')} itself for it mostly "
            "does not know this model, or an older release of it."
        )
    match = _PLAIN.match(message)
    if match is None:
        return ""
    return (
        f"The code expects an object with {match.group(2)} and got a plain {match.group(1)}: a "
        "setting or a result was handed on as it was written, without being made into that object, "
        "or by a release that hands on another type."
    )


def _of_compiled(message: str) -> str:
    if not _NOT_COMPILED.match(message):
        return ""
    return (
        "inspect.getargs takes a code object and no function: inspect.getfullargspec is what "
        "stands in the place of getargspec."
    )


def _of_bytes(message: str) -> str:
    """Say what a file is that begins with bytes no text begins with."""
    match = _NO_TEXT.match(message)
    what = _BEGINNINGS.get((match.group("byte"), match.group("place")), "") if match else ""
    return f"So begins {what}, which is no text: it has to be read as that." if what else ""


def _of_variable(message: str) -> str:
    match = _UNASSIGNED.match(message)
    if match is None:
        return ""
    return (
        f"The function gives {match.group('name')} a value, and only further down or under a "
        "condition that was not met in this run."
    )


def _of_end(message: str) -> str:
    if message not in ("", "Ran out of input"):
        return ""
    return "What was read ends at once: the file is empty, or was not written to its end."


def _of_pickle(message: str) -> str:
    """Say what a file is that holds no pickle, by its first byte."""
    match = _NO_PICKLE.search(message)
    if match is None:
        return ""
    first = match.group("key") or chr(int(match.group("code")))
    what = _NO_PICKLES.get(first, "")
    return f"The file begins with {first}, as {what} does: it is no checkpoint." if what else ""


def _of_pack(message: str) -> str:
    """Say what a file is that holds no packed ones."""
    match = _NO_PACK.match(message)
    if match is None:
        return ""
    first = match.group("first") or ""
    what = _NO_PICKLES.get(first[:1], "")
    if what:
        return f"The file begins with {first}, as {what} does: what was fetched is no packed file."
    return "The file is no whole packed file: it is of another kind, or was not written to its end."


_BY_KIND: Mapping[str, Callable[[str], str]] = {
    "AttributeError": _of_plain,
    "TypeError": _of_compiled,
    "UnicodeDecodeError": _of_bytes,
    "UnboundLocalError": _of_variable,
    "BadGzipFile": _of_pack,
    "BadZipFile": _of_pack,
    "ReadError": _of_pack,
    "ValueError": _of_pack,
}


_OF_PICKLE: Mapping[str, Callable[[str], str]] = {
    "EOFError": _of_end,
    "UnpicklingError": _of_pickle,
}
