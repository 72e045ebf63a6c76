"""The chunks of a stream as columns: what all chunks of one shape share stands once.

    {"order": [[-1, 2], [0, 500], [-1, 3]],  two single chunks, 500 of the first group, three others
     "singles": [chunk, …], "groups": [{"shape": …, "columns": [column, …]}, …], "seen": [value, …]}
    {"is": value}             the same in each chunk
    {"from": 7, "by": 1}      7, 8, 9 …
    {"text": text, "cut": …}  a text, cut into one piece for each chunk. `cut` has the lengths; a
                              long list is compressed, in base64. The text is a string, or a
                              text of the log: `{"$text": 0, "before": "", "after": ""}`
    {"each": [value, …]}      one value for each chunk

Why: a token of four letters comes in 250 bytes of JSON, of which only the letters are new.

Rule: the shape of a chunk is the chunk with 0 for each scalar, empty object, and list without
objects or lists in it: `{"a": [{"b": 7}], "c": [1, 2]}` has the shape `{"a": [{"b": 0}], "c": 0}`.
Chunks of one shape are a group if their fields `INDEXES` are equal too. They then belong to one
block of the answer, so that their pieces join to a text of the log.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import msgspec

from ..wire import as_dict, as_list, encode_canonical
from .references import DEEPEST, TEXT, Dereferencer, References, damaged_error, unzip_json, zip_text

# fields of the providers' chunks that say which block of the answer a chunk belongs to
INDEXES = frozenset({
    "index", "output_index", "content_index", "summary_index", "item_id", "jsonPath",
})  # fmt: skip
SINGLE = -1  # stands in `order` for chunks that are in no group
_FEWEST_CHUNKS = 4  # of a group
_FEWEST_ZIPPED = 64  # lengths that are compressed
_MOST_CHUNKS = 1 << 22  # of one stream
_LARGEST_LENGTHS = 1 << 24  # bytes that lengths may decompress to
_NODE_WEIGHT = 8  # of an object, list or value of a chunk; see `Dereferencer.add_weight`
_LARGEST_NUMBER = 1 << 64  # start or step of a column that counts
_LEAF = 0  # stands in a shape for a value


class _FlatChunk(NamedTuple):
    """A chunk taken apart. `group`: the JSON of its shape and its indexes; equal in one group."""

    group: str
    leaves: list[Any]


def pack_columns(
    chunks: Sequence[Any], references: References, texts: Sequence[str]
) -> dict[str, Any]:
    """Return the columns of chunks; `texts`: the texts of the log's blocks, for references."""
    flat_chunks = [_flatten(chunk) for chunk in chunks]
    rows: dict[str, list[list[Any]]] = {}  # group -> the leaves of each of its chunks
    for group, leaves in flat_chunks:
        rows.setdefault(group, []).append(leaves)
    groups = [group for group in rows if len(rows[group]) >= _FEWEST_CHUNKS]
    numbers = {group: number for number, group in enumerate(groups)}
    order = [numbers.get(chunk.group, SINGLE) for chunk in flat_chunks]
    singles = [chunk for chunk, number in zip(chunks, order, strict=True) if number == SINGLE]
    references.count(singles)
    return {
        "order": [[number, len(list(run))] for number, run in groupby(order)],
        "singles": [references.pack(single) for single in singles],
        "groups": [_pack_group(group, rows[group], texts) for group in groups],
        **({"seen": references.seen} if references.seen else {}),
    }


def _pack_group(group: str, rows: Sequence[Sequence[Any]], texts: Sequence[str]) -> dict[str, Any]:
    shape, _ = json.loads(group)  # the indexes are columns too
    columns = [_pack_column(list(column), texts) for column in zip(*rows, strict=True)]
    return {"shape": shape, "columns": columns}


def _is_leaf(value: Any) -> bool:
    if isinstance(value, dict):
        return not value
    return not isinstance(value, list) or not any(isinstance(v, dict | list) for v in value)


def _flatten(chunk: Any) -> _FlatChunk:
    """Return a chunk taken apart into its shape and its leaves."""
    leaves: list[Any] = []
    indexes: list[Any] = []

    def extract_leaves(value: Any, name: str) -> Any:
        # moves the leaves of a value to the lists above; returns its shape
        if _is_leaf(value):
            leaves.append(value)
            if name in INDEXES:
                indexes.append(value)
            return _LEAF
        if isinstance(value, list):
            return [extract_leaves(item, "") for item in value]
        # sorted, because notebook files sort the names
        return {key: extract_leaves(value[key], key) for key in sorted(value)}

    return _FlatChunk(json.dumps([extract_leaves(chunk, ""), indexes]), leaves)


def _pack_column(values: list[Any], texts: Sequence[str]) -> dict[str, Any]:
    first = values[0]
    # equal JSON: for Python True is 1, and inside lists 1.0 is 1
    if all(type(v) is type(first) and v == first and repr(v) == repr(first) for v in values):
        return {"is": first}
    if all(type(value) is int for value in values):
        step = values[1] - first
        if _is_small(first, step) and all(b - a == step for a, b in pairwise(values)):
            return {"from": first, "by": step}
    if all(isinstance(value, str) for value in values):
        return {
            "text": _refer_to_text("".join(values), texts),
            "cut": _pack_lengths([len(value) for value in values]),
        }
    return {"each": values}


def _is_small(first: int, step: int) -> bool:
    return max(abs(first), abs(step)) <= _LARGEST_NUMBER


def _refer_to_text(joined: str, texts: Sequence[str]) -> Any:
    """Return a reference to the text of the log that stands in `joined`, else `joined`."""
    for index, text in enumerate(texts):
        if len(text) * 2 > len(joined) and text in joined:
            before, _, after = joined.partition(text)
            return {TEXT: index, "before": before, "after": after}
    return joined


def _pack_lengths(lengths: list[int]) -> Any:
    if len(lengths) < _FEWEST_ZIPPED:
        return lengths
    return zip_text(json.dumps(lengths, separators=(",", ":")))


def unpack_columns(packed: Any, references: Dereferencer) -> list[Any]:
    """Return the chunks that `pack_columns` got. Raises UsageError."""
    packed = as_dict(packed)
    order = _read_order(packed.get("order"))
    counts: Counter[int] = Counter()
    for number, count in order:
        counts[number] += count
    groups = as_list(packed.get("groups"))
    sources: dict[int, Iterator[Any]] = {}
    for number, count in counts.items():
        if number == SINGLE:
            sources[number] = map(references.unpack, as_list(packed.get("singles")))
        elif 0 <= number < len(groups):
            sources[number] = _unpack_group(as_dict(groups[number]), count, references)
        else:
            raise damaged_error("a group of its chunks is missing")
    try:
        return [next(sources[number]) for number, count in order for _ in range(count)]
    except StopIteration:
        raise damaged_error("chunks of its answer are missing") from None


def _read_order(order: Any) -> list[tuple[int, int]]:
    """Return (group, number of chunks) pairs. Raises UsageError."""
    try:
        pairs = msgspec.convert(order, list[tuple[int, int]])
    except msgspec.ValidationError:
        raise damaged_error("the order of its chunks is missing") from None
    if any(count < 1 for _, count in pairs) or sum(count for _, count in pairs) > _MOST_CHUNKS:
        raise damaged_error("it has too many chunks, or too few")
    return pairs


def _unpack_group(group: dict[str, Any], count: int, references: Dereferencer) -> Iterator[Any]:
    references.add_weight(_count_nodes(group.get("shape"), DEEPEST) * _NODE_WEIGHT * count)
    columns = [
        _unpack_column(as_dict(column), count, references)
        for column in as_list(group.get("columns"))
    ]
    for row in range(count):
        yield _fill(group.get("shape"), (column[row] for column in columns), DEEPEST)


def _count_nodes(shape: Any, depth: int) -> int:
    inner = shape.values() if isinstance(shape, dict) else as_list(shape)
    return 1 + (sum(_count_nodes(item, depth - 1) for item in inner) if depth else 0)


def _fill(shape: Any, leaves: Iterator[Any], depth: int) -> Any:
    """Return a chunk of this shape with these values."""
    if isinstance(shape, dict | list) and not depth:
        raise damaged_error("a chunk is nested too deeply")
    if isinstance(shape, list):
        return [_fill(item, leaves, depth - 1) for item in shape]
    if isinstance(shape, dict):
        return {name: _fill(shape[name], leaves, depth - 1) for name in sorted(shape)}
    try:
        return next(leaves)
    except StopIteration:
        raise damaged_error("a value of a chunk is missing") from None


def _unpack_column(column: dict[str, Any], count: int, references: Dereferencer) -> Sequence[Any]:
    if "is" in column:
        references.add_weight(len(encode_canonical(column["is"])) * count)
        return [column["is"]] * count
    if type(column.get("from")) is int and type(column.get("by")) is int:
        first, step = column["from"], column["by"]
        if not step or not _is_small(first, step):
            raise damaged_error("a number of its chunks is missing or too large")
        return range(first, first + step * count, step)
    if "cut" in column:
        return _cut_text(_read_text(column.get("text"), references), column["cut"], count)
    values = as_list(column.get("each"))
    if len(values) != count:
        raise damaged_error("a column of its chunks has another length")
    return values


def _read_text(text: Any, references: Dereferencer) -> str:
    if not isinstance(text, dict):
        references.add_weight(len(str(text)))
        return str(text)
    inner = references.find_text(text.get(TEXT))
    return f"{text.get('before', '')}{inner}{text.get('after', '')}"


def _cut_text(text: str, packed: Any, count: int) -> list[str]:
    """Return a text in `count` pieces. Raises UsageError.

    The text may name the home folder, which may be longer or shorter here than where the lengths
    were counted. The rest of a longer text goes to the last piece that is not empty.
    """
    lengths = unzip_json(packed, _LARGEST_LENGTHS) if isinstance(packed, str) else packed
    if (
        not isinstance(lengths, list)
        or len(lengths) != count
        or not all(type(n) is int and n >= 0 for n in lengths)
    ):
        raise damaged_error("the lengths of its pieces are missing")
    pieces, begin = [], 0
    for length in lengths:
        pieces.append(text[begin : begin + length])
        begin += length
    if rest := text[begin:]:
        last = max((n for n, piece in enumerate(pieces) if piece), default=count - 1)
        pieces[last] += rest
    return pieces
