"""The parsers of YAML text, which resolve tags as Kubernetes clients do."""

import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml.resolver import Resolver

# Tags that YAML 1.1 resolves and Kubernetes clients do not.
FOREIGN = ("timestamp", "int", "float", "value")


class _Tags(Resolver):
    """Resolves plain scalars without dates and base-60 numbers."""


_Tags.yaml_implicit_resolvers = {
    first: [
        (tag, expression) for tag, expression in resolvers if tag.rpartition(":")[2] not in FOREIGN
    ]
    for first, resolvers in Resolver.yaml_implicit_resolvers.items()
}
_Tags.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"^(?:[-+]?0b[01]+|[-+]?0x[0-9a-fA-F]+|[-+]?0o?[0-7]+|[-+]?(?:0|[1-9][0-9]*))$"),
    list("-+0123456789"),
)
_Tags.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)


class PlainLoader(_Tags, yaml.SafeLoader):
    """PyYAML's own parser: slow, with clear error messages."""


quick: Callable[[str], Any] = PlainLoader
if yaml.__with_libyaml__:

    class _Quick(_Tags, yaml.CSafeLoader):
        """libyaml's parser, ten times as fast. Its depth is limited, so its composer is safe."""

    quick = _Quick


def tag_of(plain: str) -> str | None:
    """Return the tag of a plain scalar; None if it is text."""
    for tag, expression in _Tags.yaml_implicit_resolvers.get(plain[:1], ()):
        if expression.match(plain):
            return str(tag)
    return None


def compose(text: str) -> list[yaml.Node]:
    """Return the root node of each document of a text that has been parsed without an error."""
    try:
        return _roots(quick(text))
    except yaml.YAMLError:  # such as `{a:{}}`, which only PyYAML's own parser accepts
        return _roots(PlainLoader(text))


def _roots(loader: Any) -> list[yaml.Node]:
    roots = list[yaml.Node]()
    while loader.check_node():
        roots.append(loader.get_node())
    return roots
