"""Figures of Matplotlib in a kernel: in the card of their call, once, and in no other place."""

import base64
import json

import nbformat
import pytest
from helpers.paths import python_path
from helpers.scripts import calling
from nbformat.v4 import new_code_cell, new_notebook

from agent_nb.cli.main import main
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import RECORD_MIME, events_of
from agent_nb.wire.picture_size import size_of

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.kernel

AGENT = "%%agent -m scripted/script.json -t python --approve auto\nPlot it."
PLOT = """
import matplotlib.pyplot as plt
plt.figure(figsize=(4, 2))
plt.plot(values)
plt.show()
"""


OTHER_LEVEL = """from PIL import Image
plain = Image.Image.save
def save(self, *args, **options):
    options["compress_level"] = 1
    return plain(self, *args, **options)
Image.Image.save = save
"""


@pytest.fixture(autouse=True)
def reachable(monkeypatch, tmp_path):
    """Let kernels find this checkout, whether it is installed or not."""
    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "mpl"))


@pytest.fixture
def run(tmp_path):
    """Execute a notebook whose agent runs these codes; return it as it is saved."""

    def run(*codes, before="values = [1, 3, 2]", agent=AGENT, options=("--live",)):
        script = [*(calling("python", code=code) for code in codes), "Done."]
        (tmp_path / "script.json").write_text(json.dumps({"turns": script}))
        cells = [
            new_code_cell(f"%load_ext agent_nb\n{before}", id="load"),
            new_code_cell(agent, id="asks"),
        ]
        path = tmp_path / "n.ipynb"
        nbformat.write(new_notebook(cells=cells), path)
        assert main(["run", *options, "--inplace", str(path)]) == 0
        return path

    return run


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def outputs(path):
    return read(path)["cells"][1]["outputs"]


def results(path):
    ((_, record),) = NotebookRuns(read(path)).list_all()
    return [e for e in events_of(record) if e.type == "result"]


def page(path):
    return "".join(outputs(path)[0]["data"]["text/html"])


def test_a_figure_stands_in_the_card_once_and_not_below_it(run):
    path = run(PLOT)
    (output,) = outputs(path)
    assert RECORD_MIME in output["data"]
    (result,) = results(path)
    (picture,) = result.attachments
    assert result.content == "[figure 1: {}×{} pixels]\n".format(*size_of(picture))
    assert page(path).count(f'src="data:image/png;base64,{picture["data"]}"') == 1
    assert page(path).count("<img") == 1
    text = path.read_text(encoding="utf-8")
    assert text.count(picture["data"]) == 2  # in the page, and in the record


CODES = {
    "left open": "import matplotlib.pyplot as plt\nplt.plot([1, 2])",
    "the last expression": "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nfig",
    "an axes": "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.bar([1, 2], [3, 4])\nax",
    "displayed": "from matplotlib.figure import Figure\nfig = Figure((2, 2))\nfig.subplots()\ndisplay(fig)",
    "an image": "from PIL import Image\nImage.new('RGB', (20, 10), 'red')",
    "an image displayed": "from PIL import Image\ndisplay(Image.new('RGB', (20, 10), 'red'))",
    "raw": "display({'image/png': shade, 'text/plain': 'shade'}, raw=True)",
    "updated": "from PIL import Image\nh = display(Image.new('RGB', (9, 9)), display_id=True)\nh.update(Image.new('RGB', (20, 10)))",
    "redrawn": "from IPython.display import clear_output\nfrom PIL import Image\nfor n in range(3):\n    clear_output(wait=True)\n    display(Image.new('RGB', (20 + n, 10)))",
    "before an error": "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\n1 / 0",
}
SIZES = {"updated": (20, 10), "redrawn": (22, 10), "raw": (20, 10)}
SHADE = """
import base64
from PIL import Image
import io
buffer = io.BytesIO()
Image.new("RGB", (20, 10), "blue").save(buffer, "PNG")
shade = base64.b64encode(buffer.getvalue()).decode()
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """All codes in one kernel; return the results by the names of their codes."""
    folder = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", python_path())
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        patch.setenv("MPLCONFIGDIR", str(folder / "mpl"))
        script = [*(calling("python", code=code) for code in CODES.values()), "Done."]
        (folder / "script.json").write_text(json.dumps({"turns": script}))
        cells = [new_code_cell(f"%load_ext agent_nb\n{SHADE}"), new_code_cell(AGENT, id="asks")]
        nbformat.write(new_notebook(cells=cells), folder / "n.ipynb")
        assert main(["run", "--live", "--inplace", str(folder / "n.ipynb")]) == 0
    return outputs(folder / "n.ipynb"), dict(zip(CODES, results(folder / "n.ipynb"), strict=True))


@pytest.mark.parametrize("name", CODES)
def test_every_way_to_show_a_picture_is_one_picture_of_the_call(shown, name):
    _, found = shown
    (picture,) = found[name].attachments
    assert str(found[name].content).startswith("[figure 1: ")
    if name in SIZES:
        assert size_of(picture) == SIZES[name]


def test_nothing_but_the_card_is_in_the_cell(shown):
    cell, _ = shown
    assert [list(o["data"].keys() & {"image/png", RECORD_MIME}) for o in cell] == [[RECORD_MIME]]


def test_a_picture_before_an_error_is_kept_with_the_error(shown):
    result = shown[1]["before an error"]
    assert (result.status, len(result.attachments)) == ("error", 1)
    assert "ZeroDivisionError" in result.content


def test_a_figure_that_a_tool_returns_is_in_its_card_and_not_below_it(run, tmp_path):
    before = """import matplotlib.pyplot as plt
from agent_nb import tool
@tool(effect="reads")
def look():
    "Look."
    fig, ax = plt.subplots()
    ax.plot([1, 2])
    return fig
"""
    agent = AGENT.replace("-t python", "-t look")
    (tmp_path / "other.json").write_text(json.dumps({"turns": [calling("look"), "Done."]}))
    path = run(before=before, agent=agent.replace("script.json", "other.json"))
    assert len(outputs(path)) == 1
    (result,) = results(path)
    assert len(result.attachments) == 1
    assert page(path).count("<img") == 1


@pytest.mark.long
def test_an_exported_page_has_the_figure_in_its_card(run, tmp_path):
    path = run(PLOT)
    target = tmp_path / "page.html"
    assert main(["export", str(path), "-o", str(target)]) == 0
    html = target.read_text(encoding="utf-8")
    assert html.count("<img") == 1
    assert "Displayed in the cell" not in html


def changed(path, old, new):
    """Change a cell of a notebook, and keep its record and outputs."""
    nb = nbformat.read(path, as_version=4)
    nb.cells[0].source = nb.cells[0].source.replace(old, new)
    nbformat.write(nb, path)


@pytest.mark.long
def test_the_same_plot_replays_without_a_word(run, capsys):
    path = run(PLOT)
    assert main(["test", str(path)]) == 0
    assert main(["run", "--inplace", str(path)]) == 0
    assert len(outputs(path)) == 1


@pytest.mark.long
def test_a_changed_plot_is_drift(run, capsys):
    path = run(PLOT)
    changed(path, "[1, 3, 2]", "[1, 2, 3]")
    assert main(["test", str(path)]) == 1
    assert "figure 1: line 1: y value 2 of 3 was 3, is 2" in capsys.readouterr().out


@pytest.mark.long
def test_the_same_plot_at_another_zlib_level_is_not_drift(run, capsys):
    path = run(PLOT)
    changed(path, "values =", f"{OTHER_LEVEL}values =")
    assert main(["test", "-v", str(path)]) == 0


TITLE = """
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.title(f"p = {values}")
plt.show()
"""


@pytest.mark.long
def test_a_digit_of_a_title_is_drift_and_another_font_is_not(run, capsys):
    path = run(TITLE, before="values = 0.04")
    changed(path, "0.04", "0.04\nimport matplotlib\nmatplotlib.rcParams['font.family'] = 'serif'")
    assert main(["test", str(path)]) == 0
    changed(path, "0.04", "0.05")
    assert main(["test", str(path)]) == 1
    said = capsys.readouterr().out
    assert "figure 1: title: its text was 'p = 0.04', is 'p = 0.05'" in said


@pytest.mark.long
def test_a_record_without_data_of_its_figure_is_compared_by_pixels(run, capsys):
    older = "import agent_nb.tools.pictures as p; p.read_figure_data = lambda figure: None"
    path = run(TITLE, before=f"values = 0.04\n{older}")
    changed(path, older, "")
    changed(path, "0.04", "0.05")
    assert main(["test", "-v", str(path)]) == 0
    assert "not seen: a figure without data of what it shows: " in capsys.readouterr().out


def test_no_secret_is_in_the_data_of_a_figure(run, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecretkeyofmine1234567890")
    path = run(TITLE, before="import os\nvalues = os.environ['OPENAI_API_KEY']")
    assert "verysecret" not in json.dumps([r for _, r in NotebookRuns(read(path)).list_all()])


@pytest.mark.long
def test_one_plot_more_is_drift(run, capsys):
    path = run(
        "for n in range(count): plt.plot([n, 1]); plt.show()",
        before="import matplotlib.pyplot as plt\ncount = 1",
    )
    changed(path, "count = 1", "count = 2")
    assert main(["test", str(path)]) == 1
    assert "+[figure 2: " in capsys.readouterr().out


@pytest.mark.long
def test_a_changed_plot_goes_live_from_there(run):
    path = run(PLOT)
    before = results(path)[0].attachments
    changed(path, "[1, 3, 2]", "[1, 2, 3]")
    assert main(["run", "--inplace", str(path)]) == 0
    html = page(path)
    assert "returned something else than in the record: figure 1: " in html
    assert "line 1: y value 2 of 3 was 3, is 2" in html
    (_, newest), *_ = sorted(
        NotebookRuns(read(path)).list_all(), key=lambda found: -found[1]["started"]
    )
    result, *_ = (e for e in events_of(newest) if e.type == "result")
    assert result.attachments != before
    assert base64.b64decode(result.attachments[0]["data"]).startswith(b"\x89PNG")


@pytest.mark.long
def test_a_figure_in_the_prompt_is_replayed_also_as_another_file(run, capsys):
    path = run(
        before="import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 3])",
        agent=AGENT.replace("Plot it.", "What is {{ fig }}?"),
    )
    assert "[fig: " in page(path)
    ((_, record),) = NotebookRuns(read(path)).list_all()
    assert [len(e.attachments) for e in events_of(record) if e.type == "user"] == [1]
    assert main(["test", str(path)]) == 0
    changed(path, "import matplotlib", f"{OTHER_LEVEL}import matplotlib")
    assert main(["test", str(path)]) == 0
    changed(path, "[1, 3]", "[3, 1]")
    assert main(["test", str(path)]) == 1
    assert "attachment 1 changed" in capsys.readouterr().out
