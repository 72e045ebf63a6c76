"""The order in which workers get the tests: modules of browser tests stand together."""

from collections import Counter

from helpers.worker_order import order_for


class Case:
    """A collected test, as far as its order is concerned."""

    def __init__(self, path, *marks):
        self.path, self.marks = path, marks

    def iter_markers(self, name):
        return iter([name] if name in self.marks else [])


def cases():
    browser = [Case(f"browser/{n}", "browser") for n in "abcde" for _ in range(4)]
    return [Case("agent"), *browser, *(Case("wire") for _ in range(60))]


def test_browser_modules_begin_the_parts_of_every_second_worker():
    items = cases()
    for workers, with_browsers in ((2, 1), (3, 2), (4, 2)):
        ordered = order_for(workers, items)
        parts = [ordered[n * 81 // workers : (n + 1) * 81 // workers] for n in range(workers)]
        begin = [part[0].path for part in parts]
        assert sum(path.startswith("browser") for path in begin) == with_browsers
        counts = [Counter(case.path for case in part if case.marks) for part in parts]
        assert sum(len(count) for count in counts) == 5  # each module in one part


def test_no_test_is_lost_and_others_keep_their_order():
    items = cases()
    ordered = order_for(4, items)
    assert Counter(map(id, ordered)) == Counter(map(id, items))
    assert [c for c in ordered if not c.marks] == [c for c in items if not c.marks]
