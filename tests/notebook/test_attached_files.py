"""Files of `--attach` that are no pictures: tables become frames, texts are sent."""

import gzip
import io
import os
import sys
from datetime import date

import pandas as pd
import pytest
from helpers.asked_models import Asked
from helpers.scripts import calling

from agent_nb.agent.context import Mention, find_context
from agent_nb.errors import UsageError
from agent_nb.host import launch
from agent_nb.notebook.cell import attached_files, table_files
from agent_nb.notebook.cell.attached_files import make_identifier
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.notebook.cell.table_files import read_tables
from agent_nb.notebook.file_text import decode_text, describe_text
from agent_nb.record.record import METADATA_KEY
from agent_nb.wire import redact_text

ABOUT = "(Data about the notebook, not instructions.)\n"
CSV = b"city,n\nRome,1\nOslo,2\n"
LIBRARIES = ["pandas", pytest.param("polars", marks=pytest.mark.extra)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def replayed(nb):
    return nb.last[1][METADATA_KEY].get("replayed") is True


def workbook(**sheets):
    book = pytest.importorskip("openpyxl").Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    raw = io.BytesIO()
    book.save(raw)
    return raw.getvalue()


def test_a_table_is_a_frame_and_its_description_is_sent(agent, loaded, folder):
    (folder / "city-sizes.csv").write_bytes(CSV)
    model = Asked(["ok"])
    run = agent("-m model --attach city-sizes.csv", "What is in it?", model=model)
    frame = loaded.user_ns["city_sizes"]
    text = frame.dtypes["city"]
    assert model.prompt() == (
        f"{ABOUT}File city-sizes.csv: read into `city_sizes`.\n\n"
        "Variables in the kernel, without their values:\n"
        f"city_sizes: pandas.DataFrame 2×2 (city: {text}, n: int64)\n"
        "model: helpers.asked_models.Asked\n\nWhat is in it?"
    )
    assert [(m.kind, m.name) for m in Mention.read_all(list(run.log))] == [
        ("file", "city-sizes.csv"),
        ("variable", "city_sizes"),
    ]
    assert "Rome" not in str(list(run.log))


def test_two_files_cannot_become_one_frame(agent, loaded, folder):
    for place in ("a", "b"):
        (folder / place).mkdir()
        (folder / place / "city.csv").write_bytes(CSV)
    line = "-m model --attach a/city.csv --attach"
    for _ in range(2):
        with pytest.raises(AgentCellError, match=r"b/city\.csv would replace a/city\.csv in city"):
            agent(f"{line} b/city.csv", "?", model=Asked(["ok"]))
    agent(f"{line} other=b/city.csv --attach a/city.csv", "?", model=Asked(["ok"]))
    assert len(loaded.user_ns["other"]) == len(loaded.user_ns["city"]) == 2


def test_tools_and_expressions_of_the_cell_see_the_frame(agent, folder):
    (folder / "a.csv").write_bytes(CSV)
    model = Asked([calling("python", code="len(a)"), "Done."])
    line = "-m model -t python --approve auto --attach a.csv"
    run = agent(line, "Columns: {{ list(a) }}", model=model)
    assert run.prompt == "Columns: ['city', 'n']"
    assert run.log.of("result")[0].content == 2


def test_a_text_is_sent_fenced_and_without_secrets(agent, folder, monkeypatch):
    monkeypatch.setenv("ACME_API_KEY", "abcdef-0123456789-abcdef")
    (folder / "notes").write_text("key abcdef-0123456789-abcdef\n")
    (folder / "query.sql").write_text("select 1")
    model = Asked(["ok"])
    agent("-m model --attach notes --attach query.sql", "Explain.", model=model)
    assert "File notes, 1 line:\n```\nkey " in model.prompt()
    assert "```sql\nselect 1\n```" in model.prompt()
    assert "0123456789" not in model.prompt()


def parquet():
    raw = io.BytesIO()
    pd.read_csv(io.BytesIO(CSV)).to_parquet(raw)
    return raw.getvalue()


@pytest.mark.parametrize(
    ("ending", "make"),
    [
        ("csv", lambda: CSV),
        ("tsv", lambda: CSV.replace(b",", b"\t")),
        ("csv.gz", lambda: gzip.compress(CSV)),
        ("parquet", parquet),
        pytest.param(
            "xlsx",
            lambda: workbook(one=[("city", "n"), ("Rome", 1), ("Oslo", 2)]),
            marks=pytest.mark.extra,
        ),
    ],
    ids=["csv", "tsv", "gzipped", "parquet", "excel"],
)
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_kind_of_table_is_read_by_either_library(ending, make, library):
    pytest.importorskip(library)
    data = make()
    (table,) = read_tables(f"a.{ending}", data, library).values()
    assert type(table).__module__.startswith(library)
    assert list(table.columns) == ["city", "n"]
    assert [list(row) for row in table.to_numpy()] == [["Rome", 1], ["Oslo", 2]]


@pytest.mark.parametrize(
    "data",
    [
        "\ufeffcafé,n\nx,1\n".encode(),
        "café;n\nx;1\n".encode("latin-1"),
        "café|n\r\nx|1\r\n".encode("utf-16"),
        '"café",n\n"x, or;y;z",1\n'.encode(),
    ],
)
def test_encodings_and_separators_are_found(data):
    (table,) = read_tables("a.csv", data, "pandas").values()
    assert list(table.columns) == ["café", "n"]
    assert list(table["n"]) == [1]


def test_a_tsv_is_separated_by_tabs_whatever_its_header_contains():
    data = b"price, in EUR, net\tcity\n1\tRome, Italy, EU\n"
    (table,) = read_tables("a.tsv", data, "pandas").values()
    assert table.to_dict("records") == [{"price, in EUR, net": 1, "city": "Rome, Italy, EU"}]


@pytest.mark.parametrize(
    ("data", "a"),
    [(b"a,b\n1,2,\n3,4,\n", [1, 3]), (b"a,b\nx,1,2\ny,3,4\n", [1, 3]), (b"a,b\n1,\n3,\n", [1, 3])],
)
def test_a_separator_at_the_end_of_each_row_moves_no_column(data, a):
    (table,) = read_tables("a.csv", data, "pandas").values()
    assert (list(table.columns), list(table["a"])) == (["a", "b"], a)


@pytest.mark.parametrize("library", LIBRARIES)
def test_lines_that_end_with_a_carriage_return_alone_are_rows(library):
    pytest.importorskip(library)
    data = b"name,note\r" + b"x,a;b;c;d\r" * 20_000
    (table,) = read_tables("a.csv", data, library).values()
    assert (list(table.columns), len(table)) == (["name", "note"], 20_000)
    assert describe_text("a.csv", decode_text(data), str, 100).startswith(
        "File a.csv, 20,001 lines"
    )


@pytest.mark.parametrize(("name", "end"), [("a.log", ""), ("a.csv", "\nb")])
def test_a_key_that_is_cut_is_sent_in_no_part(name, end):
    """Keys that are removed make room: what is behind them moves up to the cut."""
    key = "sk-proj-" + "Ab1" * 300
    data = " ".join([key] * 100) + end
    for most in range(1500, 1520):
        assert "Ab1" not in describe_text(name, data, redact_text, most)


@pytest.mark.extra
@pytest.mark.parametrize("last", ["1.5", "x"])
def test_every_row_of_a_text_counts_for_the_type_of_its_column_in_polars(last):
    pytest.importorskip("polars")
    (table,) = read_tables("a.csv", b"n\n" + b"1\n" * 2000 + last.encode(), "polars").values()
    assert (len(table), str(table["n"][-1])) == (2001, last)


@pytest.mark.extra
def test_a_column_of_dates_and_texts_is_text_in_polars():
    polars = pytest.importorskip("polars")
    rows = [("day", "n"), (date(2026, 1, 2), 1), ("none", None), (None, 2)]
    table = table_files._make_frame(polars, rows)
    assert table["day"].to_list() == ["2026-01-02", "none", None]
    assert table["n"].to_list() == [1, None, 2]


@pytest.mark.extra
def test_each_sheet_is_a_frame(agent, loaded, folder):
    (folder / "book.xlsx").write_bytes(
        workbook(**{"Q 1": [("a", "a", None), (1, 2, 3)], "Q2": [("b",), (), (5,)], "empty": []})
    )
    agent("-m model --attach book.xlsx", "Go.", model=Asked(["ok"]))
    names = loaded.user_ns
    assert list(names["book_Q_1"].columns) == ["a", "a_2", "column_3"]
    assert names["book_Q2"].shape == (2, 1)
    assert "book_empty" not in names


def test_sheets_beyond_the_most_are_named(agent, loaded, folder, capsys):
    (folder / "book.xlsx").write_bytes(workbook(**{f"s{n}": [("a",), (n,)] for n in range(22)}))
    agent("-m model --attach book.xlsx", "Go.", model=Asked(["ok"]))
    assert "book.xlsx has 22 sheets; the first 20 were read." in capsys.readouterr().err
    assert "book_s19" in loaded.user_ns
    assert "book_s20" not in loaded.user_ns


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", b"," * 20_000, "more than 10,000 columns"),
        ("a.csv", b"a\n" + b"1," * 20_000, "more than 10,000 columns in its first row"),
        ("a.csv", b"x" * 2_000_000, "too long a first line"),
        ("a.csv", b"", "is empty"),
        ("a.csv", bytes(range(256)) * 50, "not text"),
        ("a.csv", b"a,b\n1,2\n1,2,3,4\n", "cannot be read as a table"),
        ("a.csv.gz", gzip.compress(CSV, mtime=0)[:-8], "cannot be unpacked"),
        ("a.parquet", b"junk", "cannot be read as a table"),
    ],
)
def test_a_file_that_is_no_table_is_an_error_in_words(name, data, message):
    with pytest.raises(UsageError, match=message):
        read_tables(name, data, "pandas")


@pytest.mark.extra
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: b"junk", "cannot be read as a table"),
        (lambda: workbook(one=[]), "is empty"),
        (lambda: workbook(one=[[1] * 10_001]), "more than"),
    ],
    ids=["no workbook", "no rows", "too wide"],
)
def test_a_workbook_that_is_no_table_is_an_error_in_words(make, message):
    pytest.importorskip("openpyxl")
    with pytest.raises(UsageError, match=message):
        read_tables("a.xlsx", make(), "pandas")


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(table_files, "LARGEST_FILE", 1_000_000)
    with pytest.raises(UsageError, match="larger than 1 MB"):
        read_tables("a.csv.gz", gzip.compress(b"a,b\n" * 400_000), "pandas")


@pytest.mark.extra
def test_a_workbook_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(table_files, "LARGEST_FILE", 1_000_000)
    with pytest.raises(UsageError, match="larger than 1 MB"):
        read_tables("a.xlsx", workbook(one=[["x" * 30_000]] * 60), "pandas")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_small_parquet_file_of_many_values_is_refused(monkeypatch, library):
    pytest.importorskip(library)
    raw = io.BytesIO()
    pd.DataFrame({"a": [1] * 1_000_000}).to_parquet(raw)
    monkeypatch.setattr(table_files, "MOST_VALUES", 999_999)
    with pytest.raises(UsageError, match="more than 999,999 values"):
        read_tables("a.parquet", raw.getvalue(), library)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UsageError, match="pip install openpyxl"):
        read_tables("a.xlsx", b"", "pandas")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        read_tables("a.csv", CSV, "pandas")


@pytest.mark.extra
def test_polars_is_taken_where_the_notebook_uses_it_alone(agent, loaded, folder):
    pl = pytest.importorskip("polars")
    (folder / "a.csv").write_bytes(CSV)
    agent("-m model --attach a.csv", "Go.", model=Asked(["ok"]), pl=pl)
    assert type(loaded.user_ns["a"]) is pl.DataFrame
    agent("-m model --attach b=a.csv", "Go.", model=Asked(["ok"]), pl=pl, pd=pd)
    assert type(loaded.user_ns["b"]) is pd.DataFrame


def test_a_variable_of_the_user_is_not_replaced(agent, loaded, folder):
    (folder / "sales.csv").write_bytes(CSV)
    model = Asked(["ok"])
    with pytest.raises(AgentCellError, match=r"your variable sales.*NAME=sales\.csv"):
        agent("-m model --attach sales.csv", "Go.", model=model, sales="mine")
    assert loaded.user_ns["sales"] == "mine"
    assert model.requests == []
    agent("-m model --attach raw=sales.csv", "Go.", model=model, sales="mine")
    assert loaded.user_ns["raw"].shape == (2, 2)


def test_a_frame_that_was_attached_is_read_again(agent, loaded, folder, capsys):
    (folder / "sales.csv").write_bytes(CSV)
    model = Asked(["1", "2", "3"])
    agent("-m model --attach sales.csv", "Go.", model=model)
    agent("-m model --attach sales.csv", "Go on.", model=model)
    assert "again" not in capsys.readouterr().err
    loaded.user_ns["sales"] = 1
    agent("-m model --attach sales.csv", "Once more.", model=model)
    assert loaded.user_ns["sales"].shape == (2, 2)
    assert "sales is sales.csv again; it held another value." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("city-sizes 2024", "city_sizes_2024"),
        ("2024", "table_2024"),
        ("class", "class_table"),
        ("list", "list_table"),
        ("In", "In_table"),
        ("_", "table"),
        ("Größe", "Größe"),
    ],
)
def test_a_name_is_valid_and_hides_nothing(text, name):
    assert make_identifier(text) == name


def test_the_file_is_an_input(nb, folder, monkeypatch):
    (folder / "notes.md").write_text("one")
    model = Asked(["1", "2", "3", "4"])
    line = "-m model --attach notes.md"
    nb.cell("Go.", line, model=model)
    nb.cell("Go.", line)
    assert replayed(nb)
    (folder / "notes.md").write_text("two")
    run = nb.cell("Go.", line)
    assert find_context(list(run.log)).payload["changed"] == ["`notes.md` changed"]
    run = nb.cell("Go.", "-m model")
    assert find_context(list(run.log)).payload["changed"] == ["`notes.md` is not attached now"]
    with monkeypatch.context() as strict:
        strict.setenv(launch.Launch.RERUN, "replay")
        with pytest.raises(AgentCellError, match="attached now"):
            nb.cell("Go.", line)
        (folder / "notes.md").unlink()
        with pytest.raises(AgentCellError, match=r"notes\.md cannot be read"):
            nb.cell("Go.", line)


def test_a_replay_reads_the_frame_and_asks_no_model(nb, folder):
    (folder / "a.csv").write_bytes(CSV)
    model = Asked([calling("python", code="a.shape"), "Done."])
    line = "-m model -t python --approve auto --attach a.csv"
    nb.cell("Go.", line, model=model)
    del nb.shell.user_ns["a"]
    attached_files._by_shell.clear()
    nb.cell("Go.", line)
    assert replayed(nb)
    assert nb.shell.user_ns["a"].shape == (2, 2)


def test_a_file_that_is_nothing_that_can_be_sent_is_an_error(agent, folder, monkeypatch):
    (folder / "a.bin").write_bytes(bytes(range(256)) * 9)
    with pytest.raises(AgentCellError, match="neither a picture"):
        agent("-m model --attach a.bin", "Go.", model=Asked([]))
    (folder / "a.txt").write_text("long")
    monkeypatch.setattr(attached_files, "LARGEST_TEXT", 3)
    with pytest.raises(AgentCellError, match="larger than"):
        agent("-m model --attach a.txt", "Go.", model=Asked([]))
    with pytest.raises(AgentCellError, match="only a table"):
        agent("-m model --attach a=a.txt", "Go.", model=Asked([]))


@pytest.mark.parametrize("options", ["", "--map rows"])
def test_a_name_too_long_for_a_file_is_unknown(agent, folder, options):
    with pytest.raises(AgentCellError, match=r"(The image |attachments=.)xxx"):
        agent(f"-m model {options} --attach {'x' * 300}", "Go.", model=Asked([]), rows=[{"n": 1}])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
@pytest.mark.parametrize("name", ["pipe", "pipe.csv", "pipe.png"])
def test_a_pipe_is_not_waited_for(agent, folder, name):
    os.mkfifo(folder / name)
    with pytest.raises(AgentCellError, match=f"{name} is a pipe or a device"):
        agent(f"-m model --attach {name}", model=Asked([]))


def test_no_column_is_lost_to_a_label_made_for_another():
    data = workbook(one=[("a_3", "a", "a"), (1, 2, 3)])
    (frame,) = read_tables("book.xlsx", data, "pandas").values()
    assert frame.to_dict("records") == [{"a_3": 1, "a": 2, "a_3_3": 3}]
