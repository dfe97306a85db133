"""Random policies in CEL: variables that read each other, and calls of every function and macro."""

import random

from webhook.cel.functions import FUNCTIONS
from webhook.cel.macros import MACROS
from webhook.cel.types import Signature

MAX_SOURCE = 4096  # characters, the limit of a tenant's policy
_LEAVES = {
    "string": """o.text|o.wide|o.words|o.digits|o.base64|o.slashes|o.url|o.ab|o.needle|o.half|'a'|''|'%s'|'[ab]*a[ab]{30}c'
'(a?){90}b'|o.percents|'a.*b'|','|o.clauses|o.quotes|string(o.size)|'Europe/Berlin'""",
    "int": "0|1|2|-1|20|1000|o.size|o.numbers.size()",
    "bool": "true|false|o.flag",
    "double": "0.5|o.double|1e300",
    "bytes": "o.bytes|o.widebytes|b'a'",
    "list": "o.numbers|o.texts|o.shared|o.lists|o.long|o.copies|o.same|[1, 2, 3]|[o.text, o.text]|lists.range(50)|o.few",
    "map": "o.map|{'a': o.text}|{o.text: o.map}",
    "google.protobuf.Timestamp": "timestamp(1)|timestamp(o.time)",
    "google.protobuf.Duration": "duration('1h')",
    "optional_type": "o.?text|optional.none()|optional.of(o.numbers)",
    "kubernetes.Quantity": "quantity('1.5Gi')|quantity(o.digits)",
    "kubernetes.Semver": "semver('1.2.3')",
    "kubernetes.URL": "url('https://a/b?c=d')|url(o.url)",
    "kubernetes.NamedFormat": "format.qualifiedName()|format.dns1123Subdomain()|format.byte()|format.uri()",
    "net.IP": "ip('::1')",
    "net.CIDR": "cidr('10.0.0.0/8')",
}
LEAVES = {type_: text.replace("\n", "|").split("|") for type_, text in _LEAVES.items()}
OPERATORS = {
    name: name.strip("_").replace("@", "")
    for name in FUNCTIONS
    if not name.replace(".", "").isalnum() and name.count("_") == 2 and name[0] == "_" == name[-1]
    and "[" not in name and "?" not in name
}  # fmt: skip


class Generator:
    """Builds expressions from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables = 0
        self.bound: list[str] = []
        self.signatures = [
            version.signature
            for name, function in FUNCTIONS.items()
            for version in function.versions
            if name in OPERATORS or name.replace(".", "").isalnum()
        ]

    def policy(self) -> tuple[list[str], str]:
        """Return variables and an expression, together of at most 4 KiB."""
        while True:
            self.variables, variables = 0, []
            for _ in range(self.random.randrange(5)):
                variables.append(self.variable())
                self.variables += 1
            expression = self.any(4)
            if self.random.random() < 0.6:  # as often as the budget allows
                expression = f"lists.range(100000).all(i, {expression} == 0 || true)"
            found = variables, expression
            if sum(map(len, variables)) + len(expression) <= MAX_SOURCE:
                return found

    def variable(self) -> str:
        """Return an expression whose value is often several times as large as the previous one."""
        if self.variables and self.random.random() < 0.5:
            before = f"variables.v{self.variables - 1}"
            return self.random.choice(
                ["[" + ", ".join([before] * 10) + "]", f"{before} + {before}"]
            )
        return self.any(3)

    def any(self, depth: int) -> str:
        """Return an expression."""
        kind = self.random.random()
        if depth and kind < 0.25:
            return self.macro(depth)
        if depth and kind < 0.8:
            return self.call(self.random.choice(self.signatures), depth)
        if kind < 0.9:
            names = [*self.bound, *(f"variables.v{each}" for each in range(self.variables))]
            if names:
                return self.random.choice(names)
        return self.leaf(self.random.choice(list(LEAVES)))

    def leaf(self, type_: str) -> str:
        """Return a short expression of a type."""
        return self.random.choice(LEAVES.get(type_) or LEAVES["list"] + LEAVES["string"])

    def of(self, type_: str, depth: int) -> str:
        """Return an expression that often has a type."""
        kind = self.random.random()
        if not depth or kind < 0.4:
            return self.leaf(type_)
        fitting = [each for each in self.signatures if each.result.name == type_]
        return (
            self.call(self.random.choice(fitting), depth - 1)
            if fitting and kind < 0.9
            else self.any(depth - 1)
        )

    def call(self, signature: Signature, depth: int) -> str:
        """Return a call."""
        args = [self.of(each.name, depth - 1) for each in signature.params]
        if signature.name in OPERATORS:
            operator = OPERATORS[signature.name]
            return f"({f' {operator} '.join((args * 2)[:2])})"
        if signature.is_member:
            return f"{args[0]}.{signature.name}({', '.join(args[1:])})"
        return f"{signature.name}({', '.join(args)})"

    def macro(self, depth: int) -> str:
        """Return a comprehension."""
        (name, count), macro = self.random.choice(list(MACROS.items()))
        over = self.of(self.random.choice(macro.ranges), depth - 1)
        names = [f"x{len(self.bound) + each}" for each in range(macro.variables)]
        self.bound += names
        body = self.any(depth - 1)
        if name in {"all", "exists"}:
            body = f"({body}) == 0 || {self.random.choice(['true', 'false'])}"
        args = [*names, *["true"] * (count - macro.variables - 1), body]
        del self.bound[len(self.bound) - len(names) :]
        return f"{over}.{name}({', '.join(args)})"
