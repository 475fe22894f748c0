"""Text files as users name them."""

import io
import sys

import pytest

from envdoctor import text_files
from envdoctor.errors import InputError
from envdoctor.text_files import name_of, read_text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_editors_and_powershell_write(tmp_path, encoding):
    path = tmp_path / "a.txt"
    path.write_text("torch==2.6.0 # ä", encoding=encoding)
    assert read_text(str(path)) == "torch==2.6.0 # ä"


def test_other_bytes(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"ab\xffc")
    with pytest.raises(InputError, match=r"a\.txt: expected UTF-8 text, found the byte 0xff at.*2"):
        read_text(str(path))
    assert read_text(str(path), lenient=True) == "ab\ufffdc"


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"read\n")))
    assert read_text("-") == "read\n"
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        read_text("-")
    assert (name_of("-"), name_of("a")) == ("standard input", "a")


@pytest.mark.parametrize("name", ["missing", ".", "nul\0byte"])
def test_what_cannot_be_read(tmp_path, name):
    with pytest.raises(InputError, match="cannot be read"):
        read_text(str(tmp_path / name))


def test_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_SIZE_LIMIT", 4)
    (tmp_path / "a").write_bytes(b"12345")
    with pytest.raises(InputError, match="larger than"):
        read_text(str(tmp_path / "a"))


def test_a_statement_in_the_place_of_a_file_is_told_how_it_is_made():
    with pytest.raises(InputError, match=r"^gpu=H20: cannot be read: .*--assume KEY=VALUE"):
        read_text("gpu=H20")
