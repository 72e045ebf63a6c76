"""What restricting rules see through: programs that start programs, shells in shells, full paths.
Allowing rules see only the words.
"""

from __future__ import annotations

import shlex
import string

import pytest
from helpers.examples import count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb.tools.command_line import list_spellings
from agent_nb.tools.policy_file import parse
from agent_nb.tools.toolset import Toolset
from agent_nb.tools.wrappers import MOST_PROGRAMS, WRAPPERS, programs_behind

SHELL = Toolset.resolve("shell")["shell"]


def judged(rules: str, command: str) -> str:
    return parse(f"default: allow\nrules: [{rules}]").judge(SHELL, {"command": command})[0]


WRAPPED = """
/bin/rm x
/usr/bin/../bin/rm x
./rm x
'/bin/rm' x
"/bin"/rm x
\\rm x
r''m x
r"m" x
$'rm' x
rm${IFS}x
command rm x
command -p rm x
builtin command rm x
env rm x
env -i A=1 B=2 rm x
env -u HOME -C /tmp rm x
env --unset=HOME --chdir /tmp rm x
env -S 'rm x'
env -S'rm x'
/usr/bin/env rm x
A=1 /bin/rm x
A[0]=1 B+=2 env rm x
sudo rm x
sudo -u bob rm x
sudo -ubob rm x
sudo -nu bob rm x
sudo --user bob -- rm x
sudo --us bob rm x
sudo --user=bob A=1 rm x
sudo --login rm x
sudo --login -u bob rm x
sudo --prom p --login --us bob rm x
/usr/bin/sudo /bin/rm x
SUDO RM x
doas -u bob rm x
pkexec --user bob rm x
su -c 'rm x'
su bob -c 'rm x'
su - bob --command='rm x'
runuser -u bob -- rm x
su -- bob -c 'rm x'
gosu bob rm x
nohup rm x
nice rm x
nice -n 5 rm x
nice -5 rm x
nice --adjustment=5 rm x
ionice -c 3 -n 7 rm x
chrt -r 10 rm x
taskset -c 0,1 rm x
timeout 5 rm x
timeout -k 1 -s KILL 5s rm x
timeout --signal=KILL 5 rm x
stdbuf -o L -eL rm x
setsid -w rm x
time rm x
time -p rm x
/usr/bin/time -f %e -o out rm x
exec rm x
exec -a name rm x
chroot --userspec=1:1 /root rm x
unshare -r rm x
flock /tmp/lock rm x
flock /tmp/lock -c 'rm x'
script -qc 'rm x' /dev/null
script -q /dev/null rm x
strace -f -o out rm x
ls | xargs rm
ls | xargs -0 -n 1 -I{} rm {}
ls | xargs -n1 sudo rm
ls | parallel 'rm {}'
parallel rm ::: a b
busybox rm x
/bin/busybox rm x
eval rm x
eval "rm x"
eval 'ls; rm x'
trap 'rm x' EXIT
watch -n 1 rm x
coproc rm x
function f { rm x; }; f
bash -c 'rm x'
sh -c "rm x"
/bin/sh -c 'ls; rm x'
bash -lc 'rm x'
bash -c -x 'rm x'
bash -ceuo pipefail 'rm x'
bash -oc pipefail 'rm x'
bash -c -o pipefail 'rm x'
bash -c -o pipefail +O extglob 'ls; rm x'
bash -c -o pipefail '"$@"' _ rm x
bash --norc -o pipefail -c 'cd / && rm x'
zsh -c --no-rcs 'rm x'
zsh -cO '"$@"' _ rm x
bash -c "bash -c 'rm x'"
bash -c "sudo -u bob bash -c 'nice -n 5 /bin/rm x'"
sh -c '"$@"' _ rm x
busybox sh -c 'rm x'
bash <<< 'rm x'
bash <<<'rm x'
find . -exec rm {} \\;
find . -name '*.py' -execdir rm -f {} +
find . -ok sudo rm {} ';'
find . -exec sh -c 'rm "$1"' _ {} \\;
fd -x rm
fd . --exec-batch rm
>out rm x
2> /dev/null rm x
</in env >out rm x
echo $(sudo rm x)
echo `timeout 5 rm x`
cat <(env rm x)
(env rm x)
ls && nohup rm x &
if true; then sudo rm x; fi
! sudo rm x
sudo -p ';' rm x
sudo \\⏎rm x
env env env env env rm x
""".strip().split("\n")


@pytest.mark.few(72)
@pytest.mark.parametrize("command", [line.replace("⏎", "\n") for line in WRAPPED])
@pytest.mark.parametrize("verdict", ["deny", "ask"])
def test_a_restricting_rule_sees_the_program_behind_its_wrappers(command, verdict) -> None:
    assert judged(f'{{{verdict}: shell, args: {{command: "rm *"}}}}', command) == verdict


OTHERS = """
$IFS
sudo -u rm ls
sudo echo rm x
timeout 5 npm rm x
env rm=1 ls x
command -v rm x
bash rm.sh x
bash -c 'echo rm x'
bash -ceuo pipefail 'echo rm x' name
script -q rm ls
find . -name rm -print
find rm x
xargs echo rm
ls /bin/rm x
nice -n rm ls x
eval echo rm x
git commit -m 'rm x'
exec 3>&1
""".strip().split("\n")


@pytest.mark.parametrize("command", OTHERS)
def test_a_word_that_no_wrapper_starts_is_not_taken_for_a_program(command) -> None:
    assert judged('{deny: shell, args: {command: "rm *"}}', command) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "/tmp/x/git status",
        "./git status",
        "sudo git status",
        "env git status",
        "env PAGER=/tmp/x git status",
        "PAGER=/tmp/x git status",
        "bash -c 'git status'",
        "xargs git status",
        "nohup git status",
        "\\git status",
    ],
)
def test_an_allowing_rule_does_not_allow_a_wrapper_of_what_it_names(command) -> None:
    rules = 'default: deny\nrules: [{allow: shell, args: {command: "git status"}}]'
    assert parse(rules).judge(SHELL, {"command": command})[0] == "deny"
    assert parse(rules).judge(SHELL, {"command": "git status"})[0] == "allow"


def test_the_wrapper_itself_can_be_denied_by_its_base_name() -> None:
    rule = '{deny: shell, args: {command: "sudo *"}}'
    found = [judged(rule, c) for c in ("/usr/bin/sudo ls", "env sudo ls", "bash -c 'sudo ls'")]
    assert found == ["deny"] * 3


def test_a_part_that_an_earlier_rule_allows_stays_allowed() -> None:
    rules = '{allow: shell, args: {command: ["sudo rm tmp/*", "ls"]}}, {deny: shell, args: {command: "rm *"}}'
    assert judged(rules, "ls; sudo rm tmp/x") == "allow"
    assert judged(rules, "pwd; sudo rm tmp/x") == "allow"
    assert judged(rules, "pwd; sudo rm y") == "deny"


ENDLESS = {
    "sudo": "sudo " * 20_000 + "rm x",
    "eval": "eval " * 20_000 + "rm x",
    "find": "find . " + "-exec rm {} + " * 5_000,
    "parts": "; ".join(["sudo -u bob rm x"] * 5_000),
    "substituted": "$(" * 5_000 + "sudo rm x",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("line", ENDLESS.values(), ids=ENDLESS)
def test_a_program_behind_thousands_of_wrappers_is_seen(line) -> None:
    assert judged('{deny: shell, args: {command: "rm *"}}', line) == "deny"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "piece", ["bash -c ", "bash -c '", "env -S '", 'su -c "', "find -exec ", "a<<<"]
)
def test_thousands_of_open_wrappers_are_read_to_their_end(piece) -> None:
    assert judged('{deny: shell, args: {command: "rm *"}}', piece * 5_000) == "allow"


def test_shells_in_shells_are_read_as_deep_as_they_go() -> None:
    line = "rm x"
    for _ in range(6):
        line = f"sudo -u bob sh -c {shlex.quote(line)}"
    assert judged('{deny: shell, args: {command: "rm *"}}', line) == "deny"


TEXTS = st.lists(
    st.sampled_from(
        [
            *WRAPPERS,
            "rm x",
            "'",
            '"',
            "\\",
            "$(",
            ")",
            ";",
            "|",
            "<<<",
            ">",
            "-c",
            "-u",
            "--",
            "A=1",
        ]
    )
    | st.text(string.printable, max_size=4),
    max_size=12,
)


@given(words=TEXTS)
@settings(max_examples=count_examples(300), deadline=None)
def test_any_command_line_is_judged(words) -> None:
    line = " ".join(words)
    assert list_spellings(line) >= ({line} - {""})
    assert judged('{deny: shell, args: {command: "no such *"}}', line) in ("allow", "deny")


def test_of_many_commands_behind_a_wrapper_none_is_left_out():
    command = "find . " + " ".join(f"-exec cmd{n} {{}} ;" for n in range(MOST_PROGRAMS + 5))
    programs, _ = programs_behind(command)
    assert {f"cmd{n}" for n in range(MOST_PROGRAMS + 5)} <= {program[0] for program in programs}
