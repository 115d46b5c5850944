"""A saved folder is read only as its configuration announces it, and a device reads it without pyarrow."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.artifacts import SavedFolder, announced_format, read_tensors, tensor_bytes
from dptext.representations.bounds import fit_bound
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import MeanOfWords
from dptext.representations.privunit import PrivUnit
from secrecy import assert_error

ARRAYS = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "mean": np.array([0.5, -1e300, np.nan, np.inf]),
    "words": np.frombuffer(b"a\nb", dtype=np.uint8),
    "counts": np.array([[-1], [2**40]]),
    "half": np.array([1.5], dtype=np.float16),
    "one": np.array(7.0),
    "none": np.zeros((0, 4), dtype=np.float32),
}
ENTRY = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}


@pytest.fixture
def read(tmp_path):
    def read(content):
        path = tmp_path / "f"
        path.write_bytes(content)
        return read_tensors(path, source="f")

    return read


def raw(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_arrays_are_read_as_they_were_written_and_are_read_only(read):
    result, metadata = read(tensor_bytes(ARRAYS, {"format": "np"}))
    assert metadata == {"format": "np"} and result.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert (result[name].dtype, result[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(result[name], array)
    with pytest.raises(ValueError, match="read-only"):
        result["mean"][0] = 1.0
    assert read(tensor_bytes({})) == ({}, {})
    transposed, backwards = np.arange(12.0).reshape(3, 4).T, np.arange(10)[::-2]
    broadcast, big_endian = np.broadcast_to(np.float32(2.0), (3, 2)), np.arange(6, dtype=">i4").reshape(2, 3).T
    for array in (transposed, backwards, broadcast, big_endian):
        np.testing.assert_array_equal(read(tensor_bytes({"a": array}))[0]["a"], array)
    message = "'bad' cannot be stored: expected integers or floating-point numbers"
    for array in [np.array(["text"]), np.array([1j]), np.array([None]), np.array([True])]:
        assert_error(ParameterError, lambda array=array: tensor_bytes({"bad": array}), message)


def test_a_cut_or_foreign_file_is_refused(read, tmp_path):
    whole = tensor_bytes(ARRAYS)
    foreign = (
        b"\xff" * 20,
        (2**40).to_bytes(8, "little") + b"{}",
        raw(b"{" * 100_000),
        raw({"__metadata__": {"a": 1}}),
        raw({"a": {**ENTRY, "shape": [2**40, 2**40]}}, b"ab"),
        raw({"a": ENTRY, "b": ENTRY}, b"ab"),
        # safetensors takes these, numpy does not, or they are no numbers
        raw({"a": {**ENTRY, "dtype": "BF16", "shape": [1]}}, b"ab"),
        raw({"a": {**ENTRY, "dtype": "BOOL"}}, b"\x01\x02"),
    )
    for content in (*(whole[:end] for end in range(len(whole))), whole + b"\0", *foreign):
        with pytest.raises(DataError, match=r"^f is not a complete safetensors file. Get it again$"):
            read(content)
    for name, message in (("missing", "cannot read"), ("pipe", "is a pipe")):
        if name == "pipe":
            os.mkfifo(tmp_path / name)
        assert_error(StorageError, lambda name=name: read_tensors(tmp_path / name, source="f"), message)


# -- folders --------------------------------------------------------------------------------------------------

FOLDER = SavedFolder(
    format="test",
    version=2,
    writer="save",
    holds="a test",
    keys=("size",),
    files=("a.bin", "b.txt"),
    further=("c.txt",),
)


def save(place, **files):
    content = {"a.bin": lambda file: file.write(b"large"), "b.txt": b"small", **files}
    FOLDER.write(place, {"size": 5}, content, software="dptext 0", replace=True)
    return place


def test_a_saved_folder_is_read_and_replaced_only_if_it_holds_nothing_else(tmp_path):
    place = save(tmp_path / "f", **{"c.txt": b"more"})
    config, contents = FOLDER.read(place, "f")
    assert (config["format"], config["version"], config["size"]) == ("test", 2, 5)
    assert contents == {"b.txt": b"small", "c.txt": b"more"}
    assert announced_format(place) == "test"
    assert announced_format(tmp_path) is None
    assert FOLDER.place(place, replace=True) == place.resolve()
    assert_error(ParameterError, lambda: FOLDER.place(place), "already exists")
    (place / "mine.txt").touch()
    assert_error(ParameterError, lambda: FOLDER.place(place, replace=True), "data other than a test")


def test_a_folder_that_is_not_as_announced_is_refused(tmp_path):
    def refused(message, *, change=None, remove=None, **config):
        place = save(tmp_path / "f")
        if change is not None:
            (place / change).write_bytes(b"other")
        if remove is not None:
            (place / remove).unlink()
        if config:
            announced = json.loads((place / "config.json").read_text())
            (place / "config.json").write_text(json.dumps({**announced, **config}))
        assert_error(DataError, lambda: FOLDER.read(place, "f"), "f: ", message)

    refused("a.bin does not match its digest in config.json", change="a.bin")
    refused("b.txt does not match its digest", change="b.txt")
    refused("c.txt does not match its digest", change="c.txt")
    refused("config.json is not of the format 'test'", change="config.json")
    refused("a.bin is missing", remove="a.bin")
    refused("config.json is missing", remove="config.json")
    refused("another version of the format than 2", version=True)
    refused("config.json is not of the format 'test'", format="other")
    refused("unknown field 'further'", further=1)
    refused("unknown field 'sha256.d.txt'", sha256={"d.txt": ""})
    assert_error(DataError, lambda: FOLDER.read(tmp_path / "no", "f"), "does not exist")
    (tmp_path / "f").rename(tmp_path / ".f.part")
    assert_error(DataError, lambda: FOLDER.read(tmp_path / ".f.part", "f"), "unfinished output")


DEVICE = """
import sys

class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("pyarrow", "pandas", "scipy", "sklearn", "torch"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
import dptext

encoder = dptext.DeviceEncoder.load(sys.argv[1])
print(encoder.encode(["two words"]).shape)
print(len(list(dptext.read_documents(sys.argv[2], keep=["n"]))))
"""


@pytest.mark.slow
def test_a_device_needs_no_pyarrow(tmp_path, small):
    words = MeanOfWords(small)
    bound = fit_bound(words.encode(list(small.words[:8])), dimension=2, public_name="a list")
    DeviceEncoder(words, bound, PrivUnit(epsilon=6.0)).save(tmp_path / "device")
    (tmp_path / "a.csv").write_text("text,n\none,1\n")
    command = [sys.executable, "-c", DEVICE, os.fspath(tmp_path / "device"), os.fspath(tmp_path / "a.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == "1"
