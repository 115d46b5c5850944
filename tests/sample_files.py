"""Files to read: written by the writer, or byte by byte; and texts that are awkward to write."""

import gzip
import itertools
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from dptext.io.atomic import HashedFile
from dptext.io.documents import DocumentWriter, read_documents

KINDS = [".txt", ".jsonl", ".csv"]
WRITTEN = [*KINDS, ".txt.gz", ".jsonl.gz", ".csv.gz", ".ndjson", ".parquet"]
WITH_COLUMNS = [suffix for suffix in WRITTEN if ".txt" not in suffix]

encodable = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
awkward = st.lists(
    st.sampled_from(
        ["\r", "\n", "\r\n", '"', '""', ",", ";", "\t", "\x00", "\x1a", "\u2028", "\u0085", "\ufeff", " ", "a"]
    ),
    max_size=6,
).map("".join)
texts = encodable | awkward


def fits(suffix, text):
    """Whether a format can hold a text at all."""
    return text is None or ".txt" not in suffix or ("\n" not in text and not text.endswith("\r"))


def put(path, texts, columns=None, *, text="text", cuts=()):
    """A file as the writer makes it, in one block or in several."""
    columns = columns or {}
    writer = DocumentWriter(path, text=text, keep=tuple(columns))
    parts = []
    for first, last in itertools.pairwise([0, *cuts, len(texts)]):
        part = {name: values[first:last] for name, values in columns.items()}
        parts.append(writer.encode(texts[first:last], part, row=first + 1, first=not parts))
    return joined(path, writer, parts)


def joined(path, writer, parts):
    """The file of these blocks."""
    spool = path.with_name(f"{path.name}.blocks")
    spool.write_bytes(b"".join(parts))
    if not writer.format.is_assembled:
        return spool.replace(path)
    with path.open("wb") as stream:
        writer.finish(spool, list(itertools.accumulate(map(len, parts))), HashedFile(stream))
    spool.unlink()
    return path


def packed(name, data):
    """Bytes, compressed if the name says so."""
    data = data.encode() if isinstance(data, str) else data
    if name.lower().endswith(".gz"):
        return gzip.compress(data)
    if name.lower().endswith(".xz"):
        return lzma.compress(data)
    return pa.compress(data, "zstd", asbytes=True) if name.lower().endswith(".zst") else data


def raw(path, data):
    """A file with these bytes, compressed if its name says so."""
    path.write_bytes(packed(path.name, data))
    return path


def table(path, columns, **options):
    """A parquet file as other programs write it."""
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)
    return path


def not_utf8(values):
    """Return a column of type string with unchecked bytes."""
    return pa.array(values, pa.binary()).cast(pa.string(), safe=False)


def read(path, **options):
    return [document.text for document in read_documents(path, **options)]


def rows_and_rejects(path, **options):
    """The texts that could be read, and the rest as (file, row, reason)."""
    reader = read_documents(path, on_error="skip", **options)
    results = [document.text for document in reader]
    return results, [(reject.file, reject.row, reject.reason) for reject in reader.rejects]
