"""Evaluations made by hand: rows, answers and scores without a map."""

from __future__ import annotations

from agent_nb.rows.eval.evaluate import scored_rows
from agent_nb.rows.eval.evaluation import Evaluation
from agent_nb.rows.eval.scores import Candidate, Score
from agent_nb.rows.map.row import RowResult
from agent_nb.rows.map.table.rows import rows_of


def result(position, answer="yes", **fields):
    fields = {"status": "ok", "input": 8, "written": 2, "cost": 0.001, "run": "r"} | fields
    return RowResult(position=position, key=f"k{position}", answer=answer, **fields)


def candidate(answer="yes", row=None, *, position=0, repeat=0, value=None, **fields):
    made = result(position, answer, **fields)
    return Candidate(
        position=position,
        repeat=repeat,
        result=made,
        row=rows_of([row or {"text": "t"}]).values(0),
        prompt="Is it?",
        value=answer if value is None else value,
    )


def evaluation(scores, data=None, *, failed=None, answers=None, **about):
    """Return an evaluation of rows with these scores: a number or None each, or a list of them.

    None is an answer that failed with a rate limit.
    """
    each = [s if isinstance(s, list) else [s] for s in scores]
    rows = rows_of(
        [{"text": f"text {n}", "id": n} for n in range(len(each))] if data is None else data
    )
    candidates, found = [], []
    for position, repeats in enumerate(each):
        for repeat, score in enumerate(repeats):
            ok = score is not None
            fields = (
                {} if ok else {"status": "error", "kind": "rate_limit", "error": "429: slow down"}
            )
            said = answers[position] if answers else f"answer {position}"
            made = result(position, said if ok else "", **fields)
            candidates.append(
                Candidate(position=position, repeat=repeat, result=made, row=rows.values(position))
            )
            found.append(Score(score) if ok else Score(None, "rate_limit", "429: slow down"))
    about = {
        "name": "",
        "prompt": "Say {{ text }}",
        "scored_by": "function f",
        "bounded": True,
    } | about
    return Evaluation.of(
        scored_rows(candidates, found, failed),
        data=rows,
        repeats=max(map(len, each), default=1),
        failed_as=failed,
        **about,
    )
