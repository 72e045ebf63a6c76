"""Read a policy from a YAML file, or from one of the words `ask`, `auto`, `deny`.

Rules
- Reading is strict: an unknown key, a duplicate key or a wrong word is a UsageError that names file
  and line.
- A file in the notebook's folder, or one named by a relative path, may always restrict. What it
  allows counts only after the user has allowed the file (`host.trust`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..errors import UsageError
from ..host import Offer
from .policy import VERDICTS, Policy, Rule, Verdict

_LARGEST = 1 << 20  # bytes of a policy file


def load_policy(mode: str, folder: str = ".") -> Policy:
    """Return the policy that `mode` names.

    `mode`: ask, auto, deny, or the path of a YAML file, relative to `folder`. Raises UsageError if
    the file is missing or faulty.
    """
    if mode in Policy.MODES:
        return Policy(Policy.MODES[mode], name=f"--approve {mode}")
    path = Path(folder, Path(mode).expanduser())
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise UsageError(
            f"--approve {mode}: choose ask, auto or deny, or give the path of a policy file that ends in .yaml."
        )
    content = _read(path, mode)
    policy = _decode(content, mode)
    if (
        not is_of_folder(path, folder, written=mode)
        or (offer := make_offer(policy, path, content)) is None
        or offer.is_allowed()
    ):
        return policy
    return msgspec.structs.replace(policy, offer=offer, remarks=(offer.refusal,))


def is_of_folder(file: Path, folder: str | os.PathLike[str], *, written: str) -> bool:
    """Return whether `file` belongs to `folder`: inside it, or `written` as a relative path."""
    if not os.path.isabs(os.path.expanduser(written)):
        return True
    inside = Path(os.path.realpath(folder))
    return any(inside in Path(p).parents for p in (os.path.abspath(file), os.path.realpath(file)))


def read_policy_offer(path: Path) -> Offer | None:
    """Return what the policy file at `path` would allow, or None. Raises UsageError if faulty."""
    content = _read(path, path.name)
    return make_offer(_decode(content, path.name), path, content)


def make_offer(policy: Policy, path: Path, content: bytes) -> Offer | None:
    """Return what a policy would allow, as an offer of its file; None if it only restricts."""
    allowances = [_describe_rule(rule) for rule in policy.rules if rule.verdict == "allow"]
    allowances += ["everything that no rule names"] if policy.default == "allow" else []
    return (
        Offer.of("policy", path, f"allows {', '.join(allowances)}", content) if allowances else None
    )


def _describe_rule(rule: Rule) -> str:
    """Return the tools of an allowing rule and its globs, as the user reads them in an offer."""
    args = "; ".join(f"{name}: {', '.join(globs)}" for name, globs in rule.args.items())
    return f"{', '.join(rule.tools)}{f' ({args})' if args else ''}"


def _read(path: Path, name: str) -> bytes:
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"The policy file {name} is larger than 1 MB.")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"The policy file {name} cannot be read: {error.strerror}.") from None


def _decode(content: bytes, name: str) -> Policy:
    try:
        return parse(content.decode("utf-8"), name)
    except UnicodeDecodeError:
        raise UsageError(f"The policy file {name} cannot be read: it is not UTF-8 text.") from None


def parse(text: str, name: str = "policy.yaml") -> Policy:
    """Return the policy written in `text`. Raises UsageError that names file and line."""
    import yaml

    try:
        # every scalar is text: `deny: no` names a tool
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise UsageError(f"{name}, line {mark.line + 1 if mark else 1}: {problem}.") from None
    return _policy(root, name) if root is not None else Policy(name=name)


def _policy(root: Any, name: str) -> Policy:
    fault = partial(_fault, name)
    top = _mapping(root, ("default", "rules"), fault)
    default: Verdict = "ask"
    if "default" in top:
        default = _verdict(top["default"], fault)
    rules = top.get("rules")
    if rules is not None and rules.id != "sequence" and rules.value:
        raise fault(rules, "`rules` must be a list of rules, each beginning with `- `")
    return Policy(
        default,
        tuple(_rule(node, name, fault) for node in (rules.value if rules is not None else ())),
        f"default of {name}",
    )


def _rule(node: Any, name: str, fault: Callable[[Any, str], UsageError]) -> Rule:
    fields = _mapping(node, (*VERDICTS, "args", "reason"), fault)
    verdicts = [v for v in VERDICTS if v in fields]
    if len(verdicts) != 1:
        raise fault(
            node,
            "a rule needs exactly one of allow, ask and deny, followed by a tool's name or glob",
        )
    args = _mapping(fields["args"], (), fault) if "args" in fields else {}
    return Rule(
        verdicts[0],
        _texts(fields[verdicts[0]], fault),
        {key: _texts(value, fault) for key, value in args.items()},
        _texts(fields["reason"], fault)[0] if "reason" in fields else "",
        f"{name}, line {node.start_mark.line + 1}",
    )


def _mapping(
    node: Any, known: tuple[str, ...], fault: Callable[[Any, str], UsageError]
) -> dict[str, Any]:
    """Return key -> node. If `known` is empty, every key is allowed."""
    if node.id != "mapping":
        raise fault(
            node,
            f"expected {'keys (' + ', '.join(known) + ')' if known else 'arguments with their globs'}",
        )
    fields: dict[str, Any] = {}
    for key, value in node.value:
        if key.id != "scalar" or (known and key.value not in known):
            raise fault(key, f"unknown key {key.value!r}; known here: {', '.join(known)}")
        if key.value in fields:
            raise fault(key, f"the key {key.value!r} stands twice")
        fields[key.value] = value
    return fields


def _texts(node: Any, fault: Callable[[Any, str], UsageError]) -> tuple[str, ...]:
    nodes = node.value if node.id == "sequence" else [node]
    if not nodes or any(n.id != "scalar" or not n.value for n in nodes):
        raise fault(node, "expected a text or a list of texts")
    return tuple(n.value for n in nodes)


def _verdict(node: Any, fault: Callable[[Any, str], UsageError]) -> Verdict:
    for verdict in VERDICTS:
        if node.value == verdict:
            return verdict
    raise fault(node, f"{node.value!r} is not a decision; write allow, ask or deny")


def _fault(name: str, node: Any, problem: str) -> UsageError:
    return UsageError(f"{name}, line {node.start_mark.line + 1}: {problem}.")
