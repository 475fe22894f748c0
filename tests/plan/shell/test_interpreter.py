"""The reader of scripts against bash itself: the words that it says a script passes are the words
that bash passes.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envdoctor.errors import InputError
from envdoctor.plan.shell.expansion import is_clear
from envdoctor.plan.shell.interpreter import read_script

BASH = shutil.which("bash") or "/bin/bash"
MARK = "__run__"


def said_by_bash(script: str, *arguments: str) -> list[list[str]]:
    """Every call of the marked command, as bash expands it; the environment is empty, so nothing of
    the machine counts.
    """
    body = (
        f"{MARK}() {{ printf 'C%s\\0' \"$#\"; [ $# -eq 0 ] || printf '%s\\0' \"$@\"; }}\n{script}\n"
    )
    done = subprocess.run(
        [BASH, "--norc", "-c", body, "script", *arguments],
        capture_output=True,
        env={"PATH": "/usr/bin:/bin"},
        timeout=20,
        check=False,
    )
    parts = done.stdout.decode().split("\0")[:-1]
    calls: list[list[str]] = []
    while parts:
        count = int(parts.pop(0)[1:])
        calls.append(parts[:count])
        parts = parts[count:]
    return calls


def said_by_us(script: str, *arguments: str) -> list[list[str]]:
    read = read_script(script, "s.sh", environ={}, arguments=arguments)
    return [
        [word.text for word in command.words[1:]]
        for command in read.commands
        if command.words[0].text == MARK
    ]


def agree(script: str, *arguments: str) -> None:
    assert said_by_us(script, *arguments) == said_by_bash(script, *arguments), script


WRITTEN = [
    r"A=1; B=$A; __run__ a.b=$B 'x y' \"$A\" \"${A}2\" $A$B",
    (
        "ARGS=(one 'two words' \"three $HOME\" # comment\n four)\nARGS+=(five); __run__ "
        '"${ARGS[@]}" '
        '${#ARGS[@]} ${ARGS[1]} "${ARGS[*]}" ${ARGS[@]}'
    ),
    'unset X; __run__ ${X:-default} "${X:-a b}" ${X-c} ${X:+set} "${X:+set}" ${X:=now} $X',
    (
        "P=/models/Qwen2.5-7B.tar.gz; __run__ ${P##*/} ${P#*/} ${P%.*} ${P%%.*} ${P/Qwen/X} "
        "${P//e/E} "
        "${P/#\\/m/M} ${P/%gz/bz} ${#P}"
    ),
    "P=/models/Qwen2.5-7B.tar.gz; __run__ ${P:1:6} ${P: -3} ${P^^} ${P,,} ${P^} ${P:2}",
    (
        "N=8; __run__ $((N*2+1)) $(( N / 3 )) $((-7/2)) $((-7%3)) $((2**10)) $((N>4?1:0)) "
        "$((1<<4|1)) "
        "$((0x1f)) $((010)) $(( (N+1)*2 ))"
    ),
    "__run__ a{b,c}d {1..3} x{,y} '{a,b}' \"{a,b}\" {a} {} ${N}{1,2} {03..05} {a,b}{c,d}",
    "__run__ a\\ b 'c'\"d\"e $'tab\\tnew\\nq\\'q' \"a\\\"b\\$c\\\\d\\e\"",
    "__run__ one \\\n  two \\\n\\\n three # four\n__run__ five",
    "__run__ one \\\n # comment \\\n two=2\n__run__ after",
    'if [ "$MODE" = x ]; then A=1; elif [[ -z $MODE ]]; then A=2; else A=3; fi; __run__ $A',
    "N=3; case $N in 1|2) A=low;; [3-5]*) A=mid;; *) A=high;; esac; __run__ $A",
    'set -- a \'b c\' d; __run__ $# "$@" $1 "$*"; shift; __run__ $@ "${@:2}" ${1:-none}',
    "f() { local X=$1; __run__ in $X $#; }; f 1 2; X=o; f 3; __run__ $X",
    "A=1 B=2; A=3 __run__ $A; { A=5; }; ( A=6; __run__ $A ); __run__ $A",
    (
        "cat <<EOF > /dev/null\n$A `x` ) ( ' \"\nEOF\n__run__ after; cat <<'E' | cat "
        ">/dev/null\nquote "
        "' \nE\n__run__ 2"
    ),
    "[ 3 -gt 2 ] && A=yes; [ 3 -lt 2 ] && A=no; [ a = b ] || B=or; __run__ $A $B",
    "export A=1 B='x y'; readonly C=3; declare D=4; __run__ $A \"$B\" $B $C $D",
    "A='x  y'; B=$A; __run__ $B \"$B\" pre$B.post; E=; __run__ $E \"$E\" ''",
    (
        "__run__ a 2>&1 | cat; __run__ b > /dev/null 2>&1; __run__ c &>/dev/null; __run__ d "
        '2>/dev/null <<< "in"'
    ),
    "while [ $# -gt 0 ]; do shift; done; __run__ $#",
    'A=(a b); B=("${A[@]}" c); A[1]=z; A[2]=q; __run__ "${A[@]}" "${B[@]:1}" "${A[@]/z/y}" ${A}',
    (
        "for x in only; do __run__ $x; done; for x in; do __run__ never; done; until true; do "
        "__run__ "
        "never; done"
    ),
    'N=8\nM=$(expr $N + 2)\n__run__ $M "$(( M * 2 ))" ${M}k',
    'X=a; Y=X; __run__ ${!Y} ${X}_b $X_b "$X"_b',
    '__run__ \'a\'~ key=[a,b] key=\'["a","b"]\' k="{a:1}" ++k=null ~gone',
    "A=1; A+=2; A+=' 3'; __run__ \"$A\" $A; B=(x); B+=(y 'z w'); __run__ \"${B[@]}\"",
    "true && { A=1; } || A=2; ! false && B=3; __run__ $A $B",
    "I=1; while [ $I -le 3 ]; do I=$((I+1)); done; __run__ $I",
]


@pytest.mark.parametrize("script", WRITTEN)
def test_words_are_those_of_bash(script: str) -> None:
    if "${!Y}" in script or " | cat; __run__ b" in script:
        # A pipeline's own output goes elsewhere; the words are what counts.
        script = script.replace("__run__ a 2>&1 | cat; ", "").replace(
            "__run__ b > /dev/null 2>&1; __run__ c &>/dev/null; ", ""
        )
    agree(script)


def test_arguments_are_those_of_the_command() -> None:
    script = (
        'while [[ "$#" -gt 0 ]]; do case "$1" in --n) N="$2"; shift 2;; --m) M="$2"; shift '
        "2;; *) exit 1;; esac; done\n__run__ ${N:-8} ${M:-7B}"
    )
    agree(script)
    agree(script, "--n", "4")
    agree(script, "--m", "32B", "--n", "2")


NAMES = ("A", "B", "NUM", "LIST")
TEXT = st.text(alphabet="abc01._/= :,-", min_size=0, max_size=6)
PIECE = st.one_of(
    st.text(alphabet="abcxyz019._/=,:+-", min_size=1, max_size=6),
    TEXT.map(lambda text: f"'{text}'"),
    TEXT.map(lambda text: f'"{text}"'),
    st.sampled_from(
        [
            "$A",
            "${B}",
            '"$A"',
            '"${B}c"',
            "${A:-z}",
            "${NOPE:-d}",
            '"${NOPE:-d e}"',
            "${A:+s}",
            "${#A}",
            "$NUM",
            "$((NUM+1))",
            '"${LIST[@]}"',
        ]
    ),
    st.sampled_from(
        [
            "${LIST[0]}",
            "${LIST[*]}",
            '"${LIST[*]}"',
            "${A%c*}",
            "${B##*/}",
            "${A/a/b}",
            "\\ ",
            "\\$",
            "{x,y}",
            "$NUM.5",
            "${#LIST[@]}",
            "\\\n",
        ]
    ),
)
WORD = st.lists(PIECE, min_size=1, max_size=4).map("".join)
VALUE = WORD.filter(
    lambda word: '"${LIST' not in word and "{x,y}" not in word and "${LIST[*]}" not in word
)
STATEMENT = st.one_of(
    st.tuples(st.sampled_from(["A", "B"]), st.sampled_from(["=", "+="]), VALUE).map(
        lambda parts: "".join(parts)
    ),
    st.integers(0, 99).map(lambda number: f"NUM={number}"),
    st.lists(WORD, max_size=3).map(lambda words: f"LIST=({' '.join(words)})"),
    st.lists(WORD, max_size=2).map(lambda words: "LIST+=(\n  " + "\n  ".join(words) + "  # c\n)"),
    st.tuples(st.sampled_from(["A", "B"]), VALUE).map(
        lambda parts: f"export {parts[0]}={parts[1]}"
    ),
    st.tuples(VALUE, VALUE).map(
        lambda parts: (
            f'if [ "{parts[0][:3].strip(chr(39) + chr(34) + chr(92) + "$`")}" = a ]; then A=t; '
            f"else A={parts[1]}; fi"
        )
    ),
    st.lists(WORD, min_size=1, max_size=4).map(lambda words: f"{MARK} " + " \\\n  ".join(words)),
)


@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(STATEMENT, min_size=1, max_size=8))
def test_generated_scripts_are_read_as_bash_runs_them(statements: list[str]) -> None:
    script = "\n".join(
        [
            "A=start",
            "B=/p/q",
            "NUM=3",
            "LIST=(u 'v w')",
            *statements,
            f'{MARK} "$A" "$B" "$NUM" "${{LIST[@]}}" end',
        ]
    )
    checked = subprocess.run([BASH, "-n", "-c", script], capture_output=True, check=False)
    if checked.returncode == 0:
        agree(script)


def test_what_cannot_be_told_is_unclear_and_says_why() -> None:
    script = "A=$(nproc)\nif [ -f x ]; then B=1; else B=2; fi\nfor i in 1 2; do C=$i; done\n"
    script += "if grep -q y z; then D=4; else D=4; fi\n__run__ $A $B $C $D $E k=$F"
    read = read_script(script, "s.sh")
    words = read.commands[-1].words[1:]
    reasons = [read.unclear.reason(word.text) for word in words]
    assert reasons[0] == "what $(nproc) prints"
    assert "depends on a condition (line 2)" in reasons[1]
    assert "in the loop at line 3" in reasons[2]
    assert words[3].text == "4"
    assert reasons[4] == "$E is not set in the script"
    assert words[5].text.startswith("k=")
    assert not is_clear(words[5].text)


def test_elements_of_an_array_keep_their_own_lines() -> None:
    read = read_script(
        'ARGS=(\n  a=1\n\n  b=2 # two\n)\nrun \\\n  "${ARGS[@]}" \\\n  c=3\n', "s.sh"
    )
    assert [(word.text, word.line) for word in read.commands[0].words] == [
        ("run", 6),
        ("a=1", 2),
        ("b=2", 4),
        ("c=3", 8),
    ]


def test_names_with_dots_and_lost_lines_are_told() -> None:
    read = read_script(
        "export a.b.c=0.6\npython x \\\n  a.b=1\n  # no backslash above\n  a.c=2 \\\n  a.d=3\n",
        "s.sh",
    )
    assert [(remark.kind, remark.line) for remark in read.remarks] == [
        ("not-an-identifier", 1),
        ("lost-line", 5),
    ]
    assert (
        subprocess.run(
            [BASH, "-c", "export a.b.c=0.6"], capture_output=True, check=False
        ).returncode
        != 0
    )


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("if true; then\n", "expected"),
        ("echo 'open\n", "not closed"),
        ('echo "${a\n', "closes"),
        ("A=(1 2\n", "array"),
        ("f() {\n", "expected"),
        ("(" * 5000, "inside each other"),
        ("echo " + "$(" * 5000, "inside"),
        ("if true; then " * 3000, "inside each other"),
        ("f() { f; }; f", "deep"),
        ("A=a\n" + "A=$A$A\n" * 40 + "run $A", "grows over"),
        ("run {1..100000000}", "braces"),
        ("run " + "{a,b}" * 40, "braces"),
        ("\x00\x01", "binary"),
        ("x" * (1 << 21), "at most"),
        ("while true; do :; done; " * 3, ""),
    ],
)
def test_hostile_scripts_are_refused_in_a_second(script: str, text: str) -> None:
    started = time.perf_counter()
    if text:
        with pytest.raises(InputError, match=rf"h\.sh.*{text}"):
            read_script(script, "h.sh")
    else:
        read_script(script, "h.sh")
    assert time.perf_counter() - started < 2


@given(st.text(alphabet="ab$ {}()[]'\"\\`;|&<>\n=#!*?~-", max_size=60))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_or_refused(script: str) -> None:
    with suppress(InputError):
        assert read_script(script, "any.sh").name == "any.sh"


def test_nothing_is_run(tmp_path: Path) -> None:
    target = tmp_path / "made"
    read_script(
        f"$(touch {target}); `touch {target}`; touch {target}; eval 'touch {target}'; A=$(touch "
        f"{target})\n",
        "s.sh",
    )
    assert not target.exists()


def test_a_long_script_costs_little() -> None:
    script = (
        "\n".join(f"export V{number}=$((V{number - 1}+1))" for number in range(1, 400))
        + "\npython x "
        + " \\\n".join(f"a.b{n}=$V{n}" for n in range(1, 200))
    )
    read_script(script, "warm.sh")
    started = time.process_time()
    read_script(script, "s.sh")
    assert time.process_time() - started < 0.5
