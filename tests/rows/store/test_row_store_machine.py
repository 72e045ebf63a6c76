"""Any order of find, claim, renew, put, release, expiry and forget, beside a model of dicts.

The model says what the contract says: one owner asks a row, nothing final is asked or lost, each
claim counts unless it is given back.
"""

import tempfile
from pathlib import Path

from helpers.examples import count_examples
from helpers.sample_runs import make_log
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent_nb.record.record import run_record
from agent_nb.record.signing import UserKey
from agent_nb.rows.store.row_store import RowStore

OWNERS = ("a", "b")
KEYS = tuple(f"k{n}" for n in range(3))
LEASE = 60
RECORD = run_record(make_log())
owners, some = st.sampled_from(OWNERS), st.lists(st.sampled_from(KEYS), min_size=1, unique=True)


class Rows(RuleBasedStateMachine):
    """Two owners with a store each of one file, and what must be in it."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.now = 1e6
        self.number = 0
        self.stores = {owner: self.opened(owner) for owner in OWNERS}
        self.rows = {}  # key: (run, status)
        self.asked = {}  # key: attempts
        self.leases = {}  # key: (owner, until)

    def opened(self, owner):
        path = Path(self.folder.name) / "rows.sqlite"
        return RowStore(path, "m", UserKey(b"key"), owner=owner, now=lambda: self.now)

    def holder(self, key):
        owner, until = self.leases.get(key, ("", 0))
        return owner if until > self.now else ""

    def final(self, key):
        return self.rows.get(key, ("", ""))[1] == "ok"

    @rule(owner=owners, keys=some)
    def claim(self, owner, keys):
        kept = {key for key in keys if self.holder(key) == owner}
        free = {key for key in keys if not self.holder(key) and not self.final(key)}
        assert self.stores[owner].claim(keys, LEASE) == kept | free
        for key in free:
            self.asked[key] = self.asked.get(key, 0) + 1
            self.leases[key] = owner, self.now + LEASE

    @rule(owner=owners, keys=some, status=st.sampled_from(["ok", "error"]), times=st.integers(1, 3))
    def put(self, owner, keys, status, times):
        self.number += 1
        record = {**RECORD, "id": f"run-{self.number}", "status": status}
        counts = self.stores[owner].put([(key, record, times) for key in keys])
        for key in keys:
            held = key in self.leases and self.leases[key][0] == owner
            self.asked[key] = self.asked.get(key, 0) + times - held
            if held:
                del self.leases[key]
            if not self.final(key):
                self.rows[key] = record["id"], status
        assert counts == {key: self.asked[key] for key in keys}

    @rule(owner=owners, keys=some, asked=st.booleans())
    def release(self, owner, keys, asked):
        self.stores[owner].release(keys, attempted=asked)
        for key in keys:
            if key in self.leases and self.leases[key][0] == owner:
                del self.leases[key]
                self.asked[key] -= not asked

    @rule(owner=owners)
    def renew(self, owner):
        self.stores[owner].renew(LEASE)
        for key, (holder, _) in list(self.leases.items()):
            if holder == owner:
                self.leases[key] = owner, self.now + LEASE

    @rule(seconds=st.sampled_from([1, 30, LEASE]))
    def time_goes_on(self, seconds):
        self.now += seconds

    @rule(owner=owners)
    def the_kernel_is_killed_and_another_comes(self, owner):
        self.stores[owner].close()
        self.stores[owner] = self.opened(owner)

    @rule(owner=owners, keys=some)
    def forget(self, owner, keys):
        gone = {self.rows[key][0] for key in keys if key in self.rows}
        lost = [key for key, (run, _) in self.rows.items() if run in gone]
        assert self.stores[owner].forget(gone) == len(lost)
        for key in lost:
            for known in (self.rows, self.asked, self.leases):
                known.pop(key, None)

    @invariant()
    def every_owner_finds_the_same(self):
        for store in getattr(self, "stores", {}).values():
            found = {k: (s.record["id"], s.record["status"]) for k, s in store.find(KEYS).items()}
            assert found == self.rows
            times = {k: s.attempts for k, s in store.find(KEYS).items()}
            assert times == {key: max(self.asked[key], 1) for key in self.rows}

    def teardown(self):
        for store in getattr(self, "stores", {}).values():
            store.close()
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestRows = Rows.TestCase
TestRows.settings = settings(
    max_examples=count_examples(60),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
