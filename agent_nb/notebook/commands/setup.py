"""The commands of the setup: `%agent models`, `tools`, `config`, `context`, `key`, `doctor` …"""

from __future__ import annotations

import asyncio
import shlex
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...agent import Limits
from ...errors import AgentError, UsageError
from ...host import read_launch, shorten_path
from ...tools import count_tokens
from ...view import count_noun
from ..notices import format_table, make_printable
from ..options import LIMITS
from .output import print_text, show_parts

if TYPE_CHECKING:
    from ...agent import Context
    from ..session import Session

MOST_MODELS = 1_000  # models that are listed
WITHOUT_VALUE = {  # option -> its effect where it is not set, as users read it
    "approve": "'ask'",
    "tools": "python and add_cell",
    "rerun": "'auto'",
    "dialect": "as the model's provider suggests",
    "temperature": "as the provider sets it",
    "seed": "as the provider sets it",
    "reasoning": "as the provider sets it",
}


def show_models(session: Session, arguments: list[str]) -> None:
    """[PROVIDER]: the model a cell would use now, the providers and configured endpoints and their
    keys; with one of them, the models it offers
    """
    from ...models import choose_model, list_providers

    if arguments:
        _list_models(session, arguments[0].rstrip("/"))
        return
    try:
        used = "{} ({})".format(*choose_model("", session.defaults()["model"]))
    except UsageError as fault:
        used = str(fault)
    providers = list_providers()
    ready = [(p.name, p.server, p.key) for p in providers if p.ready]
    without_key = ", ".join(p.name for p in providers if not p.ready)
    more = f"With a key (%agent key PROVIDER): {without_key}. " if without_key else ""
    advice = f"{more}%agent models PROVIDER lists the models that it offers."
    show_parts(session, used, [("provider", "server", "key"), *ready], advice)


def _list_models(session: Session, provider: str) -> None:
    """List the models of a provider; completion knows them from now on.

    Where nothing runs live, no server is asked: a test must not depend on its answer.
    """
    from ...models import list_models

    if why := read_launch().why_not_live:
        print_text(f"{provider} is not asked which models it offers. {why}")
        return
    # on a thread: a magic cannot await on its own, whose event loop is running
    pool = ThreadPoolExecutor(1)
    try:
        offered = pool.submit(lambda: asyncio.run(list_models(provider))).result()
    finally:
        pool.shutdown(wait=False)  # an interrupt does not wait for the thread
    session.offered[provider] = offered[:MOST_MODELS]
    lines = [f"{provider}/{name}" for name in offered[:MOST_MODELS]]
    if left := offered[MOST_MODELS:]:
        lines.append(f"… and {count_noun(len(left), 'more model')}")
    print_text("\n".join(lines) or "It offers none.")


def show_tools(session: Session, _: list[str]) -> None:
    """the tools that -t knows by name"""
    from ...host import list_plugins
    from ...tools import Toolset

    rows: list[tuple[str, str, str]] = []
    for plugin in list_plugins("tools"):
        try:
            for tool in Toolset.of_plugin(plugin):
                rows.append((tool.name, tool.effect, tool.spec.description.partition("\n")[0]))
        except AgentError as fault:
            rows.append((plugin, "", str(fault)))
    default = "Without -t, and without %config AgentMagics.tools, a cell has python and add_cell; with -t none it has no tools."
    print_text(
        f"{format_table(rows)}\nAlso any function of this notebook: -t my_function\n{default}"
    )


def show_config(session: Session, _: list[str]) -> None:
    """the defaults of the options, the configuration file, and what folders may do"""
    from ...models import Config
    from ..cell.trusting import list_permissions

    defaults = sorted(session.defaults().items())
    rows = [(f"AgentMagics.{name}", _describe_default(name, value)) for name, value in defaults]
    exists = "" if Config.path().exists() else " (there is none)"
    advice = "Set one with: %config AgentMagics.model = 'provider/name'"
    print_text(
        f"{format_table(rows)}\n{advice}\nFile: {shorten_path(Config.path())}{exists}\nFolders: {list_permissions()}"
    )


def _describe_default(name: str, value: Any) -> str:
    """Return the default of an option in words: its `%config` value, or the effect without one."""
    if value not in (None, "", []):
        return repr(value)
    if name in LIMITS:
        limit = getattr(Limits(), LIMITS[name])
        return "no limit" if limit is None else f"{limit:g}" if type(limit) is float else str(limit)
    return _describe_model() if name == "model" else WITHOUT_VALUE.get(name, "none")


def _describe_model() -> str:
    """Return the model that a cell without `-m` would use, and where its name comes from."""
    from ...models import choose_model

    try:
        return "{!r} ({})".format(*choose_model())
    except UsageError:
        return "none: %agent models lists the ways to choose one"


def show_context(session: Session, arguments: list[str]) -> None:
    """[OPTIONS]: what a cell with these options would send about the notebook beside its prompt,
    word for word, and about how many tokens that is
    """
    from ..cell.cell_prompt import CellPrompt
    from ..cell.cell_tools import add_default_tools
    from ..cell.prepare import describe_agent, gather_context

    options = session.read_options(" ".join(map(shlex.quote, arguments)))
    agent = describe_agent(session, options)
    cell = session.cells.current(session.shell, "context", "")
    size = 0
    with suppress(UsageError):  # no model is configured yet
        size = agent.model.context
        agent = add_default_tools(agent)
    fitted = gather_context(session, cell, options, agent, CellPrompt("")).fit_to(size)
    why_empty = "--map: each row is asked alone" if options.map else "--context none"
    print_text("\n\n".join(_context_parts(fitted, why_empty)))


def _context_parts(context: Context, why_empty: str) -> list[str]:
    """Return a context as paragraphs; `why_empty`: the reason to send nothing."""
    system = context.system_text()
    if not (system or context.text):
        return [f"Nothing about the notebook is sent ({why_empty})."]
    size = count_tokens(system)
    parts = [f"In the system message, about {size} tokens:", system]
    if context.text:
        size = context.tokens
        return [*parts, f"Before the prompt ({context.mode}), about {size:,} tokens:", context.text]
    return [*parts, f"No variables are sent ({context.mode}): there are none."]


def manage_keys(session: Session, arguments: list[str]) -> None:
    """[PROVIDER [--keyring]]: where keys come from; with a provider, ask for its key and keep it
    for this session
    """
    from ...models import Key, check_provider

    if not arguments:
        sources = Key.list_sources()
        rows = [(name, source or f"none: set {variable}") for name, variable, source in sources]
        print_text(format_table(rows))
        if (offer := Key.find_offer()) is not None and not offer.is_allowed():
            print_text(f"{offer.refusal}.")
        return
    provider, *flags = arguments
    if flags not in ([], ["--keyring"]):
        raise UsageError(
            "Write %agent key PROVIDER, or %agent key PROVIDER --keyring. The key is asked for, not written in the cell."
        )
    check_provider(provider)
    from getpass import getpass

    from IPython.core.error import StdinNotImplementedError

    try:
        entered = getpass(f"Key of {make_printable(provider)}: ")
    except (EOFError, StdinNotImplementedError):
        variable = Key.VARIABLES.get(provider, (f"{provider.upper()}_API_KEY",))[0]
        raise UsageError(
            f"There is no keyboard here to enter a key. Set the variable {variable}."
        ) from None
    kept_in = Key.keep(provider, entered, keyring=bool(flags))
    print_text(f"The key of {provider} is kept in {kept_in}.")


def trust_folder(session: Session, arguments: list[str]) -> None:
    """[FOLDER|FILE …] [--list|--revoke]: let this folder give keys (.env) and be obeyed in its
    policies, as they are now
    """
    from ..cell import trusting

    session.declined.clear()
    print_text(trusting.trust_folder(arguments))


def show_doctor(session: Session, _: list[str]) -> None:
    """what is installed, enabled and missing, what this kernel and its front end can do, and what
    to do about it
    """
    from ..cell.frontend import can_click_now, choose_view_kind
    from ..doctor import Finding, collect_findings

    cell = session.cells.current(session.shell, "doctor", "")
    clicks = can_click_now(session.shell, cell)
    typed = "on the keyboard" if cell.stdin else "none: --approve decides"
    rows = (
        ("this kernel", "yes" if cell.kernel else "no, a terminal"),
        ("cell ids", "sent" if cell.id else "not sent: reruns cannot be told from new cells"),
        ("view", choose_view_kind("auto", cell)),
        ("clicks while a cell runs", "yes" if clicks else "no: interrupt the kernel to stop"),
        ("questions", "by buttons" if clicks else typed),
    )
    here = [Finding(topic, "info", text) for topic, text in rows]
    print_text(collect_findings(session.defaults()["model"], here).render())
