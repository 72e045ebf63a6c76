"""An agent and its runs: the loop, turns, batches of calls, replay.

A live run and its replay write the same events, by the same rules for calls. Read `loop` first: one
run from its prompt to its end. `agent` prepares it (the public `Agent` of `rows` extends it),
`turn` reads one answer of a model, `batch` runs its calls, `recorded_turns` and `replay` play a
recorded run. Other rooms start runs, follow them (`registry`), and compare a replay with its
record.

Order of imports, lowest level first: clean_json, code_names, context, images,
  interpolate, limits, masking, model_choice, outgoing, presenter, registry, result_pictures, vision
< attachments, dependencies, display, history, text_block
< batch, recorded_turns, turn
< context_check, parse, replay_approver, replay_check, typed
< compaction, drift, run, run_spec, turn_reader
< biller, configuration, in_progress, readiness, replay, turn_calls
< request, stream
< assembly, sender, subagent
< loop
< agent
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .agent import PromptAgent as PromptAgent
    from .assembly import Basis as Basis
    from .assembly import make_player as make_player
    from .attachments import pictures_of as pictures_of
    from .attachments import without_text as without_text
    from .configuration import Configuration as Configuration
    from .context import Context as Context
    from .context import Mention as Mention
    from .context import Mode as Mode
    from .context_check import Changes as Changes
    from .context_check import find_mentioned as find_mentioned
    from .display import Screen as Screen
    from .display import enter_run as enter_run
    from .drift import Played as Played
    from .drift import Resume as Resume
    from .in_progress import InProgress as InProgress
    from .interpolate import PromptTemplate as PromptTemplate
    from .interpolate import class_names as class_names
    from .limits import Limits as Limits
    from .loop import Loop as Loop
    from .masking.masks import Rule as Rule
    from .masking.surroundings import is_zone as is_zone
    from .recorded_turns import RecordedTurns as RecordedTurns
    from .registry import REGISTRY as REGISTRY
    from .registry import Announced as Announced
    from .registry import Questions as Questions
    from .replay import Player as Player
    from .replay_check import Change as Change
    from .replay_check import Checked as Checked
    from .replay_check import ReplayStrictness as ReplayStrictness
    from .run import Run as Run
    from .stream import RunRequest as RunRequest
    from .stream import Stream as Stream
    from .turn_reader import AnswerReader as AnswerReader
    from .typed.output_type import InvalidOutput as InvalidOutput
    from .typed.output_type import OutputType as OutputType
    from .typed.schema_type import SchemaType as SchemaType
    from .typed.typed_answer import find_answer as find_answer

# file of the room -> the names that it defines
_NAMES = {
    "agent": "PromptAgent",
    "assembly": "Basis make_player",
    "attachments": "pictures_of without_text",
    "configuration": "Configuration",
    "context": "Context Mention Mode",
    "context_check": "Changes find_mentioned",
    "display": "Screen enter_run",
    "drift": "Played Resume",
    "in_progress": "InProgress",
    "interpolate": "PromptTemplate class_names",
    "limits": "Limits",
    "loop": "Loop",
    "masking.masks": "Rule",
    "masking.surroundings": "is_zone",
    "recorded_turns": "RecordedTurns",
    "registry": "Announced Questions REGISTRY",
    "replay": "Player",
    "replay_check": "Change Checked ReplayStrictness",
    "run": "Run",
    "stream": "RunRequest Stream",
    "turn_reader": "AnswerReader",
    "typed.output_type": "InvalidOutput OutputType",
    "typed.schema_type": "SchemaType",
    "typed.typed_answer": "find_answer",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
