"""What pip and uv are configured with, as uv is told it. pip itself says what its files and
variables mean.
"""

import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from envdoctor.errors import InputError
from envdoctor.lock.closing.index_sources import read_sources
from envdoctor.lock.closing.uv import find_uv
from envdoctor.model.redaction import without_credentials

CONFIGURATION = """[global]
index-url = https://user:s3cret@files.example/simple
extra-index-url =
    https://one.example/simple
    https://two.example/simple
timeout = 7
trusted-host = files.example
[install]
find-links = ./wheels /srv/wheels
[list]
index-url = https://wrong.example
"""


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "pip.conf").write_text(CONFIGURATION)
    return {
        "HOME": str(tmp_path),  # pip asks rustc, and a rustc of rustup makes its home
        "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
        "VIRTUAL_ENV": "/nonexistent",
    }


def test_pips_configuration_becomes_uvs_variables(environ):
    sources = read_sources(environ)
    assert sources.environment["UV_DEFAULT_INDEX"] == "https://user:s3cret@files.example/simple"
    assert sources.environment["UV_INDEX"].split() == [
        "https://one.example/simple",
        "https://two.example/simple",
    ]
    assert sources.environment["UV_FIND_LINKS"] == f"{os.path.abspath('wheels')},/srv/wheels"
    assert sources.environment["UV_HTTP_TIMEOUT"] == "7"
    assert sources.environment["UV_INSECURE_HOST"] == "files.example"
    assert sources.environment["UV_INDEX_STRATEGY"] == "unsafe-best-match"  # as pip does
    assert "--index-url https://files.example/simple" in sources.options
    assert "s3cret" not in " ".join(sources.options)
    assert sources.further


def test_pip_reads_the_same_values(environ):
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        env={**environ, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "global.index-url='https://user:s3cret@files.example/simple'" in done.stdout
    assert "install.find-links='./wheels /srv/wheels'" in done.stdout


def test_an_option_wins_over_uv_and_uv_over_pip(environ):
    variables = {**environ, "PIP_INDEX_URL": "https://pip.example/simple"}
    assert read_sources(variables).environment["UV_DEFAULT_INDEX"] == "https://pip.example/simple"
    variables["UV_INDEX_URL"] = "https://uv.example/simple"
    assert read_sources(variables).environment["UV_DEFAULT_INDEX"] == "https://uv.example/simple"
    assert (
        read_sources(variables, index_url="https://mine.example/simple").environment[
            "UV_DEFAULT_INDEX"
        ]
        == "https://mine.example/simple"
    )
    assert "UV_INDEX_URL" not in read_sources(variables).environment


def test_indexes_of_all_origins_are_joined(environ):
    variables = {
        **environ,
        "UV_EXTRA_INDEX_URL": "https://three.example/simple",
        "UV_INDEX_STRATEGY": "first-index",
    }
    sources = read_sources(variables, extra_index_url=["https://zero.example/simple"])
    assert [
        address.split("//")[1].split(".")[0] for address in sources.environment["UV_INDEX"].split()
    ] == ["zero", "three", "one", "two"]
    assert sources.environment["UV_INDEX_STRATEGY"] == "first-index"


def test_no_index_leaves_folders_alone(environ):
    sources = read_sources({**environ, "PIP_NO_INDEX": "1"})
    assert sources.no_index
    assert "UV_DEFAULT_INDEX" not in sources.environment
    assert sources.environment["UV_FIND_LINKS"]


@pytest.mark.parametrize("value", ["", "0", "false", "1", "true", "yes", "on", "t", "y"])
def test_uv_has_no_variable_for_no_index(value, environ, tmp_path):
    """uv itself is asked: what is set there changes nothing, for it and so for us."""
    (tmp_path / "wanted.in").write_text("no-such-package-here\n")
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)  # answers 501 to everything
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/simple"
    variables = {"UV_NO_INDEX": value, "UV_DEFAULT_INDEX": url, "UV_NO_CACHE": "1"}
    variables.update(UV_HTTP_RETRIES="0", PATH=os.environ["PATH"], HOME=str(tmp_path))
    done = subprocess.run(
        [str(find_uv(os.environ)), "pip", "compile", "wanted.in"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    server.shutdown()
    asked_index = "501" in done.stderr
    assert asked_index is not read_sources({**environ, **variables}).no_index, done.stderr


@pytest.mark.parametrize(
    "value",
    ["1", "YES", "no"]
    + [
        pytest.param(value, marks=pytest.mark.slow)
        for value in ["true", "on", "t", "y", "0", "false"]
    ],
)
def test_pip_says_what_turns_the_index_off(value, environ, run_pip, tmp_path):
    variables = {**environ, "PIP_NO_INDEX": value, "PATH": os.environ["PATH"]}
    variables["PIP_CONFIG_FILE"] = os.devnull
    done = run_pip(
        "download",
        "-vv",
        "no-such-package-here",
        "--retries=0",
        "--index-url=http://127.0.0.1:9/simple",
        "--disable-pip-version-check",
        env=variables,
        cwd=tmp_path,
    )
    ignored = "Ignoring indexes" in done.stdout
    assert read_sources(variables).no_index is ignored, done.stdout + done.stderr


def test_a_proxy_of_pip_is_one_unless_another_is_set(environ):
    assert (
        read_sources({**environ, "PIP_PROXY": "proxy.example:3128"}).environment["ALL_PROXY"]
        == "http://proxy.example:3128"
    )
    assert (
        "ALL_PROXY"
        not in read_sources(
            {**environ, "PIP_PROXY": "proxy.example:3128", "https_proxy": "http://other"}
        ).environment
    )


def test_nothing_configured_is_uvs_own_default():
    sources = read_sources({"HOME": "/nonexistent", "PIP_CONFIG_FILE": os.devnull})
    assert sources.options == ()
    assert not sources.further
    assert not [name for name in sources.environment if name.startswith("UV_")]


def test_a_configuration_that_pip_cannot_read_is_named(environ, tmp_path):
    (tmp_path / "pip.conf").write_text("index-url = https://files.example\n")
    with pytest.raises(InputError, match=r"pip\.conf"):
        read_sources(environ)


def test_a_configuration_of_faults_alone_is_not_read(environ, tmp_path):
    """configparser takes 40 s for what is wrong with 100,000 lines."""
    (tmp_path / "pip.conf").write_text("_\n" * 100_000)
    with pytest.raises(InputError, match="more than 2000 lines"):
        read_sources(environ)


@pytest.mark.parametrize(
    "text",
    [
        "https://user:p%40ss@host.example/simple",
        "see https://token@host.example/a and https://a:b@c.example",
    ],
)
def test_credentials_are_left_out(text):
    shown = without_credentials(text)
    assert "@" not in shown
    assert "host.example" in shown


def test_options_name_nothing_of_this_machine(tmp_path):
    environ = {"HOME": "/nonexistent", "PIP_CONFIG_FILE": os.devnull, "VIRTUAL_ENV": "/nonexistent"}
    sources = read_sources(
        environ,
        extra_index_url=["file:///srv/simple", "https://one.example/simple"],
        find_links=["wheels", "https://two.example/links"],
    )
    assert sources.environment["UV_INDEX"].split() == [
        "file:///srv/simple",
        "https://one.example/simple",
    ]
    assert sources.options == (
        "--extra-index-url https://one.example/simple",
        "--find-links https://two.example/links",
    )
    assert sources.local == ("file:///srv/simple", os.path.abspath("wheels"))
    assert sources.strategy == "unsafe-best-match"
    own = read_sources(
        {**environ, "UV_INDEX_STRATEGY": "first-index"}, extra_index_url=["https://one.example"]
    )
    assert own.strategy == "first-index"
    assert read_sources(environ).strategy == ""
