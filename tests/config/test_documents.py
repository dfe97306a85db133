"""Files are parsed as by Kubernetes clients, and every error has its line."""

import re

import pytest

from config.documents import (
    DocumentError,
    documents_at,
    parse_documents,
    read_documents,
    readable_documents,
    yaml_files,
)
from tests.config.random_documents import documents as random_documents

DEPLOYMENT = """\
# a comment
apiVersion: apps/v1
kind: Deployment

spec:
  template:
    spec:
      containers:
        - name: app
          image: nginx
        - image: busybox
          name: "side car"
      volumes: []
    metadata: {labels: {a: b}}
"""


def values(text):
    """Return the values of a text's documents."""
    return [document.value for document in parse_documents(text.encode(), "x.yaml")]


def refused(data):
    """Return the error of an invalid text."""
    with pytest.raises(DocumentError) as error:
        list(parse_documents(data if isinstance(data, bytes) else data.encode(), "x.yaml"))
    return str(error.value)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 2),
        ("kind", 3),
        ("spec", 5),
        ("spec.template.spec.containers", 8),
        ("spec.template.spec.containers[0]", 9),
        ("spec.template.spec.containers[0].image", 10),
        ("spec.template.spec.containers[1].name", 12),
        ("spec.template.spec.containers[name=app].image", 10),
        ("spec.template.spec.containers[name=side car].image", 11),
        ("spec.template.spec.containers[name=app].resources.limits", 9),
        ("spec.template.spec.containers[name=none].image", 8),
        ("spec.template.spec.containers[7].image", 8),
        ("spec.template.metadata.labels.a", 14),
        ("spec.replicas", 5),
        ("status", 2),
        ("kind.of.thing", 3),
    ],
)
def test_a_field_has_a_line(path, line):
    """It is the field's line, or that of its nearest parent."""
    (document,) = parse_documents(DEPLOYMENT.encode(), "x.yaml")
    assert document.where(path) == f"x.yaml:{line}"


def test_each_document_has_its_lines():
    """Lines count from the start of the file, and empty documents are skipped."""
    documents = list(parse_documents(b"---\na: 1\n---\n# nothing\n---\n\nb:\n  c: 2\n", "x.yaml"))
    assert [(document.value, document.line(), document.line("b.c")) for document in documents] == [
        ({"a": 1}, 2, 2),
        ({"b": {"c": 2}}, 7, 8),
    ]


def test_a_list_is_its_items():
    """A List, as kubectl prints it, is parsed as its items, each with its line."""
    text = b"apiVersion: v1\nkind: List\nitems:\n- kind: A\n- kind: B\n  metadata:\n    name: b\n"
    documents = list(parse_documents(text, "x.yaml"))
    assert [
        (document.value["kind"], document.line(), document.line("metadata.name"))
        for document in documents
    ] == [
        ("A", 4, 4),
        ("B", 5, 7),
    ]


def test_lists_of_one_kind_and_lists_in_lists_are_parsed_as_their_items():
    """Like in kubectl, an item of a typed list gets its kind.

    An item that is not an object is kept for the reader.
    """
    text = (
        b"kind: List\nitems:\n- kind: List\n  items: [{kind: A}]\n- apiVersion: apps/v1\n  kind: DeploymentList\n"
        b"  items:\n  - metadata: {name: a}\n  - {kind: Other, apiVersion: v1}\n- null\n- {kind: WishList, items: none}\n"
    )
    documents = list(parse_documents(text, "x.yaml"))
    assert [each.value for each in documents] == [
        {"kind": "A"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Other"},
        None,
        {"kind": "WishList", "items": "none"},
    ]
    assert [each.line() for each in documents] == [4, 8, 9, 10, 11]


def test_the_items_of_a_list_may_come_from_an_anchor():
    """The items then have the line of the list."""
    documents = list(
        parse_documents(
            b"a: &a\n  items: [{kind: A}]\n---\n<<: {items: [{kind: B}]}\nkind: List\n", "x"
        )
    )
    assert [(each.value, each.line()) for each in documents][1:] == [({"kind": "B"}, 4)]


def test_json_is_yaml():
    """A JSON file is parsed like YAML."""
    assert values('{"a": [1, 2.5, null, true, "x\\u00fc"]}') == [{"a": [1, 2.5, None, True, "xü"]}]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("22:22", "22:22"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("0777", 511),
        ("089", 89),
        ("0o17", 15),
        ("0O17", 15),
        ("0b11", 3),
        ("1_000", 1000),
        ("1_000.5", 1000.5),
        ("0x1F", 31),
        ("-5", -5),
        ("1e3", 1000),
        ("3.0", 3),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1),
        ("yes", True),
        ("off", False),
        ("y", True),
        ("N", False),
        ("'y'", "y"),
        ("~", None),
        ("", None),
        ("'3'", "3"),
        ("1e400", "1e400"),
        ("1.2.3", "1.2.3"),
        ("500m", "500m"),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", 2.0**63),
        ("99999999999999999999", 1e20),
        ("1.8446744073709552e+19", 2.0**64),
        ("=", "="),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("! 5", "5"),
        ("!foo 5", "5"),
        ("!!binary aGk=", "hi"),
        ("!!python/object/apply:os.system [x]", ["x"]),
        ("!!set {c}", {"c": None}),
    ],
)
def test_scalars_have_the_types_of_the_api_server(written, value):
    """Dates and base-60 numbers are text, octal numbers, y and yes follow YAML 1.1, and 3.0 is 3.

    Unknown tags are ignored, and what is no number of 64 bits is a float, or text.
    """
    ((found,),) = (document.values() for document in values(f"a: {written}\n"))
    assert (found, type(found)) == (value, type(value))


def test_keys_are_text():
    """A ConfigMap may have `8080: x`, which is a string key in JSON."""
    assert values("8080: a\ntrue: b\n1.5: c\n") == [{"8080": "a", "true": "b", "1.5": "c"}]


def test_aliases_and_merges_are_resolved():
    """An anchor may be used repeatedly, and a merged key overridden."""
    text = "a: &a {x: 1, z: 2}\nb: *a\nc:\n  <<: *a\n  z: 3\n"
    assert values(text) == [{"a": {"x": 1, "z": 2}, "b": {"x": 1, "z": 2}, "c": {"x": 1, "z": 3}}]


def test_the_first_of_several_merged_objects_counts():
    """The specification of YAML merge keys says so; a field of the object itself takes precedence."""
    text = "a: &a {x: 1, z: 1}\nb: {<<: [*a, {x: 2, w: 2}], z: 3}\nc: {v: 1, <<: {w: 2}, <<: *a}\n"
    (value,) = values(text)
    assert (value["b"], value["c"]) == ({"x": 1, "z": 3, "w": 2}, {"v": 1, "w": 2, "x": 1, "z": 1})


def test_an_alias_means_the_latest_anchor_of_its_name():
    """An anchor may be there twice, also inside the first; its fields have their lines."""
    (document,) = parse_documents(b"a: &x 1\nb: &x {c: &x 2}\nd: *x\n", "x.yaml")
    assert document.value == {"a": 1, "b": {"c": 2}, "d": 2}
    assert document.place("d") == (3, 1)


def test_byte_order_marks_begin_documents():
    """Files that Windows' editors wrote may have been joined; each document keeps its lines."""
    documents = list(parse_documents("\ufeffa: 1\n---\n\ufeffb:\n  c: 2\n".encode(), "x.yaml"))
    assert [(each.value, each.place("b.c")) for each in documents] == [
        ({"a": 1}, (1, 1)),
        ({"b": {"c": 2}}, (4, 3)),
    ]


def test_a_document_that_only_the_slow_parser_takes_hides_no_other():
    """Each document is parsed by itself."""
    found = values("a: 1\n---\nb: {c:{d: 1}}\n---\ne: 1\n")
    assert found == [{"a": 1}, {"b": {"c": {"d": 1}}}, {"e": 1}]


def test_json_objects_may_follow_each_other():
    """As kubectl prints several; characters beyond 16 bits are two escapes; fields have positions."""
    text = '{"a": "\\ud83d\\ude00"} {"b":\n  {"c": 1}}{"d": 1}\n'
    documents = list(parse_documents(text.encode(), "x.json"))
    assert [each.value for each in documents] == [{"a": "😀"}, {"b": {"c": 1}}, {"d": 1}]
    paths = zip(documents, ("a", "b.c", "d"), strict=True)
    assert [each.place(path) for each, path in paths] == [(1, 2), (2, 4), (2, 13)]


def test_utf_16_has_a_byte_order_mark():
    """PowerShell writes it; without a mark it is refused."""
    assert [each.value for each in parse_documents("a: é\n".encode("utf-16"), "x")] == [{"a": "é"}]


def test_fields_of_what_only_the_slow_parser_takes_have_lines():
    """Libyaml wants a blank before the brace."""
    (document,) = parse_documents(b"a: 1\nb: {c:{d: 1}}\n", "x.yaml")
    assert (document.value["b"], document.place("b.c")) == ({"c": {"d": 1}}, (2, 5))


def test_a_document_has_a_bound(monkeypatch):
    """Beyond two million keys and values, it is no object of an API server."""
    monkeypatch.setattr("config.yaml_reader.LARGEST", 5)
    assert refused("a: [1, 2, 3]\n") == "x.yaml:1: larger than 5 keys and values"


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("a: 1\nb: 2\na: 3\n", "x.yaml:3: duplicate key 'a'", id="duplicate"),
        pytest.param(
            "a:\n- {b: 1}\n- b: 1\n  c: 2\n  b: 3\n",
            "x.yaml:5: duplicate key 'b'",
            id="deep duplicate",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\napiVersion: v1\n",
            "x.yaml:3: duplicate key 'apiVersion'; a second object begins with ---",
            id="two objects",
        ),
        pytest.param("1: a\n'1': b\n", "x.yaml:2: duplicate key '1'", id="duplicate number"),
        pytest.param(
            "a: b\n\tc: d\n",
            "x.yaml:2: not YAML: found character '\\t' that cannot start any token",
            id="tab",
        ),
        pytest.param(
            "a: [1, 2\nb: 3\n",
            "x.yaml:2: not YAML: expected ',' or ']', but got ':'",
            id="not closed",
        ),
        pytest.param(
            "a: b: c\n", "x.yaml:1: not YAML: mapping values are not allowed here", id="two colons"
        ),
        pytest.param(
            "a: *b\n", "x.yaml:1: not YAML: found undefined alias 'b'", id="undefined alias"
        ),
        pytest.param(
            "? [a, b]\n: c\n", "x.yaml:1: not YAML: a key must be text", id="a list as a key"
        ),
        pytest.param("a: .inf\n", "x.yaml:1: not YAML: .inf is no number in JSON", id="infinite"),
        pytest.param(
            '{"a": 1e400}', "x.yaml:1: not JSON: the number 1e400 is too large", id="1e400"
        ),
        pytest.param(
            "a: 1\n18446744073709551616: b\n",
            "x.yaml:2: not YAML: tools write this number differently as a key; write it in quotes",
            id="a key of 65 bits",
        ),
        pytest.param(
            "a: 1\nb: {c: 1, <<: {c: 2}}\n",
            "x.yaml:2: not YAML: << changes the key 'c' before it, in some tools only; write << first, once",
            id="a merge key after its key",
        ),
        pytest.param(
            "a: {<<: {c: 1}, <<: {c: 2}}\n",
            "x.yaml:1: not YAML: << changes the key 'c' before it, in some tools only; write << first, once",
            id="two merge keys",
        ),
        pytest.param(
            "a: 1\n...\nb: 2\n",
            "x.yaml:3: not YAML: kubectl ignores what follows the end of a document; begin a document with ---",
            id="three dots",
        ),
        pytest.param(
            "a: 1\n---b: 2\n",
            "x.yaml:2: not YAML: a document begins with --- alone, not ---b: 2",
            id="a separator with more",
        ),
        pytest.param(
            "---\n\ufeffb: 2\n",
            "x.yaml:2: not YAML: a byte order mark inside a document; remove it",
            id="a byte order mark after the first line",
        ),
        pytest.param(
            "a: 1\n\ufeffb: 2\n",
            "x.yaml:2: not YAML: a byte order mark inside a document; remove it",
            id="a byte order mark inside",
        ),
        pytest.param(
            "a: [!!str, b]\n",
            "x.yaml:1: not YAML: a tag must be followed by a blank",
            id="glued tag",
        ),
        pytest.param(
            'a: "\\ud800"\n',
            "x.yaml:1: not JSON: str is not valid UTF-8: surrogates not allowed; write a character itself, not half of it (\\ud83d)",
            id="surrogate",
        ),
        pytest.param(
            "b: 1\na: \x00\n", "x.yaml:2: not YAML: the control character U+0000", id="NUL"
        ),
        pytest.param(
            "a: &a [*a]\n",
            "x.yaml:1: not YAML: found undefined alias 'a'",
            id="an alias within itself",
        ),
        pytest.param(
            "a: {<<: b}\n",
            "x.yaml:1: not YAML: << must be an object, or a list of objects",
            id="a merged text",
        ),
        pytest.param(
            "a: !!int b\n",
            "x.yaml:1: not YAML: 'b' is not of the type of its tag !!int",
            id="a text as a number",
        ),
        pytest.param(
            "[" * 400 + "]" * 400, "x.yaml:1: not JSON: Recursion limit reached", id="deep"
        ),
        pytest.param(
            "- " * 1100 + "a", "x.yaml:1: not YAML: nested too deeply", id="nested too deeply"
        ),
        pytest.param(
            BOMB,
            "x.yaml:4: not YAML: document contains excessive aliasing; write it out",
            id="aliases that explode",
        ),
        pytest.param(
            b"a: \xff\n", "x.yaml: not UTF-8 text: invalid start byte at byte 3", id="not UTF-8"
        ),
        pytest.param(
            "a: b\n".encode("utf-16-le"),
            "x.yaml:1: not YAML: the control character U+0000",
            id="UTF-16 without a mark",
        ),
    ],
)
def test_an_unusable_file_is_reported_in_one_line(text, told):
    """The message has the file, the line if there is one, and the fault."""
    assert refused(text) == told


KEPT = "kind: A\nname: {}\n"
UNUSABLE = {
    "not closed": ("a: [1, 2\n", 1, "not YAML: expected ',' or ']'"),
    "duplicate": ("a: 1\na: 2\n", 2, "duplicate key 'a'"),
    "a template": ("a: {{ .Values.a }}\n", 1, "not YAML: a key must be text; a template must be"),
    "three dashes and more": ("a: 1\n---b\n", 2, "not YAML: a document begins with --- alone"),
    "two of them": ("---a\n---b\n", 1, "not YAML: a document begins with --- alone, not ---a"),
    "three dots": ("a: 1\n...\nb: 2\n", 3, "not YAML: kubectl ignores what follows"),
    "a mark": ("a: 1\n\ufeffb: 2\n", 2, "not YAML: a byte order mark inside a document"),
    "a control character": ("a: 1\nb: \x00\n", 2, "not YAML: the control character U+0000"),
    "half a character": ('\n\na: "\\ud800"\n', 3, "not JSON: str is not valid UTF-8"),
    "deep": ("- " * 1100 + "a\n", 1, "not YAML: nested too deeply"),
    "a quote": ('a: "b\n', 1, "not YAML: found unexpected end of stream"),
    "a block": ("a: |\n  b\n c\n", 3, "not YAML: expected <block end>, but found"),
    "a tab": ("a:\n\tb: 1\n", 2, "not YAML: found character '\\t'"),
    "an alias": ("a: *b\n", 1, "not YAML: found undefined alias 'b'"),
}


@pytest.mark.parametrize("fault", UNUSABLE)
def test_an_unusable_document_hides_no_other(fault):
    """Each is named once, with its line and reason; the others are read, with their lines."""
    broken, at, problem = UNUSABLE[fault]
    texts = [KEPT.format(1), broken, KEPT.format(2), "# nothing\n", broken, KEPT.format(3)]
    text = "---\n".join(texts)
    begins = ["---\n".join([*texts[:index], ""]).count("\n") for index in range(len(texts))]
    documents, faults = readable_documents(parse_documents(text.encode(), "x.yaml"))
    assert [(each.value["name"], each.line("name")) for each in documents] == [
        (number, begins[index] + 2) for number, index in ((1, 0), (2, 2), (3, 5))
    ]
    assert len(faults) == 2
    for found, begin in zip(faults, (begins[1], begins[4]), strict=True):
        assert found.startswith(f"x.yaml:{begin + at}: {problem}")


def read(text):
    """Return the value and line of each document of a text, and line and reason of each fault."""
    found, unusable = readable_documents(parse_documents(text.encode(errors="surrogatepass"), "x"))
    faults = [re.fullmatch(r"x:(\d+): (.*)", each, re.DOTALL).groups() for each in unusable]
    return (
        [(repr(each.value), each.line()) for each in found],
        [(int(line), problem) for line, problem in faults],
    )


@pytest.mark.parametrize("seed", range(8))
def test_a_file_is_read_as_each_of_its_documents_alone(seed):
    """Random ones, usable or not: none hides another, and lines are those of the file."""
    number = 0
    for texts in random_documents(seed, 25):
        documents, faults, line = [], [], 0
        for text in texts:
            found, unusable = read(text)
            documents += [(value, line + at) for value, at in found]
            faults += [(line + at, problem) for at, problem in unusable]
            number += len(unusable)
            line += text.count("\n") + 1
        assert read("---\n".join(texts)) == (documents, faults), texts
    assert number > 25


@pytest.mark.parametrize(
    ("text", "values", "faults"),
    [
        pytest.param(
            '{"a": 1}{"b": 2}\n{"c": 3, "c": 4}\n{"d": 5}',
            [{"a": 1}, {"b": 2}, {"d": 5}],
            ["x:2: not JSON: duplicate key 'c'"],
            id="a value with a key twice",
        ),
        pytest.param(
            '{"a": 1e400}\n{"b": 2}',
            [{"b": 2}],
            ["x:1: not JSON: the number 1e400 is too large"],
            id="a number that is too large",
        ),
        pytest.param(
            '{"a": 1}{"b": 2}\n{"c": }\n{"d": 4}\n---\ne: 5\n---\nf: [\n',
            [{"a": 1}, {"b": 2}, {"e": 5}],
            [
                "x:2: not JSON: Expecting value: line 2 column 7 (char 23); "
                "what follows it, up to a line ---, is not read",
                "x:7: not YAML: expected the node content, but found '<stream end>'",
            ],
            id="what is not JSON, up to a separator",
        ),
        pytest.param(
            '{"a": 1}{"b": 2}' + '{"c":' * 5000,
            [{"a": 1}, {"b": 2}],
            ["x:1: not JSON: nested too deeply; what follows it, up to a line ---, is not read"],
            id="deep",
        ),
    ],
)
def test_an_unusable_json_value_hides_no_other(text, values, faults):
    """Values that follow each other have no separator; after a syntax error, the next --- is one."""
    documents, found = readable_documents(parse_documents(text.encode(), "x"))
    assert ([each.value for each in documents], found) == (values, faults)


def test_a_template_is_only_where_it_is():
    """The hint is about the document, not about another one with braces in a text."""
    text = "a: '{{b}}'\n---\na: [\n---\n{{ if a }}\n"
    _, faults = readable_documents(parse_documents(text.encode(), "x"))
    assert [each.endswith("a template must be rendered first") for each in faults] == [False, True]


def test_what_follows_very_many_unusable_documents_is_named_as_a_whole():
    """A file of them would take hours to parse, and fill the log."""
    text = "a: [\n---\n" * 100 + "b: 1\n---\nc: [\n---\nd: 1\n"
    documents, faults = readable_documents(parse_documents(text.encode(), "x"))
    assert [each.value for each in documents] == [{"b": 1}]
    assert (len(faults), faults[-1]) == (
        101,
        "x:203: not read from here: 100 documents before are unusable",
    )


def test_every_unreadable_document_of_several_files_is_named(tmp_path):
    """One error has a line for each."""
    for name, text in (("a.yaml", "a: [\n---\nb: 1\n"), ("b.yaml", "c: 1\n---\nd: {\n")):
        (tmp_path / name).write_text(text)
    with pytest.raises(DocumentError) as error:
        documents_at([tmp_path])
    assert [each.partition(" ")[0] for each in error.value.lines] == [
        f"{tmp_path}/a.yaml:1:",
        f"{tmp_path}/b.yaml:3:",
    ]


def test_a_byte_order_mark_is_no_fault():
    """Editors that write one are common."""
    assert values("\ufeffa: 1\n") == [{"a": 1}]


def test_errors_name_files_by_their_path(tmp_path):
    """The error for a missing file or for a directory has the path as given."""
    with pytest.raises(DocumentError) as error:
        list(read_documents(tmp_path / "none.yaml"))
    assert str(error.value) == f"{tmp_path}/none.yaml: No such file or directory"
    with pytest.raises(DocumentError) as error:
        list(read_documents(tmp_path))
    assert str(error.value) == f"{tmp_path}: Is a directory"
    (tmp_path / "a.yaml").write_text("a: [")
    with pytest.raises(DocumentError) as error:
        list(read_documents(tmp_path / "a.yaml"))
    assert str(error.value).startswith(f"{tmp_path}/a.yaml:1: not YAML: ")


def test_a_directory_is_its_files(tmp_path):
    """Its YAML and JSON files are read in sorted order, without hidden ones (..data of a mounted ConfigMap)."""
    for name in (
        "b.yaml",
        "a.yml",
        "c.json",
        "README.md",
        ".hidden.yaml",
        "sub/d.yaml",
        "..data/e.yaml",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a: 1\n")
    names = [str(file.relative_to(tmp_path)) for file in yaml_files(tmp_path)]
    assert names == ["a.yml", "b.yaml", "c.json", "sub/d.yaml"]
    assert yaml_files(tmp_path / "README.md") == [tmp_path / "README.md"]


def test_a_directory_without_yaml_is_a_fault(tmp_path):
    """A directory without files is an error, not an empty result."""
    with pytest.raises(DocumentError) as error:
        yaml_files(tmp_path)
    assert str(error.value) == f"{tmp_path}: no YAML files in this directory"


def test_a_link_hides_no_file_of_a_directory(tmp_path):
    """One to a directory elsewhere is an error, and one to nothing is read, which is another."""
    top = tmp_path / "top"
    (top / "..data").mkdir(parents=True)
    (top / "..data/a.yaml").write_text("a: 1\n")
    (top / "a.yaml").symlink_to("..data/a.yaml")  # as the kubelet mounts a ConfigMap
    (top / "data").symlink_to("..data")
    (top / ".hidden").symlink_to(tmp_path)
    (top / "gone.yaml").symlink_to("none.yaml")
    assert yaml_files(top) == [top / "a.yaml", top / "gone.yaml"]
    (top / "more").symlink_to(tmp_path)
    with pytest.raises(DocumentError) as error:
        yaml_files(top)
    assert str(error.value) == f"{top}/more: not read: a link to a directory; name that one"
