"""No secret leaves: by name, by value, in addresses, in pip's configuration; what people need stays
readable.
"""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from envdoctor.model import redaction
from envdoctor.model.redaction import HIDDEN, redact, redact_words

from ..time_taken import within

SECRET = "Zq7xW9pLk2Vn8Rt4"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"https://user:{SECRET}@pypi.example.com/simple", "https://***@pypi.example.com/simple"),
        (
            f"https://{SECRET}@pypi.example.com:8443/simple/",
            "https://***@pypi.example.com:8443/simple/",
        ),
        (f"https://user:a/{SECRET}@host/simple", "https://***@host/simple"),
        (f"https://user:a@{SECRET}@host/simple", "https://***@host/simple"),
        (f"https://user:a,{SECRET};b@host/simple", "https://***@host/simple"),
        (f"https://host/simple?token={SECRET}", "https://host/simple?***"),
        (f"https://host/simple?{SECRET}#x", "https://host/simple?***"),
        (
            f"https://dl.example.com/{SECRET}/org/python/simple/",
            "https://dl.example.com/***/org/python/simple/",
        ),
        (f"http://{SECRET}", f"http://{SECRET}"),  # a bare host: nothing tells it from a name
        (
            f"git+https://{SECRET}@github.com/org/repo.git@0123456789abcdef",
            "git+https://***@github.com/org/repo.git@0123456789abcdef",
        ),
        ("git+ssh://git@github.com/org/repo@v1", "git+ssh://***@github.com/org/repo@v1"),
        ("https://download.pytorch.org/whl/cu124", "https://download.pytorch.org/whl/cu124"),
        ("https://download.pytorch.org/whl/cu124/torch-2.6.0%2Bcu124-cp310-cp310-linux_x86_64.whl",)
        * 2,
        ("tcp://10.0.0.1:29500", "tcp://10.0.0.1:29500"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        (f"user:{SECRET}@proxy:3128", "***@proxy:3128"),
        (f"--api-key {SECRET} --port 8000", "--api-key *** --port 8000"),
        (f"--api-key={SECRET} --port 8000", "--api-key=*** --port 8000"),
        (f"password: {SECRET}", "password: ***"),
        (f"Authorization: Bearer {SECRET}", "Authorization: ***"),
        (f'{{"token": "{SECRET}"}}', '{"token": "***"}'),
        (f'{{"secret_key": "{SECRET}"}}', '{"secret_key": "***"}'),
        (f"aws_secret_access_key = {SECRET}", "aws_secret_access_key = ***"),
        (f"auth_token: {SECRET}", "auth_token: ***"),
        (f'{{"auth": {{"bearer": "{SECRET}"}}, "x": 2}}', '{"auth": ***, "x": 2}'),
        (f'{{"auth": {{"a": {{"b": 1}}, "c": "{SECRET}"}}}}', '{"auth": ***}'),
        ("token: {{ secrets.TOKEN }}",) * 2,
        ("primary_key: id, cache_key: abcdefgh, pad_token_id: 151643",) * 2,
        ("hf_abcdefghijklmnop", "***"),
        ("x=ghp_abcdefghijklmnop", "x=***"),
        ("0123456789abcdef0123456789abcdef", "***"),
        ("/usr/local/nvidia/lib:/usr/local/nvidia/lib64",) * 2,
        ("/nix/store/0c5ih2hwdvkbxrhv7n7ywr5x9qxcl2nd-cuda_cudart-12.4.127/lib",) * 2,
        ("GPU-8f6d0e2a-1111-2222-3333-444444444444,GPU-9f6d0e2a-1111-2222-3333-444444444444",) * 2,
        ("MIG-8f6d0e2a-1111-2222-3333-444444444444",) * 2,
        ("expandable_segments:True,max_split_size_mb:128",) * 2,
        ("brand=tesla,driver>=470,driver<471 cuda>=12.4",) * 2,
        ("7.0 7.5 8.0 8.6 9.0+PTX",) * 2,
        ("", ""),
    ],
)
def test_redact(text, expected):
    assert redact(text) == expected
    assert redact(expected) == expected, "redaction is final"


_TOKEN = st.text(
    "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789", min_size=20, max_size=60
)
_PLACES = [
    "https://user:{}@host.example/simple",
    "https://{}@host.example/simple",
    "https://{}:x-oauth@host.example/simple",
    "https://host.example/simple?x={}",
    "https://host.example/{}/simple",
    "--extra-index-url https://a:{}@host/simple https://b:{}@host/simple",
    "socks5://u:{}@10.0.0.1:1080",
    "s3://{}@bucket/x",
    "api_key={}",
    "TOKEN: {}",
    "--password {}",
    "bearer {}",
    "hf_{}",
    "sk-{}",
    "a:{}@proxy:3128",
]


@settings(max_examples=400)
@given(
    _TOKEN,
    st.sampled_from(_PLACES),
    st.sampled_from(["{}", "x {} y", "a,{}", "{};b", '"{}"', "({})"]),
)
def test_tokens_never_survive(token, place, around):
    assume(any(map(str.isdigit, token)))
    assert token not in redact(around.format(place.replace("{}", token)))


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=500), st.text("ab:/@?#=.-_ keytoknsr[]\\'\"*", max_size=500)))
def test_redact_takes_anything(text):
    once = redact(text)
    assert len(once) <= 4 * len(text) + 16


@pytest.mark.parametrize("name", ["_SHAPES", "_NAMED", "_SCHEME", "_BARE_USER", "_URL", "_PEM"])
def test_what_is_not_asked_cannot_match(name):
    """``redact`` asks a pattern only where a word of it is there: each text that the pattern
    matches has to get so far.
    """
    original = getattr(redaction, name)
    asked = {
        "_SHAPES": lambda text: any(start in text for start in redaction._SHAPE_STARTS),
        "_SCHEME": lambda text: "bearer" in text.lower() or "basic" in text.lower(),
        "_PEM": lambda text: "-----begin" in text.lower(),
        "_BARE_USER": lambda text: "@" in text,
        "_URL": lambda text: "://" in text,
    }.get(name, lambda text: any(word in text.lower() for word in redaction._SECRET_WORDS))

    @settings(max_examples=60)
    @given(st.from_regex(original.search.__self__))
    def check(text):
        assert asked(text)

    check()


def test_redact_is_quick():
    pieces = (
        "a",
        "key",
        "k=",
        "://",
        "a:",
        "@",
        "a:b@",
        "-",
        "/",
        "https://a@",
        "token ",
        "eyJ",
        ".",
        "Bearer ",
    )
    within(2, lambda: [redact((piece * 8192)[:8192]) for piece in pieces])


_SEGMENTS = st.sampled_from(
    [
        "/",
        "a",
        "abc12def34gh56",
        "é",
        "@",
        "?",
        "x.whl",
        " ",
        "\x1c",
        "'",
        "://",
        "a" * 24,
        "\\",
        ":",
        "%20",
    ]
)


@given(st.lists(_SEGMENTS, max_size=9).map("".join))
def test_addresses_of_files_are_redacted_as_any_other(path):
    """The short way that spares a start the regular expressions gives what they give."""
    text = redaction.redact(f"file:///{path}")
    assert text == redaction.redact(f" file:///{path}")[1:]


def test_the_working_directory_is_no_secret():
    """Its name alone does not tell: ODBC calls a password so."""
    for folder in ("/", "/Users/Ada/My Project", "/root/work"):
        assert redaction.redact_value("PWD", folder) == folder
    assert redaction.redact("PWD=/Users/Ada/work") == "PWD=/Users/Ada/work"
    for name, value in (("PWD", "hunter2"), ("DB_PWD", "/Hunter2"), ("pwd", "Hunter2/x")):
        assert redaction.redact_value(name, value) == redaction.HIDDEN
    assert "hunter2" not in redaction.redact("Driver=x;UID=sa;PWD=hunter2")
    assert "hunter2" not in redaction.redact("PWD=hunter2")


def test_words_of_a_command_may_stand_apart_from_their_name():
    words = ["x", "api_key:", SECRET, "--hf-token", SECRET, "password=", SECRET, "n:", "8"]
    hidden = ["x", "api_key:", HIDDEN, "--hf-token", HIDDEN, "password=", HIDDEN, "n:", "8"]
    assert redact_words(words) == hidden


@given(
    st.lists(
        st.sampled_from(
            [
                *redaction._SECRET_WORDS,
                "passwd",
                "TOKENS",
                "api_",
                "=",
                ": ",
                " ",
                "\n",
                "x1y2",
                "İ",
            ]
        ),
        max_size=30,
    )
)
def test_names_of_secrets_stand_where_their_words_are(pieces):
    """The quick search for names yields what the expression does on the whole text."""
    text = "".join(pieces)
    spans = [match.span() for match in redaction._named_secrets(text)]
    assert spans == [match.span() for match in redaction._NAMED.finditer(text)]
