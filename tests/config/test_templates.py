import pytest

from config.templates import MAX_TOKENS, render_values

VARIABLES = {"application": "shop", "environment": "prod", "namespace": "sales"}


def one(template: str) -> str:
    """Return the rendered text or the error of a template."""
    done, faults = render_values({"key": template}, VARIABLES)
    (found,) = [*done.values(), *(text for _, text in faults)]
    return found


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain { text }\n", "plain { text }\n"),
        ("{{ application }}.{{namespace}}.svc\n", "shop.sales.svc\n"),
        ("{{ environment | upper | lower | title }}", "Prod"),
        ("{{ application | capitalize }}-{{ application | trim('sp') }}", "Shop-ho"),
        ("{{ application | replace('shop', '{{ x }}') }}", "{{ x }}"),
        ("{{ 'debug' if environment == 'dev' else 'info' }}", "info"),
        ("{{ 'debug' if environment != 'prod' }}", ""),
        (
            "{{ 'a' if environment == 'dev' else 'b' if environment == 'prod' else application }}",
            "b",
        ),
        ("{{ (application | upper) if namespace == 'sales' else 'x' }}", "SHOP"),
        ("{% raw %}{{ .Values.x }}{% endraw %}{# a comment #}!", "{{ .Values.x }}!"),
    ],
)
def test_variables_filters_and_text_are_rendered(template, expected):
    """The output is not rendered again."""
    assert one(template) == expected


ONLY = "is not allowed; use only variables, filters with text arguments, and choices by a variable"


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        (
            "\n{{ secret }}",
            'line 2: undefined variable "secret"; known variables: application, environment, namespace',
        ),
        ("{{ 'a'*300000000 }}", f"line 1: Mul {ONLY}"),
        ("{{ application.__class__ }}", f"line 1: Getattr {ONLY}"),
        ("{{ application() }}", f"line 1: Call {ONLY}"),
        ("{{ 'text' }}", f"line 1: Const {ONLY}"),
        ("{% for x in application %}{% endfor %}", f"line 1: For {ONLY}"),
        ("{% include '/etc/passwd' %}", f"line 1: Include {ONLY}"),
        ("{{ application | replace('a', namespace) }}", f"line 1: Name {ONLY}"),
        ("{{ application | replace('a', new='b') }}", f"line 1: Keyword {ONLY}"),
        ("{{ application | trim(9) }}", f"line 1: Const {ONLY}"),
        (
            "{{ application | center('9') }}",
            'line 1: filter "center" is not one of capitalize, lower, replace, title, trim, upper',
        ),
        ("{{ application | replace('a') }}", 'line 1: filter "replace" takes 2 arguments'),
        ("{{ 'a' if environment else 'b' }}", f"line 1: Name {ONLY}"),
        ("{{ 'a' if environment > 'dev' else 'b' }}", f"line 1: Compare {ONLY}"),
        ("{{ 'a' if environment == 'dev' == 'x' else 'b' }}", f"line 1: Compare {ONLY}"),
        (
            "{{ 'a' if environment == 'prod' else secret }}",
            'line 1: undefined variable "secret"; known variables: application, environment, namespace',
        ),
        (
            "{{ 'a' if tier == 'prod' else 'b' }}",
            'line 1: undefined variable "tier"; known variables: application, environment, namespace',
        ),
        ("{{ application }", "line 1: unexpected '}'"),
        ("{{ application", "line 1: unexpected end of template, expected 'end of print statement'"),
        ("{{" + "(" * 3000 + "}}", "line 1: unexpected '}', expected ')'"),
        ("{{" + "(" * 1500 + "a" + ")" * 1500 + "}}", "nested too deeply"),
        ("{{ " + "1" * 5000 + " }}", "a number is too long"),
        (
            "{{ application" + "|replace('', 'xxxxxxxxxxxxxxxxxxxx')" * 9 + " }}",
            "line 1: its filters produce more than 4096 characters",
        ),
        (
            "{{ application | trim('" + "x" * 257 + "') }}",
            "line 1: an argument has more than 256 characters",
        ),
    ],
)
def test_other_syntax_is_an_error(template, fault):
    """Each error has its line, and neither time nor output is unbounded."""
    assert one(template) == fault


def test_all_templates_share_one_limit():
    """Many templates, valid or not, cost no more than one; plain text is not counted."""
    values = {str(number): "{{ application }}" for number in range(MAX_TOKENS)} | {"plain": "text"}
    done, faults = render_values(values, VARIABLES)
    assert len(done) == MAX_TOKENS // 5 + 1
    assert {text for _, text in faults} == {
        "all templates together have more than 4000 tokens; use fewer"
    }


def test_errors_name_their_key():
    """All errors are reported, by key."""
    faults = render_values({"b": "{{ x }}", "a": "{{ 1 }}", "c": ""}, VARIABLES)[1]
    assert [key for key, _ in faults] == ["a", "b"]
