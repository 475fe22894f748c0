"""Requirement lines against packaging.requirements, which is the oracle that the package itself
does not import.
"""

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement as OracleInvalid
from packaging.requirements import Requirement as Oracle
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from envdoctor.model.requirement import (
    InvalidRequirement,
    is_for_extra,
    parse_requirement,
    try_requirement,
)
from envdoctor.model.versions import InvalidSpecifier, VersionSet

space = st.sampled_from(["", "", "", " ", "  ", "\t"])
names = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,6}[A-Za-z0-9])?", fullmatch=True)
extras = st.one_of(
    st.just(""), st.lists(names, max_size=3).map(lambda found: f"[{' , '.join(found)}]")
)
clauses = st.builds(
    lambda operator, gap, version: operator + gap + version,
    st.sampled_from(["==", ">=", "<", "<=", ">", "!=", "~=", "==="]),
    space,
    st.sampled_from(["1.0", "2.6.0", "1.0rc1", "3.0.post1", "1!2.0", "0.4.dev3"]),
)
bounds = st.lists(clauses, max_size=3).flatmap(
    lambda parts: st.sampled_from([",".join(parts), ", ".join(parts), f"({','.join(parts)})"])
)
addresses = st.sampled_from(
    ["https://h/a-1.0-py3-none-any.whl", "git+https://h/r@v1;x#egg=a", "file:///a%20b", "h://u:p@x"]
)
markers = st.sampled_from(
    [
        "python_version < '3.9'",
        'extra == "gpu"',
        "sys_platform == 'linux' and extra=='a.b'",
        "'x' == extra",
        "platform_machine != 'a@b;c'",
    ]
)
tails = st.one_of(
    st.builds(lambda gap, bound: gap + bound, space, bounds),
    st.builds(lambda gap, address: f"{gap}@ {address}", space, addresses),
)
lines = st.builds(
    lambda before, name, gap, extra, tail, marker: f"{before}{name}{gap}{extra}{tail}{marker}",
    space,
    names,
    space,
    extras,
    tails,
    st.one_of(st.just(""), st.builds("{0} ;{0}{1}".format, st.sampled_from([" ", "  "]), markers)),
)


def _damaged(line, place, sign):
    place %= len(line) + 1
    return line[:place] + sign + line[place + (not sign) :]


near_misses = st.builds(
    _damaged, lines, st.integers(0, 60), st.sampled_from(["", *"[](),;@ =<>!~.-x1'\"é"])
)


@settings(max_examples=600)
@given(lines)
@example("torch >=2.5, <3")
@example("requests [security] (>=2.8.1,)")
def test_a_requirement_is_read_as_packaging_reads_it(line):
    try:
        oracle = Oracle(line)
    except OracleInvalid:
        assume(False)
    requirement = parse_requirement(line)
    assert requirement.name == canonicalize_name(oracle.name)
    assert set(requirement.extras) == {canonicalize_name(extra) for extra in oracle.extras}
    assert SpecifierSet(requirement.specifier) == oracle.specifier
    assert requirement.url == (oracle.url or "")
    assert bool(requirement.marker) == (oracle.marker is not None)
    if oracle.marker is not None:
        assert Oracle(f"x; {requirement.marker}").marker == oracle.marker


def _means_something(requirement):
    try:
        VersionSet.parse(requirement.specifier)
        Oracle(f"x ; {requirement.marker}" if requirement.marker else "x")
    except (OracleInvalid, InvalidSpecifier):
        return False
    return True


@settings(max_examples=800)
@given(near_misses)
@example("torch 2.6.0")
@example("torch[")
@example("torch>=1 <2")
@example("torch > =1")
@example("torch @")
@example("-torch")
@example("torch;")
@example("")
def test_what_is_a_requirement_here_is_one_for_packaging(line):
    """Where versions and marker mean something: metadata hold many that do not."""
    assume(",," not in line.replace(" ", "").replace("\t", ""))
    assume("===" not in line)
    requirement = try_requirement(line)
    try:
        oracle = Oracle(line)
    except OracleInvalid:
        if requirement is None:
            return
        assert not _means_something(requirement)
        return
    assert requirement is not None
    assert requirement.name == canonicalize_name(oracle.name)


@given(lines)
def test_the_line_is_kept_and_the_versions_are_those_of_the_specifier(line):
    requirement = try_requirement(line)
    if requirement is not None:
        assert requirement.line == line
        assert requirement.versions == VersionSet.parse(requirement.specifier)


@pytest.mark.parametrize(
    ("line", "exact"),
    [
        ("torch==2.6.0", "2.6.0"),
        ("torch[x] (=== 2.6.0+cu124) ; extra == 'a'", "2.6.0+cu124"),
        ("torch>=2,==2.6.0", "2.6.0"),
        ("torch==2.6.*", None),
        ("torch>=2", None),
        ("torch @ https://h/torch-2.6.0.whl", None),
    ],
)
def test_exact_version(line, exact):
    assert parse_requirement(line).exact == exact


def test_extras_of_the_marker():
    requirement = parse_requirement("a ; (extra == 'x' or \"y.z\" == extra) and os_name == 'nt'")
    assert requirement.marker_extras == ("x", "y.z")
    assert is_for_extra(requirement.line)
    assert not is_for_extra("extras ; os_name == 'extra'")
    assert is_for_extra("a; extra in 'x y'")


def test_no_requirement_is_named():
    with pytest.raises(InvalidRequirement, match=r"expected a requirement .* found 'torch 2.6'"):
        parse_requirement("torch 2.6")
