"""Secrets are taken out of texts: the only place that knows what a secret looks like.

What is read is pasted into public issues. So every text goes through :func:`redact` where it
becomes a fact, an event, a setting or a message: in ``probes`` and ``intake``, in ``plan`` for the
words of a launch, in ``lock`` for addresses and for what uv says, in ``cli`` for errors.

What is promised: of the shapes below nothing is left, in any line, quoting or output.

- user and password, query and token of an address, with any scheme or none (``user:password@host``)
- the value of a name that says that it is a secret, as ``NAME=value``, ``name: value``, JSON,
  ``--name value``, or as the pair of ``name:`` and ``value:`` of a container's specification
- ``Authorization`` and ``Cookie`` headers, ``Bearer`` and ``Basic`` credentials
- tokens that their issuer marks (``hf_``, ``sk-``, ``ghp_``, ``AKIA``, JSON Web Tokens and others)
- private keys in PEM
- a word of its own of 32 or more characters that nobody would have chosen (a key in hexadecimal)

What cannot be known: a password that stands alone or in a sentence, a short token without a mark, a
secret behind a name that does not tell, a secret that was split over several lines. Host names,
users in paths and addresses of networks are no secrets here.

What people need stays: counts of tokens, ``tokenizer=…``, keys of data sets, digests, UUIDs of
devices, names of models and of symbols. The cost grows with the length of the text alone.
"""

from __future__ import annotations

from .pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any, Callable, Dict, Iterable, Iterator, List, Sequence, Tuple

__all__ = [
    "HIDDEN",
    "is_secret_name",
    "redact",
    "redact_tree",
    "redact_value",
    "redact_words",
    "redacted_start",
    "without_credentials",
]

HIDDEN = "***"

_IGNORE_CASE_ASCII = 2 | 256  # re.IGNORECASE | re.ASCII, without importing re

# --------------------------------------------------------------------------------------------------
# addresses

# What ends an address in a text, or parts one that has more than a path.
_PARTS_OF_URLS = frozenset(" \"'<>\\@?#")
_URL = pattern(r"""(?<=[A-Za-z0-9])://([^\s"'<>\\`]+)""")
_HOST = pattern(r"(?:[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?|\$\{?\w+\}?(?::\d{1,5})?")
_REVISIONED = ("git+", "hg+", "svn+", "bzr+")
_FRAGMENT = pattern(
    r"(?:(?:egg|subdirectory)=[\w.,/\[\]-]+&?|(?:md5|sha\d{1,3})[=:][0-9a-f]+&?)+"
    r"|[0-9a-f]{0,12}|[0-9a-f]{32}|[0-9a-f]{64}|L\d+(?:-L\d+)?|(?:[a-z]{1,20}[-_]?){1,8}\d{0,12}"
)
_FILES = (
    *(".whl", ".gz", ".bz2", ".xz", ".zip", ".conda", ".git", ".html", ".txt", ".toml"),
    *(".json", ".yaml", ".yml", ".md", ".py", ".sh", ".deb", ".run", ".metadata"),
)
#: PyPI's own layout of files: two times two digits of a digest, and the rest of it.
_DIGEST_PATH = pattern(r"(?:.*/)?packages/[0-9a-f]{2}/[0-9a-f]{2}/([0-9a-f]{60})(?:/.*)?")
_WORDS = pattern(r"[A-Za-z0-9]+")
_UUID = pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BARE_USER = pattern(
    r"(?<![\w/.@:-])[^\s:/@=,;\"'(<>]{1,128}:(?!//)[^\s/@,;\"']{1,256}@(?!sha256:)(?=[\w\[])"
)

# --------------------------------------------------------------------------------------------------
# names and their values

_SECRET_WORDS = (
    *("key", "token", "secret", "pass", "pwd", "credential", "auth", "cookie", "signature"),
)
#: A word of a secret's name, which begins with one of those above, what follows of the name, and
#: what parts the name from its value.
_NAMED = pattern(
    r"(authorization|authentication|auth|tokens?|secrets?|passwords?|passwd|passphrase|pass|pwd"
    r"|credentials?|keys?|cookies?|signature)((?:[_-][a-z0-9]{1,20}){0,3})(?![a-z0-9_])"
    # name= and name: with their quotes; the list of a command's words; an option and its value
    r"(\\?[\"'`*]{0,3}\]?[ \t]{0,8}(?::=|=>|[=:])(?!//|:|=)\*{0,2}[ \t]{0,8}"
    r"|`?[ \t]{0,8}\|[ \t]{0,8}`?(?=\S)"
    r"|\\?[\"']?[ \t]{0,8},\s{0,80}(?=\\?[\"'\w])"
    r"|(?:[ \t]{1,8}(?:\\\n[>| \t]{0,80})?|\\?[\"']?\n[>| \t]{0,80}-[ \t]{1,8})(?![-\s])"
    r")",
    _IGNORE_CASE_ASCII,
)
_PAIR = pattern(
    r"(?<![\w-])name\\?[\"']?[ \t]{0,8}[=:][ \t]{0,8}\\?[\"']?([\w.-]{1,100})\\?[\"']?"
    r"(?:[\s,>|]|\\n){1,120}(?:-[ \t]{1,8})?\\?[\"']?value\\?[\"']?[ \t]{0,8}[=:][ \t]{0,8}",
    _IGNORE_CASE_ASCII,
)
#: Options that hold a secret for some commands alone, and these commands.
_COMMAND_OPTION = pattern(
    r"((?:[ \t](?P<user>-u|--user)|[ \t](?P<login>-p)|(?P<netrc>\spassword))[ \t=]{1,8})"
    r"(?![-\s])(\S+)",
    _IGNORE_CASE_ASCII,
)
_COMMANDS = {"user": ("curl",), "login": (" login",), "netrc": ("login ",)}
_QUOTED = {
    '"': pattern(r"[^\"\n\\]*(?:\\.[^\"\n\\]*)*"),
    "'": pattern(r"[^'\n\\]*(?:\\.[^'\n\\]*)*"),
    "`": pattern(r"[^`\n]*"),
    '\\"': pattern(r"[^\"\n\\]*(?:\\[^\"\n][^\"\n\\]*)*"),
    "\\'": pattern(r"[^'\n\\]*(?:\\[^'\n][^'\n\\]*)*"),
}
_OPENING = pattern(r"[\[({]{0,2}[ \t]?(?:[bfru]{0,2}(\\?[\"'])|(`))")
#: An object of JSON, or what a line has of it: what is in it is its name's.
_MEMBERS = pattern(
    r"\{[ \t]*\\?[\"'][\w.-]{1,60}\\?[\"'][ \t]*:"
    r"(?:[^{}\n]|\{[^{}\n]{0,400}\}){0,400}\}?"
)
_BEFORE_QUOTES = frozenset("[({ \t\\\"'`bfruBFRU")
_VALUE = pattern(r"(?:[^\s,;&\"'`<>|\\]|\\(?![n\"'\s])|[,;](?![\s\"']|$|[\w.-]{1,40}[=:]))+")
_REST_OF_LINE = pattern(r"[^\n\"']+")
#: What is no secret wherever it stands: switches, placeholders, references, types of Python.
_PLAIN = pattern(
    r"true|false|none|null|nil|yes|no|on|off|not|unset|auto|optional(?:\[.*)?|union\[.*|str|string"
    r"|bytes|int|bool|any|secretstr|required|missing|empty|invalid|redacted|x{3,}|\.{3}.*"
    r"|\*+[)\]}]*|(?-i:\$[A-Z_][A-Z0-9_]*)|\$\{\w+\}|\$\(.*|\{\{?(?![ \t]*\\?[\"']).*|%\w*%?|<.*"
    r"|\[?redacted\]?.*"
    r"|None[,)\]]*|True[,)\]]*|False[,)\]]*",
    _IGNORE_CASE_ASCII,
)
_NUMBER = pattern(r"[+-]?\d{1,12}(?:\.\d{1,6})?(?:[kKmM]|e\d{1,2})?[)\]}]*")
_PATH = pattern(r"(?:~|\.{1,2})?(?:/[a-z_.][\w.-]{0,39}){1,30}/?")
#: Before "key": what makes it one that opens something.
_KEYS_OF_SECRETS_TEXT = """
api access secret private auth encryption signing account service ssh master shared storage
subscription client registry deploy license hf openai wandb anthropic nvidia ngc azure aws gcp
groq together mistral cohere gemini google deepseek serper tavily admin root ssl tls hmac jwt
session crypto app user project
"""
_KEYS_OF_SECRETS = frozenset(_KEYS_OF_SECRETS_TEXT.split())
#: In capitals, a variable's name, any KEY is taken for one but these.
_OTHER_KEYS_TEXT = """
CACHE SORT PRIMARY FOREIGN PARTITION HASH ROUTING PUBLIC LOOKUP GROUP PROMPT RESPONSE IMAGE REWARD
DATA INPUT OUTPUT TEXT LABEL ANSWER MESSAGES CHAT SAMPLE QUESTION COLUMN FIELD DICT KEYBOARD
"""
_OTHER_KEYS = frozenset(_OTHER_KEYS_TEXT.split())
#: Before "token": pieces of a text.
_TOKENS_OF_TEXTS_TEXT = """
eos bos pad unk sep cls mask special image video audio stop max min num per mean prompt first last
next start end think begin new n avg total extra added additional separator response input output
text last_n draft target decode prefill current previous future cached reason bad good each every
one unexpected invalid parsed lexical
"""
_TOKENS_OF_TEXTS = frozenset(_TOKENS_OF_TEXTS_TEXT.split())
#: Before "tokens" and "keys", whose plural is else a count.
_PLURALS_OF_SECRETS_TEXT = """
api auth access secret private bearer refresh session service
"""
_PLURALS_OF_SECRETS = frozenset(_PLURALS_OF_SECRETS_TEXT.split())
#: Behind the word: what says something about a secret and is none.
_ABOUT_TEXT = """
id ids file files path paths dir folder count counts len length type types size limit num number
budget level levels name names url uri ttl expiry expires enabled enable required mode method
class ratio rate usage mean max min backend provider scheme env variable var mask masks loss
logprobs logits shift dispatcher combine embedding embeddings position ref reference manager store
index pos per s freq group version format wise throughput latency bits
"""
_ABOUT = frozenset(_ABOUT_TEXT.split())
#: What begins a sentence about a file or an option: "passwd: expected a folder".
_SENTENCE = pattern(
    r"(?:expected|found|cannot|can|could|is|are|was|were|has|have|does|did|needs?|must|should|goes"
    r"|takes|not|no|nothing|there|the|an?|and|or|for|with|in|of)(?= [\w'])"
)
_JOINED = pattern(r"(?:api|auth|access|hf|bearer|refresh|session|csrf|id|user|hub|gh|git|my)$")
_UNITS_OF_NAMES = pattern(r"[^\W_]+")
_DECLARED = pattern(r"(?<![\w-])(?:ENV|ARG|set|setenv)[ \t]+$")
_WITH_DIGIT = pattern(r"(?!/)\S{0,24}\d")
_BACKWARDS = pattern(r"[\w.-]{0,80}")

# --------------------------------------------------------------------------------------------------
# tokens by their looks

_SCHEME = pattern(r"\b(bearer|basic)((?:\s|%20|\\u0020){1,8})([\w.~+/=-]{6,})", _IGNORE_CASE_ASCII)
_LOOKS_ENCODED = pattern(r"\d|=$|[a-z][A-Z]")
_SHAPES = pattern(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:hf_|api_org_|gh[pousr]_|npm_)([A-Za-z0-9]{8,})"
    r"|(?:github_pat_|wandb_v1_|r8_)(\w{8,})"
    r"|(?:glpat-|gl[a-z]{2,6}-|sk-|sk_|pk_|rk_|xox[a-z]-|xapp-|pypi-|nvapi-|ya29\.|dckr_pat_|hvs\."
    r"|glc_|lsv2_|tvly-|gsk_|pplx-|dop_v1_|shpat_|csk-|fw_)([\w=+/-]{8,})"
    r"|(?:AKIA|ASIA|ABIA|ACCA)([0-9A-Z]{12,})|AIza([\w-]{20,})|eyJ([\w-]{8,}\.[\w.-]+)"
    r")"
)
# Each alternative of _SHAPES begins with one of these.
_SHAPE_STARTS = (
    *("hf_", "api_org_", "gh", "github_pat_", "npm_", "wandb_v1_", "r8_", "gl", "sk-", "sk_"),
    *("pk_", "rk_", "xox", "xapp-", "pypi-", "nvapi-", "ya29.", "dckr_pat_", "hvs.", "lsv2_"),
    *("tvly-", "gsk_", "pplx-", "dop_v1_", "shpat_", "csk-", "fw_"),
    *("AKIA", "ASIA", "ABIA", "ACCA", "AIza", "eyJ"),
)
_OPAQUE = pattern(r"(?<![\w/.+=@:#-])[A-Za-z0-9_+=-]{32,}(?![\w/.-])")
#: Before a digest or an identifier.
_LABELLED = pattern(
    r"(?:\b|_)(?:ids?|commit|sha\d*|md5|digest|hash)[\"']?[ \t]?[:=]?[ \t]?[\"']?$", 2
)
#: A device, a UUID, ``nccl-shm-recv-250a7cc850ba9298-0-1-3``, digests that are compared.
_IDENTIFIER = pattern(
    r"(?:GPU|MIG|MIG-GPU)-[0-9a-fA-F-]{8,40}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|[a-z]{4,20}(?:-[a-z]{2,20}){0,4}-[0-9a-f]{8,64}(?:-\d{1,6}){0,4}"
    r"|node_[0-9a-f]{56}"  # of Ray
    r"|(?:actual|calculated|computed|expected|got)=(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})"
)
_PEM = pattern(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = pattern(r"-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = pattern(r"(?:(?:[\s>|]|\\n|\\r)*[A-Za-z0-9+/=]{16,}(?![^\s\\\"'>|]))*")
_NO_NEWLINE = pattern(r"[^\n]+")


def redact(text: str) -> str:
    """Return a text, of one line or of many, without its secrets; lines stay where they are."""
    if not text:
        return text
    lowered = text.lower()
    for words, searched_in_lower_case, hide in _STEPS:
        searched = lowered if searched_in_lower_case else text
        for word in words:  # any() costs as much again, and most texts are short
            if word in searched:
                text = hide(text)
                break
    return _OPAQUE.sub(_redact_opaque, text) if _has_long_word(text) else text


def redacted_start(text: str, length: int) -> str:
    """Return the beginning of a text that is to be redacted, or is already.

    It is cut when nothing secret is left: the first half of an address no longer shows that a
    password is in it.
    """
    return redact(text)[:length] if len(text) > length else text


def redact_words(words: Sequence[str]) -> List[str]:
    """Return the words of a command without secrets, also those that follow their option."""
    return [
        HIDDEN if word[:1] not in ("-", "") and _asks_for_secret(before) else redact(word)
        for before, word in zip(["", *words], words)
    ]


def _asks_for_secret(word: str) -> bool:
    """Tell whether a word says that the next one is a secret: ``--token``, ``password:``."""
    if word[:1] == "-":
        return "=" not in word and is_secret_name(word)
    return word[-1:] in (":", "=") and is_secret_name(word[:-1])


def redact_tree(tree: Any) -> Any:
    """Return what was read from JSON or TOML without the secrets in its texts."""
    if isinstance(tree, str):
        return redact(tree)
    if isinstance(tree, list):
        return [redact_tree(entry) for entry in tree]
    return _redact_table(tree) if isinstance(tree, dict) else tree


def _redact_table(table: Dict[Any, Any]) -> Dict[Any, Any]:
    redacted = {
        key: redact_value(str(key), value) if isinstance(value, str) else redact_tree(value)
        for key, value in table.items()
    }
    if is_secret_name(str(redacted.get("name", ""))) and isinstance(redacted.get("value"), str):
        redacted["value"] = HIDDEN
    return redacted


def redact_value(name: str, value: str) -> str:
    """Return the value of a variable, a setting or a key without secrets, by its name and looks."""
    if is_secret_name(name) and not (_is_plain(value) or _is_working_directory(name, value)):
        return HIDDEN
    return redact(value)


def _is_working_directory(name: str, value: str) -> bool:
    """Tell whether this is the variable that POSIX reserves for an absolute path, rather than the
    password that ODBC calls by the same name.
    """
    return name == "PWD" and value.startswith("/")


def without_credentials(text: str) -> str:
    """Return a text whose addresses stay usable: user and password go without a mark."""
    return _redact_addresses(text, "") if "://" in text else text


def is_secret_name(name: str) -> bool:
    """Tell whether a variable or an option holds a secret, by its name."""
    lowered = name.lower()
    if not any(word in lowered for word in _SECRET_WORDS):
        return False
    end = f"{name}="
    return any(
        _is_secret_word(end[: match.start()], match.group(1), match.group(2))
        for match in _NAMED.finditer(end)
    )


# --------------------------------------------------------------------------------------------------
# addresses


def _redact_addresses(text: str, user: str) -> str:
    if (
        text.startswith("file:///")
        and text.count("://") == 1
        and text.isascii()
        and text.isprintable()
        and not _PARTS_OF_URLS.intersection(text)
    ):  # what the expression makes of it, without compiling it
        return "file:///" + _redact_path(text[8:])
    return _URL.sub(lambda match: _redact_address(match, user), text)


def _redact_address(match: re.Match[str], mark: str) -> str:
    scheme, address = match.string[max(0, match.start() - 12) : match.start()], match.group(1)
    rest, tail = _parted(address)
    revision = ""
    if any(prefix in scheme for prefix in _REVISIONED):
        # A host is followed by a path there, so what has no "/" behind the last "@" is a revision.
        head, at, last = rest.rpartition("@")
        if at and "/" in head and "/" not in last:
            rest, revision = head, at + last
    # A raw "/" or "@" in a password shifts the last "@" to the right: all before it goes.
    _, at, rest = rest.rpartition("@")
    host, slash, path = rest.partition("/")
    closing = host[len(host.rstrip("),.;:]}*")) :] if not host.startswith("[") else ""
    host = host[: len(host) - len(closing)] if closing else host
    if not _HOST.fullmatch(host):
        return f"://{HIDDEN}"
    return f"://{mark if at else ''}{host}{closing}{slash}{_redact_path(path)}{revision}{tail}"


def _parted(address: str) -> Tuple[str, str]:
    """Return an address up to its query or fragment, and what may be shown of these."""
    head, query, _ = address.partition("?")
    if query:
        return head, "?" + HIDDEN
    head, mark, fragment = address.partition("#")
    if not mark:
        return head, ""
    return head, mark + fragment if _FRAGMENT.fullmatch(fragment) else "?" + HIDDEN


def _redact_path(path: str) -> str:
    if len(path) < 12:
        return path
    digest = _DIGEST_PATH.fullmatch(path) if "packages/" in path else None
    kept = digest.group(1) if digest else ""
    segments = path.split("/")
    return "/".join(
        HIDDEN
        if segment != kept and (_is_token(segment) or (before == "t" and len(segment) > 7))
        else segment
        for before, segment in zip(["", *segments], segments)
    )


def _is_token(segment: str) -> bool:
    """Tell whether a path segment may be a private index's token; names and labels are none."""
    if len(segment) < 12 or segment.endswith(_FILES):
        return False
    if _UUID.fullmatch(segment):
        return True
    return any(_is_mixed(word, 12) or len(word) >= 20 for word in _WORDS.findall(segment))


def _is_mixed(word: str, length: int) -> bool:
    """Tell whether a word of this length has digits and letters, as no word of a language has."""
    if len(word) < length:
        return False
    digits = sum(map(str.isdigit, word))
    return digits >= 2 and len(word) - digits >= 2


# --------------------------------------------------------------------------------------------------
# names and their values


def _redact_pairs(text: str) -> str:
    """Hide the ``value:`` that stands behind the ``name:`` of a secret."""
    spans = (
        _value_at(text, match.end(), header=False)
        for match in _PAIR.finditer(text)
        if is_secret_name(match.group(1))
    )
    return _without(text, ((start, end) for start, end in spans if not _is_plain(text[start:end])))


def _redact_named(text: str) -> str:
    """Hide the value behind each name that is a secret's."""
    if "value" in text.lower():
        text = _redact_pairs(text)
    return _without(text, _assigned_secrets(text))


def _named_secrets(text: str) -> Iterator[re.Match[str]]:
    """Yield what ``_NAMED.finditer`` does. Of a long text most is no name: words are looked for
    first, which takes a tenth of the time.
    """
    lowered = text.lower()
    if len(lowered) != len(text):  # the Turkish capital I becomes two characters
        yield from _NAMED.finditer(text)
        return
    done = 0
    for start in sorted(start for word in _SECRET_WORDS for start in _places(word, lowered)):
        match = _NAMED.match(text, start) if start >= done else None
        if match is not None:
            done = match.end()
            yield match


def _places(word: str, text: str) -> Iterator[int]:
    start = text.find(word)
    while start >= 0:
        yield start
        start = text.find(word, start + 1)


def _assigned_secrets(text: str) -> Iterator[Tuple[int, int]]:
    judged: Dict[Tuple[str, str, str], bool] = {}  # most names are there more than once
    done = 0
    for match in _named_secrets(text):
        if match.start() < done:
            continue
        word, suffix, mark = match.groups()
        name = (_name_before(text, match.start()), word, suffix)
        header = ":" in mark and word.lower().startswith(("authorization", "cookie"))
        if not _is_assigned(match, name[0], header):
            continue
        if name not in judged:
            judged[name] = _is_secret_word(*name)
        if not judged[name]:
            continue
        begin, end = _value_at(text, match.end(), header)
        value = text[begin:end]
        is_folder = not name[0] and _is_working_directory(word + suffix, value)
        if not is_folder and not _is_plain(value, word.lower()):
            yield begin, end
            done = end


def _is_assigned(match: re.Match[str], prefix: str, header: bool) -> bool:
    """Tell whether a value follows a name, rather than a sentence about a file or an option."""
    text, mark = match.string, match.group(3)
    start = match.start() - len(prefix)
    if ":" in mark and text[start - 1 : start] == "/":
        return False  # a path that a message begins with
    if "=" in mark:
        return True
    if not header and _SENTENCE.match(text, match.end()):
        return False
    # Without a sign it is a word of a sentence or of a list, unless it is an option.
    return ":" in mark or prefix[:1] == "-" or _is_declared(match, start)


def _without(text: str, spans: Iterable[Tuple[int, int]]) -> str:
    parts: List[str] = []
    done = 0
    for start, end in spans:
        if start < done:
            continue
        parts += (text[done:start], HIDDEN)
        done = end
    return "".join([*parts, text[done:]]) if parts else text


def _name_before(text: str, start: int) -> str:
    """Return what of a name stands before its word."""
    if not start or text[start - 1] in " \n\"'":
        return ""
    backwards = _BACKWARDS.match(text[max(0, start - 80) : start][::-1])
    return backwards.group()[::-1] if backwards is not None else ""


def _value_at(text: str, start: int, header: bool) -> Tuple[int, int]:
    """Return where a value begins and ends: in its quotes, or to the end of a header's line."""
    if text[start : start + 1] in _BEFORE_QUOTES:
        opening = _OPENING.match(text, start)
        if opening is not None:
            closing = _QUOTED[opening.group(1) or opening.group(2)]
            end = _end(closing, text, opening.end())
            members = _MEMBERS.match(text, start) if text[start] == "{" else None
            return (start, members.end()) if members else (opening.end(), end)
    return start, _end(_REST_OF_LINE if header else _VALUE, text, start)


def _end(expression: re.Pattern[str], text: str, start: int) -> int:
    match = expression.match(text, start)
    return match.end() if match is not None else start


def _is_plain(value: str, word: str = "") -> bool:
    """Tell whether a value is no secret although its name says so."""
    if not value or _PLAIN.fullmatch(value):
        return True
    if word.startswith("pass"):
        return word == "pass" and _NUMBER.fullmatch(value) is not None
    if word == "token" and len(value) < 4:
        return True
    if word == "signature":
        return not _is_mixed(value, 12)
    return (_NUMBER.fullmatch(value) or _PATH.fullmatch(value)) is not None


def _is_declared(match: re.Match[str], start: int) -> bool:
    """Tell whether ``NAME value`` is an assignment: a Dockerfile's, or one whose value says so."""
    before = match.string[max(0, start - 8) : start] if match.group(1).isupper() else ""
    if before and _DECLARED.search(before):
        return True
    if not _WITH_DIGIT.match(match.string, match.end()):
        return False
    value = match.string[match.end() : match.end() + 24]
    return any(_is_mixed(word, 12) for word in _WORDS.findall(value))


def _redact_option(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 200) : match.start()].lower()
    commands = next(_COMMANDS[name] for name, text in match.groupdict().items() if text)
    return match.group(1) + HIDDEN if any(map(before.__contains__, commands)) else match.group()


def _is_secret_word(prefix: str, word: str, suffix: str) -> bool:
    """Tell whether a name is a secret's, by what stands before and behind its word."""
    capitals = word.isupper()
    *others, end = [word, *_UNITS_OF_NAMES.findall(suffix)]
    if others and end.lower() in _JUDGES:  # "secret_access_key", "auth_token"
        return _JUDGES[end.lower()](others[-1], False, end.isupper())
    if _is_about_secret(suffix, capitals):
        return False
    units = _UNITS_OF_NAMES.findall(prefix)
    last = _last_hump(units[-1]) if units else ""
    adjacent = prefix[-1:].isalnum() and not (prefix[-1].islower() and word[0].isupper())
    return _JUDGES[word.lower()](last, adjacent, capitals)


def _is_about_secret(suffix: str, capitals: bool) -> bool:
    """Tell whether what follows the word makes it a name of something else: ``token_count``."""
    units = [unit for unit in _UNITS_OF_NAMES.findall(suffix) if not unit.isdigit()]
    return bool(units) and (not capitals or any(unit.lower() in _ABOUT for unit in units))


def _last_hump(word: str) -> str:
    """Return the last word of a name in camel case."""
    if word.isupper() or word.islower():
        return word
    return word[max((number for number, sign in enumerate(word) if sign.isupper()), default=0) :]


def _is_secret_key(last: str, adjacent: bool, capitals: bool) -> bool:
    if capitals and not adjacent:
        return bool(last) and last not in _OTHER_KEYS
    return last.lower() in _KEYS_OF_SECRETS


def _is_secret_token(last: str, adjacent: bool, capitals: bool) -> bool:  # noqa: ARG001
    if adjacent:
        return _JOINED.search(last.lower()) is not None
    return last.lower() not in _TOKENS_OF_TEXTS


def _is_secret_plural(last: str, adjacent: bool, capitals: bool) -> bool:  # noqa: ARG001
    return last.lower() in _PLURALS_OF_SECRETS


def _is_secret_pass(last: str, adjacent: bool, capitals: bool) -> bool:
    return bool(last) and not adjacent and (capitals or last.lower() in ("db", "user", "smtp"))


def _is_secret_alone(last: str, adjacent: bool, capitals: bool) -> bool:  # noqa: ARG001
    return not adjacent


def _is_secret_always(last: str, adjacent: bool, capitals: bool) -> bool:  # noqa: ARG001
    return True


#: How each word of ``_NAMED`` is judged, by what stands before it.
_JUDGES = {
    "key": _is_secret_key,
    "token": _is_secret_token,
    "pass": _is_secret_pass,
    **dict.fromkeys(("tokens", "keys"), _is_secret_plural),
    **dict.fromkeys(
        ("auth", "authentication", "cookie", "cookies", "pwd", "signature"), _is_secret_alone
    ),
    **dict.fromkeys(
        ("authorization", "secret", "secrets", "password", "passwords", "passwd"),
        _is_secret_always,
    ),
    **dict.fromkeys(("passphrase", "credential", "credentials"), _is_secret_always),
}


# --------------------------------------------------------------------------------------------------
# tokens by their looks


def _redact_shape(match: re.Match[str]) -> str:
    """Hide what follows an issuer's mark, unless it is a word: ``hf_transfer``, ``sk-learn``."""
    body = next(filter(None, match.groups()))
    digits = any(map(str.isdigit, body))
    if match.group().startswith(("hf_", "api_org_")):
        return HIDDEN if digits or len(body) >= 16 else match.group()
    return (
        HIDDEN if digits or max(map(len, _WORDS.findall(body)), default=0) >= 16 else match.group()
    )


def _redact_scheme(match: re.Match[str]) -> str:
    """Hide a credential, and leave "basic usage" alone."""
    value = match.group(3)
    if not _LOOKS_ENCODED.search(value) and len(value) < 20:
        return match.group()
    return f"{match.group(1)}{match.group(2)}{HIDDEN}"


def _has_long_word(text: str) -> bool:
    """Tell whether ``_OPAQUE`` may match: no word of it holds any of these separators."""
    if len(text) < 32:
        return False
    for separator in "/:.,;":
        text = text.replace(separator, " ")
    return max(map(len, text.split()), default=0) >= 32


def _redact_opaque(match: re.Match[str]) -> str:
    """Hide a long word that nobody has chosen; a name has words that are short."""
    word = match.group()
    if _LABELLED.search(match.string[max(0, match.start() - 16) : match.start()]):
        return word
    if _IDENTIFIER.fullmatch(word) or word.startswith("_Z"):  # the latter is a symbol of C++
        return word
    return HIDDEN if any(_is_mixed(piece, 16) for piece in _WORDS.findall(word)) else word


def _without_private_keys(text: str) -> str:
    """Hide private keys in PEM, also one whose end was cut; the number of lines stays."""
    parts: List[str] = []
    done = 0
    ended = True
    for match in _PEM.finditer(text):
        if match.start() < done:
            continue
        closing = _PEM_END.search(text, match.end()) if ended else None
        ended = closing is not None
        end = closing.end() if closing is not None else _end(_PEM_BODY, text, match.end())
        parts += (text[done : match.start()], _NO_NEWLINE.sub(HIDDEN, text[match.start() : end]))
        done = end
    return "".join([*parts, text[done:]]) if parts else text


def _without_bare_users(text: str) -> str:
    """Hide ``user:password`` before a host; few lines have an "@"."""
    if "\n" not in text:
        return _BARE_USER.sub(HIDDEN + "@", text)
    lines = [_without_bare_users(line) if "@" in line else line for line in text.split("\n")]
    return "\n".join(lines)


#: Which words a text must hold for a step to change it, whether in lower case, and the step. What
#: cannot match is not asked: compiling these expressions takes longer than a whole probe, and most
#: texts are plain paths.
_STEPS: Tuple[Tuple[Tuple[str, ...], bool, Callable[[str], str]], ...] = (
    (("-----BEGIN",), False, _without_private_keys),
    (("://",), False, lambda text: _redact_addresses(text, HIDDEN + "@")),
    (_SHAPE_STARTS, False, lambda text: _SHAPES.sub(_redact_shape, text)),
    (_SECRET_WORDS, True, _redact_named),
    (("login", "curl"), True, lambda text: _COMMAND_OPTION.sub(_redact_option, text)),
    (("bearer", "basic"), True, lambda text: _SCHEME.sub(_redact_scheme, text)),
    (("@",), False, _without_bare_users),
)
