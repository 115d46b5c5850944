"""No byte of a released file comes from other parts of the table than the released values.

A marker lies in every part of a table that is not released: the original texts and other rows, values beneath missing
ones, entries of dictionaries, categories and names of classes that no row has, metadata of tables, fields and extension
types, indices, attributes, and all that a data set says of itself. What comes back is written in all forms that its
library has, uncompressed, and the bytes are searched. For each place, the same search finds the marker in the original.
"""

import base64
import io
import json
import pickle
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import assume, given, settings

import dptext
from dptext.errors import DataError
from planted import MARKER, NUMBER, SHOWN, tables

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
datasets = pytest.importorskip("datasets")

UNWRITABLE = (
    *(NotImplementedError, ValueError, TypeError, AttributeError, KeyError, pa.ArrowException),
    *(polars.exceptions.PolarsError, polars.exceptions.PanicException),
)


@pytest.fixture(scope="module")
def mechanism():
    vectors = dptext.load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    return dptext.TEM(vectors, epsilon=1.0)


# -- the search -----------------------------------------------------------------------------------------------


def is_in(content):
    """Whether the marker is in these bytes: as text, as a number, or in the schema that parquet holds in base64."""
    needles = (MARKER.encode(), str(NUMBER).encode(), MARKER.encode("utf-16-le"), MARKER.encode().hex().encode())
    if any(needle in content for needle in needles):
        return True
    if content[:4] == b"PAR1":
        schema = (pq.read_metadata(io.BytesIO(content)).metadata or {}).get(b"ARROW:schema", b"")
        return any(needle in base64.b64decode(schema) for needle in needles)
    return False


def pickled(table):
    for protocol in (2, 5):
        yield pickle.dumps(table, protocol=protocol)
    aside = []
    yield pickle.dumps(table, protocol=5, buffer_callback=aside.append)
    yield from (entry.raw().tobytes() for entry in aside)


def attempts(*writers):
    """Return the output of each writer; formats without such a type write nothing."""
    for write in writers:
        out = io.BytesIO()
        with suppress(*UNWRITABLE):
            write(out)
            yield out.getvalue()


def values_of_arrow(table):
    def stream(out):
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)

    yield from pickled(table)
    yield from attempts(
        stream,
        lambda out: pq.write_table(table, out, compression="none"),
        lambda out: feather.write_feather(table, out, compression="uncompressed"),
    )


def values_of_pandas(table):
    yield from pickled(table)
    yield from attempts(
        lambda out: table.to_parquet(out, compression=None),
        lambda out: table.to_feather(out, compression="uncompressed"),
        table.to_csv,
    )
    if not any(isinstance(dtype, pandas.ArrowDtype) for dtype in table.dtypes):  # pandas crashes at some of these
        yield from attempts(lambda out: out.write(table.to_json(orient="split").encode()))


def values_of_polars(table):
    yield from pickled(table)
    yield from attempts(
        lambda out: table.write_parquet(out, compression="uncompressed"),
        lambda out: table.write_ipc(out, compression="uncompressed"),
        lambda out: table.write_ndjson(out),
        lambda out: table.write_csv(out),
        lambda out: table.serialize(out),
    )


def values_of_dataset(table):
    yield from pickled(table)
    with tempfile.TemporaryDirectory() as folder:
        table.save_to_disk(folder)
        yield from (path.read_bytes() for path in Path(folder).iterdir())
    yield from attempts(
        lambda out: table.to_parquet(out, compression="none"), lambda out: table.to_json(out), table.to_csv
    )


def written(table):
    kind = type(table).__module__.partition(".")[0]
    return {
        "pyarrow": values_of_arrow,
        "pandas": values_of_pandas,
        "polars": values_of_polars,
        "datasets": values_of_dataset,
    }[kind](table)


def shows(table):
    return any(map(is_in, written(table)))


# -- tables of all kinds --------------------------------------------------------------------------------------


def as_pandas(table, *, arrow):
    try:
        frame = table.to_pandas(types_mapper=pandas.ArrowDtype if arrow else None)
    except UNWRITABLE:
        assume(False)
    frame.index = pandas.Index([MARKER] * len(frame), name=MARKER)
    frame.columns.name = MARKER
    frame.attrs[MARKER] = MARKER
    return frame


def as_polars(table):
    try:
        return polars.from_arrow(table.replace_schema_metadata(None))
    except UNWRITABLE:
        assume(False)


def as_dataset(table):
    try:
        dataset = datasets.Dataset(table)
    except UNWRITABLE:
        assume(False)
    assume(
        MARKER not in str(dataset.select_columns("kept").to_list())
    )  # slices of lists of dictionaries come out wrong
    return add_info(dataset)


def add_info(dataset_value):
    info = dataset_value.info
    info.description = info.citation = info.homepage = info.license = MARKER
    info.builder_name = info.dataset_name = info.config_name = MARKER
    info.splits = datasets.SplitDict({MARKER: datasets.SplitInfo(MARKER, num_bytes=NUMBER, num_examples=NUMBER)})
    info.dataset_size = info.download_size = info.size_in_bytes = NUMBER
    info.download_checksums = {MARKER: {"num_bytes": NUMBER}}
    info.version = datasets.Version("1.0.0", description=MARKER)
    dataset_value._split = datasets.NamedSplit(MARKER)
    return dataset_value


def values(table):
    """Return the values of the kept column, with equal missing values."""
    kept = table["kept"]
    listed = next((entry for entry in ("to_pylist", "to_list") if hasattr(kept, entry)), None)
    kept = list(kept) if listed is None else getattr(kept, listed)()
    return [
        repr(None if entry is None or entry is pandas.NA or (isinstance(entry, float) and entry != entry) else entry)
        for entry in kept
    ]


FORMS = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: as_pandas(table, arrow=False),
    "pandas of arrow": lambda table: as_pandas(table, arrow=True),
    "polars": as_polars,
    "datasets": as_dataset,
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@given(table=tables())
@settings(max_examples=40, deadline=None)
def test_no_byte_but_of_kept_values_goes_out(mechanism, form, table):
    original = FORMS[form](table)
    try:
        released = dptext.privatize(original, mechanism, keep=["kept"]).table
        stripped = dptext.strip_metadata(released)
    except DataError as error:  # refused, in one line
        assert MARKER not in str(error)
        assert "convert it, or do not keep it" in str(error)
        return
    assert not shows(released)
    assert not shows(stripped)
    assert values(released) == values(stripped) == values(original)


@pytest.mark.slow
@given(table=tables())
@settings(max_examples=20, deadline=None)
@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".csv"])
def test_no_byte_but_of_kept_values_goes_from_file_to_file(mechanism, ending, table):
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in.parquet", Path(folder) / f"out{ending}"
        try:
            pq.write_table(table, source)
        except pa.ArrowException:
            assume(False)
        try:
            dptext.privatize_file(dptext.TextFiles(source, keep=["kept"]), out, mechanism)
        except DataError as error:
            assert MARKER not in str(error)
            return
        for path in Path(folder).iterdir():
            if path != source:
                content = pq.read_table(path) if path.suffix == ".parquet" else None
                assert not is_in(path.read_bytes())
                assert content is None or not shows(content)


@pytest.mark.parametrize("way", ["table", "map"])
def test_the_sizes_of_the_original_are_not_told(mechanism, tmp_path, way):
    """Metadata of loaded files differ between two diagnoses; those of the release are equal."""
    text, before = set(), set()
    for number, diagnosis in enumerate(("flu", "schizophrenia")):
        source = tmp_path / f"{number}.jsonl"
        source.write_text(json.dumps({"text": diagnosis, "stars": 1}) + "\n")
        cache = str(tmp_path / f"cache{number}")
        original = datasets.load_dataset("json", data_files=str(source), split="train", cache_dir=cache)
        if way == "table":
            released = dptext.privatize(original, mechanism, keep=["stars"]).table
        else:
            released = dptext.strip_metadata(
                original.map(lambda rows: {"text": ["x"] * len(rows["text"])}, batched=True)
            )
        for dataset, seen in ((original, before), (released, text)):
            dataset.save_to_disk(tmp_path / "out")
            seen.add((tmp_path / "out" / "dataset_info.json").read_text())
        assert released.split is None
    assert len(before) == 2
    assert len(text) == 1


# -- one place after the other, and what the search finds in the original ------------------------------------------


def dictionary(wrap=lambda array: array):
    return pa.table({"text": ["a", "b"], "kept": wrap(pa.array([SHOWN, MARKER]).dictionary_encode())}).slice(0, 1)


def pair_parts(array):
    return pa.array([0, 1, 2], pa.int32()), array


def frame(kept, rows=slice(0, 1)):
    return pandas.DataFrame({"text": "a", "kept": kept}).iloc[rows]


def frame_with_attribute(**more):
    output = frame(pandas.Series([SHOWN, SHOWN]))
    for name, value in more.items():
        setattr(output, name, value)
    return output


def masked():
    kept = pandas.array([NUMBER, 1], dtype="Int64")
    kept[0] = pandas.NA
    return frame(kept)


class Text(str):
    """What a caller may have made of str."""


def tagged_text():
    text = Text(SHOWN)
    text.source = MARKER
    return text


def class_labels():
    labels = datasets.ClassLabel(names=[SHOWN, MARKER])
    return datasets.Dataset.from_dict(
        {"text": ["a"], "kept": [0]}, features=datasets.Features({"text": datasets.Value("string"), "kept": labels})
    )


def mapped():
    return add_info(datasets.Dataset.from_dict({"text": ["a"], "kept": [1]})).map(lambda row: row, batched=True)


def nested(build):
    """A slice of a table whose kept column nests a dictionary with an unused entry."""
    return lambda: dictionary(build)


PLACES = {
    "rows around a slice": lambda: pa.table({"text": ["a"] * 3, "kept": [MARKER, SHOWN, MARKER]}).slice(1, 1),
    "entries of a dictionary": dictionary,
    "entries in lists": nested(lambda array: pa.ListArray.from_arrays(*pair_parts(array))),
    "entries in lists of a fixed size": nested(lambda array: pa.FixedSizeListArray.from_arrays(array, 1)),
    "entries in maps": nested(
        lambda array: pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["k", "k"]), array)
    ),
    "entries in structures": nested(lambda array: pa.StructArray.from_arrays([array], ["a"])),
    "metadata of a table": lambda: pa.table({"text": ["a"], "kept": [1]}, metadata={"a": MARKER}),
    "metadata of a field": lambda: pa.table(
        {"text": ["a"], "kept": [1]},
        pa.schema([("text", pa.string()), pa.field("kept", pa.int64(), metadata={"a": MARKER})]),
    ),
    "index of a frame": lambda: frame_with_attribute(index=[MARKER]),
    "name of the index": lambda: frame([1]).rename_axis(index=MARKER),
    "name of the columns": lambda: frame([1]).rename_axis(columns=MARKER),
    "attributes of a frame": lambda: frame_with_attribute(attrs={"a": MARKER}),
    "categories": lambda: frame(pandas.Categorical([SHOWN, MARKER])),
    "name of the categories": lambda: frame(pandas.Categorical([SHOWN], pandas.Index([SHOWN], name=MARKER))),
    "entries of a dictionary in pandas": lambda: frame(
        pandas.array([SHOWN, MARKER], pandas.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))
    ),
    "beneath a missing value": masked,
    "attributes of a subclass of str": lambda: frame(pandas.Series([tagged_text()], dtype=object)),
    "values of an enumeration": lambda: polars.DataFrame(
        {"text": ["a", "b"], "kept": polars.Series([SHOWN, MARKER], dtype=polars.Enum([SHOWN, MARKER]))}
    ).head(1),
    "information of a dataset": lambda: add_info(datasets.Dataset.from_dict({"text": ["a"], "kept": [1]})),
    "information of a dataset after map": mapped,
    "names of classes": class_labels,
}


@pytest.mark.parametrize("place", PLACES)
def test_a_marker_that_is_in_the_original_is_not_in_the_release(mechanism, place):
    original = PLACES[place]()
    assert shows(original)
    try:
        released = dptext.privatize(original, mechanism, keep=["kept"]).table
        stripped = dptext.strip_metadata(original)
    except DataError as error:
        assert place == "attributes of a subclass of str"
        assert "convert it, or do not keep it" in str(error)
        return
    assert not shows(released)
    assert not shows(stripped)
