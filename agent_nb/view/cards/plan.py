"""A plan: a tree of thought with its scores, or a graph of thought with its nodes' results."""

from __future__ import annotations

from ..format import clip_text, count_noun, format_duration, join_parts, text_row
from ..nodes import Branch, Fold, Node, Prose, Row, T, Tone, Tree
from ..state.plans import PlanCard, Thought
from ..values import bound_text
from .base import Context

LONGEST_LINE = 240  # characters of a thought or a note on its line
MOST_BRANCHES = 200  # of one plan; its remarks are bounded too
MOST_LEVELS = 40

# status of a thought (`ThoughtStatus`) -> (mark, tone, word at the right, "" for none);
# `lost`: the thought was running when the run ended
MARKS: dict[str, tuple[str, Tone, str]] = {
    "open": ("○", "run", ""),
    "passed": ("○", "muted", ""),
    "chosen": ("●", "ok", "chosen"),
    "left": ("↩", "wait", "given up"),
    "planned": ("○", "muted", "planned"),
    "running": ("●", "run", "running"),
    "ok": ("✓", "ok", ""),
    "error": ("✕", "bad", "failed"),
    "lost": ("○", "wait", "no result"),
}


def card(state: PlanCard, context: Context) -> Node:
    """Return the plan as an open fold: a headline, and the tree below it."""
    drawing = _Drawing(state)
    if state.shape == "tree":
        title, (figures, status) = "Tree of thought", _describe_tree(state, drawing)
    else:
        title, (figures, status) = "Graph of thought", _describe_graph(state)
    branches = tuple(drawing.draw_branch(t, 0) for t in state.root.children if drawing.has_room())
    more = drawing.total - drawing.drawn
    left_out = (text_row(f"… {more:,} more"),) if more else ()
    remarks = [text_row(f"↩ {r}", "wait", wrap=True) for r in state.remarks[:MOST_BRANCHES]]
    if (unseen := len(state.remarks) - MOST_BRANCHES) > 0:
        remarks.append(text_row(f"… {unseen:,} more remarks"))
    left = (T(title, bold=True), T(f"  {figures}", tone="muted"))
    head = Row(left, (status,) if status.text else ())
    return Fold(
        (head,),
        (Tree(branches, title), *left_out, *remarks),
        open=True,
        title=join_parts(title, figures),
    )


def _describe_tree(state: PlanCard, drawing: _Drawing) -> tuple[str, T]:
    """Return the figures of a tree, and the score of the newest chosen candidate."""
    back = count_noun(state.backtracks, "backtrack") if state.backtracks else ""
    figures = join_parts(count_noun(drawing.total, "candidate"), f"depth {len(state.chosen)}", back)
    score = state.chosen[-1].score if state.chosen else None
    return figures, T("" if score is None else f"score {drawing.format_score(score)}", tone="ok")


def _describe_graph(state: PlanCard) -> tuple[str, T]:
    """Return the figures of a graph, and how many of its nodes have ended."""
    statuses = [t.status for t in state.nodes.values()]
    nodes = max(state.counts[0], len(statuses))  # `counts`: the announced nodes and edges
    figures = join_parts(
        count_noun(nodes, "node"),
        count_noun(state.counts[1], "edge") if state.counts[1] else "",
        count_noun(state.expanded, "expansion") if state.expanded else "",
    )
    done, running, failed = (statuses.count(s) for s in ("ok", "running", "error"))
    going = f"{running} {'without result' if state.over else 'running'}" if running else ""
    progress = join_parts(f"{done} done", going, f"{failed} failed" if failed else "")
    tone: Tone = "ok" if done and done == nodes else "muted"
    if failed:
        tone = "bad"
    elif running and not state.over:
        tone = "run"
    return figures, T(progress, tone=tone)


class _Drawing:
    """Draws the thoughts of one plan, at most `MOST_BRANCHES`, and counts those that it draws."""

    def __init__(self, state: PlanCard) -> None:
        self._graph, self._over = state.shape == "graph", state.over
        self._path = set(map(id, state.chosen))
        thoughts = _list_thoughts(state.root)
        self.total, self.drawn = len(thoughts), 0
        scores = [t.score for t in thoughts if t.score is not None]
        # the scale of the bars: 0 to 1, or wider if a score is outside
        self._least, most = min([0.0, *scores]), max([1.0, *scores])
        self._range = most - self._least
        self._aligns = self._least >= -1 and most <= 1  # two decimals line up

    def has_room(self) -> bool:
        return self.drawn < MOST_BRANCHES

    def draw_branch(self, thought: Thought, depth: int) -> Branch:
        """Return a thought with its children, as many as may still be drawn."""
        self.drawn += 1
        lost = self._over and thought.status == "running"
        mark, tone, word = MARKS["lost" if lost else thought.status]
        on_path = id(thought) in self._path
        text: Tone = "muted" if tone == "muted" else ""
        line = T(clip_text(thought.text, LONGEST_LINE), tone=text, bold=on_path, mono=self._graph)
        left = (T(f"{mark} ", tone=tone, label=word or thought.status), line)
        below = tuple(
            self.draw_branch(t, depth + 1)
            for t in thought.children
            if depth < MOST_LEVELS and self.has_room()
        )
        return Branch(
            Row((*left, *_draw_note(thought)), _describe_effort(thought, tone, word)),
            (*below, *_draw_unnamed(thought)),
            _draw_cut_texts(thought),
            "" if thought.score is None else self.format_score(thought.score),
            None if thought.score is None else (thought.score - self._least) / self._range,
            tone,
            strong=on_path,
        )

    def format_score(self, score: float) -> str:
        """Return a score as text; two decimals if all are within ±1, so that they line up."""
        return f"{score:.2f}" if self._aligns else f"{score:.4g}"


def _describe_effort(thought: Thought, tone: Tone, word: str) -> tuple[T, ...]:
    """Return the right side of a thought's line: status, tries and duration, if known."""
    tries = count_noun(thought.tries, "try") if thought.tries > 1 else ""
    text = join_parts(word, tries, format_duration(thought.seconds) if thought.seconds else "")
    return (T(text, tone=tone),) if text else ()


def _draw_note(thought: Thought) -> tuple[T, ...]:
    if not thought.note:
        return ()
    tones: dict[str, Tone] = {"error": "bad", "left": "wait"}
    tone = tones.get(thought.status, "muted")
    return (T(f"  {clip_text(thought.note, LONGEST_LINE)}", tone=tone),)


def _draw_cut_texts(thought: Thought) -> tuple[Node, ...]:
    """Return in full the texts that are cut on the line."""
    long = [text for text in (thought.text, thought.note) if len(text) > LONGEST_LINE]
    return tuple(Prose(bound_text(text, 8000), dim=True) for text in long)


def _draw_unnamed(thought: Thought) -> tuple[Branch, ...]:
    """Return a line with the number of nodes that were added here and have not appeared yet."""
    if thought.unnamed:
        return (Branch(text_row(f"○ {count_noun(thought.unnamed, 'node')} added")),)
    return ()


def _list_thoughts(root: Thought) -> list[Thought]:
    """Return all thoughts below the root, level by level."""
    thoughts = list(root.children)
    for thought in thoughts:  # the list grows while it is read
        thoughts += thought.children
    return thoughts
