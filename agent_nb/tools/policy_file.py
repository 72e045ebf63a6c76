"""Read a policy from a YAML file, or from one of the words `ask`, `auto`, `deny`.

Why: a project can share its rules, but what comes with a folder must not grant itself anything.

Rule: a file in the notebook's folder, or one with a relative path, may come from a stranger: its
allowing rules hold only after the user has allowed the file (`host.trust`). Until then the policy
has an Offer, which describes these rules to the user.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ..errors import UsageError
from ..host import Offer
from .policy import VERDICTS, Policy, Rule, Verdict

_LARGEST_FILE = 1 << 20  # bytes of a policy file
_MakeFault = Callable[[Any, str], UsageError]  # from a YAML node, for its line, and the problem


def load_policy(mode: str, folder: str = ".") -> Policy:
    """Return the policy that `mode` names: ask, auto, deny, or a YAML file, relative to `folder`.

    A policy whose allowing rules do not hold yet has an `offer` and a remark. Raises UsageError if
    the file is missing or faulty.
    """
    if mode in Policy.MODES:
        return Policy(Policy.MODES[mode], name=f"--approve {mode}")
    # `Path.expanduser` raises for `~name` if the system has no user of this name
    path = Path(folder, os.path.expanduser(mode))
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise UsageError(
            f"--approve {mode}: choose ask, auto or deny, or give the path of a policy file that ends in .yaml."
        )
    content, policy = _read_file(path, mode)
    if not is_of_folder(path, folder, written=mode):
        return policy
    offer = make_offer(policy, path, content)
    if offer is None or offer.is_allowed():
        return policy
    return msgspec.structs.replace(policy, offer=offer, remarks=(offer.refusal,))


def is_of_folder(file: Path, folder: str | os.PathLike[str], *, written: str) -> bool:
    """Return whether `file` is inside `folder`, or `written`, as the user wrote it, is relative.

    A link is inside if the link itself or its target is.
    """
    if not os.path.isabs(os.path.expanduser(written)):
        return True
    inside = Path(os.path.realpath(folder))
    return any(inside in Path(p).parents for p in (os.path.abspath(file), os.path.realpath(file)))


def read_policy_offer(path: Path) -> Offer | None:
    """Return what the policy file at `path` would allow, None if it only restricts.

    Raises UsageError if it is faulty.
    """
    content, policy = _read_file(path, path.name)
    return make_offer(policy, path, content)


def make_offer(policy: Policy, path: Path, content: bytes) -> Offer | None:
    """Return an Offer of what a policy of this `content` would allow; None if it only restricts."""
    allowances = [_describe_rule(rule) for rule in policy.rules if rule.verdict == "allow"]
    if policy.default == "allow":
        allowances.append("everything that no rule names")
    if not allowances:
        return None
    return Offer.of("policy", path, f"allows {', '.join(allowances)}", content)


def _describe_rule(rule: Rule) -> str:
    """Return the tools and globs of an allowing rule, such as `shell (command: git status)`."""
    args = "; ".join(f"{name}: {', '.join(globs)}" for name, globs in rule.args.items())
    return f"{', '.join(rule.tools)}{f' ({args})' if args else ''}"


def _read_file(path: Path, name: str) -> tuple[bytes, Policy]:
    """Return the content and policy of a file that messages call `name`. Raises UsageError."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise UsageError(f"The policy file {name} is larger than 1 MB.")
        content = path.read_bytes()
        return content, parse(content.decode("utf-8"), name)
    except OSError as error:
        raise UsageError(f"The policy file {name} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"The policy file {name} cannot be read: it is not UTF-8 text.") from None


def parse(text: str, name: str = "policy.yaml") -> Policy:
    """Return the policy written in `text`. Raises UsageError that names file and line."""
    import yaml  # here, since most runs read no policy file

    try:
        # BaseLoader reads every scalar as text (`deny: no` names a tool); nodes have their lines
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    # not only YAMLError: lists nested too deeply, and an escape beyond the last character (`"\U…"`)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise UsageError(f"{name}, line {mark.line + 1 if mark else 1}: {problem}.") from None
    return _read_policy(root, name) if root is not None else Policy(name=name)


def _read_policy(root: Any, name: str) -> Policy:
    """Return the policy in the YAML node `root`."""

    def fault(node: Any, problem: str) -> UsageError:
        return UsageError(f"{name}, line {node.start_mark.line + 1}: {problem}.")

    top = _read_mapping(root, ("default", "rules"), fault)
    default: Verdict = "ask"
    if (node := top.get("default")) is not None:
        if node.value not in VERDICTS:
            raise fault(node, f"{node.value!r} is not a decision; write allow, ask or deny")
        default = node.value
    rules = top.get("rules")
    if rules is not None and rules.id != "sequence" and rules.value:  # `rules:` alone is empty
        raise fault(rules, "`rules` must be a list of rules, each beginning with `- `")
    return Policy(
        default,
        tuple(_read_rule(node, name, fault) for node in (rules.value if rules is not None else ())),
        f"default of {name}",
    )


def _read_rule(node: Any, name: str, fault: _MakeFault) -> Rule:
    """Return the rule in a YAML node of the file `name`."""
    fields = _read_mapping(node, (*VERDICTS, "args", "reason"), fault)
    verdicts = [v for v in VERDICTS if v in fields]
    if len(verdicts) != 1:
        problem = (
            "a rule needs exactly one of allow, ask and deny, followed by a tool's name or glob"
        )
        raise fault(node, problem)
    args = _read_mapping(fields["args"], (), fault) if "args" in fields else {}
    return Rule(
        verdicts[0],
        _read_texts(fields[verdicts[0]], fault),
        {key: _read_texts(value, fault) for key, value in args.items()},
        _read_texts(fields["reason"], fault)[0] if "reason" in fields else "",
        f"{name}, line {node.start_mark.line + 1}",
    )


def _read_mapping(node: Any, known: tuple[str, ...], fault: _MakeFault) -> dict[str, Any]:
    """Return the YAML nodes of a mapping by key; with an empty `known` every key is allowed."""
    if node.id != "mapping":
        wanted = f"keys ({', '.join(known)})" if known else "arguments with their globs"
        raise fault(node, f"expected {wanted}")
    fields: dict[str, Any] = {}
    for key, value in node.value:
        if key.id != "scalar" or (known and key.value not in known):
            raise fault(key, f"unknown key {key.value!r}; known here: {', '.join(known)}")
        if key.value in fields:
            raise fault(key, f"the key {key.value!r} stands twice")
        fields[key.value] = value
    return fields


def _read_texts(node: Any, fault: _MakeFault) -> tuple[str, ...]:
    """Return the texts of a node that is one text or a list of texts, none of them empty."""
    nodes = node.value if node.id == "sequence" else [node]
    if not nodes or any(n.id != "scalar" or not n.value for n in nodes):
        raise fault(node, "expected a text or a list of texts")
    return tuple(n.value for n in nodes)
