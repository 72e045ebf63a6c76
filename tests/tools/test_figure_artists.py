"""What a figure of Matplotlib shows as data: changes that count, and differences that do not."""

import copy
import json

import msgspec
import pytest

from agent_nb.record.figure_data import (
    LARGEST,
    ArtistData,
    FigureData,
    Numbers,
    compare_figure_data,
)
from agent_nb.record.pictures import PictureComparison
from agent_nb.tools.figure_artists import _read_numbers, read_figure_data
from agent_nb.tools.figures import Figures

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

from matplotlib import pyplot as plt  # noqa: E402

# Matplotlib warns if it looks for the best place of a legend for more than a second, as on a busy
# machine; here the warning would be an error, and a figure that raises has no picture
pytestmark = pytest.mark.filterwarnings("ignore:Creating legend with loc:UserWarning")

SAFE = {"np": pytest.importorskip("numpy"), "plt": plt}
LINES = """
fig, ax = plt.subplots(figsize=(4, 3))
x = np.linspace(0, 6, 50)
ax.plot(x, np.sin(x), label="sine")
ax.plot(x, np.cos(x), "--", color="red", marker=".", label="cosine")
ax.set(title="p = 0.04", xlabel="t (s)", ylabel="height")
ax.legend()
ax.annotate("peak", (1, 1), xytext=(2, 1.2), arrowprops={"arrowstyle": "->"})
"""
BARS = """
fig, ax = plt.subplots(figsize=(4, 3))
ax.bar(["oak", "elm", "ash"], [25, 50, 75], label="trees")
ax.axhline(40)
"""
GRID = """
fig, (left, right) = plt.subplots(1, 2, figsize=(6, 3))
values = np.outer(np.arange(20), np.arange(20)) / 7
fig.colorbar(left.imshow(values, cmap="viridis"))
right.contourf(values, levels=[0, 10, 20, 60])
fig.suptitle("both")
"""
DOTS = """
random = np.random.default_rng(3)
xs, ys = random.normal(size=(2, 2000))
fig, ax = plt.subplots(figsize=(4, 3))
ax.scatter(xs, ys, c=xs, s=4)
ax.fill_between([-1, 1], [0, 1], alpha=0.2)
ax.hist(xs, bins=20)
other = ax.twinx()
other.plot([0, 1], [5, 6])
"""
SOLID = """
fig = plt.figure(figsize=(4, 3))
ax = fig.add_subplot(projection="3d")
x, y = np.meshgrid(np.arange(5), np.arange(5))
ax.plot_surface(x, y, x * y)
ax.plot([0, 1], [0, 1], [0, 3])
"""
ROUND = """
fig, (left, right) = plt.subplots(1, 2, figsize=(6, 3))
left.pie([1, 2, 3], labels=["a", "b", "c"])
right.table([["1", "2"], ["3", "4"]])
right.quiver([0, 1], [0, 1], [1, 2], [1, 1])
right.errorbar([0, 1], [0, 1], yerr=[0.1, 0.2])
"""
# code, what is replaced in it, by what, and the words of the difference
CHANGES = {
    "a digit of the title": (
        LINES,
        "0.04",
        "0.05",
        "title: its text was 'p = 0.04', is 'p = 0.05'",
    ),
    "swapped names": (
        LINES,
        "ax.legend()",
        'ax.legend(["cosine", "sine"])',
        "legend 1: entry 1 was 'sine', is 'cosine'",
    ),
    "the unit of an axis": (LINES, "t (s)", "t (h)", "x axis: its label was 't (s)', is 't (h)'"),
    "one value of a line": (
        LINES,
        'np.cos(x), "--"',
        'np.cos(x) + 0.001 * (np.arange(50) == 2), "--"',
        "line 2 'cosine': y value 3 of 50 was 0.9701621, is 0.9711621",
    ),
    "an outlier": (
        LINES,
        "np.sin(x)",
        "np.sin(x) * (1 + 8 * (x == x[40]))",
        "line 1 'sine': y value 41 of 50",
    ),
    "a colour": (
        LINES,
        '"red"',
        '"green"',
        "line 2 'cosine': color was '#ff0000ff', is '#008000ff'",
    ),
    "a marker": (LINES, 'marker="."', 'marker="x"', "line 2 'cosine': marker was"),
    "a dashed line": (LINES, '"--"', '":"', "line 2 'cosine': linestyle was"),
    "an annotation": (LINES, '"peak"', '"pear"', "text 1: its text was 'peak', is 'pear'"),
    "where an annotation points": (LINES, '"peak", (1, 1)', '"peak", (1.2, 1)', "text 1: target"),
    "one line less": (LINES, 'ax.plot(x, np.sin(x), label="sine")', "", "line 2 is gone"),
    "limits": (LINES, "ax.legend()", "ax.legend(); ax.set_xlim(0, 6)", "x axis: its ticks was"),
    "a log scale": (BARS, "ax.axhline(40)", 'ax.axhline(40); ax.set_yscale("log")', "y axis: "),
    "a grid": (
        BARS,
        "ax.axhline(40)",
        "ax.axhline(40); ax.grid()",
        "x axis: its grid was '', is 'shown'",
    ),
    "a bar that is 4 % taller": (
        BARS,
        "[25, 50, 75]",
        "[25, 52, 75]",
        "bars 1: bar 2 height was 50, is 52",
    ),
    "names of bars": (BARS, '"oak", "elm"', '"elm", "oak"', "x axis: its ticks was"),
    "the colour of a bar": (
        BARS,
        'label="trees"',
        'color=["b", "r", "b"], label="trees"',
        "bars 1",
    ),
    "a horizontal line": (
        BARS,
        "axhline(40)",
        "axhline(41)",
        "line 1: y value 1 of 2 was 40, is 41",
    ),
    "a pixel of an image": (
        GRID,
        "/ 7\n",
        "/ 7\nvalues[3, 4] += 0.2\n",
        "image 1: some of the 400 values of",
    ),
    "a turned image": (GRID, "left.imshow(values", "left.imshow(values[::-1]", "image 1: some of"),
    "a colour map": (GRID, "viridis", "magma", "image 1: colour map was 'viridis', is 'magma'"),
    "a level of contours": (GRID, "[0, 10, 20, 60]", "[0, 10, 21, 60]", "axes 2, collection 1: "),
    "the title above all": (
        GRID,
        '"both"',
        '"all"',
        "figure's suptitle: its text was 'both', is 'all'",
    ),
    "the size of dots": (DOTS, "s=4", "s=5", "points 1: sizes was 4, is 5"),
    "another dot": (
        DOTS,
        "ax.scatter(xs, ys",
        "ax.scatter(xs, np.where(xs == xs[9], 0, ys)",
        "points 1: some of",
    ),
    "the second axis": (DOTS, "[5, 6]", "[5, 7]", "axes 2, line 1: y value 2 of 2 was 6, is 7"),
    "an area": (DOTS, "[0, 1], alpha", "[0, 900], alpha", "collection 1: corners"),
    "a bin": (DOTS, "bins=20", "bins=21", "bars 1: height has 21 values, not 20"),
    "a surface": (SOLID, "x * y)", "x * y + (x == 2))", "collection 1: "),
    "the view of a surface": (
        SOLID,
        "[0, 3])",
        "[0, 3]); ax.view_init(40)",
        "axes 1: elev was 30, is 40",
    ),
    "a slice": (ROUND, "[1, 2, 3]", "[1, 2, 4]", "shape 1 'a': corners"),
    "a cell of a table": (ROUND, '"4"', '"5"', "axes 2, table 1: cell 2, 2 was '4', is '5'"),
    "an arrow": (ROUND, "[1, 2], [1, 1]", "[1, 3], [1, 1]", "axes 2, collection 1: "),
    "an error bar": (ROUND, "[0.1, 0.2]", "[0.1, 0.3]", "axes 2, "),
}
SAME = {
    "anti-aliasing": {"text.antialiased": False, "lines.antialiased": False},
    "another font": {"font.family": "DejaVu Serif"},
    "another hash salt": {"svg.hashsalt": "other"},
    "hinting": {"text.hinting": "none"},
}
CODES = {"lines": LINES, "bars": BARS, "grid": GRID, "dots": DOTS, "solid": SOLID, "round": ROUND}


def figure(code, **settings):
    """Return the figure of a code, as the attachment that a result has."""
    with matplotlib.rc_context(settings):
        names = dict(SAFE)
        exec(code, names)  # our own
        try:
            return Figures.draw(names["fig"])
        finally:
            plt.close("all")


@pytest.fixture(scope="module")
def before():
    return {code: figure(code) for code in CODES.values()}


@pytest.mark.few(6)
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_a_figure_shows_is_named(before, name):
    code, old, new, words = CHANGES[name]
    assert old in code
    assert PictureComparison.of_pair(
        before[code], figure(code.replace(old, new))
    ).difference.startswith(words)


@pytest.mark.few(4)
@pytest.mark.parametrize("settings", SAME.values(), ids=SAME)
@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_how_a_figure_is_rendered_does_not_count(before, code, settings):
    fresh = figure(code, **settings)
    if "hashsalt" not in str(settings) and code not in (SOLID,):
        assert fresh["data"] != before[code]["data"]
    assert PictureComparison.of_pair(before[code], fresh) == PictureComparison.of_pair("", "")


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_the_data_of_a_figure_are_whole_and_survive_a_record(before, code):
    data = json.loads(json.dumps(before[code][FigureData.KEY]))
    assert FigureData.read(data).partly is False
    assert len(json.dumps(data)) < LARGEST


def test_equal_pixels_are_equal_before_any_data(before):
    other = {**before[LINES], FigureData.KEY: before[BARS][FigureData.KEY]}
    assert PictureComparison.of_pair(before[LINES], other) == PictureComparison.of_pair("", "")


def test_numbers_off_by_a_ten_millionth_of_their_range_are_equal(before):
    noise = LINES.replace("np.cos(x)", "np.cos(x) * (1 + 1e-8)").replace(
        "figsize=(4, 3)", "figsize=(4, 3.0)"
    )
    fresh = {**figure(noise), "data": before[BARS]["data"]}
    assert PictureComparison.of_pair(before[LINES], fresh).difference == ""


def test_texts_are_compared_by_the_masks(before):
    fresh = figure(LINES.replace("0.04", "0.05"))
    assert PictureComparison.of_pair(before[LINES], fresh, lambda old, new: True).difference == ""


@pytest.mark.few("the data-0", "the version-1")
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("lost", ["the data", "the version"])
def test_without_common_data_the_pixels_are_compared_and_it_says_so(before, side, lost):
    pair = [copy.deepcopy(before[LINES]), figure(LINES.replace("0.04", "0.05"))]
    if lost == "the data":
        del pair[side][FigureData.KEY]
    else:
        pair[side][FigureData.KEY]["library"] = "matplotlib 1.0"
    found = PictureComparison.of_pair(*pair)
    assert (found.difference, found.unseen) == ("", "")
    assert found.note.endswith("its pixels are compared, and one in a hundred may differ")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "forged",
    [
        "__import__('os').system('true')",
        {"library": "matplotlib"} | {"artists": [{"name": "x", "numbers": {"y": "1"}}]},
        {"library": ["m"]},
        {"library": "m", "artists": [{"name": "x" * LARGEST}]},
        {"library": "m", "artists": {"name": "x"}},
        [[[[[]]]]],
        7,
    ],
)
def test_forged_data_do_not_count(before, forged):
    found = PictureComparison.of_pair(
        {**before[LINES], FigureData.KEY: forged}, figure(LINES.replace("0.04", "0.05"))
    )
    assert found.difference == ""
    assert "without data" in found.note


def test_numbers_whose_range_is_no_float_are_compared():
    old, new = (
        FigureData("l", (ArtistData("line", numbers={"y": Numbers((1e308, -1e308, y))}),))
        for y in (0.0, 9e307)
    )
    assert "y value 3 of 3" in compare_figure_data(old, new)


@pytest.mark.parametrize("count", [3, 1_000])
def test_numbers_whose_range_is_no_float_are_read(count):
    """As values if there are few, as a hash if there are many."""
    old, new = (_read_numbers([1e308, -1e308, *[y] * count], 256) for y in (0.0, 9e307))
    same = _read_numbers([1e308, -1e308, *[0.0] * count], 256)
    assert old == same != new


def test_a_figure_of_many_artists_stays_small_and_is_compared():
    code = "fig, ax = plt.subplots()\nfor n in range(400): ax.plot(np.arange(200) * n)"
    fig = figure(code)
    assert len(json.dumps(fig[FigureData.KEY])) <= LARGEST
    other = figure(code.replace("* n)", "* n + (n == 300))"))
    assert (
        PictureComparison.of_pair(fig, other).difference
        == "line 301: its numbers or colours changed"
    )


def test_a_value_that_is_no_figure_has_no_data():
    class Figure:
        """Neither of Matplotlib nor drawn."""

    assert read_figure_data(Figure()) is None
    assert read_figure_data(7) is None


def test_an_artist_that_cannot_be_read_makes_the_data_partly_all():
    code = "fig, ax = plt.subplots()\nfrom matplotlib.artist import Artist\nclass Mine(Artist): pass\nax.add_artist(Mine())"
    assert msgspec.convert(figure(code)[FigureData.KEY], dict)["partly"] is True
    found = PictureComparison.of_pair(figure(code), figure(f"{code}\nax.set_title('x')"))
    assert found.difference == "title is new"
