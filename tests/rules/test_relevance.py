"""What stands beside what failed in a text is advice, and advice there carries no remedy."""

import pytest

from envdoctor import app
from envdoctor.intake import parse_report
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.finding import Finding, Remedy
from envdoctor.rules.relevance import Reported, reasons_first, set_apart

MATRIX = load_matrix()
FAILURE = Finding("ED395", "flashinfer", "missing", "warning", "Python found no flashinfer.")
FAILED = Reported(frozenset([FAILURE.key]), frozenset(["flashinfer", "sglang"]), True)
OTHER = Finding(
    "ED301",
    "packaging",
    "too-old",
    "warning",
    "packaging is older.",
    packages=("packaging", "huggingface-hub"),
    remedies=(Remedy("Install packaging 20.9."),),
)
OF_MACHINE = OTHER._replace(code="ED504", component="rlimit-nofile", packages=())


def severity_of(finding, reported):
    return set_apart([finding], reported)[0].severity


def test_a_warning_about_other_packages_is_advice_without_a_remedy():
    assert set_apart([FAILURE, OTHER], FAILED) == [
        FAILURE,
        OTHER._replace(severity="advice", remedies=()),
    ]


@pytest.mark.parametrize(
    ("finding", "reported"),
    [
        (OTHER, Reported()),  # nothing failed
        (OTHER._replace(severity="error"), FAILED._replace(is_explained=False)),
        (OTHER._replace(severity="error", component="sglang", packages=("sglang",)), FAILED),
        (OTHER._replace(severity="error", component="torch", packages=("torch",)), FAILED),
        (OF_MACHINE._replace(severity="error"), FAILED),
        (
            OTHER._replace(code="ED302", packages=("packaging", "sglang")),
            FAILED._replace(is_explained=False),
        ),
        (OTHER._replace(component="flashinfer"), FAILED._replace(named=frozenset(["flashinfer"]))),
        (OTHER._replace(caused_by=FAILURE.key), FAILED),
        (OF_MACHINE, FAILED._replace(is_explained=False)),
        # Nothing tells which packages take part in a failure of the program's own.
        (
            OTHER._replace(code="ED206"),
            FAILED._replace(packages=frozenset(["application"]), is_explained=False),
        ),
    ],
)
def test_what_may_be_the_cause_stays(finding, reported):
    assert set_apart([finding], reported) == [finding]


@pytest.mark.parametrize(
    ("finding", "spoken_of", "severity"),
    [
        ({"row": "a"}, {"pyarrow"}, "advice"),
        ({"row": "a"}, {"packaging"}, "warning"),
        ({"row": "a", "packages": ("packaging", "torch")}, {"torch"}, "advice"),
        ({"row": "a", "packages": ("torch",)}, {"torch"}, "warning"),
        ({"row": "a", "severity": "error"}, {"pyarrow"}, "error"),
        ({"row": "a", "packages": ()}, {"pyarrow"}, "warning"),  # of the machine
        ({}, {"pyarrow"}, "warning"),  # what a package itself asks for
    ],
)
def test_a_row_of_what_a_complaint_does_not_speak_of_is_advice(finding, spoken_of, severity):
    reported = Reported(spoken_of=frozenset(spoken_of), is_complaint=True)
    assert severity_of(OTHER._replace(**finding), reported) == severity
    # Where nothing tells what it is about, it may be about this.
    vague = reported._replace(is_complaint=False)
    assert severity_of(OTHER._replace(**finding), vague) == finding.get("severity", "warning")


def test_what_a_text_compares_of_several_packages_takes_part_together(checked):
    text = (
        "# It stops\n\nWe run peft 0.14.0 and trl 0.12.0.\n\nValueError: the frob is odd\n\n"
        "The error is gone after downgrading peft to 0.13.2 and trl to 0.11.0\n"
    )
    compared = [entry for entry in checked(text) if entry.code == "ED312"]
    assert [(entry.component, entry.severity) for entry in compared] == [
        ("peft", "warning"),
        ("trl", "warning"),
    ]


def test_a_limit_of_the_machine_is_beside_a_cause_that_is_known():
    assert severity_of(OF_MACHINE, FAILED) == "advice"


@pytest.mark.parametrize("why", [{"is_explained": True}, {"is_past_imports": True}])
def test_an_error_of_other_packages_is_no_cause_of_what_is_known_or_ran(why):
    unknown = FAILED._replace(is_explained=False)
    error = OTHER._replace(severity="error")
    assert severity_of(error, unknown._replace(**why)) == "advice"
    of_driver = error._replace(code="ED101", component="nvidia-driver")
    assert severity_of(of_driver, unknown._replace(**why)) == "error"


PINS = "trl 0.7.0\npeft 0.10.0\ntransformers 4.51.3\n"  # the import of trl fails
IN_MAIN = (
    "Traceback (most recent call last):\n"
    '  File "/w/train.py", line 20, in main\n    loss = model(x).loss\n'
    "ValueError: the frob is odd\n"
)


def test_what_fails_at_its_import_is_no_cause_of_what_fails_in_training(checked):
    def of_trl(text):
        return {entry.severity for entry in checked(text) if "trl" in entry.packages}

    assert "error" in of_trl(PINS)
    assert of_trl(PINS + IN_MAIN) == {"advice"}
    assert "error" in of_trl(PINS + IN_MAIN.replace("main", "<module>"))


def test_a_diagnosis_does_not_list_what_has_no_part(tmp_path):
    def others(text):
        log = tmp_path / "run.log"
        log.write_text(PINS + text)
        return [entry.code for entry in app.diagnose([str(log)], None, MATRIX).findings]

    assert others(IN_MAIN) == []
    assert "ED308" in others(IN_MAIN.replace("main", "<module>"))


def test_an_engine_that_is_not_run_is_judged_where_no_other_is():
    error = OTHER._replace(severity="error", packages=("torch", "vllm"))
    assert severity_of(error, Reported(run=frozenset(["sglang"]))) == "advice"
    assert severity_of(error, Reported(run=frozenset(["sglang", "vllm"]))) == "error"
    assert severity_of(error, Reported()) == "error"


@pytest.fixture(name="checked")
def _checked(tmp_path):
    def check(text):
        path = tmp_path / "issue.txt"
        path.write_text(text)
        return app.check(parse_report(text, MATRIX.package), MATRIX, logs=[str(path)]).findings

    return check


PACKAGES = "torch 2.7.1+cu126\nvllm 0.8.5\nsglang 0.4.9\n"


def test_a_report_of_one_engine_has_no_error_of_the_other(checked):
    def of_torch(text):
        return [entry.severity for entry in checked(text) if entry.code == "ED304"]

    assert "error" in of_torch(PACKAGES)
    served = of_torch(f"python -m sglang.launch_server --model-path /m\n{PACKAGES}")
    assert served
    assert "error" not in served


def test_what_the_traceback_goes_through_takes_part(checked):
    text = (
        "packaging 20.3\nhuggingface-hub 0.24.2\n"
        "Traceback (most recent call last):\n"
        '  File "/app/run.py", line 1, in <module>\n'
        "    import x\n"
        '  File "/e/lib/python3.10/site-packages/{}/utils/_x.py", line 5, in frob\n'
        "    frobnicate(x)\n"
        '  File "/e/lib/python3.10/site-packages/packaging/version.py", line 5, in frob\n'
        "    frobnicate(x)\n"
        "RuntimeError: the frob is of the wrong kind\n"
    )

    def of_packaging(name):
        return [
            (entry.severity, bool(entry.remedies))
            for entry in checked(text.format(name))
            if entry.code == "ED301"
        ]

    assert of_packaging("sglang") == [("advice", False)]
    assert of_packaging("huggingface_hub") == [("warning", True)]


def test_what_a_traceback_goes_through_was_imported(checked):
    """The report of a run that fails in a kernel: what it called did load."""
    packages = "torch 2.7.0+cu126\nvllm 0.8.0\n"
    place = 'File "/e/lib/python3.12/site-packages/vllm/v1/worker/gpu.py", line 3, in {}\n'
    lines = "Traceback (most recent call last):\n  {}    run(x)\n{}\n"

    def severities(function, last):
        text = packages + lines.format(place.format(function), last)
        return {entry.severity for entry in checked(text) if entry.code in ("ED304", "ED401")}

    assert severities("execute", "RuntimeError: PassManager::run failed") == {"advice"}
    assert "error" in severities("execute", "RuntimeError: operator _C::rms_norm does not exist")
    assert "error" in severities("<module>", "RuntimeError: PassManager::run failed")


IN_PACKAGE = '  File "/e/lib/python3.12/site-packages/{}.py", line 3, in {}\n    x()\n'


def traceback_of(*frames):
    lines = "".join(IN_PACKAGE.format(*frame) for frame in frames)
    return f"Traceback (most recent call last):\n{lines}TypeError: the frob is odd\n"


def test_an_import_that_is_under_way_refutes_nothing(checked):
    def severities(*frames):
        found = checked(f"torch 2.7.0+cu126\nvllm 0.8.0\n{traceback_of(*frames)}")
        return {entry.severity for entry in found if entry.code in ("ED304", "ED401")}

    called = ("vllm/utils", "load")
    assert severities(("vllm/engine", "start"), called) == {"advice"}
    assert "error" in severities(("vllm/__init__", "<module>"), called)
    started = traceback_of(("vllm/server", "<module>"), called).replace(
        "last):\n", 'last):\n  File "<frozen runpy>", line 88, in _run_code\n'
    )
    found = checked(f"torch 2.7.0+cu126\nvllm 0.8.0\n{started}")
    assert not [entry for entry in found if entry.code == "ED304" and entry.severity == "error"]


def test_what_was_imported_may_still_not_go_together(checked):
    """That vllm takes what transformers lacks may be why it fails."""
    frames = traceback_of(("vllm/engine", "run"), ("vllm/tokenizer", "get"))
    rows = {
        entry.row: entry.severity for entry in checked(f"vllm 0.6.3\ntransformers 5.1.0\n{frames}")
    }
    assert rows["vllm-transformers-5"] == "error"


def test_a_model_s_own_file_tells_nothing_of_what_is_installed():
    text = 'vllm 0.8.4\n"architectures": ["LlamaForCausalLM"],\n"transformers_version": "4.43.1",\n'
    assert parse_report(text, MATRIX.package).version_of("transformers") is None


def test_a_failure_whose_source_says_why_is_not_that_of_a_row(checked):
    """vLLM 0.9.2 raises this where full_cuda_graph asks for what the GPU has not: a row says that
    it cannot be imported with transformers 4.55, and it was.
    """
    frames = traceback_of(("vllm/engine", "run"), ("vllm/v1/attention/backends/flash_attn", "init"))
    frames = frames.replace(
        "TypeError: the frob is odd", "ValueError: AoT scheduling is required for full cuda graph."
    )
    rows = {
        entry.row: entry.severity for entry in checked(f"vllm 0.9.2\ntransformers 4.55.4\n{frames}")
    }
    assert rows["vllm-aimv2-transformers-4.54"] == "advice"


def test_of_advice_what_the_report_says_of_the_reason_stands_first():
    said = Finding("ED908", "report", "not-judged", "advice", "The report itself says why.")
    advised = OTHER._replace(severity="advice")
    assert reasons_first([advised, said, OTHER]) == [OTHER, said, advised]


@pytest.mark.parametrize(
    ("title", "codes"),
    [
        ("peft 0.18.0 fails here because of its new config, while 0.17.0 works.", {"ED312"}),
        ("peft 0.18.0 fails here because of its new config.", {"ED908"}),
    ],
)
def test_a_sentence_whose_releases_were_compared_is_not_said_twice(checked, title, codes):
    entries = checked(f"{title}\n\ntorch 2.6.0\n")
    assert {entry.code for entry in entries} & {"ED312", "ED908"} == codes


@pytest.mark.parametrize(
    ("packages", "ran", "severity"),
    [
        (("torch",), (), "error"),  # nothing was seen to run: no traceback, or none of its files
        (("torch",), ("torch",), "advice"),
        (("torch",), ("vllm",), "error"),
        (("vllm", "torch"), ("vllm",), "advice"),  # most go through torch, and need not show it
        (("vllm", "torch"), ("torch",), "error"),
        (("vllm", "torch"), (), "error"),
    ],
)
def test_only_what_was_seen_to_run_was_imported(packages, ran, severity):
    finding = Finding(
        "ED309", packages[0], "too-old", "error", "It fails.", packages=packages, row="measured"
    )
    (placed,) = set_apart([finding], Reported(ran=frozenset(ran)))
    assert placed.severity == severity
    assert ("a traceback goes through it" in placed.message) is (severity == "advice")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ED303", "Python 3.8.10\ntransformers 4.48.3\n"),
        ("ED403", "glibc 2.17\nPython 3.8.10\nvllm 0.5.2\n"),
    ],
)
def test_what_ran_here_fits_the_python_and_the_glibc(checked, code, text):
    """The package is what was seen to run: Python and glibc have no file in a traceback."""

    def severities(more):
        return {entry.severity for entry in checked(text + more) if entry.code == code}

    package = text.split()[-2]
    frames = traceback_of((f"{package}/engine", "start"), (f"{package}/engine", "run"))
    assert severities("") & {"error", "warning"}
    assert severities(frames.replace("python3.12", "python3.8")) == {"advice"}


@pytest.mark.parametrize(
    ("code", "severity"), [("model = torch.compile(model)", "warning"), ("", "advice")]
)
def test_a_row_of_a_feature_that_nothing_shows_is_advice(checked, code, severity):
    entries = checked(
        "The training of my model fails with the first step.\n"
        f"I tried another set of data and it is the same as before.\n{code}\n"
        "torch 2.3.1\nPython version: 3.12.4\n"
    )
    (row,) = [entry for entry in entries if (entry.row or "").startswith("refuses-python-")]
    assert row.severity == severity


@pytest.mark.parametrize(
    ("told", "severity"),
    [
        ("The answer of the server lies in another field.", "advice"),
        ("The server crashes with the first answer.", "warning"),
        ("Are these packages compatible with each other?", "warning"),
        ("服务启动失败，不知道是什么原因", "warning"),
    ],
)
def test_what_may_fail_is_advice_where_nothing_does(checked, told, severity):
    words = f"{told}\nWe serve it in a container on one machine here.\n"
    form = "- [x] I searched for it and cannot find an issue.\n"
    listed = "sgl-kernel 0.1.0\ntorch 2.5.1+cu124\n"
    entries = checked(f"# An answer\n{form}{words}{listed}")
    assert {entry.severity for entry in entries if entry.code == "ED401"} == {severity}


def test_an_environment_in_sentences_is_judged(checked):
    entries = checked(
        "We have sgl-kernel 0.1.0 and torch 2.5.1+cu124 on it.\nWe have Python 3.11 on it.\n"
    )
    assert {entry.severity for entry in entries if entry.code == "ED401"} == {"warning"}


def test_what_fails_for_certain_stays_where_nothing_is_told_to_fail(checked):
    words = (
        "# An answer\nThe answer of the server lies in another field.\n"
        "We serve it on one machine here.\n"
    )
    entries = checked(f"{words}vllm 0.5.0\ntorch 2.4.0\n")
    assert "error" in {entry.severity for entry in entries}
