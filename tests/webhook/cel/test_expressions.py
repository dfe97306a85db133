"""Values and compile errors of expressions on a Kubernetes object."""

import pytest

from webhook.cel import CompileError, EvaluationError, Variables
from webhook.cel.admission_environment import ADMISSION, AUTHORIZER, with_variable, without_params
from webhook.cel.types import INT

OBJECT = {
    "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {"replicas": "3"}},
    "spec": {
        "replicas": 3,
        "ratio": 0.5,
        "nothing": None,
        "template": {
            "spec": {"containers": [{"name": "a", "image": "r/a:1"}, {"name": "b", "image": "q/b"}]}
        },
        "limits": {"cpu": "500m", "memory": "2Gi"},
    },
}
REQUEST = {
    "operation": "UPDATE",
    "userInfo": {"username": "alice", "groups": ["devs"]},
    "dryRun": False,
}
DYN = (
    "must evaluate to bool but got dyn, whose type is known only when it runs; "
    "compare it: (…) == true"
)


def evaluated(expression, **values):
    """Return the value of an expression about OBJECT."""
    activation = ADMISSION.activation(
        {"object": OBJECT, "request": REQUEST, "authorizer": AUTHORIZER, **values}
    )
    return ADMISSION.compile(expression).evaluate(activation)


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.replicas <= 3 && object.spec.replicas * 2 == 6",
        "object.spec.template.spec.containers.all(c, has(c.image) && !has(c.securityContext))",
        "object.spec.template.spec.containers.exists_one(c, c.image.startsWith('r/'))",
        "object.spec.template.spec.containers.map(c, c.name) == ['a', 'b']",
        "object.spec.template.spec.containers.filter(c, c.name > 'a').size() == 1",
        "object.metadata.labels.exists(k, v, k == 'app' && v == 'web')",
        "object.metadata.labels.transformList(k, v, k + '=' + v).join(',') == 'app=web'",
        "object.metadata.labels.transformMap(k, v, v.upperAscii()) == {'app': 'WEB'}",
        "object.metadata.?labels[?'team'].orValue('none') == 'none'",
        "object.?spec.?replicas.optMap(r, r > 2).orValue(false)",
        "object.spec.nothing == null && has(object.spec.nothing)",
        "int(object.metadata.annotations['replicas']) == object.spec.replicas",
        "object.spec.ratio < 1 && object.spec.ratio + 0.5 == 1.0",
        "quantity(object.spec.limits.cpu).isLessThan(quantity('1')) && quantity('2Gi').compareTo(quantity('2G')) == 1",
        "quantity('1k').asInteger() == 1000 && !quantity('500m').isInteger() && sign(quantity('-1')) == -1",
        "semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('v1.2', true).minor() == 2",
        "ip('192.168.0.1').family() == 4 && cidr('192.168.0.0/24').containsIP('192.168.0.77')",
        "cidr('10.0.0.5/8').masked().ip() == ip('10.0.0.0') && !isIP('::ffff:1.2.3.4')",
        "url('https://a.example:8443/p?x=1&x=2').getQuery() == {'x': ['1', '2']} && isURL('/path') && !isURL('a b')",
        "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getPort() == '80'",
        "!format.dns1123Label().validate('web').hasValue() && format.named('nope') == optional.none()",
        "'a-1 b-22'.findAll('[a-z]-[0-9]+') == ['a-1', 'b-22'] && 'abc'.find('b.') == 'bc'",
        "base64.decode('aGk=') == b'hi' && base64.encode(b'hi') == 'aGk='",
        "sets.contains([1, 2, 3], [3]) && math.greatest(1, 2, 3) == 3 && lists.range(3) == [0, 1, 2]",
        "timestamp('2026-01-01T00:00:00.5Z') - timestamp('2026-01-01T00:00:00Z') == duration('500ms')",
        "duration('90m').getHours() == 1 && string(duration('1.5s')) == '1.5s'",
        "request.operation == 'UPDATE' && 'devs' in request.userInfo.groups && request.userInfo.username == \"alice\"",
        "object.missing.field == 1 || true",
        "!(object.missing.field == 1 && false)",
        "[1, 2].exists(i, i / 0 == 1 || i == 2)",
        "oldObject == null",
        "object.spec.`replicas` == 3",
        "jsonpatch.escapeKey('a/b~c') == 'a~1b~0c'",
    ],
)
def test_expressions_are_true(expression):
    """Each of these expressions is true."""
    assert evaluated(expression) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("object.spec.nope > 1", "no such key: nope"),
        ("object.metadata.name > 1", "no such overload"),
        ("object.spec.template.spec.containers[5].name == 'x'", "index out of bounds: 5"),
        ("object.spec.replicas / 0 == 1", "division by zero"),
        ("object.spec.replicas + 9223372036854775807 > 0", "integer overflow"),
        ("quantity('1kk').isInteger()", "unable to parse quantity's suffix"),
        ("[1, 2].all(i, i / 0 == 1)", "division by zero"),
        (
            "authorizer.group('').resource('pods').check('get').allowed()",
            "authorizer: only the API server can check permissions",
        ),
        (
            "authorizer.requestResource.check('get').allowed()",
            "authorizer: only the API server can check permissions",
        ),
    ],
)
def test_errors(expression, message):
    """The message is that of the API server."""
    with pytest.raises(EvaluationError) as caught:
        evaluated(expression)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("objet.spec", "1:1: undeclared reference to 'objet'; did you mean \"object\"?"),
        ("true &&\n  request.operaton == 'x'", "2:11: undefined field 'operaton' of 'AdmissionRequest'; did you mean "
         '"operation"?'),
        ("object.name.startWith('a')", "1:13: undeclared reference to 'startWith()'; did you mean \"startsWith()\"?"),
        ("'a'.startsWith()", "1:5: found no matching overload for 'startsWith' applied to 'string.()'; it takes "
         "string.(string)"),
        ("1 + 'a' == 2", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("'a'.matches('[')", "1:13: invalid matches argument: error parsing regexp: missing ]: ["),
        ("timestamp('soon') < timestamp(0)", "1:11: invalid timestamp argument: type conversion error from 'string' to "
            "'google.protobuf.Timestamp'"),
        ("object.spec == ", "1:16: syntax error: found 'end of expression', expected a value"),
        ("object.spec)", "1:12: syntax error: found ')', expected an operator or the end"),
        ("[1, 'a'] == []", "1:1: expected type 'int' but found 'string'"),
        ("has(object)", "1:5: invalid argument to has() macro; it takes a field, such as has(object.spec)"),
        ("object.all(1, true)", "1:12: argument must be a simple name"),
        ("9223372036854775808 > 1", "1:1: 9223372036854775808: integer out of range"),
        ("object.spec", f"1:1: {DYN}"),
        ("object.spec.?on.orValue(false)", f"1:1: {DYN}"),
        ("'a' == \"b", "1:8: syntax error: unexpected character '\"'"),
    ],
)  # fmt: skip
def test_invalid_expressions_are_rejected(expression, message):
    """The error has line, column and a suggestion."""
    with pytest.raises(CompileError) as caught:
        ADMISSION.compile(expression, "bool")
    assert str(caught.value) == message


def test_params_are_declared_only_with_parameters():
    """An expression of a policy without parameters cannot use them."""
    with pytest.raises(CompileError, match="undeclared reference to 'params'"):
        without_params(ADMISSION).compile("params.maximum > 1")


def test_a_variable_is_evaluated_once():
    """`variables.x` is computed when it is first read, and an error is remembered."""
    environment = with_variable(ADMISSION, "count", INT)
    variables = Variables(
        {
            "count": ADMISSION.compile("object.spec.replicas + 1"),
            "broken": ADMISSION.compile("[1].map(i, object.nope)"),
        }
    )
    variables.activation = environment.activation({"object": OBJECT, "variables": variables})
    assert environment.compile("variables.count == 4").evaluate(variables.activation) is True
    assert variables == {"count": 4}
    broken = with_variable(environment, "broken", INT).compile("variables.broken == 1")
    text = 'composited variable "broken" fails to evaluate: no such key: nope'
    left = [variables.activation[0].left]
    for _ in range(2):
        with pytest.raises(EvaluationError, match=f"^{text}$"):
            broken.evaluate(variables.activation)
        left.append(variables.activation[0].left)
    assert left[1] - left[2] == broken.nodes < left[0] - left[1]
    with pytest.raises(CompileError, match='did you mean "count"'):
        environment.compile("variables.cuont")
