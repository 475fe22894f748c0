"""Where packages come from: options, the variables of uv and pip, and pip's configuration files, as
one set of variables for uv.

uv reads its own variables and configuration; what people have set for pip it does not read. Nothing
here goes on a command line, where every user of the machine would see the credentials in an
address.
"""

from __future__ import annotations

import configparser
import os
import sys
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...errors import InputError
from ...model.redaction import without_credentials
from ...regular_files import read_regular

__all__ = ["IndexSources", "is_local", "read_sources"]

#: pip's option -> the variable that says the same to uv; what uv's user has set wins.
_SAME: Mapping[str, str] = {
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "trusted-host": "UV_INSECURE_HOST",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "keyring-provider": "UV_KEYRING_PROVIDER",
}
_PIP_OPTIONS = ("index-url", "extra-index-url", "find-links", "no-index", "proxy", *_SAME)
#: They would change what is resolved beside what the lock says, or name files relative to where the
#: user stands.
_DROPPED = (
    "UV_EXCLUDE_NEWER",
    "UV_TORCH_BACKEND",
    "UV_NO_CONFIG",
    "UV_CUSTOM_COMPILE_COMMAND",
    "UV_NO_BINARY",
    "UV_NO_BUILD",
    "UV_RESOLUTION",
)
_PATHS = ("UV_CACHE_DIR", "UV_CONFIG_FILE", "SSL_CERT_FILE", "SSL_CLIENT_CERT")


_DEFAULTS = ("UV_DEFAULT_INDEX", "UV_INDEX_URL")
_PLACED = (
    *_DEFAULTS,
    "UV_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
)
"""Variables of uv that name places; they are written anew."""
#: What pip reads as a switch that is on (strtobool); uv 0.13 has no variable for no-index.
_ON = ("1", "true", "yes", "on", "t", "y")
#: Of a file of pip: what configparser takes for its faults grows with the square of the lines.
_LARGEST, _MOST_LINES = 1 << 20, 2000
_PROXIES = ("ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy")


class IndexSources(NamedTuple):
    """What uv is told; ``environment`` is its whole environment.

    options: what of it another machine can be told as well, as options of pip and uv, without
    credentials. strategy: uv's, where there is more than one index. local: the folders of this
    machine that are looked into.
    """

    environment: Mapping[str, str]
    options: Tuple[str, ...] = ()
    offline: bool = False
    strategy: str = ""
    local: Tuple[str, ...] = ()

    @property
    def no_index(self) -> bool:
        """Whether nothing but folders and pages of links counts: uv has only an option for it."""
        return "--no-index" in self.options

    @property
    def further(self) -> bool:
        """Whether there is more than one index: a release may then stand in several builds."""
        return bool(self.local) or any(
            not option.startswith(("--index-url", "--no-index")) for option in self.options
        )


def read_sources(
    environ: Mapping[str, str],
    *,
    index_url: Optional[str] = None,
    extra_index_url: Sequence[str] = (),
    find_links: Sequence[str] = (),
    offline: bool = False,
) -> IndexSources:
    """Join options, variables and pip's configuration.

    An option wins over uv's variables, those over pip's, and those over its files.

    Raises:
        InputError: a configuration file of pip that pip could not read either.
    """
    pip = _pip_options(environ)
    default = index_url or _first(environ, *_DEFAULTS) or pip.get("index-url")
    extra = [
        *extra_index_url,
        *_words(environ, "UV_INDEX"),
        *_words(environ, "UV_EXTRA_INDEX_URL"),
        *pip.get("extra-index-url", "").split(),
    ]
    links = [
        *find_links,
        *environ.get("UV_FIND_LINKS", "").split(","),
        *pip.get("find-links", "").split(),
    ]
    no_index = pip.get("no-index", "").lower() in _ON
    places = _Places(
        None if no_index else default,
        () if no_index else tuple(dict.fromkeys(extra)),
        tuple(dict.fromkeys(map(_whole, filter(None, links)))),
        no_index,
    )
    variables = {**_variables_of(environ, pip), **places.variables()}
    if places.extra:
        # As pip does with the same options: the best version of all indexes, not whatever the first
        # one has.
        variables.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    options = places.options()
    return IndexSources(
        variables,
        tuple(f"{name} {place}".strip() for name, place in options if not is_local(place)),
        offline,
        variables.get("UV_INDEX_STRATEGY", "") if places.extra else "",
        tuple(place for _, place in options if is_local(place)),
    )


class _Places(NamedTuple):
    """Where packages come from. ``no_index``: from the links alone."""

    default: Optional[str]
    extra: Tuple[str, ...]
    links: Tuple[str, ...]
    no_index: bool

    def variables(self) -> Dict[str, str]:
        """The places as variables of uv."""
        named = {
            "UV_DEFAULT_INDEX": self.default or "",
            "UV_INDEX": " ".join(self.extra),
            "UV_FIND_LINKS": ",".join(self.links),
        }
        return {name: value for name, value in named.items() if value}

    def options(self) -> List[Tuple[str, str]]:
        """The places as options of uv and pip, without credentials."""
        named = [
            *(("--index-url", place) for place in (self.default,) if place),
            *(("--extra-index-url", place) for place in self.extra),
            *(("--find-links", place) for place in self.links),
        ]
        switches = [("--no-index", "")] if self.no_index else []
        return [*((name, _address(place)) for name, place in named), *switches]


def _variables_of(environ: Mapping[str, str], pip: Mapping[str, str]) -> Dict[str, str]:
    """Return the environment for uv, with what pip's configuration says besides, and no places."""
    variables = {
        name: value
        for name, value in environ.items()
        if name not in _DROPPED and name not in _PLACED
    }
    for name, variable in _SAME.items():
        if name in pip:
            variables.setdefault(variable, pip[name])
    if "proxy" in pip and not any(name in environ for name in _PROXIES):
        variables["ALL_PROXY"] = pip["proxy"] if "://" in pip["proxy"] else f"http://{pip['proxy']}"
    for name in _PATHS:
        if variables.get(name):
            variables[name] = _whole(variables[name])
    return variables


def _first(environ: Mapping[str, str], *names: str) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")


def _whole(place: str) -> str:
    """An address as it is, a path from the root."""
    return place if "://" in place else os.path.abspath(os.path.expanduser(place))


def is_local(place: str) -> bool:
    """Tell whether an index or a page of links lies on this machine, where no other finds it."""
    return place.startswith(("file:", "/", "~", "."))


def _address(text: str) -> str:
    """An address as an option shows it; uv's ``name=address`` loses its name."""
    name, equals, address = text.partition("=")
    return without_credentials(address if equals and "://" not in name else text)


def _words(environ: Mapping[str, str], name: str) -> List[str]:
    return environ.get(name, "").split()


def _pip_options(environ: Mapping[str, str]) -> Dict[str, str]:
    """What pip would read: its files, the later ones over the earlier, then its variables."""
    options: Dict[str, str] = {}
    for path in _pip_files(environ):
        parser = configparser.RawConfigParser()
        try:
            text = read_regular(path, _LARGEST).decode("utf-8")
            if text.count("\n") > _MOST_LINES:
                raise InputError(
                    f"{path}: expected pip's configuration, found more than {_MOST_LINES} lines"
                )
            parser.read_string(text, path)
        except (OSError, UnicodeDecodeError):  # pip goes on without it as well
            continue
        except configparser.Error as error:
            raise InputError(
                f"{path}: pip's configuration cannot be read: {' '.join(str(error).split())}"
            ) from error
        for section in ("global", "install"):
            if parser.has_section(section):
                options.update(
                    {name.replace("_", "-"): value for name, value in parser.items(section)}
                )
    for name in _PIP_OPTIONS:
        value = environ.get(f"PIP_{name.upper().replace('-', '_')}")
        if value:
            options[name] = value
    return {
        name: " ".join(value.split())
        for name, value in options.items()
        if name in _PIP_OPTIONS and value.split()
    }


def _pip_files(environ: Mapping[str, str]) -> List[str]:
    own = environ.get("PIP_CONFIG_FILE")
    if own == os.devnull:
        return []
    home = environ.get("HOME") or os.path.expanduser("~")
    folders = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    files = [os.path.join(folder, "pip", "pip.conf") for folder in folders.split(os.pathsep)] + [
        "/etc/pip.conf"
    ]
    files += [
        os.path.join(home, ".pip", "pip.conf"),
        os.path.join(
            environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "pip", "pip.conf"
        ),
    ]
    files.append(os.path.join(environ.get("VIRTUAL_ENV") or sys.prefix, "pip.conf"))
    return files + ([own] if own else [])
