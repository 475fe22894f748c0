"""The reader of logs: what it finds, on what it must not stumble, and that its cost is linear."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import random
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdoctor.errors import InputError
from envdoctor.intake import log_reader, packed_log
from envdoctor.intake.log_line import cleaned
from envdoctor.intake.log_reader import key_word, read_logs
from envdoctor.matrix.loader import load_matrix
from envdoctor.model.log import Pattern

from ..time_taken import least_seconds, within

KILLED = Pattern("killed", ("Killed process",), r"Killed process (?P<pid>\d+)")
DIED = Pattern("died", ("ActorDiedError",))


@pytest.fixture(scope="module")
def patterns():
    return load_matrix().log_patterns[0]


def read(tmp_path, data, patterns=(KILLED, DIED)):
    path = tmp_path / "run.log"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_logs([str(path)], patterns)


def test_lines_are_numbered_counted_and_kept_first_and_last(tmp_path):
    found = read(tmp_path, "a\nKilled process 7 x\nb\nKilled process 7 y\nc\n")
    (event,) = found.events
    assert (event.times, event.groups, event.first.number, event.last.number) == (
        2,
        {"pid": "7"},
        2,
        4,
    )
    assert found.lines == 5


def test_different_groups_are_different_events(tmp_path):
    assert [
        event.groups["pid"]
        for event in read(tmp_path, "Killed process 1\nKilled process 2\n").events
    ] == ["1", "2"]


def test_numbers_hold_beyond_the_first_chunk(tmp_path):
    noise = "INFO all is well in this line of the log\n" * 60_000
    found = read(tmp_path, noise + "ActorDiedError\n" + noise + "ActorDiedError: again")
    assert [found.events[0].first.number, found.events[0].last.number, found.lines] == [
        60_001,
        120_002,
        120_002,
    ]


def test_ray_prefixes_ranks_and_repetition(tmp_path):
    found = read(
        tmp_path,
        "\x1b[36m(WorkerDict pid=12, ip=10.0.0.3)\x1b[0m [rank2]: ActorDiedError: x [repeated 7x "
        "across cluster]\n",
    )
    (event,) = found.events
    assert event.times == 8
    assert event.first.process == "WorkerDict pid=12, ip=10.0.0.3 rank2"
    assert event.first.text.startswith("ActorDiedError")


@pytest.mark.parametrize(
    ("line", "kind", "seconds"),
    [
        ("2025-01-02 00:00:05,250 ActorDiedError", "calendar", 2 * 86400 + 5.25),
        ("[2025-01-02T00:00:05.250Z] ActorDiedError", "calendar", 2 * 86400 + 5.25),
        ("INFO 01-02 00:00:05 [core.py:1] ActorDiedError", "calendar", 2 * 86400 + 5),
        (
            "[rank0]:[E0102 00:00:05.250000000 ProcessGroupNCCL.cpp:1] ActorDiedError",
            "calendar",
            2 * 86400 + 5.25,
        ),
        ("[Thu Jan  2 00:00:05 2025] ActorDiedError", "calendar", 2 * 86400 + 5),
        ("[  142.890123] ActorDiedError", "boot", 142.890123),
    ],
)
def test_times(tmp_path, line, kind, seconds):
    clock = read(tmp_path, line).events[0].first.clock
    assert clock is not None
    assert (clock.kind, round(clock.seconds, 3)) == (kind, round(seconds, 3))


def test_a_line_without_a_time_has_that_of_the_line_above(tmp_path):
    clock = (
        read(tmp_path, "2025-01-01 00:00:09 start\nTraceback\nActorDiedError\n")
        .events[0]
        .first.clock
    )
    assert clock is not None
    assert clock.seconds == 86409


def test_terminal_escapes_and_control_characters_do_not_come_out(tmp_path):
    line = (
        read(
            tmp_path,
            b"\x1b]0;title\x07\x1b[31mActorDiedError\x1b[0m\x00 \x9b2J \xe2\x80\xae evil "
            b"\xff\xfe\n",
        )
        .events[0]
        .first
    )
    assert not any(
        ord(sign) < 32 or 127 <= ord(sign) < 160 or ord(sign) == 0x202E for sign in line.text
    )


def test_progress_bars_are_cut_off(tmp_path):
    assert (
        read(tmp_path, "  1%|# | 1/9\r  2%|# | 2/9\rActorDiedError: x\n").events[0].first.text
        == "ActorDiedError: x"
    )


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_logs_are_unpacked(tmp_path, pack):
    assert read(tmp_path, pack(b"ActorDiedError\n" * 3)).events[0].times == 3


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_packed_log_of_many_parts_is_read_in_time(tmp_path, pack):
    data = pack(b"ActorDiedError\n") * 20_000 + bytes(512)
    found = within(10, lambda: read(tmp_path, data))
    assert found.lines == 20_000
    assert not found.damages


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, partial(lzma.compress, preset=0)])
def test_a_packed_log_is_read_as_far_as_it_goes(tmp_path, pack):
    lines = random.Random(7).choices(range(10**9), k=300_000)
    packed = pack(b"ActorDiedError\n" + "\n".join(map(str, lines)).encode())
    for broken in (packed[: len(packed) // 2], packed[:-20] + bytes(20), packed + b"rubbish"):
        found = read(tmp_path, broken)
        assert found.events[0].times == 1
        assert found.size > 500_000
        assert len(found.damages) == 1
        assert "as far as it goes" in found.damages[0]


def test_what_unpacks_without_end_is_left_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(packed_log, "_MOST", 8 << 20)
    found = read(tmp_path, gzip.compress(b"ActorDiedError\n" + bytes(64 << 20)))
    assert found.events[0].times == 1
    assert found.size < 10 << 20
    assert "200 times its size" in found.damages[0]


def test_utf16_is_read(tmp_path):
    assert read(tmp_path, "x\nActorDiedError\n".encode("utf-16")).events[0].first.number == 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(b"ActorDiedError" * 99, mtime=0)[:11], "nothing in it can be read"),
        (b"\x28\xb5\x2f\xfd123", "zstd -dc"),
    ],
)
def test_what_cannot_be_unpacked_is_said(tmp_path, data, words):
    with pytest.raises(InputError, match=words):
        read(tmp_path, data)


@pytest.mark.parametrize("path", ["missing.log", "."])
def test_what_cannot_be_read_is_said(tmp_path, path):
    with pytest.raises(InputError, match="cannot be read"):
        read_logs([str(tmp_path / path)], [DIED])


def test_a_line_of_ten_megabytes_costs_no_more_than_the_same_in_short_lines(tmp_path, patterns):
    unit = (
        b"CUDA out of memory. Tried to allocate (((( Killed process undefined symbol: cannot "
        b"open shared object file "
    )
    long = (unit * 10 + b"all is well " * 40_000) * 20
    short = long.replace(b"file ", b"file\n")
    least = least_seconds(lambda: read(tmp_path, short, patterns))
    within(3 * least + 1, lambda: read(tmp_path, long, patterns))


@pytest.mark.parametrize(
    "window",
    [1 << 15, pytest.param(1 << 20, marks=pytest.mark.slow)],  # the second is the reader's own
)
@pytest.mark.parametrize(
    "each", [8, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 60))]
)
def test_a_log_of_nothing_but_anchors_is_read_in_linear_time(
    tmp_path, patterns, monkeypatch, each, window
):
    """Every line holds anchors: what is matched in one window is bounded, and the rest is said to
    be dropped.
    """
    monkeypatch.setattr(log_reader, "_CHUNK", window)
    choice = random.Random(each)
    anchors = [anchor for pattern in patterns for anchor in pattern.anchors]
    text = "".join(
        " ".join(choice.choices(anchors, k=each)) + "\n" for _ in range(window // (30 * each))
    )

    def read_times(times):
        found = read(tmp_path, text * times, patterns)
        assert found.dropped
        assert found.lines == times * text.count("\n")

    least = least_seconds(lambda: read_times(1))
    within(6 * least, lambda: read_times(4))


def test_what_comes_after_very_many_of_one_kind_is_still_found(tmp_path, patterns):
    xid = "NVRM: Xid (PCI:0000:01:00): {}, pid=7, name=python\n"
    found = read(
        tmp_path, xid.format(13) * 20000 + xid.format(79) + xid.format(13) * 20000, patterns
    )
    assert "nvrm-fell-off-bus" in {event.pattern for event in found.events}


def test_twice_the_log_costs_about_twice_as_much(tmp_path, patterns):
    data = b"(WorkerDict pid=1) ImportError: undefined symbol: " + b"A" * 3000 + b"\n"
    least = least_seconds(lambda: read(tmp_path, data * 100, patterns))
    within(12 * least + 1, lambda: read(tmp_path, data * 400, patterns))


@given(st.binary(max_size=4000))
@settings(max_examples=60)
def test_random_bytes_do_no_harm(tmp_path_factory, patterns, data):
    with contextlib.suppress(InputError):  # bytes that begin as a packed file does
        read(tmp_path_factory.mktemp("log"), data, patterns)


@given(st.data(), st.binary(max_size=200))
@settings(max_examples=60)
def test_no_anchor_is_lost(tmp_path_factory, patterns, data, noise):
    """What the sieve lets through is what a plain search finds."""
    pattern = data.draw(st.sampled_from([entry for entry in patterns if not entry.expression]))
    anchor = data.draw(st.sampled_from(pattern.anchors))
    around = noise.replace(b"\x1b", b"").replace(b"\r", b"").decode("latin-1").encode("utf-8")
    found = read(
        tmp_path_factory.mktemp("log"),
        b"log " + around + b"\n( " + anchor.encode() + b" ) \n" + around,
        patterns,
    )
    assert pattern.id in {event.pattern for event in found.events}


@pytest.mark.parametrize(
    ("above", "frame"),
    [
        (
            (
                '  File "/v/lib/python3.11/site-packages/vllm/_custom_ops.py", line 5, in '
                "<module>\n   "
                " import vllm._C\n    ^^^^^^\n"
            ),
            "vllm",
        ),
        (
            (
                '  File "/v/site-packages/torchaudio/x.py", line 5, in f\n    load()\n  File '
                '"/usr/lib/python3.11/ctypes/__init__.py", line 3\n'
            ),
            "torchaudio",
        ),
        ("    from vllm import cuda_utils\n", "vllm"),
        ("/v/site-packages/transformers/hub.py:128: FutureWarning: old\n  warnings.warn(\n", None),
        (
            (
                '  File "/v/site-packages/torch/x.py", line 1, in f\n    main()\nValueError: '
                "x\nINFO "
                "goes on\nINFO goes on\n"
            ),
            None,
        ),
    ],
)
def test_only_a_traceback_directly_above_names_a_package(tmp_path, above, frame):
    (event,) = read(
        tmp_path, f"{above}ImportError: libx.so\n", [Pattern("x", ("libx.so",), "", True)]
    ).events
    assert event.groups.get("frame") == frame


def test_every_anchor_has_a_word(patterns):
    """But for those in another script, which are looked for where a window is not ASCII."""
    for pattern in patterns:
        for anchor in pattern.anchors:
            word = key_word(anchor.encode())
            assert len(word) > 2 or (not word and not anchor.isascii()), anchor


@pytest.mark.parametrize(
    ("anchor", "line"),
    [
        ("xit code -9", "it ended with exit code -9"),
        ("undefined symbol: cu", "undefined symbol: cublasLtCreate"),
        ("isk full", "disk full"),
        (" not found.", "Model x not found."),
    ],
)
def test_an_anchor_may_begin_and_end_within_a_word(tmp_path, anchor, line):
    (event,) = read(tmp_path, f"{line}\n", [Pattern("part", (anchor,))]).events
    assert event.first.text == line


@pytest.mark.parametrize("mark", log_reader._REPORT_MARKS)
def test_each_mark_of_a_report_far_behind_the_beginning_is_found(tmp_path, mark):
    noise = b"all is well here\n" * 150_000
    found = read(tmp_path, noise + b"x" + mark + b" 9.9.9 y\n" + noise, ())
    assert mark.decode() in found.report


def test_a_report_far_behind_the_beginning_is_kept(tmp_path):
    noise = "all is well\n" * (3 << 16)
    report = "Collecting environment information...\nPyTorch version: 2.4.0+cu121\n"
    kept = read(tmp_path, f"ray 2.9.0\n{noise}{report}{noise * 9}{report * 30000}").report
    assert kept.startswith("ray 2.9.0\n")
    assert report in kept
    assert len(kept) < 2 << 20


def test_what_stands_above_a_line_is_read_across_windows(tmp_path):
    """The last line without a newline, and the first of the next MiB, have their traceback in the
    window before.
    """
    pattern = Pattern(
        "gone",
        ("No module named",),
        near=(("peft", r"site-packages/peft/"), ("trl", r"site-packages/trl/")),
    )
    (event,) = read(
        tmp_path, "  File site-packages/peft/x.py\nNo module named 'y'", [pattern]
    ).events
    assert event.near == {"peft"}
    noise = "all is well\n" * ((1 << 20) // 12 - 3)
    (event,) = read(
        tmp_path,
        f"{noise}  File site-packages/trl/x.py\n    import y\nNo module named 'y'\n",
        [pattern],
    ).events
    assert event.near == {"trl"}


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"#8 159.5     torch 2.1.0 depends on sympy", "    torch 2.1.0 depends on sympy"),
        (b"#8 159.5 ", ""),
        (b"#8 DONE 159.5s", "#8 DONE 159.5s"),
        (b"#8 is a heading", "#8 is a heading"),
        (
            b"2024-02-26 17:11:32 | ERROR | stderr | INFO:     Finished server process [6]",
            "2024-02-26 17:11:32 | stderr | INFO:     Finished server process [6]",
        ),
        (
            b"2024-02-26 17:11:32 | ERROR | model_worker | Caught Unknown Error",
            "2024-02-26 17:11:32 | ERROR | model_worker | Caught Unknown Error",
        ),
    ],
)
def test_what_a_launcher_puts_before_each_line_is_no_part_of_it(raw, text):
    assert cleaned(raw) == text


def test_it_is_told_how_far_a_long_log_was_read(tmp_path):
    log = tmp_path / "run.log"
    log.write_bytes(b"step 1 loss 0.5\n" * (3 << 20))  # 48 MiB
    said = []
    read_logs([str(log)], [DIED], said.append)
    assert said == [
        "reading the logs: 16 of 48 MiB (33 %)",
        "reading the logs: 32 of 48 MiB (66 %)",
        "reading the logs: 48 MiB",
    ]
    packed = tmp_path / "run.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes(), 1))
    of_packed = []
    read_logs([str(packed)], [DIED], of_packed.append)
    assert of_packed == [f"reading the logs: {count} MiB" for count in (16, 32, 48)]


def test_a_variable_before_an_exception_hides_it_not(tmp_path):
    """A dump of variables is no event; a line that goes on to an exception is."""
    memory = Pattern("memory", ("CUDA out of memory",))
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    for text, events in (
        (line, 1),
        (f"PYTORCH_ALLOC_CONF=a:True {line}", 1),
        (f"X_Y={line[24:]}", 0),
    ):
        assert len(read(tmp_path, f"{text}\n", (memory,)).events) == events


def test_what_a_line_of_data_holds_did_not_happen(tmp_path):
    data = "it said: Killed process 7, and more of the kind; " * 4000
    for mark, times in (("[2026-01-02 03:04:05,678 INFO] ", 0), ("", 1)):
        reading = read(tmp_path, f"start\n{mark}Processing {'word ' * 200}{data}\nend\n")
        assert len(reading.events) == times
    (event,) = read(tmp_path, "INFO it goes on\nKilled process 7\n").events
    assert event.first.number == 2
