"""Tables with a marker in every part of them that is not released.

The marker has eight bytes and stands there as text, and as the number that these bytes are: in other rows, beneath
values that are missing, in entries of dictionaries that no row has, in names and metadata of fields, in extension
types.
"""

import hypothesis.strategies as st
import pyarrow as pa

MARKER, SHOWN = "qsecretq", "publicly"
META = {MARKER: MARKER}
NUMBER = int.from_bytes(MARKER.encode(), "little")


class Tagged(pa.ExtensionType):
    """An extension type that carries something."""

    def __init__(self, storage):
        super().__init__(storage, "test.tagged")

    def __arrow_ext_serialize__(self):
        return MARKER.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, _):
        return cls(storage)

    def __reduce__(self):
        return Tagged, (self.storage_type,)


LEAVES = ("string", "large_string", "string_view", "binary", "int64", "float64", "fixed", "dictionary", "ordered")
KINDS = st.recursive(
    # an extension of nothing but leaves, and of no dictionary: pyarrow crashes on others
    st.sampled_from(LEAVES).map(lambda kind: (kind,))
    | st.sampled_from(LEAVES[:-2]).map(lambda kind: ("extension", (kind,))),
    lambda inner: st.tuples(st.sampled_from(("list", "large_list", "fixed_list", "struct", "map")), inner),
    max_leaves=3,
)


def nullable(array, present):
    """Return the array with nulls for absent rows, whose values remain in its buffers."""
    bitmap = pa.array(present, pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(array.type, len(array), [bitmap, *array.buffers()[1:]])


def column(kind, marked, present):
    """A column of this kind: with the marker where it is marked, and null where it is not there."""
    mask = pa.array([not entry for entry in present])
    twice = [entry for entry in marked for _ in range(2)]
    leaf, inner = kind[0], kind[1] if len(kind) > 1 else None
    offsets = [2 * row for row in range(len(marked) + 1)]
    if leaf in ("int64", "float64"):
        numbers = pa.array([NUMBER if entry else 7 for entry in marked], pa.int64())
        return nullable(numbers.view(leaf), present)
    if leaf in ("string", "large_string", "binary", "fixed", "string_view"):
        types = {"fixed": pa.binary(8), "string": pa.string(), "large_string": pa.large_string(), "binary": pa.binary()}
        texts = [(MARKER if entry else SHOWN).encode() for entry in marked]
        if leaf == "string_view":
            long = pa.array([2 * text.decode() for text in texts], pa.string_view())
            return pa.Array.from_buffers(
                long.type, len(long), [pa.array(present, pa.bool_()).buffers()[1], *long.buffers()[1:]]
            )
        return nullable(pa.array(texts, pa.binary() if leaf != "fixed" else pa.binary(8)).cast(types[leaf]), present)
    if leaf in ("dictionary", "ordered"):
        codes = nullable(pa.array([int(entry) for entry in marked], pa.int32()), present)
        return pa.DictionaryArray.from_arrays(codes, pa.array([SHOWN, MARKER]), ordered=leaf == "ordered")
    if leaf == "extension":
        storage = column(inner, marked, present)
        return pa.ExtensionArray.from_storage(Tagged(storage.type), storage)
    child = column(inner, twice, [True] * len(twice))
    named = pa.field(MARKER, child.type, metadata=META)
    if leaf == "list":
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), child, type=pa.list_(named), mask=mask)
    if leaf == "large_list":
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), child, type=pa.large_list(named), mask=mask)
    if leaf == "fixed_list":
        return pa.FixedSizeListArray.from_arrays(child, type=pa.list_(named, 2), mask=mask)
    if leaf == "map":
        keys = column(("string",), twice, [True] * len(twice))
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, child, mask=mask)
    once = column(inner, marked, [True] * len(marked))
    return pa.StructArray.from_arrays([once], fields=[pa.field("a", once.type, metadata=META)], mask=mask)


@st.composite
def tables(draw):
    """A slice of a table: in it no row shows the marker, though some are null over it; before and behind it all do."""
    before, behind = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    rows = draw(st.lists(st.booleans(), min_size=1, max_size=9))
    marked = [True] * before + [not row for row in rows] + [True] * behind
    present = [True] * before + rows + [True] * behind
    kept = column(draw(KINDS), marked, present)
    texts = pa.array([f"the {MARKER}"] * len(marked))
    fields = [pa.field("text", texts.type, metadata=META), pa.field("kept", kept.type, metadata=META)]
    table = pa.table([texts, kept], schema=pa.schema(fields, metadata=META))
    if draw(st.booleans()):
        table = pa.concat_tables([table, table]).slice(len(table))
    return table.slice(before, len(rows))
