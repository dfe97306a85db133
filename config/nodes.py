"""Parse YAML text to nodes, and nodes to values, as Kubernetes clients do."""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import orjson
import yaml
from yaml.composer import Composer
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.resolver import Resolver

# Tags that YAML 1.1 resolves and Kubernetes clients do not.
FOREIGN = ("timestamp", "int", "float", "value")


def compose(text: str) -> Iterable[yaml.Node]:
    """Return the root of each document.

    Raises YAMLError with the messages of PyYAML's own parser.
    """
    try:
        return list(_roots(_quick(text)))
    except yaml.YAMLError:
        return _roots(_PlainLoader(text))


def construct(node: yaml.Node) -> Any:
    """Return the value of a document. Raises YAMLError if it has none."""
    return _Values().construct_document(node)


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


class _Values(SafeConstructor):
    """Constructs values with text keys, and 3.0 as 3."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping = super().construct_mapping(node, deep)
        return {
            key if isinstance(key, str) else orjson.dumps(key).decode(): item
            for key, item in mapping.items()
        }

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        number = super().construct_yaml_float(node)
        if not math.isfinite(number):
            raise ConstructorError(None, None, "number is too large", node.start_mark)
        return int(number) if number.is_integer() else number


_Values.yaml_constructors = {
    **SafeConstructor.yaml_constructors,
    "tag:yaml.org,2002:float": _Values.construct_yaml_float,
}


class _PlainLoader(_Tags, yaml.SafeLoader):
    """PyYAML's own parser: slow, with clear error messages."""


_quick: Callable[[str], Composer] = _PlainLoader
if yaml.__with_libyaml__:

    class _Quick(_Tags, Composer, yaml.CSafeLoader):
        """libyaml's parser, seven times as fast.

        Its own composer is not used because it has no depth limit.
        """

        def __init__(self, text: str) -> None:
            yaml.CSafeLoader.__init__(self, text)
            Composer.__init__(self)

    _quick = _Quick


def _roots(parser: Composer) -> Iterator[yaml.Node]:
    while parser.check_node():
        node = parser.get_node()
        assert node is not None
        yield node
