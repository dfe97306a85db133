"""For each function and macro of the table, calls over the value `o`, whose parts have a given size."""

from typing import Any

from webhook.cel.values import Optional

# By function: expressions that call each of its overloads in the slowest way.
CALLS: dict[str, list[str]] = {
    "_&&_": ["o.flags.all(x, x && true && x)", "o.numbers.all(x, (o.no && o.no && o.no) || true)"],
    "_||_": ["o.flags.all(x, false || x)", "o.numbers.all(x, o.no.no || o.text.no || true)"],
    "_?_:_": ["o.flags.map(x, x ? 1 : 2)"],
    "_[_]": ["o.places.map(x, o.numbers[x])", "o.keys.map(x, o.map[x])", "o.map[o.text]"],
    "_[?_]": ["o.places.map(x, o.numbers[?x])", "o.keys.map(x, o.map[?x])", "o.map[?o.text]"],
    "_==_": [
        "o.numbers == o.numbers", "o.map == o.map", "o.lists == o.lists", "o.shared == o.shared",
        "o.text == o.text2", "o.wide == o.wide2", "o.bytes == o.bytes2", "o.texts == o.texts2",
    ],
    "_!=_": ["o.numbers != o.numbers", "o.text != o.text2", "o.shared != o.shared"],
    "isSorted": ["o.numbers.isSorted()", "o.texts.isSorted()"],
    "sum": ["o.numbers.sum()", "o.doubles.sum()"],
    "min": ["o.numbers.min()", "o.texts.min()"],
    "max": ["o.numbers.max()", "o.texts.max()"],
    "indexOf": [
        "o.numbers.indexOf(-1)", "o.shared.indexOf(o.shared)", "o.texts.indexOf(o.text)",
        "o.text.indexOf(o.needle)", "o.wide.indexOf(o.wideneedle)", "o.text.indexOf(o.half)",
    ],
    "lastIndexOf": [
        "o.numbers.lastIndexOf(-1)", "o.text.lastIndexOf(o.needle)", "o.text.lastIndexOf(o.half)",
        "o.text.lastIndexOf(o.half, 100)",
    ],
    "slice": ["o.numbers.slice(0, o.numbers.size())", "o.numbers.slice(0, 1000000000)"],
    "flatten": ["o.lists.flatten()", "o.shared.flatten(20)", "o.numbers.flatten(1)"],
    "sort": ["o.numbers.sort()", "o.reversed.sort()", "o.mixed.sort()", "o.texts.sort()", "o.lists.sort()"],
    "distinct": ["o.numbers.distinct()", "o.same.distinct()", "o.shared.distinct()"],
    "reverse": ["o.numbers.reverse()"],
    "first": ["o.numbers.first()"],
    "last": ["o.numbers.last()"],
    "lists.range": ["lists.range(o.size)"],
    "sets.contains": ["sets.contains(o.numbers, o.reversed)", "sets.contains(o.shared, o.shared)"],
    "sets.equivalent": ["sets.equivalent(o.numbers, o.reversed)", "sets.equivalent(o.same, o.same)"],
    "sets.intersects": ["sets.intersects(o.numbers, o.texts)", "sets.intersects([], o.texts)"],
    "optional.of": ["optional.of(o)"],
    "optional.none": ["optional.none()"],
    "optional.ofNonZeroValue": ["optional.ofNonZeroValue(o.numbers)"],
    "hasValue": ["o.?numbers.hasValue()"],
    "value": ["o.?numbers.value()"],
    "or": ["o.?nope.or(o.?numbers)"],
    "orValue": ["o.?nope.orValue(o.numbers)"],
    "optional.unwrap": ["optional.unwrap(o.optionals)"],
    "unwrapOpt": ["o.optionals.unwrapOpt()"],
    "timestamp": [
        "timestamp(o.time)", "timestamp(o.text)", "timestamp(1)", "timestamp(timestamp(1))",
    ],
    "duration": [
        "duration('1h2m3s4ms5us6ns')", "duration(o.digits)", "duration(duration('1s'))",
        "duration(o.size)",
    ],
    "int": [
        "int(timestamp(1))", "int(duration('1s'))", "int(o.digits)", "int('123456789')", "int(1)",
        "int(1u)", "int(1.5)",
    ],
    "uint": ["uint('123456789')", "uint(1)", "uint(1u)", "uint(1.5)"],
    "double": ["double(o.digits)", "double('123.456e7')", "double(1)", "double(1.0)"],
    "bool": ["bool('true')", "bool(o.text)", "bool(true)"],
    "bytes": ["bytes(o.text)", "bytes(o.wide)", "bytes(o.bytes)"],
    "dyn": ["dyn(o)"],
    "type": ["type(o)"],
    "string": [
        "string(o.text)", "string(o.bytes)", "string(o.widebytes)", "string(1)", "string(1.5e300)",
        "string(true)", "string(timestamp(1))", "string(duration('1.5s'))", "string(ip('::1'))",
        "string(cidr('::1/8'))",
    ],
    "ip": ["ip(o.ip)", "ip(o.text)", "ip(o.colons)", "ip(o.dots)", "cidr('10.0.0.0/8').ip()"],
    "isIP": ["isIP(o.ip)", "isIP(o.colons)", "isIP(o.dots)"],
    "ip.isCanonical": ["ip.isCanonical(o.ip)", "ip.isCanonical(o.text)"],
    "cidr": ["cidr('2001:db8:1:2::/64')", "cidr(o.text)", "cidr(o.slashes)"],
    "isCIDR": ["isCIDR('10.0.0.0/8')", "isCIDR(o.slashes)", "isCIDR(o.colons)"],
    "containsIP": [
        "cidr('2001:db8::/32').containsIP(ip(o.ip))", "cidr('2001:db8::/32').containsIP(o.ip)",
        "cidr('::/0').containsIP(o.text)",
    ],
    "containsCIDR": [
        "cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", "cidr('::/0').containsCIDR(o.colons)",
    ],
    "prefixLength": ["cidr('10.0.0.0/8').prefixLength()"],
    "masked": ["cidr('2001:db8::1/32').masked()"],
    "url": ["url(o.url)", "url(o.text)", "url(o.host)", "url(o.percents)"],
    "isURL": ["isURL(o.url)", "isURL(o.colons)", "isURL(o.percents)"],
    "getEscapedPath": ["url(o.url).getEscapedPath()", "url(o.widepath).getEscapedPath()"],
    "getQuery": ["url(o.url).getQuery()", "url(o.percents).getQuery()"],
    "getHostname": ["url(o.host).getHostname()"],
    "getPort": ["url(o.host).getPort()"],
    "format.named": ["format.named(o.text)"],
    "validate": [
        "format.qualifiedName().validate('example.com/Name')",
        *(
            f"format.named('{name}').value().validate(o.{part})"
            for name in ("dns1123Subdomain", "qualifiedName", "uri", "byte", "uuid", "datetime")
            for part in ("text", "dots", "slashes", "wide")
        ),
    ],
    "charAt": ["o.wide.charAt(o.wide.size() - 1)"],
    "lowerAscii": ["o.text.lowerAscii()", "o.wide.lowerAscii()"],
    "upperAscii": ["o.text.upperAscii()", "o.wide.upperAscii()"],
    "trim": ["o.spaces.trim()", "o.widespaces.trim()"],
    "replace": [
        "o.text.replace('a', 'bb')", "o.text.replace('', 'b')", "o.text.replace(o.needle, '')",
        "o.wide.replace('', o.wide)", "o.text.replace('a', '')", "o.text.replace('a', 'b', 3)",
        "o.text.replace('a', o.text)",
    ],
    "split": ["o.words.split(',')", "o.wide.split('')", "o.text.split(o.needle)", "o.words.split(',', 3)"],
    "substring": ["o.wide.substring(1)", "o.wide.substring(1, o.wide.size())"],
    "join": ["o.texts.join()", "o.texts.join(o.text)", "o.empty.join()", "o.long.join('-')"],
    "strings.quote": ["strings.quote(o.quotes)", "strings.quote(o.wide)"],
    "jsonpatch.escapeKey": ["jsonpatch.escapeKey(o.tildes)", "jsonpatch.escapeKey(o.slashes)"],
    "base64.encode": ["base64.encode(o.bytes)"],
    "base64.decode": ["base64.decode(o.base64)", "base64.decode(o.equals)", "base64.decode(o.wide)"],
    "matches": [
        "o.text.matches('(a?){300}b')", "o.ab.matches('(a|b)*a(a|b){12}c')", "o.text.matches('b$')",
        "o.ab.matches('a.{0,200}c')", "matches(o.text, 'a')", "o.ab.matches('[ab]*a[ab]{200}c')",
        "o.wide.matches('(\\\\w+\\\\s?)*$')", "o.few.all(x, x.matches('a{' + x + '}') || true)",
        "o.few.all(x, x.matches('.{' + x + '}') || true)",
        "o.few.all(x, 'a'.matches('\\\\pL{100}' + x) || true)",
    ],
    "find": ["o.text.find('a+')", "o.ab.find('(a|b)*a(a|b){12}c')", "o.text.find('(a?){300}b')"],
    "findAll": [
        "o.text.findAll('a')", "o.text.findAll('a.*b|a')", "o.wide.findAll('')",
        "o.ab.findAll('[ab]*a[ab]{20}c|a')", "o.text.findAll('a', 5)",
    ],
    "format": [
        "'%s'.format([o.numbers])", "'%s'.format([o.shared])", "'%s'.format([o.map])",
        "'%s'.format([o.texts])", "'%s'.format([o.quotelist])", "'%s'.format([o.doubles])",
        "'%x'.format([o.wide])", "'%X'.format([o.bytes])", "o.clauses.format(o.numbers)",
        "'%.100f %e %d %b %o'.format([1e308, 1.5, 7, 7, 7])", "o.text.format([])",
        "'%s'.format([o.text])", "o.text.format(o.numbers)", "o.percents.format([])",
    ],
    **{name: [f"o.text {name[1:-1]} o.text2", f"o.wide {name[1:-1]} o.wide2", f"1 {name[1:-1]} 1.5"]
       for name in ("_<_", "_<=_", "_>_", "_>=_")},
    "!_": ["!o.flag"],
    "-_": ["-o.size", "-o.double"],
    "_+_": [
        "1 + o.size", "1.5 + 2.5", "o.text + o.text2", "o.wide + o.wide", "o.bytes + o.bytes",
        "o.numbers + o.numbers", "duration('1s') + timestamp(1)", "timestamp(1) + duration('1s')",
    ],
    "_-_": ["o.size - 1", "1.5 - 2.5", "timestamp(1) - timestamp(2)", "timestamp(1) - duration('1s')"],
    "_*_": ["o.size * 2", "1.5 * 2.5"],
    "_/_": ["o.size / 2", "1.5 / 0.0"],
    "_%_": ["o.size % 2"],
    "@in": [
        "-1 in o.numbers", "o.text in o.texts", "o.text in o.copies", "o.text in o.map",
        "o.shared in o.shared", "1.5 in o.numbers",
    ],
    "size": ["o.text.size()", "size(o.map)", "o.numbers.size()", "o.bytes.size()"],
    "startsWith": ["o.text.startsWith(o.text2)", "o.wide.startsWith(o.wide2)"],
    "endsWith": ["o.text.endsWith(o.text2)"],
    "contains": ["o.text.contains(o.needle)", "o.wide.contains(o.wideneedle)", "o.text.contains(o.half)"],
    "math.greatest": ["math.greatest(o.numbers)", "math.greatest(1, 2.5, 3u, 4)"],
    "math.least": ["math.least(o.doubles)", "math.least(1, 2.5, 3u, 4)"],
    **{f"math.{name}": [f"math.{name}(-1.5)"] for name in
       ("ceil", "floor", "trunc", "round", "isInf", "isNaN", "isFinite", "sqrt")},
    "math.abs": ["math.abs(-1.5)", "math.abs(o.size)"],
    "math.sign": ["math.sign(o.size)"],
    "math.bitNot": ["math.bitNot(o.size)", "math.bitNot(1u)"],
    **{f"math.{name}": [f"math.{name}(o.size, 1)"] for name in
       ("bitAnd", "bitOr", "bitXor", "bitShiftLeft", "bitShiftRight")},
    "quantity": ["quantity(o.digits)", "quantity('1' + string(o.size) + '.5Gi')", "quantity('1e999')"],
    "isQuantity": ["isQuantity(o.digits)", "isQuantity(o.digits + '!')", "isQuantity(o.dots)"],
    **{name: [f"{name}(quantity('1e500'))"] for name in ("sign",)},
    **{name: [f"quantity('1e500').{name}()"] for name in
       ("isInteger", "asInteger", "asApproximateFloat")},
    **{name: [f"quantity('1e500').{name}(quantity('1.5n'))"] for name in ("add", "sub")},
    **{name: [f"quantity('1e500').{name}(quantity('1.5n'))", f"semver('1.2.3-a').{name}(semver('1.2.3-b'))"]
       for name in ("isGreaterThan", "isLessThan", "compareTo")},
    "semver": ["semver('1.2.3-rc.1+b')", "semver(o.versions)", "semver(o.digits, true)"],
    "isSemver": ["isSemver(o.dots)", "isSemver(o.versions)", "isSemver(o.text, true)"],
    **{name: [f"semver('1.2.3').{name}()"] for name in ("major", "minor", "patch")},
    **{name: [f"timestamp(1).{name}()", f"timestamp(1).{name}('+05:30')",
              f"o.few.map(x, timestamp(1).{name}('America/New_York'))",
              f"o.few.all(x, timestamp(1).{name}('No/' + x) == 0 || true)"]
       for name in ("getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek")},
    **{name: [f"timestamp(1).{name}()", f"duration('1h').{name}()",
              f"o.few.all(x, timestamp(1).{name}(o.host) == 0 || true)",
              f"o.few.all(x, timestamp(1).{name}(o.wide) == 0 || true)"]
       for name in ("getHours", "getMinutes", "getSeconds", "getMilliseconds")},
    **{name: [f"ip('2001:db8::1').{name}()"] for name in
       ("family", "isUnspecified", "isLoopback", "isLinkLocalUnicast", "isLinkLocalMulticast",
        "isGlobalUnicast")},
    **{name: [f"url('https://a:1/b?c').{name}()"] for name in ("getScheme", "getHost")},
    **{f"format.{name}": [f"format.{name}()"] for name in
       ("dns1123Label", "dns1123LabelPrefix", "dns1123Subdomain", "dns1123SubdomainPrefix",
        "dns1035Label", "dns1035LabelPrefix", "labelValue", "qualifiedName", "uuid", "byte", "uri",
        "date", "datetime")},
    # Functions that only the API server can evaluate: the first call is an error.
    **{name: ["o.flags.all(x, authorizer.group('a').resource('b').check('c').allowed() || true)"]
       for name in ("path", "group", "serviceAccount", "resource", "subresource", "namespace",
                    "name", "fieldSelector", "labelSelector", "check", "allowed", "errored",
                    "reason", "error")},
}  # fmt: skip

MACRO_CALLS: dict[tuple[str, int], list[str]] = {
    ("all", 2): ["o.numbers.all(x, true)", "o.map.all(x, true)"],
    ("exists", 2): ["o.numbers.exists(x, false)"],
    ("exists_one", 2): ["o.numbers.exists_one(x, false)"],
    ("existsOne", 2): ["o.numbers.existsOne(x, false)"],
    ("filter", 2): ["o.numbers.filter(x, true)"],
    ("map", 2): ["o.numbers.map(x, [x, x, x])", "o.numbers.map(x, o.few.map(y, o.few.map(z, x)))"],
    ("map", 3): ["o.numbers.map(x, true, x)"],
    ("all", 3): ["o.map.all(x, y, true)"],
    ("exists", 3): ["o.numbers.exists(x, y, false)"],
    ("exists_one", 3): ["o.numbers.exists_one(x, y, false)"],
    ("existsOne", 3): ["o.numbers.existsOne(x, y, false)"],
    ("transformList", 3): ["o.map.transformList(x, y, y)"],
    ("transformList", 4): ["o.map.transformList(x, y, true, y)"],
    ("transformMap", 3): ["o.map.transformMap(x, y, y)"],
    ("transformMap", 4): ["o.map.transformMap(x, y, true, y)"],
    ("transformMapEntry", 3): [
        "o.map.transformMapEntry(x, y, {x: y})", "o.one.transformMapEntry(x, y, o.map)",
        "o.few.all(i, o.two.transformMapEntry(x, y, o.map) == {} || true)",
    ],
    ("transformMapEntry", 4): ["o.map.transformMapEntry(x, y, true, {x: y})"],
    ("sortBy", 2): ["o.numbers.sortBy(x, -x)", "o.copies.sortBy(x, x)"],
    ("optMap", 2): ["o.?numbers.optMap(x, x)"],
    ("optFlatMap", 2): ["o.?numbers.optFlatMap(x, o.?map)"],
}  # fmt: skip


def parts(size: int) -> dict[str, Any]:
    """Return the value of `o`: texts of `size` characters, lists and maps of `size` items."""
    shared: list[Any] = [1]
    for _ in range(min(size, 20).bit_length() * 2):
        shared = [shared] * 10
    text, wide = "a" * size, "é中" * (size // 2)
    return {
        "size": size, "double": 1.5, "flag": True, "text": text, "text2": "a" * size, "wide": wide,
        "wide2": "é中" * (size // 2), "bytes": text.encode(), "bytes2": b"a" * size,
        "widebytes": wide.encode(), "needle": "a" * min(97, size) + "ba",
        "wideneedle": "é中" * 40 + "xé", "half": "ab" + "a" * (size // 2), "spaces": " " * size,
        "widespaces": "\u3000" * size, "quotes": '"' * size, "tildes": "~" * size,
        "slashes": "/" * size, "dots": "1." * (size // 2), "colons": "1:" * (size // 2),
        "digits": "1" * size, "words": "a," * (size // 2), "equals": "=" * size,
        "base64": "aGk=" [:3] + "a" * (size // 4 * 4 + 1), "time": "2026-01-01T00:00:00.123Z",
        "ip": "2001:db8:1:2:3:4:5:6", "versions": "1.2.3-" + "a." * min(size, 120) + "1",
        "ab": "".join("ab"[(i * i >> 3) & 1 ^ (i % 7 == 3)] for i in range(size)),
        "url": "https://a/" + "b c" * (size // 3) + "?" + "a=b&" * (size // 4),
        "host": "https://" + "a" * size + ":1/", "percents": "https://a/" + "%41%" * (size // 4),
        "widepath": "/" + wide, "clauses": "%s" * size,
        "numbers": list(range(size)), "reversed": list(range(size, 0, -1)), "same": [1] * size,
        "mixed": [i * 7919 % (size or 1) for i in range(size)],
        "doubles": [i / 3 for i in range(size)], "flags": [True] * size,
        "places": list(range(min(size, 1000))), "keys": [str(i) for i in range(min(size, 1000))],
        "texts": [f"text {i}" for i in range(size)], "texts2": [f"text {i}" for i in range(size)],
        "quotelist": ['"' * 8] * size, "empty": [""] * size, "long": ["a" * 100] * size,
        "copies": [text[:-1] + "b"] * size, "lists": [[i] for i in range(size)],
        "few": [str(i) for i in range(min(size, 60))], "optionals": [Optional(i) for i in range(size)],
        "shared": shared, "map": {str(i): i for i in range(size)}, "one": [1], "two": [1, 2],
    }  # fmt: skip
