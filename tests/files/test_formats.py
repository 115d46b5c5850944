"""A format is one entry of the table: what reads, writes, finds and compresses files goes by it."""

from sample_files import put

from dptext.io import formats
from dptext.io.atomic import atomic_file
from dptext.io.documents import DocumentWriter, find_files, read_documents


def read_bars(lines, columns):
    for line in lines:
        yield lines.undecoded() or dict(zip(columns, line.removesuffix("\n").split("|"), strict=False))


def bar_line(_names, values, _number):
    return "|".join(values) + "\n"


def test_a_new_entry_is_all_that_a_new_format_needs(tmp_path, monkeypatch):
    entry = formats._LineFormat((".bars", ".bar"), read_bars, bar_line)
    monkeypatch.setitem(formats.FORMATS, ".bars", entry)
    for suffix in entry.suffixes:
        monkeypatch.setitem(formats._BY_SUFFIX, suffix, ".bars")
    for name in ("a.bars", "a.bar.gz", "a.bar.zst"):
        writer = DocumentWriter(tmp_path / name, keep=["stars"])
        blocks = [
            writer.encode(["one", "two"], {"stars": ["5", "1"]}, row=1, first=True),
            writer.encode(["three"], {"stars": ["2"]}, row=3, first=False),
        ]
        (tmp_path / "blocks").write_bytes(b"".join(blocks))
        with atomic_file(tmp_path / name) as out:
            if writer.is_assembled:
                writer.finish(tmp_path / "blocks", [len(blocks[0]), len(blocks[0] + blocks[1])], out)
            else:
                out.write(b"".join(blocks))
        found = [(each.text, each.attributes) for each in read_documents(tmp_path / name, keep=["stars"])]
        assert found == [("one", {"stars": "5"}), ("two", {"stars": "1"}), ("three", {"stars": "2"})]
    assert [path.name for path, _ in find_files([tmp_path])] == ["a.bar.gz", "a.bar.zst", "a.bars"]


def test_help_and_errors_name_every_format(tmp_path):
    for kind in formats.FORMATS:
        assert kind in formats.NAMES_OF_FORMATS
        if not formats.FORMATS[kind].is_written:
            continue
        assert [each.text for each in read_documents(put(tmp_path / f"a{kind}", ["one"]))] == ["one"]
    assert set(formats.SUFFIXES) == {".gz", ".zst"} | {
        suffix for each in formats.FORMATS.values() for suffix in each.suffixes
    }
