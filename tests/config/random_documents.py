"""Random files of YAML and JSON documents, with whatever tools are known to read differently."""

from collections.abc import Sequence
from random import Random

WORDS = """
y Y yes n N no on off ON true False TRUE ~ null Null NULL
0 7 -7 +7 007 0o7 0O7 0777 089 0x1F 0X1f -0x1F 0b101 -0b11 0B1 1_000 0_0 1_ 1__0 _1
1.5 .5 -.5 +.5 1. 3.0 -0 -0.0 1e3 1E3 1e+3 1_0.5 1e400 -1e400 1e-400 123456789.125 0.1 1e21 1e22
9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616
-9223372036854775808 -9223372036854775809 99999999999999999999999 1.8446744073709552e+19
12345678901234567890.0 1152921504606846976.0 0x7fffffffffffffff 0xffffffffffffffff
190:20:30 1:30 22:22 2024-01-01 2024-01-01T10:00:00Z 2024-1-1 = << + . 1.2.3 500m 0x
0b 0b12 0o8 0x_1 1e 1e+ inf nan Infinity .e5 1_000.5 ._1 .1_0 .0x1 1.5e3_0
nginx:1.21 a b-c 'quoted' 'y' "on" "1" '' ""
"""
KEY_WORDS = """
a b c apiVersion kind metadata spec items name image y n on 1 01 1.5 1e3 1.10 true ~ null
0x1F 1_0 -1 18446744073709551616 9223372036854775807 9223372036854775808 .inf '1' "a" <<
1e6 1e-5 0.1 123456.7 0.30000001 2024-01-01 [a] {a:1} &k !!str !!binary *k
"""
ODD_WORDS = "- .inf -.inf +.inf .nan !!str !foo * & *none !!str:a, !!null"
TAG_WORDS = """
!!str !!int !!float !!bool !!null !!binary !!timestamp !foo ! !!seq !!map !!set !!omap !foo, !a[b]
"""
SCALARS = tuple(WORDS.split())
ODD = (*ODD_WORDS.split(), "- a", "# none", "a: b")
TAGS = tuple(TAG_WORDS.split())
QUOTED = (
    r'"a\tb"', r'"\x41"', r'"\u00e9"', r'"\U0001F600"', r'"\ud83d\ude00"', r'"\ud800"', r'"\/"',
    r'"\e\a\0"', '"é😀"', "'it''s'", '"a\\\n  b"', '"two\n  lines"', "'two\n\n  lines'", r'"\N\_\L\P"',
    '"\ufeffx"', '"x\x7f"', '"x\x85y"', '"x\u2028y"', '"tab\there"',
)  # fmt: skip
BLOCKS = (
    "|\n{0}text\n{0}more", "|-\n{0}text\n", ">\n{0}a\n{0}b", ">+\n{0}a\n\n\n", "|2\n{0}  in\n{0}out",
    "|\n{0}# none\n{0}--- x", "plain\n{0}continued", "|1-\n{0}x", ">-\n{0}a\n{0} b\n{0}c", "|\n\n{0}x", "|\n{0}tab\there",
)  # fmt: skip
KEYS = (
    *KEY_WORDS.split(),
    "? a\n", "? [x]\n", "'<<'", '"<<"', "!!merge <<", "!!str <<", "a b", "é", "long" * 300,
)  # fmt: skip
ENDS = (
    "\n",
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\r",
    " # comment\n",
    " \n",
    "\t\n",
    "\n\n",
    "\n# comment\n",
)
BETWEEN = (
    "---\n", "---\n", "---\n", "---\n", "--- # x\n", "---#x\n", "--- \t\n", "---\r\n", "...\n", "...\n---\n", "--- x\n",
    "----\n", "---\n\ufeff", "\ufeff---\n", "---\n---\n", "---\n# only\n---\n", "--- |\n", "--- {a: 1}\n", "%YAML 1.1\n---\n",
    "---\n%TAG ! tag:x,2000:\n---\n", "\n\n---\n", " ---\n", "---\u00a0\n", "---\n{}\n", "---\n~\n---\n", "\f---\n", "",
    "---\n\ufeff# x\n\ufeff", "---\n\ufeff~\n", "\ufeff\n",
)  # fmt: skip
JSON = (
    "{}", '{"a": 1}', '{"a": 1e400}', '{"a": 18446744073709551615}', '{"a": -0}', '{"a": 1.0}', r'{"a": "\ud83d\ude00"}',
    r'{"a": "\ud800"}', r'{"a": "\/"}', '{"a": "x\ty"}', '{"a": 1, "a": 2}', '{"a": [1, {"b": null}]}', '{"a": 1,}', '{"a":1 // x\n}',
    '{"a": NaN}', '{"a": 01}', '{"a": y}', "{a: 1}", '{"a":{"b":{}}}', "{a:{}}", '{"a": "é"}', '{"y": true, "1": 2}', "[1, 2]",
    '{\n\t"a": 1\n}', '{"a": 1}, {"b": 2}', '{"<<": {"a": 1}}', '{"a": 1.8446744073709552e+19}', '"text"', "7", "{", '{"a"}', "{?a: 1}",
    '{"kind": "List", "apiVersion": "v1", "items": [{"kind": "A", "apiVersion": "v1"}, {}]}', '{"": 1}', '{"a": "\x7f"}',
    '{"kind": "A", "apiVersion": "v1", "items": [{"kind": "B", "apiVersion": "v1"}]}', '{"kind":"A","items":null}',
    '{"a": 123456789012345678901234567890}', '{"a": 1E5}', '{"a": 0.1e-400}', '{"a":"x\\u0000y"}', '{"' + "long" * 300 + '": 1}',
)  # fmt: skip
OBJECTS = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
    "apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: a}\n- kind: Other\n  apiVersion: v1\n- kind: Half\n",
    "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - {kind: A, apiVersion: v1}\n- kind: B\n  apiVersion: v1\n",
    "apiVersion: v1\nkind: Thing\nitems:\n- {kind: A, apiVersion: v1}\n",
    "apiVersion: v1\nkind: Thing\nitems: none\n",
    "kind: Pod\nsecurityContext: {privileged: false, <<: {privileged: true}}\n",
    "kind: Pod\n<<: &p {privileged: true}\nprivileged: false\n",
    "kind: Pod\nspec: &s {a: 1}\nother: {<<: [*s, {a: 2, b: 2}], b: 3}\n",
    "kind: Pod\nspec: &s {a: 1}\nmore: &s {a: 2}\nother: {<<: *s, <<: {c: 1}}\nlast: *s\n",
    "kind: Pod\nspec: &s [*s]\n",
    "kind: Pod\na: &s x\nspec: &s [*s]\n",
)


UNUSABLE = (
    "a: [\n", "a: 1\na: 2\n", "a: {{ .Values.a }}\n", "a: 1\n---b\n", "----\n", "a: 1\n...\nb: 2\n",
    "a: 1\n\ufeffb: 2\n", "a: \x01\n", 'a: "\\ud800"\n', "- " * 400 + "a\n", 'a: "b\n', "a: |\n  b\n c\n",
    "a:\n\tb: 1\n", "a: *b\n", "{", '{"a": 1, "a": 2}', '{"a": }', '{"a": 1e400}', "a: .nan\n", "? [a]\n", "a: 'b\n",
)  # fmt: skip


class Writer:
    """Writes random documents; nested values of the same seed are the same."""

    def __init__(self, random: Random) -> None:
        """Draw everything from `random`."""
        self.random = random
        self.anchors: list[str] = []
        self.maps: list[str] = []
        # Most files are nearly regular: the first fault of a file hides the others.
        self.wild = random.choice([0.0, 0.02, 0.02, 0.05, 0.3])

    def file(self) -> bytes:
        """Return the bytes of a file with some documents."""
        random = self.random
        if random.random() < 0.2:
            text = self.rarely([" ", "\n", "\ufeff", "\t"], "")
            for _ in range(random.randint(1, 4)):
                text += random.choice(JSON) + random.choice(
                    ["", "\n", " ", *["\n---\n"] * 3, "\n\n"]
                )
        else:
            text = self.rarely(["\ufeff", "---\n", "\ufeff---\n", "%YAML 1.1\n---\n", "\n"], "")
            for index in range(random.randint(1, 4)):
                text += self.rarely(BETWEEN, "---\n") if index else ""
                self.anchors.clear()
                self.maps.clear()
                text += self.document()
        encoding = self.rarely(["utf-16-le", "utf-16", "utf-8-sig"], "utf-8")
        data = text.encode(encoding, "surrogatepass")
        if random.random() < self.wild / 10:
            data += random.choice([b"\xff", b"\x00", b"\xc3", b"\x1b"])
        return data

    def document(self) -> str:
        """Return the text of a document with its line end."""
        random = self.random
        draw = random.random()
        if draw < 0.2:
            return random.choice(OBJECTS)
        if draw < 0.23:
            return random.choice(JSON) + "\n"
        if draw < 0.27:
            return random.choice(
                ["", "# only a comment\n", "~\n", "null\n", "text\n", "- a\n", "- - 1\n  - 2\n"]
            )
        return self.mapping(0) or "a: 1\n"

    def mapping(self, indent: int) -> str:
        """Return the lines of a block mapping."""
        lines = ""
        for key in self.keys(self.random.randint(1, 4)):
            value = self.merged() if key == "<<" else self.value(indent + 2)
            lines += f"{' ' * indent}{key}: {value}{self.rarely(ENDS, chr(10))}"
        return lines

    def rarely(self, choices: Sequence[str], usual: str) -> str:
        """Return mostly what is usual."""
        return self.random.choice(choices) if self.random.random() < self.wild else usual

    def keys(self, count: int) -> list[str]:
        """Return keys, mostly different and simple ones, sometimes a merge key among them."""
        random = self.random
        keys = random.sample(KEYS[:9], count)
        keys = [self.rarely(KEYS, key) for key in keys]
        while random.random() < 0.1:
            keys.insert(random.randint(0, count), "<<")
        return keys

    def merged(self) -> str:
        """Return the value of a merge key."""
        random = self.random
        choices = [f"*{name}" for name in self.maps * 3]
        choices += [f"{{{key}: {random.choice(SCALARS)}}}" for key in random.sample(KEYS[:9], 3)]
        listed = f"[{', '.join(random.choice(choices) for _ in range(random.randint(1, 3)))}]"
        return self.rarely(ODD, random.choice([*choices, listed]))

    def value(self, indent: int) -> str:
        """Return a value that begins on the line of its key."""
        random = self.random
        before = ""
        if random.random() < self.wild / 2:
            before += random.choice(TAGS) + " "
        if random.random() < 0.1:
            name = random.choice(["m", "n"])
            value = self.flow_map(1)
            self.maps.append(name)
            return f"{before}&{name} {value}"
        if indent > 6 and random.random() < 0.2:
            name = random.choice(["p", "q"])
            self.anchors.append(name)
            return f"{before}&{name} {random.choice(SCALARS)}"
        draw = random.random()
        if draw < 0.45:
            return before + self.rarely(ODD, random.choice(SCALARS))
        if draw < 0.5:
            return before + self.rarely(QUOTED, random.choice(QUOTED[:4]))
        if draw < 0.55:
            return before + self.rarely(BLOCKS, random.choice(BLOCKS[:4])).format(" " * indent)
        if draw < 0.65 and self.anchors:
            return f"*{random.choice(self.anchors)}"
        if draw < 0.8 or indent > 6:
            return before + self.flow(2)
        if draw < 0.9:
            return f"{before}\n{self.mapping(indent)}".rstrip("\n")
        items = (f"{' ' * indent}- {self.value(indent + 2)}" for _ in range(random.randint(1, 3)))
        return before + "\n" + "\n".join(items)

    def flow(self, depth: int) -> str:
        """Return a value in flow style."""
        random = self.random
        kind = random.choice(["map", "list", "scalar"]) if depth else "scalar"
        blank = self.rarely(["", "\n  ", "\t", "\n\n      "], " ")
        if kind == "scalar":
            alias = [f"*{name}" for name in self.anchors]
            return random.choice(SCALARS if random.random() < 0.7 else [*QUOTED[:4], *alias])
        if kind == "list":
            return (
                f"[{f',{blank}'.join(self.flow(depth - 1) for _ in range(random.randint(0, 3)))}]"
            )
        return self.flow_map(depth)

    def flow_map(self, depth: int) -> str:
        """Return a map in flow style."""
        keys = self.keys(self.random.randint(0, 3))
        values = (self.merged() if key == "<<" else self.flow(depth - 1) for key in keys)
        colon = self.rarely([": ", ":", "  : "], ": ")
        pairs = (f"{key}{colon}{value}" for key, value in zip(keys, values, strict=True))
        return f"{{{', '.join(pairs)}}}"


def documents(seed: int, count: int) -> Sequence[Sequence[str]]:
    """Return the documents of random files, some of them unusable; all end a line."""
    random = Random(seed)
    found = list[list[str]]()
    for _ in range(count):
        writer = Writer(random)
        texts = list[str]()
        for _ in range(random.randint(2, 5)):
            writer.anchors.clear()
            writer.maps.clear()
            is_broken = random.random() < 0.4
            text = random.choice(UNUSABLE) if is_broken else writer.document()
            # After a comment, no document is the first of a stream of JSON values.
            texts.append("# none\n" + text.removesuffix("\n") + "\n")
        found.append(texts)
    return found


def files(seed: int, count: int) -> Sequence[bytes]:
    """Return random files; those of one seed are the same."""
    random = Random(seed)
    return [Writer(random).file() for _ in range(count)]
