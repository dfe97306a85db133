"""Split a test about lists of containers: a validation for each, whose message names containers."""

import re
from collections.abc import Iterator

from gatewright.tools.cel_text import conjuncts, every, literal, negate, without_brackets

# `LIST.all(item, TEST)`, where `!has(LIST) || ` may come first.
OF_ITEMS = re.compile(
    r"(?:!has\((?P<absent>[\w.]+)\) \|\| )?"
    r"(?P<list>[\w(][^!&|]*?[cC]ontainers(?:\.orValue\(\[\]\))?\)?)"
    r"\.all\((?P<item>\w+), (?P<test>.*)\)",
    re.DOTALL,
)
LAST_NAME = re.compile(r"\w*[cC]ontainers")


def split_containers(expression: str, message: str) -> Iterator[dict[str, str]]:
    """Yield the validations of a test: one for each list of containers, and one for the rest.

    An object passes them all if, and only if, it passes the test.
    """
    rest = list[str]()
    named = list[dict[str, str]]()
    for part in conjuncts(expression):
        match = OF_ITEMS.fullmatch(part)
        is_whole = match and without_brackets(f"({match['test']})") == match["test"]
        containers = _optional(match, rest) if match and is_whole else ""
        if not message or match is None or not containers:
            rest.append(part)
            continue
        names = list(dict.fromkeys(LAST_NAME.findall(containers)))
        what = names[0] if len(names) == 1 else "containers"
        item, test = match["item"], match["test"]
        bad = f"{containers}.filter({item}, {negate(test)}).map({item}, {item}.name).join(', ')"
        named.append(
            {
                "expression": f"{containers}.all({item}, {test})",
                "message": message,
                "messageExpression": f"{literal(f'{what} ')} + {bad} + {literal(f': {message}')}",
            }
        )
    if rest:
        yield {"expression": every(rest)} | ({"message": message} if message else {})
    yield from named


def _optional(match: re.Match[str], before: list[str]) -> str:
    """Return the list so that it can be read where it is missing; "" if the tests before forbid it.

    What is missing passes then, so that those tests must deny it.
    """
    text: str = match["list"]
    if text.endswith((".orValue([])", ".orValue([]))")):
        return "" if match["absent"] else text
    parent, _, name = text.rpartition(".")
    holder, _, field = parent.rpartition(".")
    is_guarded = f"has({parent})" in before and holder in ("object", "variables.pod")
    if match["absent"] != text and (match["absent"] or f"has({text})" not in before):
        is_guarded = False
    return f"{holder}.?{field}.?{name}.orValue([])" if is_guarded else ""
