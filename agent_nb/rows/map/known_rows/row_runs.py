"""The runs of the rows of a map, read from its log or its store each time they are used.

They are not cached: a hundred thousand rows are a file of gigabytes, and a person looks at three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

from ....agent import OutputType, Run
from ....errors import UsageError
from ....record import Record, log_of
from ...store.row_database import split_batches

BATCH = 100  # the most rows that are read at once
GONE = (
    "The store of the map has lost the run of a row: rows were forgotten, or the file was changed."
    " Run the map again: only the missing rows are asked."
)

Read = Callable[[Sequence[str]], Mapping[str, Record]]


class RowRuns(Sequence[Run]):
    """The runs of the rows with these `keys`, in this order.

    `read` returns the records of some keys, `BATCH` at a time; `output` is the type of the answers.
    Reading a row that the store has lost meanwhile raises UsageError.
    """

    def __init__(self, keys: Sequence[str], read: Read, output: OutputType | None) -> None:
        self._keys, self._read, self._output = keys, read, output

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> RowRuns: ...
    def __getitem__(self, index: int | slice) -> Run | RowRuns:
        if isinstance(index, slice):
            return RowRuns(self._keys[index], self._read, self._output)
        key = self._keys[index]
        return self._run(self._read([key]), key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Run]:
        for batch in split_batches(self._keys, BATCH):
            records = self._read(batch)
            for key in batch:
                yield self._run(records, key)

    def _run(self, records: Mapping[str, Record], key: str) -> Run:
        if key not in records:
            raise UsageError(GONE)
        return Run(log_of(records[key]), output=self._output)
