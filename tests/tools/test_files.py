"""The file tools: what they show, and that nothing leads out of the folder."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.scripts import calling
from helpers.waiting import move_on, wait

from agent_nb import Agent, Scripted
from agent_nb.errors import Cancelled, ToolError
from agent_nb.tools import files, paths, text_excerpt
from agent_nb.tools.base import ToolContext
from agent_nb.tools.files import list_, read, write
from agent_nb.tools.toolset import Toolset

Call = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A notebook's folder, beside files that are none of the tools' business."""
    inside = tmp_path / "book"
    (inside / "data").mkdir(parents=True)
    (inside / "notes.txt").write_text("one\ntwo\nthree\n")
    (inside / "data" / "table.csv").write_text("a,b\n1,2\n")
    (inside / ".env").write_text("KEY=1")
    (inside / ".git").mkdir()
    (inside / ".git" / "config").write_text("x")
    (inside / "server.pem").write_text("PRIVATE")
    (tmp_path / "outside.txt").write_text("OUTSIDE")
    (tmp_path / "book2").mkdir()
    (tmp_path / "book2" / "near.txt").write_text("OUTSIDE")
    return inside


@pytest.fixture
def context(folder: Path) -> ToolContext:
    return ToolContext(folder=str(folder))


def test_list_shows_names_sizes_and_folders_sorted(context: ToolContext) -> None:
    assert list_(context=context) == "data/\nnotes.txt  14 B\n(3 hidden)"
    assert list_("data", context=context) == "table.csv  8 B"


def test_list_is_bounded_and_an_empty_folder_says_so(folder: Path, context: ToolContext) -> None:
    (folder / "many").mkdir()
    for n in range(250):
        (folder / "many" / f"f{n:03}").touch()
    lines = list_("many", context=context).splitlines()
    assert len(lines) == 201
    assert lines[-1] == "… and 50 more"
    (folder / "none").mkdir()
    assert list_("none", context=context) == "(empty)"


def test_control_characters_of_a_name_are_shown_as_escapes(
    folder: Path, context: ToolContext
) -> None:
    (folder / "data" / "a\n\x1b[31mb").touch()
    assert list_("data", context=context).splitlines()[0] == "a\\x0a\\x1b[31mb  0 B"


def test_list_marks_links_that_lead_out(folder: Path, context: ToolContext) -> None:
    (folder / "data" / "out").symlink_to(folder.parent)
    (folder / "data" / "in").symlink_to(folder / "notes.txt")
    (folder / "data" / "gone").symlink_to(folder / "nothing")
    assert list_("data", context=context).splitlines() == [
        "gone  (a broken link)",
        "in  14 B",
        "out  (a link that tools may not follow)",
        "table.csv  8 B",
    ]


def test_read_gives_the_text(context: ToolContext) -> None:
    assert read("notes.txt", context=context) == "one\ntwo\nthree\n"
    assert (
        read("./data/../notes.txt".replace("data/../", ""), context=context) == "one\ntwo\nthree\n"
    )


def test_read_says_how_to_go_on(context: ToolContext) -> None:
    assert (
        read("notes.txt", 1, 1, context=context)
        == "two\n[lines 2-2 of a longer file; read on with offset=2]"
    )
    assert read("notes.txt", 2, context=context) == "three\n"
    assert read("notes.txt", 9, context=context) == "(the file has no line 10)"


def test_read_is_bounded_whatever_the_lines_are(folder: Path, context: ToolContext) -> None:
    (folder / "lines.txt").write_text("x" * 99 + "\n")
    (folder / "many.txt").write_text(("x" * 99 + "\n") * 10_000)
    (folder / "one.txt").write_text("x" * 1_000_000 + "\nend\n")
    many = read("many.txt", 0, 100_000, context=context)
    assert len(many) < 17_000
    assert many.endswith("[lines 1-160 of a longer file; read on with offset=160]")
    assert read("many.txt", 9_999, context=context) == "x" * 99 + "\n"
    one = read("one.txt", context=context)
    assert one == "x" * 2000 + " [… 998,000 more characters in this line]\nend\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 2000 + "\nend\n", "x" * 2000 + "\nend\n"),
        ("x" * 2000, "x" * 2000),
        ("x" * 2001, "x" * 2000 + " [… 1 more characters in this line]\n"),
        ("x" * 2001 + "\nend", "x" * 2000 + " [… 1 more characters in this line]\nend"),
    ],
    ids=["whole", "unended", "one more, unended", "one more"],
)
def test_a_line_as_long_as_the_limit_is_whole(
    folder: Path, context: ToolContext, text: str, shown: str
) -> None:
    (folder / "line.txt").write_text(text)
    assert read("line.txt", context=context) == shown


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "(the file is empty)"),
        (b"\xef\xbb\xbfa\n", "a\n"),
        ("ä\n".encode("utf-16"), "ä\n"),
        (b"caf\xe9 au lait, une fois de plus\n", "caf\ufffd au lait, une fois de plus\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"no newline", "no newline"),
    ],
)
def test_read_knows_common_encodings(
    folder: Path, context: ToolContext, data: bytes, text: str
) -> None:
    (folder / "f.txt").write_bytes(data)
    assert read("f.txt", context=context) == text


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", bytes(range(128, 256)) * 4])
def test_read_refuses_what_is_no_text_and_says_what_it_is(
    folder: Path, context: ToolContext, data: bytes
) -> None:
    (folder / "p.png").write_bytes(data)
    with pytest.raises(ToolError, match=r"'p.png' is not text \(image/png, \d+ B\)"):
        read("p.png", context=context)


def test_a_missing_file_names_near_ones_but_no_hidden_ones(context: ToolContext) -> None:
    with pytest.raises(ToolError, match=r"There is no file 'note.txt'. Did you mean notes.txt\?"):
        read("note.txt", context=context)
    with pytest.raises(ToolError, match="Use list to see"):
        read("zzzz", context=context)
    with pytest.raises(ToolError, match="no such folder"):
        read("nowhere/zzzz", context=context)
    with pytest.raises(ToolError) as raised:
        read("server.pam", context=context)
    assert "pem" not in str(raised.value)


def test_a_folder_is_listed_and_a_file_is_read(context: ToolContext) -> None:
    with pytest.raises(ToolError, match="Use list"):
        read("data", context=context)
    with pytest.raises(ToolError, match="Use read"):
        list_("notes.txt", context=context)
    with pytest.raises(ToolError, match="Is a directory"):
        Toolset.resolve("write")["write"].preview({"file": "data", "content": "x"}, context)  # type: ignore[misc]


ATTACKS = [
    "../outside.txt",
    "data/../../outside.txt",
    "..",
    "../book2/near.txt",
    "/etc/passwd",
    "//etc/passwd",
    "\\etc\\passwd",
    "C:\\x",
    "c:x",
    "~/x",
    "~root/x",
    "..\\outside.txt",
    "data\\..\\..\\outside.txt",
    ". ./outside.txt",
    ".. /outside.txt",
    "…/outside.txt",
    "\u2025/outside.txt",
    "\uff0e\uff0e/outside.txt",
    "\uff0e\uff0e\uff0foutside.txt",
    "\uff0fetc\uff0fpasswd",
    ".env",
    "./.env",
    ".ENV",
    "data/../.env",
    "\uff0eenv",
    "\u200b.env",
    ".env ",
    ".env.",
    ".git/config",
    ".git",
    "server.pem",
    "SERVER.PEM",
    "server.pem ",
    "server\u200b.pem",
    "\uff53erver.pem",
    "link_out",
    "link_out/outside.txt",
    "link_file",
    "link_env",
    "link_link",
    "loop",
    "a\0b",
    "",
    " ",
    "id_rsa",
    "credentials.json",
]


@pytest.mark.parametrize("name", ATTACKS)
def test_no_name_leads_out_of_the_folder_or_to_a_secret(
    folder: Path, context: ToolContext, name: str
) -> None:
    (folder / "link_out").symlink_to(folder.parent)
    (folder / "link_file").symlink_to(folder.parent / "outside.txt")
    (folder / "link_env").symlink_to(folder / ".env")
    (folder / "link_link").symlink_to(folder / "link_file")
    (folder / "loop").symlink_to(folder / "loop")
    before = sorted(str(p) for p in folder.parent.rglob("*"))
    for function in (
        lambda: read(name, context=context),
        lambda: write(name, "x", context=context),
    ):
        with pytest.raises(ToolError) as raised:
            function()
        assert str(folder.parent) not in str(raised.value)
    if name not in ("link_file", "link_link", "loop"):
        with pytest.raises(ToolError):
            list_(name, context=context)
    assert sorted(str(p) for p in folder.parent.rglob("*")) == before
    assert (folder.parent / "outside.txt").read_text() == "OUTSIDE"
    assert (folder / ".env").read_text() == "KEY=1"


def test_a_folder_that_begins_like_the_notebooks_is_outside(
    folder: Path, context: ToolContext
) -> None:
    (folder / "link").symlink_to(folder.parent / "book2")
    with pytest.raises(ToolError, match="leads out"):
        read("link/near.txt", context=context)


def test_links_that_stay_inside_are_followed(folder: Path, context: ToolContext) -> None:
    (folder / "link").symlink_to("data")
    assert read("link/table.csv", context=context).startswith("a,b")


def test_a_notebooks_folder_may_itself_be_hidden_or_a_link(tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a.txt").write_text("x")
    (tmp_path / "link").symlink_to(".hidden")
    for name in (".hidden", "link"):
        assert read("a.txt", context=ToolContext(folder=str(tmp_path / name))) == "x"


def test_a_part_that_becomes_a_link_after_the_check_is_not_followed(folder: Path) -> None:
    place = paths.locate_file(str(folder), "data/table.csv")
    (folder / "data").rename(folder / "moved")
    (folder / "data").symlink_to(folder.parent / "book2")
    (folder.parent / "book2" / "table.csv").write_text("OUTSIDE")
    with pytest.raises(OSError, match="data"):
        paths.open_existing(place)


def test_a_file_that_becomes_a_link_after_the_check_is_not_followed(folder: Path) -> None:
    place = paths.locate_file(str(folder), "notes.txt")
    (folder / "notes.txt").unlink()
    (folder / "notes.txt").symlink_to(folder.parent / "outside.txt")
    with pytest.raises(OSError, match="Too many levels"):
        paths.open_existing(place)


def test_a_pipe_is_refused_without_waiting_for_it(folder: Path, context: ToolContext) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(ToolError, match="neither a file nor a folder"):
        read("pipe", context=context)
    with pytest.raises(ToolError, match="not a file"):
        write("pipe", "x", context=context)


def test_an_endless_line_is_read_up_to_a_bound(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_excerpt, "_MOST_SCANNED", 100_000)
    with (folder / "endless.txt").open("wb") as file:
        file.write(b"x" * 9000)  # longer than what is looked at to see whether it is text
        file.truncate(1 << 40)  # a terabyte that takes no room
    shown = read("endless.txt", context=context)
    assert shown.startswith("x" * 2000 + " [… at least ")
    assert shown.endswith("[only the first 100,000 characters of the file are read]")
    assert len(shown) < 3000


def test_a_line_behind_the_bound_is_refused_with_the_reason(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_excerpt, "_MOST_SCANNED", 1000)
    (folder / "long.txt").write_text("line\n" * 1000)
    assert read("long.txt", 100, 1, context=context).startswith("line\n")
    with pytest.raises(ToolError, match="behind the first 1,000 characters"):
        read("long.txt", 900, context=context)


def test_reading_stops_when_the_call_is_to_stop(folder: Path, context: ToolContext) -> None:
    with (folder / "endless.txt").open("wb") as file:
        file.write(b"x" * 9000)
        file.truncate(1 << 40)
    context.cancel()
    with pytest.raises(Cancelled):
        read("endless.txt", context=context)
    with pytest.raises(Cancelled):
        read("notes.txt", 10**9, context=context)


def test_a_stopped_read_of_an_endless_line_is_a_cancelled_call(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_excerpt, "_MOST_SCANNED", 1 << 60)
    with (folder / "endless.txt").open("wb") as file:
        file.write(b"x" * 9000)
        file.truncate(1 << 40)
    read_piece, loops = text_excerpt._Lines._read_piece, []

    def read_on(lines: Any) -> str:
        if loops:
            move_on(loops.pop(), 20)  # it is being read
        return read_piece(lines)

    async def main() -> Any:
        loops.append(asyncio.get_running_loop())
        agent = Agent(Scripted([call]), ["read"], folder=folder, limits={"seconds": 20})
        return await agent("go", check=False)

    monkeypatch.setattr(text_excerpt._Lines, "_read_piece", read_on)
    call = calling("read", file="endless.txt")
    assert wait(main).log.of("result")[0].status in ("cancelled", "timeout")
    assert not loops


def test_write_makes_a_few_folders_and_not_a_thousand(folder: Path, context: ToolContext) -> None:
    few = "/".join(["new"] * paths.MOST_NEW)
    write(f"{few}/a.txt", "x", context=context)
    write(f"{few}/{few}/a.txt", "x", context=context)  # most of it is there
    deep = "/".join(f"d{n}" for n in range(paths.MOST_NEW + 1))
    preview = files._preview
    for attempt in (
        lambda: write(f"{deep}/a", "", context=context),
        lambda: preview({"file": f"{deep}/a", "content": ""}, context),
    ):
        with pytest.raises(
            ToolError, match=f"{paths.MOST_NEW + 1} new folders; at most {paths.MOST_NEW}"
        ):
            attempt()
    assert not (folder / "d0").exists()


def test_a_name_of_endless_depth_is_refused(context: ToolContext) -> None:
    with pytest.raises(ToolError, match="folders deep"):
        write("d/" * 1000 + "a.txt", "x", context=context)


@pytest.mark.parametrize("name", ["a\ud800.txt", "\udcff/a.txt", "\ude00"])
def test_half_a_character_in_a_name_is_a_clear_error(context: ToolContext, name: str) -> None:
    for attempt in (
        lambda: read(name, context=context),
        lambda: write(name, "x", context=context),
        lambda: list_(name, context=context),
        lambda: files._preview({"file": name, "content": "x"}, context),
    ):
        with pytest.raises(ToolError, match="lone surrogate"):
            attempt()


def test_a_file_whose_name_is_no_text_is_listed(folder: Path, context: ToolContext) -> None:
    try:
        Path(os.fsdecode(os.fsencode(folder) + b"/data/\xff.txt")).touch()
    except OSError:
        pytest.skip("this file system takes no such names")
    assert "\\xdcff.txt  0 B" in list_("data", context=context)


def test_write_makes_folders_and_says_what_it_did(folder: Path, context: ToolContext) -> None:
    assert (
        write("new/deep/a.txt", "one\ntwo\n", context=context)
        == "Wrote new/deep/a.txt: 2 lines, 8 bytes."
    )
    assert (folder / "new/deep/a.txt").read_text() == "one\ntwo\n"
    assert write("notes.txt", "x", context=context) == "Replaced notes.txt: 1 line, 1 byte."


def test_write_keeps_permissions_and_leaves_nothing_behind(
    folder: Path, context: ToolContext
) -> None:
    (folder / "notes.txt").chmod(0o600)
    write("notes.txt", "x\ud800", context=context)
    assert stat.S_IMODE((folder / "notes.txt").stat().st_mode) == 0o600
    assert (folder / "notes.txt").read_text() == "x\ufffd"
    assert sorted(p.name for p in folder.iterdir()) == [
        ".env",
        ".git",
        "data",
        "notes.txt",
        "server.pem",
    ]


def test_a_write_that_fails_leaves_the_old_file(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(ToolError, match="No space left"):
        write("notes.txt", "x", context=context)
    assert (folder / "notes.txt").read_text() == "one\ntwo\nthree\n"
    assert not [p for p in folder.iterdir() if p.name.endswith(".tmp")]


def test_the_preview_of_a_write_is_a_diff(folder: Path, context: ToolContext) -> None:
    preview = Toolset.resolve("write")["write"].preview
    assert preview is not None
    changed = preview({"file": "notes.txt", "content": "one\n2\nthree\n"}, context)
    assert changed.splitlines()[:2] == ["--- notes.txt", "+++ notes.txt"]
    assert "-two\n+2\n" in changed
    assert preview({"file": "new.txt", "content": "x"}, context).splitlines() == [
        "--- (new file)",
        "+++ new.txt",
        "@@ -0,0 +1 @@",
        "+x",
    ]
    assert (
        preview({"file": "notes.txt", "content": "one\ntwo\nthree\n"}, context)
        == "notes.txt: no change"
    )
    (folder / "b.bin").write_bytes(b"\xff\xfe\xff")
    assert "not text" in preview({"file": "b.bin", "content": "x"}, context)
    with pytest.raises(ToolError):
        preview({"file": "../x", "content": "x"}, context)


def test_only_write_has_effects() -> None:
    assert {t.name: t.effect for t in Toolset.resolve("files")} == {
        "list": "none",
        "read": "none",
        "write": "outside",
    }


def test_what_models_see_of_the_file_tools() -> None:
    specs = {t.name: t.spec.parameters for t in Toolset.resolve("files")}
    assert specs["list"]["properties"]["path"]["default"] == "."
    assert specs["read"]["required"] == ["file"]
    assert list(specs["read"]["properties"]) == ["file", "offset", "limit"]
    assert specs["write"]["required"] == ["file", "content"]


def test_the_tools_work_in_the_runner(run: Call, folder: Path) -> None:
    calls = [
        ("list", {}),
        ("read", {"file": "notes.txt"}),
        ("read", {"file": "../outside.txt"}),
        ("write", {"file": "a", "content": "b"}),
    ]
    outcomes, _ = run(["files"], *calls, folder=str(folder))
    assert [o.status for o in outcomes] == ["ok", "ok", "error", "ok"]


def test_a_folder_that_another_call_makes_meanwhile_is_used(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of one batch run at the same time, and each may write into the same new folder."""
    (folder / "new").mkdir()
    monkeypatch.setattr(os, "access", lambda *args, **options: False)
    write(file="new/a.txt", content="a", context=context)
    assert (folder / "new" / "a.txt").read_text() == "a"


def test_a_file_that_is_removed_while_its_folder_is_listed_hides_no_other(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove_notes(name: str) -> bool:
        (folder / "notes.txt").unlink(missing_ok=True)
        return paths.is_private(name)

    monkeypatch.setattr(files, "is_private", remove_notes)
    listed = list_(context=context).splitlines()
    assert listed[:2] == ["data/", "notes.txt"]
