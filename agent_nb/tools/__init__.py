"""Tools: `decorator` makes them of functions, `toolset` collects, `runner` runs, `approval` asks.

Read `base` first: the contract of the room. A file that defines `tools` is a plug-in with built-in
tools. Other rooms collect the tools of a run, run calls, and describe the variables of a notebook.

Order: base, capture, chart_words, docstrings, figure_artists, offered_code, paths, reads,
  safe_types, source_text, threads, values, variable_facts, wrappers
< command_line, display, frames, plain_values, read_files, signature, source, text_excerpt
< pictures, project_source, schema, standing
< decorator, results
< add_cell, describe, execution, files, mcp, policy, python, running_call, shell
< approval, policy_file, toolset, variables
< policy_check, runner
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .approval import Approver as Approver
    from .approval import report_decision as report_decision
    from .base import LIVES as LIVES
    from .base import QUIET as QUIET
    from .base import ApprovalSource as ApprovalSource
    from .base import Compare as Compare
    from .base import Decision as Decision
    from .base import Host as Host
    from .base import Outcome as Outcome
    from .base import Question as Question
    from .base import Report as Report
    from .base import Tool as Tool
    from .base import ToolContext as ToolContext
    from .base import Update as Update
    from .base import current_call as current_call
    from .base import enter_call as enter_call
    from .capture import capture_output as capture_output
    from .capture import mark_shown as mark_shown
    from .capture import replace_attribute as replace_attribute
    from .capture import write_to_capture as write_to_capture
    from .chart_words import display_words as display_words
    from .chart_words import without_chart_words as without_chart_words
    from .decorator import as_tool as as_tool
    from .decorator import clean_name as clean_name
    from .describe import TOKENS as TOKENS
    from .describe import describe_variable as describe_variable
    from .describe import list_variables as list_variables
    from .describe import preview_value as preview_value
    from .describe import user_variables as user_variables
    from .display import clean_bundle as clean_bundle
    from .display import without_hidden as without_hidden
    from .figure_artists import is_figure as is_figure
    from .mcp.config_file import ADVICE as ADVICE
    from .mcp.config_file import MCP_FILE as MCP_FILE
    from .mcp.config_file import read_servers as read_servers
    from .mcp.hub import HUB as HUB
    from .mcp.masking import mask_server as mask_server
    from .mcp.opening import open_references as open_references
    from .mcp.permissions import allow_server as allow_server
    from .mcp.permissions import is_allowed as is_allowed
    from .mcp.permissions import revoke_permission as revoke_permission
    from .mcp.recorded import add_recorded_tools as add_recorded_tools
    from .mcp.references import PREFIX as PREFIX
    from .mcp.server import Server as Server
    from .mcp.server import quote_ascii as quote_ascii
    from .offered_code import ADD_CELL as ADD_CELL
    from .offered_code import find_code_fault as find_code_fault
    from .pictures import Figures as Figures
    from .pictures import Picture as Picture
    from .pictures import make_picture as make_picture
    from .pictures import of_bundle as of_bundle
    from .pictures import with_figure_data as with_figure_data
    from .policy import MODES as MODES
    from .policy import Policy as Policy
    from .policy_check import load_checked_policy as load_checked_policy
    from .policy_file import read_policy_offer as read_policy_offer
    from .project_source import ProjectSearch as ProjectSearch
    from .project_source import digest_project_code as digest_project_code
    from .read_files import content_hash as content_hash
    from .reads import find_used_variables as find_used_variables
    from .results import NOTHING as NOTHING
    from .results import convert_error as convert_error
    from .results import convert_result as convert_result
    from .runner import ToolRunner as ToolRunner
    from .running_call import Job as Job
    from .safe_types import ABSENT as ABSENT
    from .safe_types import defines_name as defines_name
    from .safe_types import find_entry as find_entry
    from .safe_types import is_a as is_a
    from .safe_types import is_exactly as is_exactly
    from .safe_types import module_name as module_name
    from .safe_types import one_line as one_line
    from .safe_types import public_name as public_name
    from .safe_types import text_entries as text_entries
    from .safe_types import type_name as type_name
    from .schema import explain_fault as explain_fault
    from .schema import load_plugins as load_plugins
    from .schema import remove_titles as remove_titles
    from .source import code_of as code_of
    from .source_text import parse_source as parse_source
    from .standing import STANDING as STANDING
    from .standing import mark_tool as mark_tool
    from .toolset import ROOM as ROOM
    from .toolset import Toolset as Toolset
    from .toolset import load_installed_tools as load_installed_tools
    from .toolset import of_plugin as of_plugin
    from .toolset import resolve_tools as resolve_tools
    from .values import Collector as Collector
    from .variable_facts import Described as Described
    from .variable_facts import count_tokens as count_tokens

_HOMES = {
    "load_checked_policy": "policy_check",
    "ProjectSearch": "project_source",
    "parse_source": "source_text",
    "ABSENT": "safe_types",
    "ADD_CELL": "offered_code",
    "ADVICE": "mcp.config_file",
    "ApprovalSource": "base",
    "Approver": "approval",
    "Collector": "values",
    "Compare": "base",
    "Decision": "base",
    "Described": "variable_facts",
    "Figures": "pictures",
    "HUB": "mcp.hub",
    "Host": "base",
    "Job": "running_call",
    "LIVES": "base",
    "MCP_FILE": "mcp.config_file",
    "MODES": "policy",
    "NOTHING": "results",
    "Outcome": "base",
    "PREFIX": "mcp.references",
    "Picture": "pictures",
    "Policy": "policy",
    "QUIET": "base",
    "Question": "base",
    "ROOM": "toolset",
    "Report": "base",
    "STANDING": "standing",
    "Server": "mcp.server",
    "TOKENS": "describe",
    "Tool": "base",
    "ToolContext": "base",
    "ToolRunner": "runner",
    "Toolset": "toolset",
    "Update": "base",
    "add_recorded_tools": "mcp.recorded",
    "allow_server": "mcp.permissions",
    "as_tool": "decorator",
    "capture_output": "capture",
    "clean_bundle": "display",
    "clean_name": "decorator",
    "code_of": "source",
    "content_hash": "read_files",
    "convert_error": "results",
    "convert_result": "results",
    "count_tokens": "variable_facts",
    "current_call": "base",
    "defines_name": "safe_types",
    "describe_variable": "describe",
    "digest_project_code": "project_source",
    "display_words": "chart_words",
    "enter_call": "base",
    "explain_fault": "schema",
    "find_code_fault": "offered_code",
    "find_entry": "safe_types",
    "find_used_variables": "reads",
    "is_a": "safe_types",
    "is_allowed": "mcp.permissions",
    "is_exactly": "safe_types",
    "is_figure": "figure_artists",
    "list_variables": "describe",
    "load_installed_tools": "toolset",
    "load_plugins": "schema",
    "make_picture": "pictures",
    "mark_shown": "capture",
    "mark_tool": "standing",
    "mask_server": "mcp.masking",
    "module_name": "safe_types",
    "of_bundle": "pictures",
    "of_plugin": "toolset",
    "one_line": "safe_types",
    "open_references": "mcp.opening",
    "preview_value": "describe",
    "public_name": "safe_types",
    "quote_ascii": "mcp.server",
    "read_policy_offer": "policy_file",
    "read_servers": "mcp.config_file",
    "remove_titles": "schema",
    "replace_attribute": "capture",
    "report_decision": "approval",
    "resolve_tools": "toolset",
    "revoke_permission": "mcp.permissions",
    "text_entries": "safe_types",
    "type_name": "safe_types",
    "user_variables": "describe",
    "with_figure_data": "pictures",
    "without_chart_words": "chart_words",
    "without_hidden": "display",
    "write_to_capture": "capture",
}

__getattr__, __dir__ = open_door(__name__, _HOMES)
