"""The bytes of a file, unpacked."""

import gzip

import pyarrow
import pytest

import dptext


def zstd(data):
    return pyarrow.compress(data, "zstd", asbytes=True)


BROKEN = "{}: the compressed data is broken or ends early; copy the file again"
LINES = b"".join(b"w%s 0.1 7.25\n" % bytes(97 + int(digit) for digit in str(n)) for n in range(50_000))


@pytest.mark.parametrize(
    ("name", "pack"), [("a", bytes), ("a.gz", gzip.compress), ("a.GZ", gzip.compress), ("a.zst", zstd)]
)
def test_compressed_files_of_one_or_several_frames_are_read(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(LINES) + pack(b"") + pack(b"end 1 2\n"))
    vectors = dptext.load_vectors(tmp_path / name)
    assert (len(vectors), vectors["end"].tolist()) == (50_002, [1.0, 2.0])


@pytest.mark.parametrize(("name", "pack"), [("a.txt.gz", gzip.compress), ("a.txt.zst", zstd)])
@pytest.mark.parametrize("cut", [1, 5, 12])
def test_cut_or_foreign_data_in_a_compressed_file(refused, tmp_path, name, pack, cut):
    packed = pack(b"".join(b"secret%d 0.1 7.25\n" % n for n in range(50)))
    for content in (packed[:-cut], packed + b"more", b"secret 1 2\n", packed[:10] + b"\xff" * cut + packed[10 + cut :]):
        (tmp_path / name).write_bytes(content)
        refused(tmp_path / name, BROKEN.format(name))
