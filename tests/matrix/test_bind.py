"""What a row means: truth of a term, and bind over devices, mitigations and open environments."""

from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.matrix.bind import Subject, Target, bind, truth
from envdoctor.model.row import Mitigation, Row, Term
from envdoctor.model.versions import VersionSet, parse_version

ABSENT, UNKNOWN = Subject(False), Subject(None)
LABELS = ["a", "b", "c"]


def make_row(terms, mitigations=()):
    return Row(
        "x",
        "blocks",
        "established",
        tuple(terms),
        "torch",
        "too-old",
        "ED390",
        "",
        "",
        "",
        (),
        (),
        tuple(mitigations),
        (),
        "2026-01-01",
    )


def make_target(host=None, gpus=(), variables=None, packages=None, request=None):
    variables, request = variables or {}, request or {}
    return Target(
        host=host or Subject(True, {}),
        gpus=gpus,
        variable=lambda name: variables.get(name, ABSENT),
        request=lambda name: request.get(name, UNKNOWN),
        environment=None if packages is None else lambda name: packages.get(name, ABSENT),
    )


def version_of(text):
    return Subject(True, {"version": parse_version(text)})


def in_term(name, text):
    return Term("env", name, "version", "in", VersionSet.parse(text))


subjects = st.one_of(
    st.just(ABSENT),
    st.just(UNKNOWN),
    st.builds(lambda label: Subject(True, {"value": label}), st.sampled_from(LABELS)),
    st.builds(
        lambda labels: Subject(True, {"value": frozenset(labels)}), st.sets(st.sampled_from(LABELS))
    ),
    st.just(Subject(True, {})),
)
arguments = st.sets(st.sampled_from(LABELS), min_size=1).map(frozenset)


@given(subjects, arguments)
def test_lacks_is_the_contrary_of_has(subject, argument):
    has = truth(Term("var", "X", "value", "has", argument), subject)
    lacks = truth(Term("var", "X", "value", "lacks", argument), subject)
    assert (has is None) == (lacks is None)
    assert has is None or lacks is (not has)


@given(subjects, arguments, st.sampled_from(["any", "has", "lacks"]))
def test_unknown_is_no_verdict(subject, argument, operator):
    found = truth(Term("var", "X", "value", operator, argument), subject)
    if subject.present is None or (subject.present and "value" not in subject.attributes):
        assert found is None
    else:
        assert found is not None


def test_absence():
    for operator, argument, expected in [
        ("in", VersionSet.parse(">=1"), False),
        ("lacks", VersionSet.parse(">=1"), True),
        ("present", True, False),
    ]:
        assert truth(Term("env", "torch", "version", operator, argument), ABSENT) is expected
    assert truth(Term("env", "torch", "version", "present", False), ABSENT) is True
    assert truth(Term("env", "torch", "version", "present", False), UNKNOWN) is None


def test_a_known_range_tells_where_it_lies_wholly_inside_or_outside():
    subject = Subject(True, {"version": VersionSet.parse(">=2.6,<2.7")})
    assert truth(in_term("torch", ">=2"), subject) is True
    assert truth(in_term("torch", "<2"), subject) is False
    assert truth(in_term("torch", "<2.6.1"), subject) is None


outcomes = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=5)


@settings(max_examples=300)
@given(outcomes)
def test_bind_is_the_conjunction_of_its_terms(values):
    """Any False: satisfied; all True: violated; else undetermined, whatever the order and the
    scopes.
    """
    terms, packages = [], {}
    for number, value in enumerate(values):
        terms.append(in_term(f"p{number}", ">=2"))
        packages[f"p{number}"] = UNKNOWN if value is None else version_of("2.1" if value else "1.0")
    expected = "satisfied" if False in values else "undetermined" if None in values else "violated"
    binding = bind(make_row(terms), make_target(packages=packages))
    assert binding.outcome == expected
    if expected == "undetermined":
        assert [term.component for term in binding.missing] == [
            f"p{number}" for number, value in enumerate(values) if value is None
        ]


@settings(max_examples=200)
@given(outcomes)
def test_knowing_more_never_turns_a_verdict_around(values):
    """A verdict that holds with something unknown holds whatever it turns out to be."""
    terms = [in_term(f"p{number}", ">=2") for number in range(len(values))]

    def outcome(given_values):
        return bind(
            make_row(terms),
            make_target(
                packages={
                    f"p{n}": UNKNOWN if v is None else version_of("2.1" if v else "1.0")
                    for n, v in enumerate(given_values)
                }
            ),
        ).outcome

    if outcome(values) == "satisfied":
        for value in (True, False):
            assert outcome([value if known is None else known for known in values]) == "satisfied"


def test_all_gpu_terms_bind_to_the_same_device():
    row = make_row(
        [
            Term("gpu", "gpu", "model", "any", frozenset(["H20"])),
            Term("gpu", "gpu", "mig", "any", frozenset(["enabled"])),
            in_term("torch", "<2.5"),
        ]
    )
    packages = {"torch": version_of("2.4.0")}
    h20 = Subject(True, {"model": "H20", "mig": "disabled"})
    a100 = Subject(True, {"model": "A100", "mig": "enabled"})
    both = Subject(True, {"model": "H20", "mig": "enabled"})
    assert bind(row, make_target(gpus=(h20, a100), packages=packages)).outcome == "satisfied"
    binding = bind(row, make_target(gpus=(h20, a100, both), packages=packages))
    assert (binding.outcome, binding.gpu) == ("violated", 2)
    assert bind(row, make_target(gpus=(), packages=packages)).outcome == "satisfied"
    assert bind(row, make_target(gpus=None, packages=packages)).outcome == "undetermined"


def test_a_device_that_is_violated_outweighs_one_that_is_not_known():
    row = make_row([Term("gpu", "gpu", "sm", "any", frozenset(["9.0"]))])
    binding = bind(row, make_target(gpus=(Subject(True, {}), Subject(True, {"sm": "9.0"}))))
    assert (binding.outcome, binding.gpu) == ("violated", 1)


def test_a_mitigation_satisfies():
    row = make_row([in_term("vllm", "<1")], [Mitigation("var", "VLLM_USE_V1", "0")])
    packages = {"vllm": version_of("0.8.5")}
    assert bind(row, make_target(packages=packages)).outcome == "violated"
    for value, expected in (("0", "satisfied"), ("1", "violated")):
        target = make_target(
            packages=packages, variables={"VLLM_USE_V1": Subject(True, {"value": value})}
        )
        assert bind(row, target).outcome == expected


def test_an_open_environment_leaves_the_nogood_over_packages():
    host = Term("host", "host", "cuda", "in", VersionSet.parse("<13"))
    env = Term("env", "torch", "cuda", "in", VersionSet.parse(">=13,<14"))
    row = make_row([host, env])
    old, new = (
        Subject(True, {"cuda": parse_version("12")}),
        Subject(True, {"cuda": parse_version("13")}),
    )
    assert bind(row, make_target(host=old)).residual == (env,)
    assert bind(row, make_target(host=old)).outcome == "residual"
    assert bind(row, make_target(host=new)).outcome == "satisfied"
    assert (
        bind(row, make_target(host=Subject(True, {}))).outcome == "undetermined"
    )  # unknown hardware does not constrain
