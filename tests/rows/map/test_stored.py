"""Where the rows of a map are stored, which of them count, and how they are forgotten."""

import os
import stat
import sys
from contextlib import nullcontext

import anyio
import pytest
from helpers.stored_rows import signed_by

from agent_nb import Agent, Scripted
from agent_nb.errors import RunFailed, UsageError
from agent_nb.events import RunStart
from agent_nb.host import launch
from agent_nb.models.script_turn import Case, read_turn
from agent_nb.record.inner_records import InnerRecords
from agent_nb.record.record import events_of
from agent_nb.record.signing import UserKey
from agent_nb.rows.map.known_rows import forgetting
from agent_nb.rows.map.known_rows.stored import find_stored_rows, map_id, open_store, stores_folder
from agent_nb.rows.map.options import MapOptions
from agent_nb.rows.map.planning import plan_map
from agent_nb.rows.store.row_store import RowStore

TEXTS = ["good", "bad"]


def agent(*cases, said="other", **options):
    model = Scripted([said], cases=[Case(when=w, turns=(read_turn(a, w),)) for w, a in cases])
    return Agent(model, secrets={}, **options)


def mapped(data=TEXTS, prompt="Classify {{ text }}", *, by=None, fails=False, **options):
    """Return the stream of a map that has ended; `fails`: no row has an answer."""

    async def main():
        stream = (by or agent(("good", "yes"))).map(data, prompt, **options)
        with pytest.raises(RunFailed, match="rows failed") if fails else nullcontext():
            await stream
        return stream

    return anyio.run(main)


def origins(stream):
    return [r.origin for r in stream.results]


def files():
    return sorted(stores_folder().glob("*")) if stores_folder().exists() else []


def test_a_map_is_found_in_the_state_folder_when_it_runs_again():
    first, second = mapped(), mapped()
    assert origins(first) == ["live"] * 2
    assert origins(second) == ["store"] * 2
    assert [r.answer for r in second.results] == ["yes", "other"]
    (file,) = files()
    assert file.suffix == ".sqlite"
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(stores_folder().stat().st_mode) == 0o700


def test_only_new_and_changed_rows_are_asked():
    mapped(["good", "bad", "ugly"])
    again = mapped(["ugly", "new", "good"])
    assert origins(again) == ["store", "live", "store"]


def test_equal_rows_are_rows_of_their_own():
    assert origins(mapped(["good", "good"])) == ["live"] * 2
    assert origins(mapped(["good", "good", "good"])) == ["store", "store", "live"]


@pytest.mark.parametrize(
    "changed",
    [
        {"prompt": "Judge {{ text }}"},
        {"by": agent(("good", "yes"), system="Be brief.")},
        {"by": agent(("good", "no"))},
        {"output": bool, "fails": True},
    ],
)
def test_another_question_is_asked(changed):
    mapped()
    assert origins(mapped(**changed)) == ["live"] * 2
    assert len(files()) == 2


def test_a_store_beside_the_notebook_is_used_in_place_of_the_state_folder(tmp_path):
    store = tmp_path / "rows.sqlite"
    mapped(store=store)
    assert files() == []
    assert origins(mapped(store=str(store))) == ["store"] * 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.sqlite"]


def test_one_file_serves_a_prompt_that_was_changed(tmp_path):
    store = tmp_path / "rows.sqlite"
    mapped(store=store)
    mapped(prompt="Judge {{ text }}", store=store)
    assert origins(mapped(store=store)) == ["store"] * 2
    assert origins(mapped(prompt="Judge {{ text }}", store=store)) == ["store"] * 2


def test_nothing_is_stored_if_the_user_says_so():
    mapped(store=False)
    assert origins(mapped(store=False)) == ["live"] * 2
    assert files() == []


def test_a_state_folder_that_cannot_be_used_is_reported_and_the_map_runs():
    stores_folder().parent.mkdir(parents=True)
    stores_folder().write_text("a file")
    stream = mapped()
    assert [r.answer for r in stream.results] == ["yes", "other"]
    (said,) = [e.message for e in stream.log.of("error")]
    assert "Rows of this map are not stored" in said
    assert stream.run.status == "ok"


def test_without_a_key_to_sign_with_the_map_says_that_rows_are_asked_again(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "file"))
    (said,) = [e.message for e in mapped().log.of("error")]
    assert "asked again" in said
    assert "notebook_secret cannot be made" in said
    assert origins(mapped()) == ["live"] * 2


def test_a_store_of_the_user_that_cannot_be_used_is_an_error_and_stays(tmp_path):
    diary = tmp_path / "diary"
    diary.write_text("Dear diary")
    with pytest.raises(RunFailed, match="diary cannot be used"):
        mapped(store=diary)
    assert diary.read_text() == "Dear diary"


@pytest.mark.parametrize("store", [3, b"rows.sqlite", ["rows.sqlite"], "", " ", "rows\0.sqlite"])
def test_a_store_that_is_no_path_is_named_and_makes_no_file(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="give the path of a file, True or False"):
        mapped(store=store)
    assert list(tmp_path.iterdir()) == []


def test_a_path_object_is_the_store_at_its_path_whatever_it_prints(tmp_path):
    mapped(store=tmp_path / "rows.sqlite")
    (entry,) = os.scandir(tmp_path)  # str(entry) is not a path
    assert origins(mapped(store=entry)) == ["store"] * 2


def test_the_name_of_a_store_that_is_too_long_is_an_error_in_words(tmp_path):
    with pytest.raises(RunFailed, match="cannot be used: File name too long"):
        mapped(store=tmp_path / ("x" * 300))


def stored_by(key, path):
    """Store the rows of a map under the signature of another user."""
    stream = mapped(store=path)
    rows = stream._plan.job.rows
    signed_by(key, path, rows)
    return rows


def looked_up(path, rows, **options):
    store = RowStore(path, "m", UserKey.read(), owner="me")
    try:
        return [each.usable for each in find_stored_rows(store, rows, **options)]
    finally:
        store.close()


def test_rows_of_a_stranger_are_asked_and_not_taken(tmp_path):
    path = tmp_path / "rows.sqlite"
    rows = stored_by(UserKey(b"a stranger"), path)
    assert looked_up(path, rows) == [False, False]
    assert origins(mapped(store=path)) == ["live"] * 2
    assert origins(mapped(store=path)) == ["store"] * 2


def test_rows_of_a_stranger_count_if_the_user_trusts_them(tmp_path):
    path = tmp_path / "rows.sqlite"
    rows = stored_by(UserKey(b"a stranger"), path)
    assert looked_up(path, rows, trust=True) == [True, True]
    store = RowStore(path, "m", UserKey.read(), owner="me")
    one = store.find([rows[0].key])[rows[0].key].record["hash"]
    store.close()
    assert looked_up(path, rows, trust={one}) == [True, False]


def test_rows_of_a_stranger_replay_where_nothing_runs_live(tmp_path):
    path = tmp_path / "rows.sqlite"
    rows = stored_by(UserKey(b"a stranger"), path)
    assert looked_up(path, rows, live=False) == [True, True]


def test_where_nothing_runs_live_only_a_store_that_the_user_names_is_read(tmp_path):
    path = tmp_path / "rows.sqlite"
    mapped(store=path)
    mapped()
    before = path.read_bytes()
    assert open_store(None, "m", owner="me", live=False) is None
    assert open_store(tmp_path / "missing.sqlite", "m", owner="me", live=False) is None
    store = open_store(path, "m", owner="me", live=False)
    assert store is not None
    assert store.read_only
    store.close()
    assert path.read_bytes() == before
    assert not (tmp_path / "missing.sqlite").exists()


def test_the_id_of_a_map_names_what_is_asked_apart_from_the_rows():
    one = map_id({"prompt": "x", "model": "m"}, "t")
    assert map_id({"prompt": "y", "model": "m"}, "t") == one
    assert len({one, map_id({"model": "n"}, "t"), map_id({"model": "m"}, "u")}) == 3


def test_secrets_are_not_in_the_file(tmp_path):
    path = tmp_path / "rows.sqlite"
    model = Scripted(["the key is hunter2-hunter2"])
    mapped(
        [{"text": "hunter2-hunter2"}],
        by=Agent(model, secrets={"DB_PASSWORD": "hunter2-hunter2"}),
        store=path,
    )
    assert b"hunter2" not in path.read_bytes()
    assert b"Classify" in path.read_bytes()


def test_stores_are_listed_with_their_templates_and_rows():
    assert forgetting.list_stores() == []
    mapped()
    mapped(["x", "y", "z"], "Judge {{ text }}")
    listed = {tuple(k.prompts): k.rows for k in forgetting.list_stores()}
    assert listed == {("Classify {{ text }}",): 2, ("Judge {{ text }}",): 3}
    assert all(k.size and k.used for k in forgetting.list_stores())


def test_a_store_that_is_removed_while_stores_are_listed_is_left_out(monkeypatch):
    mapped()
    (file,) = files()
    glob = type(file).glob
    monkeypatch.setattr(
        type(file), "glob", lambda *a: [*glob(*a), file.with_name(f"gone{file.suffix}")]
    )
    assert [store.file for store in forgetting.list_stores()] == [file]


def test_a_damaged_store_is_listed_and_kept():
    mapped()
    (file,) = files()
    file.write_bytes(b"broken")
    (kept,) = forgetting.list_stores()
    assert (kept.rows, kept.size) == (None, 6)
    with pytest.raises(UsageError, match="cannot be used"):
        kept.forget()
    assert file.read_bytes() == b"broken"


def test_a_forgotten_map_is_asked_again_and_its_file_is_gone():
    first = mapped()
    mapped(prompt="Judge {{ text }}")
    location = forgetting.locate_map(first.log)
    assert location.store == ""
    assert location.forget() == 2
    assert len(files()) == 1
    assert origins(mapped()) == ["live"] * 2
    assert forgetting.MapLocation("0" * 24).forget() == 0


def test_a_map_in_a_file_of_the_user_is_forgotten_and_the_file_stays(tmp_path):
    path = tmp_path / "rows.sqlite"
    first = mapped(store=path)
    mapped(prompt="Judge {{ text }}", store=path)
    assert forgetting.locate_map(first.log).forget() == 2
    assert b"Classify good" not in path.read_bytes()
    assert b"Judge good" in path.read_bytes()


def test_all_stores_are_forgotten():
    mapped()
    mapped(prompt="Judge {{ text }}")
    assert [store.forget() for store in forgetting.list_stores()] == [2, 2]
    assert files() == []


@pytest.mark.parametrize("owner", ["running", "forget"])
def test_a_store_in_use_is_emptied_and_stays(owner):
    mapped()
    (file,) = files()
    running = RowStore(file, file.stem, UserKey.read(), owner=owner)
    running.claim(["in flight"], 60)
    assert [store.forget() for store in forgetting.list_stores()] == [2]
    assert files()[0] == file
    running.close()


@pytest.mark.parametrize("id_", ["", "../../etc/passwd", "x" * 24, 7, None])
def test_a_log_cannot_name_a_file_by_its_id(id_):
    assert forgetting.locate_map([RunStart(settings={"map": {"id": id_}})]) is None
    assert forgetting.locate_map([RunStart(settings={"map": "x"})]) is None


def test_a_row_is_found_whole_with_its_events(tmp_path):
    path = tmp_path / "rows.sqlite"
    rows = mapped(store=path)._plan.job.rows
    store = RowStore(path, "m", UserKey.read(), owner="me")
    (each, _) = find_stored_rows(store, rows)
    store.close()
    assert events_of(each.record)[1].content == "Classify good"
    assert (each.result.answer, each.result.origin, each.result.position) == ("yes", "store", 0)


def test_in_strict_replay_no_model_is_asked_for_rows_of_the_store(tmp_path, monkeypatch):
    path = tmp_path / "rows.sqlite"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    by = Agent("openai/none", secrets={})
    job = plan_map(by, TEXTS, "Classify {{ text }}", MapOptions(), store=path).job
    made = [next(iter(InnerRecords.of_log(mapped([text]).log).values())) for text in TEXTS]
    store = RowStore(path, "m", UserKey(b"another user's"), owner="a")
    for row, record in zip(job.rows, made, strict=True):
        store.put([(row.key, record, 1)])
    store.close()
    monkeypatch.setenv(launch.Launch.RERUN, launch.Launch.REPLAY)
    assert origins(mapped(by=by, store=path)) == ["store"] * 2
    with pytest.raises(RunFailed, match="Row 2 has no record here"):
        mapped([*TEXTS, "new"], by=by, store=path)


class Replacing(Scripted):
    """A model before whose second answer the store of its map is replaced."""

    change = staticmethod(lambda: None)
    asked = 0

    def start(self):
        return self

    async def stream(self, request):
        Replacing.asked += 1
        if Replacing.asked == 2:
            self.change()
        async for batch in Scripted(self.turns).stream(request):
            yield batch


def test_a_store_that_is_replaced_under_a_running_map_gets_all_rows(tmp_path):
    path, other = tmp_path / "rows.sqlite", tmp_path / "other.sqlite"
    mapped(["old"], by=Agent(Replacing(["yes"]), secrets={}), store=other)
    model, Replacing.asked = Replacing(["yes"]), 0
    model.change = lambda: other.replace(path)
    first = mapped(["a", "b", "c"], by=Agent(model, secrets={}), store=path, concurrency=1)
    assert first.run.status == "ok"
    assert Replacing.asked == 3
    again = mapped(["old", "a", "b", "c"], by=Agent(Replacing(["yes"]), secrets={}), store=path)
    assert origins(again) == ["store"] * 4
    assert [p.name for p in tmp_path.iterdir()] == ["rows.sqlite"]


def test_a_store_that_cannot_be_followed_ends_the_map_and_keeps_the_frame(tmp_path):
    path = tmp_path / "rows.sqlite"
    model, Replacing.asked = Replacing(["yes"]), 0

    def change():
        path.unlink()
        path.mkdir()

    model.change = change

    async def main():
        stream = Agent(model, secrets={}).map(
            ["a", "b", "c"], "Classify {{ text }}", store=path, concurrency=1
        )
        with pytest.raises(RunFailed, match="not a regular file"):
            await stream
        return stream

    stream = anyio.run(main)
    assert [r.answer for r in stream.results][:2] == ["yes", "yes"]
    path.rmdir()
    again = mapped(["a"], by=Agent(Replacing(["yes"]), secrets={}), store=path)
    assert origins(again) == ["store"]
