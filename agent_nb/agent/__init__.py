"""An agent and its runs: the loop, turns, batches of calls, replay.

Read `loop` first: one run from its prompt to its end. `agent` prepares it (the public
`Agent` of `rows` extends it), `turn` reads one answer of a model, `batch` runs its calls, `tape`
and `replay` give a recorded run again. Other rooms start runs, follow them (`registry`), and
compare a replay with its record.

Order: call_ids, clean_json, code_names, context, interpolate, limits, masking, model_choice,
  outgoing, presenter, registry, result_pictures, vision
< attachments, dependencies, display, history, text_block
< batch, tape, turn
< context_check, parse, replay_check, typed
< compaction, drift, run, run_spec, turn_reader
< bill, configuration, in_progress, readiness, replay, turn_calls
< assembly, request, stream
< retry, subagent
< loop
< agent
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .agent import PromptAgent as PromptAgent
    from .assembly import Basis as Basis
    from .assembly import make_basis as make_basis
    from .assembly import make_plan as make_plan
    from .assembly import make_player as make_player
    from .assembly import with_servers as with_servers
    from .attachments import Picture as Picture
    from .attachments import pictures_of as pictures_of
    from .attachments import without_text as without_text
    from .configuration import Configuration as Configuration
    from .context import MODES as MODES
    from .context import Context as Context
    from .context import Look as Look
    from .context import Mode as Mode
    from .context_check import Changes as Changes
    from .context_check import compare_variables as compare_variables
    from .context_check import find_mentioned as find_mentioned
    from .context_check import list_changes as list_changes
    from .display import VIEWS as VIEWS
    from .display import Screen as Screen
    from .display import enter_run as enter_run
    from .display import find_screen as find_screen
    from .display import follow_run as follow_run
    from .drift import Played as Played
    from .drift import Resume as Resume
    from .history import CHARS_PER_TOKEN as CHARS_PER_TOKEN
    from .history import estimate_tokens as estimate_tokens
    from .in_progress import InProgress as InProgress
    from .in_progress import wait_for_run as wait_for_run
    from .interpolate import Expression as Expression
    from .interpolate import Piece as Piece
    from .interpolate import class_names as class_names
    from .interpolate import describe_value as describe_value
    from .interpolate import fill_prompt as fill_prompt
    from .interpolate import split_template as split_template
    from .limits import Limits as Limits
    from .loop import Loop as Loop
    from .masking.clock import is_zone as is_zone
    from .masking.masks import PATTERN_PREFIX as PATTERN_PREFIX
    from .masking.masks import Rule as Rule
    from .outgoing import require_no_keys as require_no_keys
    from .registry import Announced as Announced
    from .registry import Questions as Questions
    from .registry import Scope as Scope
    from .registry import announce as announce
    from .registry import follow as follow
    from .registry import list_open_runs as list_open_runs
    from .registry import reach as reach
    from .replay import Player as Player
    from .replay_check import Change as Change
    from .replay_check import Checked as Checked
    from .replay_check import ReplayStrictness as ReplayStrictness
    from .request import write_opening as write_opening
    from .run import Run as Run
    from .stream import Driver as Driver
    from .stream import Play as Play
    from .stream import Replay as Replay
    from .stream import RunRequest as RunRequest
    from .stream import Stream as Stream
    from .stream import run_to_end as run_to_end
    from .tape import FOREIGN as FOREIGN
    from .tape import NOBODY as NOBODY
    from .tape import TRUST as TRUST
    from .tape import Tape as Tape
    from .tape import must_rerun as must_rerun
    from .typed.answer_check import CODE as CODE
    from .typed.output_type import InvalidOutput as InvalidOutput
    from .typed.output_type import OutputType as OutputType
    from .typed.output_way import Ways as Ways
    from .typed.schema_type import SchemaType as SchemaType
    from .typed.typed_answer import find_answer as find_answer
    from .vision import is_blind as is_blind

_HOMES = {
    "Announced": "registry",
    "Basis": "assembly",
    "CHARS_PER_TOKEN": "history",
    "CODE": "typed.answer_check",
    "Change": "replay_check",
    "Changes": "context_check",
    "Checked": "replay_check",
    "Configuration": "configuration",
    "Context": "context",
    "Driver": "stream",
    "Expression": "interpolate",
    "FOREIGN": "tape",
    "InProgress": "in_progress",
    "InvalidOutput": "typed.output_type",
    "Limits": "limits",
    "Look": "context",
    "Loop": "loop",
    "MODES": "context",
    "Mode": "context",
    "NOBODY": "tape",
    "OutputType": "typed.output_type",
    "PATTERN_PREFIX": "masking.masks",
    "Picture": "attachments",
    "Piece": "interpolate",
    "Play": "stream",
    "Played": "drift",
    "Player": "replay",
    "PromptAgent": "agent",
    "Questions": "registry",
    "Replay": "stream",
    "ReplayStrictness": "replay_check",
    "Resume": "drift",
    "Rule": "masking.masks",
    "Run": "run",
    "RunRequest": "stream",
    "SchemaType": "typed.schema_type",
    "Scope": "registry",
    "Screen": "display",
    "Stream": "stream",
    "TRUST": "tape",
    "Tape": "tape",
    "VIEWS": "display",
    "Ways": "typed.output_way",
    "announce": "registry",
    "class_names": "interpolate",
    "compare_variables": "context_check",
    "describe_value": "interpolate",
    "enter_run": "display",
    "estimate_tokens": "history",
    "fill_prompt": "interpolate",
    "find_answer": "typed.typed_answer",
    "find_mentioned": "context_check",
    "find_screen": "display",
    "follow": "registry",
    "follow_run": "display",
    "is_blind": "vision",
    "is_zone": "masking.clock",
    "list_changes": "context_check",
    "list_open_runs": "registry",
    "make_basis": "assembly",
    "make_plan": "assembly",
    "make_player": "assembly",
    "must_rerun": "tape",
    "split_template": "interpolate",
    "pictures_of": "attachments",
    "reach": "registry",
    "require_no_keys": "outgoing",
    "run_to_end": "stream",
    "wait_for_run": "in_progress",
    "with_servers": "assembly",
    "without_text": "attachments",
    "write_opening": "request",
}

__getattr__, __dir__ = open_door(__name__, _HOMES)
