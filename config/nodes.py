"""YAML text to nodes, and nodes to values, as Kubernetes clients parse them."""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import orjson
import yaml
from yaml.composer import Composer
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.resolver import Resolver

FOREIGN = ("timestamp", "int", "float", "value")  # what YAML 1.1 finds in scalars, and the API's clients do not


def compose(text: str) -> Iterable[yaml.Node]:
    """Return the root of each document. YAMLError says what is wrong, in the words of PyYAML's own parser."""
    try:
        return list(_roots(_quick(text)))
    except yaml.YAMLError:
        return _roots(_Plain(text))


def construct(node: yaml.Node) -> Any:
    """Return the value of a document. YAMLError where there is none."""
    return _Values().construct_document(node)


class _Tags(Resolver):
    """What a plain scalar is: there are no dates and no base-60 numbers."""


_Tags.yaml_implicit_resolvers = {
    first: [(tag, expression) for tag, expression in resolvers if tag.rpartition(":")[2] not in FOREIGN]
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
    """Keys are text, and 3.0 is 3."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping = super().construct_mapping(node, deep)
        return {key if isinstance(key, str) else orjson.dumps(key).decode(): item for key, item in mapping.items()}

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        number = super().construct_yaml_float(node)
        if not math.isfinite(number):
            raise ConstructorError(None, None, "this number is too large", node.start_mark)
        return int(number) if number.is_integer() else number


_Values.yaml_constructors = {
    **SafeConstructor.yaml_constructors,
    "tag:yaml.org,2002:float": _Values.construct_yaml_float,
}


class _Plain(_Tags, yaml.SafeLoader):
    """PyYAML's own parser: slow, and clear about what is wrong."""


_quick: Callable[[str], Composer] = _Plain
if yaml.__with_libyaml__:

    class _Quick(_Tags, Composer, yaml.CSafeLoader):
        """libyaml's parser, seven times as fast. Its own composer has no limit of depth and is left out."""

        def __init__(self, text: str) -> None:
            yaml.CSafeLoader.__init__(self, text)
            Composer.__init__(self)

    _quick = _Quick


def _roots(parser: Composer) -> Iterator[yaml.Node]:
    while parser.check_node():
        node = parser.get_node()
        assert node is not None
        yield node
