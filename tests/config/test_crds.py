import json
from typing import Annotated, Literal

import pytest
from pydantic import Field

from config import crds
from config.api.core import QuantityText
from config.api.definition import Column, Definition
from config.api.meta import ApiModel, CustomResource
from tests.controlplane.plane import ControlPlane


class Part(ApiModel):
    """A part."""

    size: int = Field(description="How large.")


class Whole(ApiModel):
    part: Part = Field(Part(size=1), description="The part that is used.")
    spare: Part | None = None
    parts: list[Part] = Field([])
    by_name: dict[str, Part] = Field({})
    always: Literal["yes"] = "yes"
    above: Annotated[int, Field(gt=0, lt=9)] = 1
    amount: QuantityText | None = None
    optional: str | None = None


PART = {
    "description": "A part.",
    "type": "object",
    "required": ["size"],
    "properties": {"size": {"description": "How large.", "type": "integer"}},
}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("part", {**PART, "description": "The part that is used.", "default": {"size": 1}}),
        ("spare", PART),
        ("parts", {"type": "array", "items": PART, "default": []}),
        ("byName", {"type": "object", "additionalProperties": PART, "default": {}}),
        ("always", {"type": "string", "enum": ["yes"], "default": "yes"}),
        (
            "above",
            {
                "type": "integer",
                "minimum": 0,
                "exclusiveMinimum": True,
                "maximum": 9,
                "exclusiveMaximum": True,
                "default": 1,
            },
        ),
        ("optional", {"type": "string"}),
    ],
)
def test_a_field_becomes_structural(field, expected):
    """References, unions with null, constants and exclusive bounds are converted."""
    assert crds.structural(Whole.model_json_schema())["properties"][field] == expected


def test_a_quantity_is_a_number_or_a_string():
    """A quantity has the only union that structural schemas allow, under its short name."""
    quantity = crds.structural(Whole.model_json_schema())["properties"]["amount"]
    assert quantity["x-kubernetes-int-or-string"]
    assert "anyOf" not in quantity


def test_a_union_is_rejected():
    """A type without a structural schema is an error at generation."""

    class Unclear(ApiModel):
        field: int | str

    with pytest.raises(TypeError, match="no unions"):
        crds.structural(Unclear.model_json_schema())


class Told(ApiModel):
    """Defaults, some of them without a mention in the description."""

    port: int = Field(8080, description="Where it listens.")
    keep: bool = Field(True, description="whether it stays")
    size: str = Field("1Gi", description="How large; 1Gi by default.")
    name: str = Field("", description="What it is called.")
    tags: dict[str, str] = Field({}, description="More about it.")


def test_a_description_has_the_default():
    """It is added unless the description has it, or the default is empty."""
    schema = crds.explain_defaults({"items": crds.structural(Told.model_json_schema())})
    assert {name: each["description"] for name, each in schema["items"]["properties"].items()} == {
        "port": "Where it listens. Defaults to 8080.",
        "keep": "whether it stays; true by default",
        "size": "How large; 1Gi by default.",
        "name": "What it is called.",
        "tags": "More about it.",
    }


class Gadget(CustomResource):
    """A minimal kind."""

    definition = Definition(
        "test.example.com", "v1", "Gadget", "gadgets", columns=(Column("Size", ".spec.size"),)
    )
    spec: Part


def test_items_of_lists_have_no_stored_defaults():
    """Only keys of items keep their default; defaults outside of lists stay."""
    text = {"type": "string", "default": "x"}
    inner = {"type": "object", "properties": {"a": text}, "default": {}}
    items = {"type": "object", "properties": {"key": text, "value": text, "inner": inner}}
    listed = {"type": "array", "items": items, "x-kubernetes-list-map-keys": ["key"]}
    schema = {"type": "object", "properties": {"list": {**listed, "default": []}, "top": text}}
    found = crds.without_item_defaults(schema)["properties"]
    assert found["top"] == text
    assert found["list"]["default"] == []
    plain = {"type": "string"}
    assert found["list"]["items"]["properties"] == {
        "key": text,
        "value": plain,
        "inner": {"type": "object", "properties": {"a": plain}},
    }
    assert items["properties"]["value"] == text


def test_a_definition_has_only_declared_parts():
    """Undeclared parts are omitted; the status subresource always exists."""
    spec = crds.definition(Gadget)["spec"]
    assert spec["names"] == {
        "categories": ["gatewright", "all"],
        "kind": "Gadget",
        "listKind": "GadgetList",
        "plural": "gadgets",
        "singular": "gadget",
    }
    (version,) = spec["versions"]
    assert version["subresources"] == {"status": {}}
    assert "selectableFields" not in version
    assert version["schema"]["openAPIV3Schema"]["properties"]["spec"] == PART


class NewGadget(CustomResource):
    """The same kind in a later version."""

    definition = Definition("test.example.com", "v2", "Gadget", "gadgets")
    spec: Whole


class OldGadget(Gadget):
    """The earlier version, which is not stored."""

    definition = Definition("test.example.com", "v1", "Gadget", "gadgets", storage=False)


def test_several_versions_are_one_definition():
    """Each has its schema and columns; one is stored, and `conversion` is not set."""
    spec = crds.definition(OldGadget, NewGadget)["spec"]
    assert [(each["name"], each["served"], each["storage"]) for each in spec["versions"]] == [
        ("v1", True, False),
        ("v2", True, True),
    ]
    assert (
        "always"
        in spec["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    )
    assert "conversion" not in spec
    assert crds.of_several_versions() == ["voteconfigs.voting.schoolofdevops.com"]


def test_only_kinds_declared_in_config_api_are_rendered():
    """A kind is rendered only if a module of config.api declares it."""
    names = {kind.definition.name for kind in crds.kinds()}
    assert {"webapps.example.com", "widgets.example.com"} < names
    assert Gadget.definition.name not in names


@pytest.mark.controlplane
class TestInstalled:
    def test_the_crd_is_established(self, served: ControlPlane):
        """S1: discovery lists the kind with its short name and categories."""
        assert "webapps.example.com" in served.kubectl("get", "crd", "webapps.example.com").stdout
        lines = served.kubectl(
            "api-resources", "--api-group=example.com", "--no-headers"
        ).stdout.splitlines()
        assert ["webapps", "wa", "example.com/v1", "true", "WebApp"] in [
            line.split() for line in lines
        ]
        assert "webapps" in served.kubectl("api-resources", "--categories=gatewright").stdout

    def test_the_sample_is_accepted(self, served: ControlPlane):
        """S1: `my-webapp` is accepted unchanged, shown in columns, described, and found by its image."""
        served.kubectl("apply", "-f", "config/samples/my-webapp.yaml")
        shown = served.kubectl("get", "webapp", "my-webapp").stdout.splitlines()
        assert shown[0].split() == ["NAME", "PHASE", "DESIRED", "READY", "IMAGE", "AGE"]
        assert shown[1].split()[:3] == ["my-webapp", "3", "nginx:1.21"]
        assert "Cpu:     500m" in served.kubectl("describe", "webapp", "my-webapp").stdout
        found = served.kubectl(
            "get", "wa", "--field-selector=spec.image=nginx:1.21", "-o", "name"
        ).stdout
        assert found == "webapp.example.com/my-webapp\n"

    def test_a_field_is_explained(self, served: ControlPlane):
        """`kubectl explain` describes it."""
        assert (
            "Port of the container, and of the Service"
            in served.kubectl("explain", "webapp.spec.port").stdout
        )

    def test_no_version_loses_the_others_fields(self, served: ControlPlane):
        """While no webhook converts, each version keeps the other's fields through any update."""
        group = "voting.schoolofdevops.com"
        about = {"kind": "VoteConfig", "metadata": {"name": "new"}}
        new = {"poll": {"question": "Which?"}, "options": [{"id": "a", "description": "Purr."}]}
        served.kubectl("apply", "-f-", input={"apiVersion": f"{group}/v1", **about, "spec": new})
        served.kubectl("label", f"voteconfigs.v1alpha1.{group}/new", "seen=yes")
        old = {"question": "Which?", "options": [{"id": "a", "label": "Cats"}]}
        about = {"kind": "VoteConfig", "metadata": {"name": "old"}}
        served.kubectl(
            "apply", "-f-", input={"apiVersion": f"{group}/v1alpha1", **about, "spec": old}
        )
        served.kubectl("label", f"voteconfigs.v1.{group}/old", "seen=yes")
        stored = json.loads(served.kubectl("get", "voteconfigs", "-l=seen", "-o=json").stdout)[
            "items"
        ]
        assert [each["spec"] for each in stored] == [new, old]

    @pytest.mark.parametrize(
        ("sample", "object", "most", "beyond"),
        [
            ("test-webapp", "webapp/test-webapp", 10, "should be less than or equal to 10"),
            ("test-db", "postgresql/test-db", 5, "should be less than or equal to 5"),
            ("my-widget", "widget/my-widget", 1000, None),
        ],
    )
    def test_a_kind_with_scale_can_be_scaled(
        self, served: ControlPlane, sample: str, object: str, most: int, beyond: str | None
    ):
        """`kubectl scale` works within the schema's bounds only."""
        served.kubectl("apply", "-f", f"config/samples/{sample}.yaml")
        served.kubectl("scale", object, f"--replicas={most}")
        said = served.kubectl("scale", object, f"--replicas={most + 1}", check=False).stderr
        assert beyond in said if beyond else not said

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ({"replicas": 1, "image": "shop:1", "port": None, "resources": None}, None),
            (
                {
                    "replicas": 1,
                    "image": "shop:1",
                    "resources": {"limits": {"cpu": 1, "memory": "1.5Gi"}},
                },
                None,
            ),
            (
                {"replicas": 1, "image": "shop:1", "resources": {"limits": {"cpu": "much"}}},
                "spec.resources.limits.cpu",
            ),
            (
                {"replicas": 1, "image": "shop:1", "securityContext": {"runAsUser": "me"}},
                "spec.securityContext.runAsUser",
            ),
            ({"replicas": 11, "image": "shop:1"}, "should be less than or equal to 10"),
            ({"image": "shop:1"}, "spec.replicas: Required value"),
            ({"replicas": 1, "image": "shop:1", "prot": 80}, 'unknown field "spec.prot"'),
            (None, "spec: Required value"),
        ],
    )
    def test_the_schema_validates(self, served: ControlPlane, spec, message):
        """Valid values are accepted without a warning, invalid ones rejected with the field's path."""
        object = {
            "apiVersion": "example.com/v1",
            "kind": "WebApp",
            "metadata": {"name": "tried"},
            "spec": spec,
        }
        answer = served.kubectl("create", "--dry-run=server", "-f", "-", input=object, check=False)
        assert (message or "") in answer.stderr
        assert bool(answer.stderr) == (message is not None)
