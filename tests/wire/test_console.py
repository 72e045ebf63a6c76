"""Printed text as a screen leaves it: what stays, what was drawn over, and how far a bar is."""

from __future__ import annotations

import itertools

import pytest

from agent_nb.tools.values import Collector
from agent_nb.wire.console import Console, is_bar
from agent_nb.wire.hidden_characters import strip_ansi

BAR = "\r  0%|          | 0/5 [00:00<?, ?it/s]\r 40%|████      | 2/5 [00:00<00:00, 19.9it/s]\r100%|██████████| 5/5 [00:00<00:00, 20.1it/s]"
UP = "\x1b[A"
NESTED = (  # what tqdm writes for two epochs with two batches each
    "\rE:   0%|          | 0/2 [00:00<?, ?it/s]\n\ri:   0%|          | 0/2 [00:00<?, ?it/s]"
    + UP
    + "\n\ri:  50%|#####     | 1/2 [00:00<00:00, 9.00it/s]"
    + UP
    + "\rE:  50%|#####     | 1/2 [00:00<00:00, 1.00it/s]\n\ri:   0%|          | 0/2 [00:00<?, ?it/s]"
    + UP
)

LEFT = {
    "lines": ("a\nb\n", "a\nb\n"),
    "a line without an end": ("a\nb", "a\nb"),
    "line ends of Windows": ("a\r\nb\r\n\r\nc", "a\nb\n\nc"),
    "a bar": (BAR + "\n", ""),
    "a bar between lines": ("before\n" + BAR + "\nafter\n", "before\nafter\n"),
    "an empty line after a bar": (BAR + "\n\nafter\n", "after\n"),
    "a bar that was cleared": (BAR + "\r      \rnext\n", "next\n"),
    "bars below one another": (NESTED + "\n\nend\n", "end\n"),
    "a count that ends with a carriage return": ("step 1\rstep 2\rstep 3\rdone\n", "done\n"),
    "a count that is the last word": ("step 1\rstep 2\r", "step 2"),
    "a line drawn over": ("\rworking\rdone   \n", "done\n"),
    "prints in a loop with a bar": (
        BAR.replace("\r", "step\n\r") + "last\n",
        "step\nstep\nstep\nlast\n",
    ),
    "prints between bars below one another": (NESTED + "a line\nanother\n", "a line\nanother\n"),
    "a bar of another program": ("\r50% done\r100% done\nfoo", "100% done\nfoo"),
    "a line of a bar that says no percentage": ("\r5it [00:00, 9.1it/s]\nend", "end"),
    "percentages on a line of their own": ("50% of the rows\n", "50% of the rows\n"),
}


@pytest.mark.parametrize(("text", "left"), LEFT.values(), ids=LEFT)
def test_what_stays_on_the_screen(text: str, left: str) -> None:
    assert Console.render_screen(text) == left
    assert Console.render_screen(left) == left


def test_a_line_may_move_up_any_number_of_times() -> None:
    assert Console.render_screen("\r" + f"x{UP}" * 1000 + "end\n") == "end\n"


@pytest.mark.parametrize("text", [text for text, _ in LEFT.values()], ids=LEFT)
def test_however_the_text_is_cut_the_same_stays(text: str) -> None:
    def taken(pieces: list[str]) -> str:
        console = Console()
        return "".join(console.feed(p) for p in pieces) + console.rest

    for at in range(len(text) + 1):
        assert taken([text[:at], text[at:]]) == Console.render_screen(text)
    assert taken(list(text)) == Console.render_screen(text)


@pytest.mark.parametrize("end", ["", f"\n\ri: 0it [00:00, ?it/s]{UP}"])
@pytest.mark.parametrize("size", [1, 3_000, 9_000])
def test_a_long_line_behind_a_bar_stays_however_it_is_cut(end: str, size: int) -> None:
    line = f"START{'.' * 4_500}END\n"
    text, console = f"\r 50%|##   | 5/10 [00:02<00:02, 1.9it/s]{end}{line}", Console()
    assert "".join(console.feed(text[at : at + size]) for at in range(0, len(text), size)) == line


@pytest.mark.parametrize("whole", [True, False])
def test_an_open_line_that_was_given_out_is_not_given_again(whole: bool) -> None:
    console = Console()
    text = "a\nbc\nd\n\ne"
    assert (
        "".join(console.feed(c) + console.open(whole=whole) for c in text) + console.close() == text
    )


def test_a_line_that_goes_on_is_given_out_once() -> None:
    console = Console()
    assert (console.feed("Load"), console.open(whole=False)) == ("", "")
    assert (console.feed("ing"), console.open(whole=False), console.open(whole=False)) == (
        "",
        "Load",
        "ing",
    )
    assert (console.feed(" done\nnext"), console.open()) == (" done\n", "next")
    assert console.close() == ""


def test_a_line_without_end_is_not_held_back() -> None:
    console = Console()
    given = "".join(console.feed("x" * 1_000) for _ in range(50))
    assert len(given + console.rest) == 50_000
    assert len(console.rest) <= 4_000


@pytest.mark.parametrize(
    ("line", "fraction", "message"),
    [
        (" 40%|████      | 2/5 [00:00<00:00, 19.9it/s]", 0.4, "2/5 · 19.9it/s"),
        (
            "Epoch 1:  40%|####      | 2/5 [00:00<00:00, 19.9it/s, loss=0.3]",
            0.4,
            "Epoch 1 · 2/5 · 19.9it/s, loss=0.3",
        ),
        ("  0%|          | 0/5 [00:00<?, ?it/s]", 0.0, "0/5"),
        ("5it [00:00, 9.1it/s]", None, "5it · 9.1it/s"),
        (
            "   ━━━━━━━━╸━━━ 12.3/45.0 MB 3.2 MB/s eta 0:00:11",
            None,
            "12.3/45.0 MB 3.2 MB/s eta 0:00:11",
        ),
        ("downloaded 62.5 %", 0.625, "downloaded"),
        ("[=====>    ] 50% a.zip", 0.5, "a.zip"),
        ("\x1b[32m70%\x1b[0m ready", 0.7, "ready"),
        ("400% of what was planned", 1.0, "of what was planned"),
        ("step 3 of 9", None, "step 3 of 9"),
        ("x" * 900, None, "x" * 200),
    ],
)
def test_what_a_line_says_of_the_way(line: str, fraction: float | None, message: str) -> None:
    assert Console.read_progress(line) == (fraction, message)
    assert is_bar(line) is ("[00:" in line)


def statuses(text: str) -> list[tuple[float | None, str]]:
    console = Console()
    seen = []
    for piece in text.split("|break|"):
        console.feed(piece)
        seen.append(Console.read_progress(console.status))
    return [said for said, _ in itertools.groupby(seen)]


def test_the_outer_of_two_bars_moves() -> None:
    assert statuses(NESTED.replace(UP, UP + "|break|")) == [
        (0.0, "E · 0/2"),
        (0.5, "E · 1/2 · 1.00it/s"),
    ]


def test_a_bar_after_a_bar_moves_too() -> None:
    assert statuses(f"{BAR}\n|break|\r 20%|##  | 1/5 [00:00<00:04, 1.0it/s]") == [
        (1.0, "5/5 · 20.1it/s"),
        (0.2, "1/5 · 1.0it/s"),
    ]


def test_a_bar_after_one_that_broke_off_moves_from_its_second_picture_on() -> None:
    begun = "\r 20%|##  | 1/5 [00:00<00:04, 1.0it/s]\n"
    assert (
        statuses(
            f"{begun}|break|\r 40%|####| 2/5 [00:00<00:04, 1.0it/s]\r 60%|####| 3/5 [00:00<00:04, 1.0it/s]"
        )[-1][0]
        == 0.6
    )


def test_a_bar_stands_while_lines_are_printed_in_its_loop() -> None:
    assert statuses(BAR.replace("\r100", "step\n|break|\r100") + "last\n") == [
        (0.4, "2/5 · 19.9it/s"),
        (1.0, "5/5 · 20.1it/s"),
    ]


def test_a_foreign_bar_moves_too() -> None:
    assert statuses("\r10% done|break|\r50% done\r100% done\nsaved\n") == [
        (0.1, "done"),
        (1.0, "done"),
    ]


def test_the_last_picture_of_a_bar_is_not_lost_when_its_line_has_ended() -> None:
    assert statuses(f"{BAR}\nsaved\n") == [(1.0, "5/5 · 20.1it/s")]


def test_a_collector_keeps_what_stays() -> None:
    collector = Collector(90)
    for _ in range(1000):
        collector.add(BAR)
    collector.add("\nall done\n")
    assert collector.text == "all done\n"


def test_every_form_of_escape_sequence_is_taken_out() -> None:
    link = "\x1b]8;;https://x.org\x1b\\link\x1b]8;;\x07"
    assert strip_ansi("a\x1bkthe title\x1b\\b\x1bPtmux;\x1b\x1b]0;title\x07\x1b\\c") == "abc"
    passed = "\x1bPtmux;\x1b\x1b]8;;http://h\x1b\x1b\\\x1b\\"
    assert strip_ansi(f"a{passed}{passed}b") == "ab"
    unended = "\x1b\x1bPtmux;" * 20_000
    assert strip_ansi(unended) == unended
    assert strip_ansi(f"\x1b[1mbold\x1b(B\x1b[m {link} \x1b7\x1b=end") == "bold link end"


@pytest.mark.parametrize("end", ["\x1b\\", "\x07", "\x9c"])
@pytest.mark.parametrize("begin", ["]", "P", "X", "^", "_"])
def test_a_string_for_the_terminal_is_taken_out_whole(begin: str, end: str) -> None:
    text = f"a\x1b{begin}Gf=100;iVBO\nRw0K{end}b"
    assert strip_ansi(text) == "ab"
    assert strip_ansi(f"{text}{text}\x1b[1mc") == "ababc"


@pytest.mark.parametrize("begin", ["]", "P", "X", "^", "_"])
def test_a_string_for_the_terminal_without_an_end_takes_nothing_else(begin: str) -> None:
    cut = f"\x1b{begin}payload"
    assert strip_ansi(f"{cut}\nlater") == f"{cut}\nlater"
    assert strip_ansi(f"{cut}\x1b[1m later\x1b]0;title\x07\n") == f"{cut} later\n"
    assert strip_ansi(cut * 20_000) == cut * 20_000


@pytest.mark.parametrize("end", ["\r\n", "\rredrawn\n"])
@pytest.mark.parametrize("size", [1000, 4096, 12_000])
def test_a_long_line_that_comes_in_pieces_is_neither_repeated_nor_cut(end: str, size: int) -> None:
    line = "".join(f"{number:05d} " for number in range(2000))
    text, console = f"before\r\n{line}{end}", Console()
    out = "".join(console.feed(text[at : at + size]) for at in range(0, len(text), size))
    assert out == f"before\n{line}\n{end.strip()}\n".replace("\n\n", "\n")
    assert console.close() == ""


def test_an_open_line_of_many_pieces_takes_linear_time():
    """In quadratic time it would exceed the test's time limit."""
    console = Console()
    pieces = [console.feed("0123456789") for _ in range(200_000)]
    assert "".join([*pieces, console.close()]) == "0123456789" * 200_000
