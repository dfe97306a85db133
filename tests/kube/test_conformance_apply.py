"""Server-side apply as reconcilers rely on it, tested on the fake and on a real API server."""

import pytest

from kube.errors import BadRequest, Conflict, Invalid
from tests.kube.conftest import CONFIG_MAP, DEPLOYMENT, GIZMO, Api

ELSEWHERE = "00000000-0000-0000-0000-000000000000"


async def test_apply_creates(api: Api) -> None:
    """A missing object is created."""
    desired = {"metadata": api.named("one"), "data": {"a": "1"}}
    applied = await api.client.apply(CONFIG_MAP, desired, field_manager="us")
    assert applied["data"] == {"a": "1"}
    entry = applied["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"]) == ("us", "Apply")


async def test_apply_can_be_restricted_to_create(api: Api) -> None:
    """With an impossible resourceVersion, a missing object is created, and an existing one is a Conflict."""
    for resource, desired in (
        (CONFIG_MAP, {"metadata": api.named("one", resourceVersion="1"), "data": {"a": "1"}}),
        (GIZMO, {"metadata": api.named("one", resourceVersion="1"), "spec": {"size": 2}}),
    ):
        first = await api.client.apply(resource, desired, field_manager="us")
        with pytest.raises(Conflict):
            await api.client.apply(resource, desired, field_manager="us")
        with pytest.raises(Conflict):
            await api.client.apply(resource, desired, field_manager="them", force=True)
        assert await api.client.get(resource, "one", api.namespace) == first


async def test_applying_again_stores_nothing(api: Api) -> None:
    """A second apply of the same leaves the resourceVersion."""
    desired = {
        "metadata": api.named("one"),
        "spec": {"size": 2, "parts": [{"name": "a", "color": "red"}]},
    }
    first = await api.client.apply(GIZMO, desired, field_manager="us")
    second = await api.client.apply(GIZMO, desired, field_manager="us", force=True)
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert second["metadata"]["generation"] == 1


async def test_apply_changes_what_it_names(api: Api) -> None:
    """Fields absent from an apply stay with their owners."""
    await api.config_map("one", {"a": "1", "b": "2"})
    desired = {"metadata": api.named("one"), "data": {"c": "3"}}
    applied = await api.client.apply(CONFIG_MAP, desired, field_manager="us")
    assert applied["data"] == {"a": "1", "b": "2", "c": "3"}


async def test_a_field_of_another_manager_conflicts(api: Api) -> None:
    """Another value for a field that another manager owns is a Conflict that names both."""
    await api.config_map("one", {"a": "1"})
    with pytest.raises(Conflict) as caught:
        await api.client.apply(
            CONFIG_MAP, {"metadata": api.named("one"), "data": {"a": "2"}}, field_manager="us"
        )
    causes = caught.value.details["causes"]
    assert [(cause["reason"], cause["field"]) for cause in causes] == [
        ("FieldManagerConflict", ".data.a")
    ]
    assert "conformance" in caught.value.message


async def test_the_same_value_is_shared(api: Api) -> None:
    """Two managers may own a field with the same value, and either can then give it up."""
    await api.config_map("one", {"a": "1"})
    named = {"metadata": api.named("one")}
    await api.client.apply(CONFIG_MAP, named | {"data": {"a": "1"}}, field_manager="us")
    left = await api.client.apply(CONFIG_MAP, named | {"data": {"b": "2"}}, field_manager="us")
    assert left["data"] == {"a": "1", "b": "2"}


async def test_force_takes_over(api: Api) -> None:
    """With force the field is ours, and its former owner conflicts with us."""
    named = {"metadata": api.named("one")}
    await api.client.apply(CONFIG_MAP, named | {"data": {"a": "1"}}, field_manager="them")
    taken = await api.client.apply(
        CONFIG_MAP, named | {"data": {"a": "2"}}, field_manager="us", force=True
    )
    assert taken["data"] == {"a": "2"}
    with pytest.raises(Conflict, match="us"):
        await api.client.apply(CONFIG_MAP, named | {"data": {"a": "3"}}, field_manager="them")


async def test_a_field_that_is_no_longer_applied_is_removed(api: Api) -> None:
    """A field that only this manager owns is removed when it is no longer applied."""
    named = {"metadata": api.named("one", labels={"x": "y"})}
    await api.client.apply(CONFIG_MAP, named | {"data": {"a": "1", "b": "2"}}, field_manager="us")
    applied = await api.client.apply(
        CONFIG_MAP, {"metadata": api.named("one"), "data": {"a": "1"}}, field_manager="us"
    )
    assert applied["data"] == {"a": "1"}
    assert "labels" not in applied["metadata"]


async def test_a_changed_field_changes_hands(api: Api) -> None:
    """A writer that changes our field without apply owns it; our next apply conflicts, or restores it with force."""
    desired = {"metadata": api.named("one"), "data": {"a": "1"}}
    await api.client.apply(CONFIG_MAP, desired, field_manager="us")
    await api.client.patch(
        CONFIG_MAP, "one", {"data": {"a": "2"}}, api.namespace, field_manager="editor"
    )
    with pytest.raises(Conflict, match="editor"):
        await api.client.apply(CONFIG_MAP, desired, field_manager="us")
    assert (await api.client.apply(CONFIG_MAP, desired, field_manager="us", force=True))[
        "data"
    ] == {"a": "1"}


async def test_a_removed_field_can_be_set_again(api: Api) -> None:
    """A removed field has no owner, so that setting it again does not conflict."""
    desired = {"metadata": api.named("one"), "data": {"a": "1"}}
    await api.client.apply(CONFIG_MAP, desired, field_manager="us")
    await api.client.patch(CONFIG_MAP, "one", {"data": {"a": None}}, api.namespace)
    assert (await api.client.apply(CONFIG_MAP, desired, field_manager="us"))["data"] == {"a": "1"}


async def test_items_of_keyed_lists_have_owners_of_their_own(api: Api) -> None:
    """Each manager adds, changes and removes its own items of a list with keys."""
    named = {"metadata": api.named("one")}
    ours = named | {"spec": {"size": 1, "parts": [{"name": "a", "color": "red"}]}}
    theirs = named | {"spec": {"parts": [{"name": "b", "color": "blue"}]}}
    await api.client.apply(GIZMO, ours, field_manager="us")
    both = await api.client.apply(GIZMO, theirs, field_manager="them")
    assert both["spec"]["parts"] == [{"name": "a", "color": "red"}, {"name": "b", "color": "blue"}]
    without = await api.client.apply(GIZMO, named | {"spec": {"size": 1}}, field_manager="us")
    assert without["spec"]["parts"] == [{"name": "b", "color": "blue"}]


async def test_containers_are_merged_by_name(api: Api) -> None:
    """In a built-in kind, each manager has its own variables of a container, and conflicts name the item."""

    def deployment(**container: object) -> dict[str, object]:
        template = {
            "metadata": {"labels": {"app": "one"}},
            "spec": {"containers": [{"name": "app", **container}]},
        }
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": "one"}}, "template": template}
        return {"metadata": api.named("one"), "spec": spec}

    async def applied(manager: str, **container: object) -> object:
        answer = await api.client.apply(DEPLOYMENT, deployment(**container), field_manager=manager)
        return answer["spec"]["template"]["spec"]["containers"][0].get("env")

    ports = [{"containerPort": 8080}]
    ours, theirs = {"name": "OURS", "value": "1"}, {"name": "THEIRS", "value": "2"}
    assert await applied("us", image="a:1", ports=ports, env=[ours]) == [ours]
    assert await applied("them", image="a:1", env=[theirs]) == [ours, theirs]
    assert await applied("us", image="a:1", ports=ports) == [theirs]
    with pytest.raises(Conflict) as caught:
        await applied("us", image="a:2", ports=ports)
    assert [cause["field"] for cause in caught.value.details["causes"]] == [
        '.spec.template.spec.containers[name="app"].image'
    ]


async def test_other_lists_have_one_owner(api: Api) -> None:
    """A list without keys is one value: another one conflicts as a whole."""
    named = {"metadata": api.named("one")}
    await api.client.apply(GIZMO, named | {"spec": {"size": 1, "tags": ["a"]}}, field_manager="us")
    with pytest.raises(Conflict) as caught:
        await api.client.apply(GIZMO, named | {"spec": {"tags": ["a", "b"]}}, field_manager="them")
    assert [cause["field"] for cause in caught.value.details["causes"]] == [".spec.tags"]


async def test_the_status_is_applied_separately(api: Api) -> None:
    """An apply to /status owns conditions by type and leaves the spec."""
    await api.gizmo("one")
    named = {"metadata": api.named("one")}
    first = named | {"status": {"phase": "Up", "conditions": [{"type": "Ready", "status": "True"}]}}
    other = named | {"status": {"conditions": [{"type": "Other", "status": "True"}]}}
    await api.client.apply(GIZMO, first, field_manager="us", subresource="status")
    both = await api.client.apply(GIZMO, other, field_manager="them", subresource="status")
    assert [each["type"] for each in both["status"]["conditions"]] == ["Ready", "Other"]
    assert both["spec"]["size"] == 1
    assert both["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    "then", [["Cache", "Database", "Ready"], ["Database", "Cache", "Ready"], ["Ready"]]
)
async def test_conditions_keep_the_order_in_which_they_were_applied(
    api: Api, then: list[str]
) -> None:
    """Our conditions keep their order, and those of others follow."""

    async def applied(manager: str, *types: str) -> list[str]:
        conditions = [{"type": each, "status": "True"} for each in types]
        status = {"metadata": api.named("one"), "status": {"conditions": conditions}}
        answer = await api.client.apply(GIZMO, status, field_manager=manager, subresource="status")
        return [each["type"] for each in answer["status"]["conditions"]]

    await api.gizmo("one")
    assert await applied("us", "Database", "Ready") == ["Database", "Ready"]
    assert await applied("them", "Approved") == ["Database", "Ready", "Approved"]
    assert await applied("us", *then) == [*then, "Approved"]


async def test_an_apply_to_the_object_leaves_the_status(api: Api) -> None:
    """A status in an apply request is dropped."""
    applied = await api.client.apply(
        GIZMO,
        {"metadata": api.named("one"), "spec": {"size": 1}, "status": {"phase": "Up"}},
        field_manager="us",
    )
    assert "status" not in applied


async def test_apply_is_for_one_uid(api: Api) -> None:
    """With a uid, only that object is changed; otherwise the apply is a Conflict."""
    created = await api.config_map("one")
    for name in ("one", "absent"):
        desired = {"metadata": api.named(name, uid=ELSEWHERE), "data": {"b": "2"}}
        with pytest.raises(Conflict) as caught:
            await api.client.apply(CONFIG_MAP, desired, field_manager="us", force=True)
        assert caught.value.retryable
    right = {"metadata": api.named("one", uid=created["metadata"]["uid"]), "data": {"b": "2"}}
    assert (await api.client.apply(CONFIG_MAP, right, field_manager="us"))["data"] == {
        "a": "1",
        "b": "2",
    }


async def test_apply_can_insist_on_a_version(api: Api) -> None:
    """With a resourceVersion that has passed it conflicts."""
    created = await api.config_map("one")
    await api.client.patch(CONFIG_MAP, "one", {"data": {"b": "2"}}, api.namespace)
    version = created["metadata"]["resourceVersion"]
    desired = {"metadata": api.named("one", resourceVersion=version), "data": {"c": "3"}}
    with pytest.raises(Conflict, match="has been modified"):
        await api.client.apply(CONFIG_MAP, desired, field_manager="us", force=True)


async def test_a_dry_run_apply_stores_nothing(api: Api) -> None:
    """The response has the result, with conflicts."""
    await api.config_map("one", {"a": "1"})
    named = {"metadata": api.named("one")}
    tried = await api.client.apply(
        CONFIG_MAP, named | {"data": {"b": "2"}}, field_manager="us", dry_run=True
    )
    assert tried["data"] == {"a": "1", "b": "2"}
    assert (await api.client.get(CONFIG_MAP, "one", api.namespace))["data"] == {"a": "1"}


async def test_an_applied_object_must_be_valid(api: Api) -> None:
    """The schema applies to the merged object."""
    with pytest.raises(Invalid):
        await api.client.apply(
            GIZMO, {"metadata": api.named("one"), "spec": {"size": 11}}, field_manager="us"
        )


async def test_managed_fields_cannot_be_applied(api: Api) -> None:
    """An object that was read cannot be applied with its managedFields."""
    read = await api.config_map("one")
    with pytest.raises(BadRequest, match="managedFields"):
        await api.client.apply(CONFIG_MAP, read, field_manager="us")


async def test_owner_references_are_added_to(api: Api) -> None:
    """Owner references and finalizers of several managers are merged."""
    owners = [(await api.config_map(name))["metadata"] for name in ("first", "second")]
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["name"], "uid": owner["uid"]}
        for owner in owners
    ]
    for manager, reference in zip(("us", "them"), references, strict=True):
        held = api.named("one", ownerReferences=[reference], finalizers=[f"example.test/{manager}"])
        applied = await api.client.apply(CONFIG_MAP, {"metadata": held}, field_manager=manager)
    assert applied["metadata"]["ownerReferences"] == references
    assert applied["metadata"]["finalizers"] == ["example.test/us", "example.test/them"]
