"""Tools: `decorator` makes them, `toolset` collects them, `runner` runs calls, `approval` asks.

Read `base` first: the contract of the room. A file that defines `tools` is a plug-in with built-in
tools. Other rooms collect the tools of a run, run calls, and describe the variables of a notebook.

Order of imports, lowest level first: base, capture, chart_notes, docstrings, figure_artists,
  offered_code, paths, plain_schema, safe_types, source_text, threads, typed_dicts, values,
  variable_facts, wrappers
< command_line, display, failures, file_digests, known_types, reads, text_excerpt
< charts, covered_code, frames, plain_values, running_call, signature
< pictures, schema, source
< figures
< results
< call_displays, decorator, kernel_permissions, project_source
< add_cell, describe, execution, files, mcp, policy, python, shell
< approval, policy_file, toolset, variables
< policy_check, runner
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .approval import Approver as Approver
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
    from .call_displays import CallDisplays as CallDisplays
    from .capture import OutputCapture as OutputCapture
    from .chart_notes import remove_chart_notes as remove_chart_notes
    from .decorator import as_tool as as_tool
    from .decorator import clean_name as clean_name
    from .describe import describe_variable as describe_variable
    from .describe import list_variables as list_variables
    from .describe import user_variables as user_variables
    from .figures import Figures as Figures
    from .kernel_permissions import KERNEL_PERMISSIONS as KERNEL_PERMISSIONS
    from .known_types import public_name as public_name
    from .mcp.config_file import read_servers as read_servers
    from .mcp.hub import HUB as HUB
    from .mcp.server import Server as Server
    from .offered_code import ADD_CELL as ADD_CELL
    from .offered_code import find_code_fault as find_code_fault
    from .paths import open_confined as open_confined
    from .policy import Policy as Policy
    from .policy_check import load_checked_policy as load_checked_policy
    from .policy_file import read_policy_offer as read_policy_offer
    from .project_source import ProjectSearch as ProjectSearch
    from .reads import find_used_variables as find_used_variables
    from .runner import ToolRunner as ToolRunner
    from .running_call import Job as Job
    from .safe_types import defines_name as defines_name
    from .safe_types import module_name as module_name
    from .safe_types import one_line as one_line
    from .safe_types import text_entries as text_entries
    from .safe_types import type_name as type_name
    from .schema import explain_fault as explain_fault
    from .schema import prepare_type as prepare_type
    from .schema import remove_titles as remove_titles
    from .source_text import parse_quietly as parse_quietly
    from .toolset import Toolset as Toolset
    from .values import Collector as Collector
    from .variable_facts import VariableFacts as VariableFacts
    from .variable_facts import count_tokens as count_tokens

# file of the room -> the names that it defines
_NAMES = {
    "approval": "Approver",
    "base": (
        "ApprovalSource Compare Decision Host Outcome Question Report Tool ToolContext Update "
        "current_call enter_call"
    ),
    "call_displays": "CallDisplays",
    "capture": "OutputCapture",
    "chart_notes": "remove_chart_notes",
    "decorator": "as_tool clean_name",
    "describe": "describe_variable list_variables user_variables",
    "figures": "Figures",
    "kernel_permissions": "KERNEL_PERMISSIONS",
    "known_types": "public_name",
    "mcp.config_file": "read_servers",
    "mcp.hub": "HUB",
    "mcp.server": "Server",
    "offered_code": "ADD_CELL find_code_fault",
    "paths": "open_confined",
    "policy": "Policy",
    "policy_check": "load_checked_policy",
    "policy_file": "read_policy_offer",
    "project_source": "ProjectSearch",
    "reads": "find_used_variables",
    "runner": "ToolRunner",
    "running_call": "Job",
    "safe_types": "defines_name module_name one_line text_entries type_name",
    "schema": "explain_fault prepare_type remove_titles",
    "source_text": "parse_quietly",
    "toolset": "Toolset",
    "values": "Collector",
    "variable_facts": "VariableFacts count_tokens",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
