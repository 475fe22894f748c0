"""What is asked of the script: words, policies, and what these name."""

from __future__ import annotations

from typing import Iterator

from .condition import JOB, Condition

__all__ = ["FAMILIES"]


def words() -> Iterator[Condition]:
    job = JOB
    for what, expected, options, line in (
        ("no --", "rrr", (), job),
        ("=", "rrr", ("--timeout=2", "--format=line"), ("--", *job)),
        ("the last of two counts", "rxx", ("--lock", "@GOOD@", "--lock", "@BAD@"), ("--", *job)),
        ("nothing behind --", "uuu", (), ("--",)),
        ("nothing", "uuu", (), ()),
        ("an unknown option", "ruu", ("--enforce",), ("--", *job)),
        ("an unknown option with a value", "ruu", ("--enforced", "yes"), ("--", *job)),
        ("an unknown option, no --", "uuu", ("--enforce",), ()),
        ("a short option", "ruu", ("-x",), ("--", *job)),
        ("an option without value", "uuu", ("--lock",), ()),
        ("--strict=1", "ruu", ("--strict=1",), ("--", *job)),
        ("--timeout 0", "ruu", ("--timeout", "0"), ("--", *job)),
        ("--timeout abc", "ruu", ("--timeout", "abc"), ("--", *job)),
        ("--timeout 1e1", "ruu", ("--timeout", "1e1"), ("--", *job)),
        ("an empty --timeout", "ruu", ("--timeout", ""), ("--", *job)),
        ("--format xml", "ruu", ("--format", "xml"), ("--", *job)),
        ("--format json", "rrr", ("--format", "json"), ("--", *job)),
        ("--format none, an error", "rxx", ("--format", "none", "--lock", "@BAD@"), ("--", *job)),
        ("an empty --lock", "ruu", ("--lock", ""), ("--", *job)),
        ("-- of the command's own", "rrr", (), ("--", "sh", "-c", 'echo "$@"; exit 7', "sh", "--", "--policy", "x")),
        ("a command that is not found", "rrr", (), ("--", "no-such-command")),
        ("a command that is a folder", "rrr", (), ("--", "/")),
        ("a command that is no program", "rrr", (), ("--", "/etc/passwd")),
        ("an empty command", "rrr", (), ("--", "")),
        ("a command like a variable", "rrr", (), ("--", "A=b", "sh", "-c", "echo ran")),
        ("an argument of 100,000 characters", "rrr", (), ("--", "sh", "-c", 'echo ${#1}; exit 7', "sh", "x" * 100_000)),
        ("5,000 arguments", "rrr", (), ("--", "sh", "-c", "echo $#; exit 7", "sh", *["a"] * 5000)),
        ("arguments that are no text", "rrr", (), ("--", "sh", "-c", 'printf "%s|" "$@"; exit 7', "sh", "\udcff", "", "a\nb", "*", "$x")),
        ("a command that kills itself", "rrr", (), ("--", "sh", "-c", "echo ran; kill -9 $$")),
        ("a command that ends with 78", "rrr", (), ("--", "sh", "-c", "echo ran; exit 78")),
    ):  # fmt: skip
        yield Condition(f"words: {what}", expected, options=options, words=tuple(line))
    for place in (
        "/nonexistent/r.json",
        "@HERE@",
        "/proc/1/x",
        "@FULL@/r.json",
        "@HERE@/fifo",
        "",
    ):
        yield Condition(
            f"report at {place or 'nowhere'}, an error",
            "rxx",
            options=("--lock", "@BAD@", "--report", place),
            setup="mkfifo @HERE@/fifo" if "fifo" in place else "",
        )


def policies() -> Iterator[Condition]:
    """Who wrote neither off nor warn has asked for more than to be warned."""
    for text in (
        "Enforce",
        "ENFORCE",
        "enforce ",
        " enforce",
        "enforced",
        "strict",
        "deny",
        "1",
        "true",
        "none",
        "\x1b",
        "\u0435nforce",
        "warn,enforce",
    ):
        for by_variable in (False, True):
            where = "ENVDOCTOR_POLICY" if by_variable else "--policy"
            yield Condition(
                f"{where} {text!r}", "ruu", spelling=("warn", text), by_variable=by_variable
            )
    for text in ("Warn", " warn", "OFF", "Off "):
        for by_variable in (False, True):
            where = "ENVDOCTOR_POLICY" if by_variable else "--policy"
            yield Condition(
                f"{where} {text!r}, an error",
                "rxx",
                options=("--lock", "@BAD@"),
                spelling=(text, "enforce"),
                by_variable=by_variable,
            )
    yield Condition(
        "--policy off, an error", "rrr", options=("--lock", "@BAD@"), spelling=("off", "off")
    )


def inputs() -> Iterator[Condition]:
    """Locks, baselines, ignore files, matrices."""
    bad = {
        "missing": ":",
        "a FIFO": "mkfifo @HERE@/in",
        "an empty folder": "mkdir @HERE@/in",
        "empty": ": >@HERE@/in",
        "binary": "head -c 3000 /bin/sh >@HERE@/in",
        "cut": 'echo \'{"schema_version": 1, "pins": [\' >@HERE@/in',
        "nested deeply": "head -c 200000 /dev/zero | tr '\\0' '[' >@HERE@/in",
        "of another version": 'echo \'{"schema_version": 99, "pins": []}\' >@HERE@/in',
        "a list": "echo '[]' >@HERE@/in",
        "a loop": "ln -s in @HERE@/in",
        "endless": "ln -s /dev/zero @HERE@/in",
        "on a disk that answers EIO": "ln -s @EIO@/file @HERE@/in",
    }
    for what, setup in bad.items():
        yield Condition(f"lock {what}", "ruu", options=("--lock", "@HERE@/in"), setup=setup)
        yield Condition(
            f"named baseline {what}", "ruu", options=("--baseline", "@HERE@/in"), setup=setup
        )
        if what != "missing":
            place = "mkdir -p @ENV@/share/envdoctor; rm -f @ENV@/share/envdoctor/baseline.json; "
            yield Condition(
                f"baseline of the environment {what}",
                setup=place
                + setup.replace("@HERE@/in", "@ENV@/share/envdoctor/baseline.json").replace(
                    " in ", " baseline.json "
                ),
            )
        if what not in ("empty", "nested deeply", "of another version", "a list", "cut"):
            yield Condition(
                f"ignore file {what}", "ruu", {"ENVDOCTOR_IGNORE": "@HERE@/in"}, setup=setup
            )
        if what in ("missing", "a FIFO", "empty", "a loop", "on a disk that answers EIO"):
            yield Condition(
                f"matrix folder {what}", "ruu", {"ENVDOCTOR_MATRIX": "@HERE@/in"}, setup=setup
            )
    yield Condition(
        "lock that never answers", "rrn", options=("--timeout", "1", "--lock", "@SILENT@/file")
    )
    yield Condition(
        "matrix folder that never answers",
        "rrn",
        {"ENVDOCTOR_MATRIX": "@SILENT@/in"},
        ("--timeout", "1"),
    )
    yield Condition(
        "ignore file empty", "rrr", {"ENVDOCTOR_IGNORE": "@HERE@/in"}, setup=": >@HERE@/in"
    )
    yield Condition(
        "ignore file without a day",
        "ruu",
        {"ENVDOCTOR_IGNORE": "@HERE@/in"},
        setup="echo ED306 >@HERE@/in",
    )
    yield Condition(
        "ignore file that accepts the error",
        "rrr",
        {"ENVDOCTOR_IGNORE": "@HERE@/in"},
        ("--lock", "@BAD@"),
        setup="echo 'ED306 until=2999-12-31 reason=\"test\"' >@HERE@/in",
    )
    yield Condition(
        "ignore file that has run out",
        "rxx",
        {"ENVDOCTOR_IGNORE": "@HERE@/in"},
        ("--lock", "@BAD@"),
        setup="echo 'ED306 until=2020-12-31 reason=\"test\"' >@HERE@/in",
    )
    yield Condition(
        "matrix folder of broken rows",
        "ruu",
        {"ENVDOCTOR_MATRIX": "@HERE@/m"},
        setup="mkdir -p @HERE@/m/errata; echo '[[' >@HERE@/m/errata/x.toml",
    )
    yield Condition(
        "matrix folder with a FIFO",
        "ruu",
        {"ENVDOCTOR_MATRIX": "@HERE@/m"},
        setup="mkdir -p @HERE@/m/errata; mkfifo @HERE@/m/errata/x.toml",
    )
    yield Condition(
        "matrix folder without rows",
        "rrr",
        {"ENVDOCTOR_MATRIX": "@HERE@/m"},
        setup="mkdir -p @HERE@/m/errata",
    )
    yield Condition(
        "matrix folder missing, built-in trusted",
        "rrr",
        {"ENVDOCTOR_MATRIX": "/nonexistent"},
        ("--trust-matrix", "built-in"),
    )
    yield Condition("a lock that is met", options=("--lock", "@GOOD@"))
    yield Condition("a lock that is not met", "rxx", options=("--lock", "@BAD@"))
    write = "cp @GOOD@/envdoctor.lock.json @HERE@/in; sed -i 's/{}/{}/' @HERE@/in"
    for what, expected, before, after in (
        ("another release pinned", "rrr", "1.26.4", "1.25.0"),
        (
            "a pin that nobody asked for",
            "rrr",
            '"pins": [',
            '"pins": [{"name": "scipy", "version": "1"}, ',
        ),
        ("another Python", "rxx", '"python": "[^"]*"', '"python": "3.1"'),
        ("a newer glibc", "rxx", '"sm": \\[\\]', '"sm": [], "glibc": "9.99"'),
        ("an older glibc", "rrr", '"sm": \\[\\]', '"sm": [], "glibc": "2.0"'),
        ("a driver where there is none", "rrx", '"sm": \\[\\]', '"sm": [], "driver": "550.54"'),
        ("another architecture", "rxx", '"sm": \\[\\]', '"sm": [], "architecture": "s390x"'),
        ("another platform", "rxx", '"sm": \\[\\]', '"sm": [], "platform": "plan9"'),
        ("pins that are no list", "ruu", '"pins": .*"settings"', '"pins": 7, "settings"'),
        ("a pin without a version", "ruu", '"version"', '"verzion"'),
    ):
        yield Condition(
            f"a lock with {what}",
            expected,
            options=("--lock", "@HERE@/in"),
            setup=write.format(
                before.replace("[", "\\[") if before.endswith("[") else before, after
            ),
        )


FAMILIES = (words, policies, inputs)
