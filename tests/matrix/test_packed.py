"""Packed documents: what is read is what was packed, also by a Python without LZMA."""

import sys

from envdoctor.matrix.loader import load_matrix
from envdoctor.matrix.packed import pack, unpack

TEXT = b"0-3: one two three; " * 400


def test_what_is_packed_is_unpacked():
    assert unpack(pack(TEXT)) == TEXT
    assert len(pack(TEXT)) < len(TEXT) / 10


def test_a_python_without_lzma_packs_by_zlib_and_reads_it(monkeypatch):
    small = pack(TEXT)
    monkeypatch.setitem(sys.modules, "lzma", None)
    assert unpack(pack(TEXT)) == TEXT
    assert unpack(small) is None


def test_without_lzma_names_are_not_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "lzma", None)
    matrix = load_matrix()
    assert matrix.names_of("trl") is None
    assert matrix.name_history("trl", "SFTConfig") is None
    assert matrix.messages_of("trl") is None
    assert matrix.owners_of("SFTConfig") == []
