"""Names of users and databases."""

import time

from config.postgresql_names import faults


def test_thousands_of_names_are_judged_quickly():
    """An object has room for thousands, which must not delay reviews."""
    users = [f"u{number}" for number in range(10_000)]
    databases = [(f"d{number}", f"u{number}") for number in range(10_000)]
    started = time.process_time()
    found = [
        (fault.path, fault.found)
        for fault in faults([*users, "u7"], [*databases, ("d7", "nobody")])
    ]
    assert time.process_time() - started < 2.0
    assert found == [
        ("spec.users[10000].name", '"u7"'),
        ("spec.databases[10000].name", '"d7"'),
        ("spec.databases[10000].owner", '"nobody"'),
    ]
