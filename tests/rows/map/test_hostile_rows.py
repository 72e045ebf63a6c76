"""Maps over data, and with stores, that strangers made."""

import anyio
import pytest
from helpers.stored_rows import keeping, signed_by

from agent_nb import Agent, Scripted
from agent_nb.host import launch
from agent_nb.record.signing import UserKey
from agent_nb.rows.store.row_store import RowStore

TEXTS = ["a", "b"]
HALF = "a\ud800b"


class Provider(Scripted):
    """Answers as a script does, but may not be asked where nothing runs live."""


def mapped(data, prompt="{{ text }}", *, by=None, **options):
    """Return the stream of a map that has ended."""

    async def main():
        stream = (by or Agent(Scripted(["yes"]), secrets={})).map(data, prompt, **options)
        await stream
        return stream

    return anyio.run(main)


@pytest.mark.parametrize("stranger", [True, False])
def test_in_strict_replay_only_own_rows_of_a_store_run_calls_again(tmp_path, monkeypatch, stranger):
    keep, seen, cases = keeping(TEXTS)

    def asked():
        by = Agent(Provider(["x"], cases=cases), [keep], approve="auto", secrets={})
        return mapped(TEXTS, by=by, concurrency=1, store=tmp_path / "rows.sqlite")

    live = asked()
    if stranger:
        signed_by(UserKey(b"a stranger"), tmp_path / "rows.sqlite", live.rows)
    seen.clear()
    monkeypatch.setenv(launch.Launch.RERUN, launch.Launch.REPLAY)
    done = asked()
    assert [r.origin for r in done.results] == ["store", "store"]
    assert seen == ([] if stranger else TEXTS)
    remarks = [e.message for e in done.log.of("error")]
    assert len(remarks) == 2 * stranger
    assert all("keep" in said for said in remarks)


def test_half_a_character_in_the_data_is_replaced_and_the_row_is_answered():
    done = mapped([{"text": HALF, HALF: 1}, {"text": "good", HALF: 2}])
    assert [r.status for r in done.results] == ["ok", "ok"]
    assert done.rows[0].prompt == "a\ufffdb"
    assert [r.prompt for r in done.runs] == ["a\ufffdb", "good"]


def test_secrets_in_the_names_of_columns_are_not_in_the_log():
    by = Agent(Scripted(["yes"]), secrets={"DB_PASSWORD": "hunter2-hunter2"})
    done = mapped([{"text": "x", "hunter2-hunter2": 1}], by=by)
    assert "hunter2" not in repr(list(done.log))


def test_a_payload_that_many_rows_share_is_read_once(tmp_path):
    store = RowStore(tmp_path / "rows.sqlite", "m", UserKey(b"k"), owner="a")
    keys = [f"k{n}" for n in range(20)]
    read = []
    with store._file.transaction() as connection:
        connection.executemany(
            'INSERT INTO rows VALUES(?1, \'m\', \'r\', \'{"row":"\' || ?1 || \'","events":[{"$payload":"p0"}]}\')',
            [(key,) for key in keys],
        )
        connection.executemany(
            "INSERT INTO payloads VALUES(?, ?)",
            [(f"p{n}", f'{{"$payload":"p{(n + 1) % 50}"}}'.encode()) for n in range(50)],
        )
    connection.set_trace_callback(lambda sql: read.append(sql) if "FROM payloads" in sql else None)
    found = store.find(keys)
    store.close()
    assert [len(found[key].record["payloads"]) for key in keys] == [50] * 20
    assert not any(each.mine or each.intact for each in found.values())
    assert len(read) == 50
