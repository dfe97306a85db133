"""Reads and writes as reconcilers rely on them, tested on the fake and on a real API server."""

import uuid
from collections.abc import Awaitable, Callable
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

import kube.client
import kube.page
from kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NamespaceTerminating,
    NotFound,
    ServerError,
)
from kube.resource import Resource
from tests.kube.conftest import (
    CONFIG_MAP,
    CRD,
    GIZMO,
    GIZMO_CRD,
    NAMESPACE,
    SECRET,
    Api,
    established,
)
from tests.waiting import eventually

SPROCKET = Resource("ending.example.test", "v1", "sprockets", "Sprocket")


async def test_a_created_object_has_an_identity(api: Api) -> None:
    """The server sets uid, version and time of a new object, and returns the whole object."""
    created = await api.config_map("one", {"a": "1"})
    assert created["data"] == {"a": "1"}
    assert created["metadata"]["uid"]
    assert int(created["metadata"]["resourceVersion"]) > 0
    assert created["metadata"]["creationTimestamp"].endswith("Z")
    assert await api.client.get(CONFIG_MAP, "one", api.namespace) == created


async def test_creating_an_object_twice_is_already_exists(api: Api) -> None:
    """Creating an object twice is AlreadyExists, not Conflict."""
    await api.config_map("one")
    with pytest.raises(AlreadyExists) as caught:
        await api.config_map("one")
    assert caught.value.code == 409


@pytest.mark.parametrize("verb", ["get", "patch", "delete", "replace"])
async def test_every_verb_on_an_absent_object_is_not_found(api: Api, verb: str) -> None:
    """Every verb on an absent object is NotFound."""
    absent = {"metadata": api.named("absent"), "data": {}}
    requests = {
        "get": lambda: api.client.get(CONFIG_MAP, "absent", api.namespace),
        "patch": lambda: api.client.patch(CONFIG_MAP, "absent", {"data": {}}, api.namespace),
        "delete": lambda: api.client.delete(CONFIG_MAP, "absent", api.namespace),
        "replace": lambda: api.client.replace(CONFIG_MAP, absent),
    }
    with pytest.raises(NotFound) as caught:
        await requests[verb]()
    assert caught.value.reason == "NotFound"


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": {"a": 1}},
        {"annotations": ["a"]},
        {"finalizers": [7]},
        {"ownerReferences": [{"uid": 1}]},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
@pytest.mark.parametrize("resource", [CONFIG_MAP, GIZMO], ids=lambda each: each.plural)
async def test_metadata_of_a_wrong_type_is_rejected(
    api: Api, resource: Resource, wrong: dict[str, Any]
) -> None:
    """So no object with such metadata is ever read."""
    spec = {"spec": {"size": 1}} if resource is GIZMO else {}
    malformed = spec | {"metadata": api.named("one", **wrong)}
    with pytest.raises(BadRequest):
        await api.client.create(resource, malformed)
    read = await api.client.create(resource, spec | {"metadata": api.named("one")})
    with pytest.raises(BadRequest):
        await api.client.replace(resource, read | {"metadata": read["metadata"] | wrong})
    with pytest.raises(Invalid):
        await api.client.patch(resource, "one", {"metadata": wrong}, api.namespace)
    with pytest.raises(ServerError):
        await api.client.apply(resource, malformed, field_manager="us", force=True)
    assert await api.client.get(resource, "one", api.namespace) == read


async def test_nothing_is_created_in_a_namespace_that_does_not_exist(api: Api) -> None:
    """A missing namespace is NotFound, so the creation is retried."""
    with pytest.raises(NotFound, match="nowhere") as caught:
        await api.client.create(CONFIG_MAP, {"metadata": {"name": "one", "namespace": "nowhere"}})
    assert caught.value.retryable


async def test_a_namespace_has_its_name_as_a_label(api: Api) -> None:
    """Selectors may rely on `kubernetes.io/metadata.name`."""
    found = await api.client.get(NAMESPACE, api.namespace)
    assert found["metadata"]["labels"]["kubernetes.io/metadata.name"] == api.namespace


async def test_a_stale_replace_conflicts(api: Api) -> None:
    """An object cannot be replaced with a version read before another change."""
    read = await api.config_map("one")
    await api.client.replace(CONFIG_MAP, read | {"data": {"a": "2"}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await api.client.replace(CONFIG_MAP, read | {"data": {"a": "3"}})


async def test_replacing_an_object_with_itself_stores_nothing(api: Api) -> None:
    """A write without changes keeps the resourceVersion."""
    read = await api.config_map("one")
    again = await api.client.replace(CONFIG_MAP, read)
    assert again["metadata"]["resourceVersion"] == read["metadata"]["resourceVersion"]


async def test_a_merge_patch_sets_and_removes(api: Api) -> None:
    """A merge patch keeps fields that it does not name, and removes fields that it sets to null."""
    await api.config_map("one", {"a": "1", "b": "2"})
    patched = await api.client.patch(
        CONFIG_MAP, "one", {"data": {"a": None, "c": "3"}}, api.namespace
    )
    assert patched["data"] == {"b": "2", "c": "3"}


async def test_a_merge_patch_can_remove_the_ownership_of_another_patch(api: Api) -> None:
    """A client may write managedFields, so that an apply can remove a field that a patch set."""
    await api.config_map("one", {"mine": "1"})
    patched = await api.client.patch(
        CONFIG_MAP, "one", {"data": {"a": "1"}}, api.namespace, field_manager="it"
    )
    owners = [each for each in patched["metadata"]["managedFields"] if each["manager"] != "it"]
    await api.client.patch(
        CONFIG_MAP, "one", {"metadata": {"managedFields": owners}}, api.namespace
    )
    await api.client.apply(
        CONFIG_MAP, {"metadata": api.named("one"), "data": {"a": "1"}}, field_manager="it"
    )
    left = await api.client.apply(CONFIG_MAP, {"metadata": api.named("one")}, field_manager="it")
    assert "a" not in left.get("data", {})


async def test_a_merge_patch_can_insist_on_a_version(api: Api) -> None:
    """A patch that names an old resourceVersion conflicts."""
    created = await api.config_map("one")
    await api.client.patch(CONFIG_MAP, "one", {"data": {"b": "2"}}, api.namespace)
    version = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}}
    with pytest.raises(Conflict):
        await api.client.patch(CONFIG_MAP, "one", version | {"data": {"b": "3"}}, api.namespace)


async def test_a_merge_patch_can_insist_on_a_uid(api: Api) -> None:
    """A patch with the uid of another object conflicts."""
    await api.config_map("one")
    other = {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}, "data": {"b": "3"}}
    with pytest.raises(Conflict):
        await api.client.patch(CONFIG_MAP, "one", other, api.namespace)


async def test_a_replace_is_for_one_uid(api: Api) -> None:
    """A recreated object is not replaced by a change of the deleted one."""
    read = await api.config_map("one")
    other = read["metadata"] | {
        "uid": "00000000-0000-0000-0000-000000000000",
        "resourceVersion": "",
    }
    with pytest.raises(Conflict):
        await api.client.replace(CONFIG_MAP, read | {"metadata": other})


async def test_a_json_patch_that_does_not_fit_is_invalid(api: Api) -> None:
    """A missing field cannot be removed."""
    await api.config_map("one")
    with pytest.raises(Invalid):
        await api.client.patch(
            CONFIG_MAP, "one", [{"op": "remove", "path": "/data/absent"}], api.namespace
        )


async def test_an_error_does_not_quote_the_sent_object(api: Api) -> None:
    """The text of an error does not quote the sent object, unlike the server's text."""
    with pytest.raises((BadRequest, Invalid)) as caught:
        await api.client.create(
            GIZMO, {"metadata": api.named("one"), "spec": "hunter2", "kind": ""}
        )
    assert "hunter2" not in str(caught.value)


async def test_a_json_patch_changes_one_place(api: Api) -> None:
    """A list is sent as a JSON patch."""
    await api.config_map("one", {"a": "1", "b": "2"})
    patch = [
        {"op": "replace", "path": "/data/a", "value": "3"},
        {"op": "remove", "path": "/data/b"},
    ]
    patched = await api.client.patch(CONFIG_MAP, "one", patch, api.namespace)
    assert patched["data"] == {"a": "3"}


async def test_generation_counts_changes_of_the_spec(api: Api) -> None:
    """Metadata and status leave the generation, the spec moves it."""
    created = await api.gizmo("one", size=1)
    labelled = await api.client.patch(
        GIZMO, "one", {"metadata": {"labels": {"a": "b"}}}, api.namespace
    )
    reported = await api.client.patch(
        GIZMO, "one", {"status": {"phase": "Up"}}, api.namespace, subresource="status"
    )
    changed = await api.client.patch(GIZMO, "one", {"spec": {"size": 2}}, api.namespace)
    assert [each["metadata"]["generation"] for each in (created, labelled, reported, changed)] == [
        1,
        1,
        1,
        2,
    ]


async def test_status_is_written_by_its_own_subresource_alone(api: Api) -> None:
    """A write to the object leaves its status, a write to the status leaves the rest."""
    await api.gizmo("one")
    await api.client.patch(GIZMO, "one", {"status": {"phase": "Wrong"}}, api.namespace)
    both = {"spec": {"size": 9}, "status": {"phase": "Up"}}
    reported = await api.client.patch(GIZMO, "one", both, api.namespace, subresource="status")
    assert reported["status"] == {"phase": "Up"}
    assert reported["spec"]["size"] == 1
    replaced = await api.client.replace(
        GIZMO, reported | {"spec": {"size": 2}, "status": {"phase": "Wrong"}}
    )
    assert replaced["status"] == {"phase": "Up"}


async def test_a_created_object_has_no_status_yet(api: Api) -> None:
    """A status in a create request is dropped."""
    given = {"metadata": api.named("one"), "spec": {"size": 1}, "status": {"phase": "Up"}}
    assert "status" not in await api.client.create(GIZMO, given)


async def test_the_schema_fills_in_and_drops(api: Api) -> None:
    """Defaults are stored, unknown fields are not."""
    created = await api.gizmo("one", unknown="x")
    assert created["spec"] == {"size": 1, "color": "red"}


@pytest.mark.parametrize(
    "spec", [{"size": 11}, {"size": 0}, {"size": "1"}, {"color": "blue", "size": None}]
)
async def test_a_violation_of_the_schema_is_invalid(api: Api, spec: dict[str, object]) -> None:
    """A value that the schema does not allow is Invalid, with the field as a cause, and not retried."""
    with pytest.raises(Invalid) as caught:
        await api.gizmo("one", **spec)
    assert not caught.value.retryable
    assert "spec.size" in [cause["field"] for cause in caught.value.details["causes"]]


async def test_a_bad_name_is_invalid(api: Api) -> None:
    """Names are checked for every kind."""
    with pytest.raises(Invalid, match=r"metadata\.name"):
        await api.config_map("Not_A_Name")


async def test_a_kind_at_the_wrong_place_is_a_bad_request(api: Api) -> None:
    """An object must be sent to the path of its own kind."""
    with pytest.raises(BadRequest):
        await api.client.create(
            CONFIG_MAP, {"apiVersion": "v1", "kind": "Secret", "metadata": api.named("one")}
        )


async def test_generate_name_makes_names(api: Api) -> None:
    """The server makes up the rest of a name."""
    asked = {"metadata": {"generateName": "one-", "namespace": api.namespace}}
    first, second = (
        await api.client.create(CONFIG_MAP, asked),
        await api.client.create(CONFIG_MAP, asked),
    )
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["metadata"]["name"].startswith("one-")


async def test_a_dry_run_stores_nothing(api: Api) -> None:
    """A dry run has the same response, with defaults."""
    tried = await api.client.create(
        GIZMO, {"metadata": api.named("one"), "spec": {"size": 1}}, dry_run=True
    )
    assert tried["spec"]["color"] == "red"
    with pytest.raises(NotFound):
        await api.client.get(GIZMO, "one", api.namespace)


async def test_a_secret_is_stored_encoded(api: Api) -> None:
    """StringData is for writing only."""
    created = await api.client.create(
        SECRET, {"metadata": api.named("one"), "stringData": {"a": "b"}}
    )
    assert created["data"] == {"a": "Yg=="}
    assert "stringData" not in created


async def test_finalizers_hold_an_object(api: Api) -> None:
    """A deleted object with a finalizer gets a deletionTimestamp, and is removed with its last finalizer."""
    await api.config_map("one", finalizers=["example.test/hold"])
    await api.client.delete(CONFIG_MAP, "one", api.namespace)
    held = await api.client.get(CONFIG_MAP, "one", api.namespace)
    assert held["metadata"]["deletionTimestamp"]
    await api.client.delete(CONFIG_MAP, "one", api.namespace)
    again = await api.client.get(CONFIG_MAP, "one", api.namespace)
    assert again["metadata"]["resourceVersion"] == held["metadata"]["resourceVersion"]
    await api.client.patch(CONFIG_MAP, "one", {"metadata": {"finalizers": None}}, api.namespace)
    with pytest.raises(NotFound):
        await api.client.get(CONFIG_MAP, "one", api.namespace)


async def test_an_object_being_deleted_takes_no_new_finalizer(api: Api) -> None:
    """A finalizer cannot be added to an object being deleted."""
    await api.config_map("one", finalizers=["example.test/hold"])
    await api.client.delete(CONFIG_MAP, "one", api.namespace)
    more = {"metadata": {"finalizers": ["example.test/hold", "example.test/more"]}}
    with pytest.raises(Invalid):
        await api.client.patch(CONFIG_MAP, "one", more, api.namespace)


async def test_deleting_the_wrong_object_conflicts(api: Api) -> None:
    """A delete with a uid is for that very object."""
    created = await api.config_map("one")
    with pytest.raises(Conflict):
        await api.client.delete(
            CONFIG_MAP, "one", api.namespace, uid="00000000-0000-0000-0000-000000000000"
        )
    await api.client.delete(CONFIG_MAP, "one", api.namespace, uid=created["metadata"]["uid"])
    with pytest.raises(NotFound):
        await api.client.get(CONFIG_MAP, "one", api.namespace)


@pytest.mark.parametrize("owners", ["one", "two"])
async def test_owned_objects_go_with_their_last_owner(api: Api, owners: str) -> None:
    """The garbage collector deletes an object after all its owners are gone."""
    references = [
        reference(await api.config_map(name))
        for name in ("owner", "other")[: 1 if owners == "one" else 2]
    ]
    await api.config_map("owned", ownerReferences=references)
    await api.client.delete(CONFIG_MAP, "owner", api.namespace)
    if owners == "two":
        await api.until(CONFIG_MAP, "owner", lambda found: found is None)
        assert await api.client.get(CONFIG_MAP, "owned", api.namespace)
        await api.client.delete(CONFIG_MAP, "other", api.namespace)
    await api.until(CONFIG_MAP, "owned", lambda found: found is None)


async def test_a_namespace_takes_everything_with_it(api: Api) -> None:
    """Deleting a namespace deletes its objects; until then, no new object can be created in it."""
    name = f"ending-{uuid.uuid4().hex[:8]}"
    await api.client.create(NAMESPACE, {"metadata": {"name": name}})
    held = {"metadata": {"name": "held", "namespace": name, "finalizers": ["example.test/hold"]}}
    await api.client.create(CONFIG_MAP, held)
    await api.client.delete(NAMESPACE, name)
    inside = Api(api.client, name)
    await inside.until(
        CONFIG_MAP, "held", lambda found: bool(found and "deletionTimestamp" in found["metadata"])
    )
    late = {"metadata": inside.named("late")}
    refused = await refusal(
        NamespaceTerminating, lambda: api.client.create(CONFIG_MAP, late, dry_run=True)
    )
    assert refused.message == (
        f'configmaps "late" is forbidden: unable to create new content in namespace {name} '
        "because it is being terminated"
    )
    assert refused.details == {
        "name": "late",
        "kind": "configmaps",
        "causes": [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
        ],
    }
    await api.client.patch(CONFIG_MAP, "held", {"metadata": {"finalizers": None}}, name)
    await inside.until(CONFIG_MAP, "held", lambda found: found is None)


async def test_a_namespace_that_is_gone_takes_no_object(api: Api) -> None:
    """A creation names the namespace; a change and a status name the object."""
    metadata = {"name": "late", "namespace": "nowhere"}
    gizmo = {"metadata": metadata, "spec": {"size": 1}}
    status = {"metadata": metadata, "status": {}}
    client, by = api.client, {"field_manager": "test"}
    for request, kind in (
        (client.create(CONFIG_MAP, {"metadata": metadata}), "namespaces"),
        (client.apply(CONFIG_MAP, {"metadata": metadata}, **by), "namespaces"),
        (client.apply(GIZMO, gizmo, **by), "namespaces"),
        (client.apply(GIZMO, status, subresource="status", **by), "gizmos"),
        (client.patch(CONFIG_MAP, "late", {}, "nowhere"), "configmaps"),
    ):
        with pytest.raises(NotFound) as caught:
            await request
        assert caught.value.details["kind"] == kind


async def test_a_terminating_crd_takes_no_new_object(api: Api) -> None:
    """Objects that finalizers hold can be changed until the last one is gone; then nothing is served."""
    crd = deepcopy(GIZMO_CRD)
    crd["metadata"]["name"] = f"{SPROCKET.plural}.{SPROCKET.group}"
    crd["spec"]["group"] = SPROCKET.group
    crd["spec"]["names"] = {
        "plural": SPROCKET.plural,
        "singular": "sprocket",
        "kind": SPROCKET.kind,
        "listKind": "SprocketList",
    }
    name, client, by = crd["metadata"]["name"], api.client, {"field_manager": "test"}
    await client.create(CRD, crd)
    await api.until(CRD, name, established)
    metadata = api.named("held")
    held = {"metadata": {**metadata, "finalizers": ["example.test/hold"]}, "spec": {"size": 1}}
    late = {"metadata": api.named("late"), "spec": {"size": 1}}
    await client.create(SPROCKET, held)
    await client.delete(CRD, name)
    await api.until(CRD, name, is_terminating)
    for write in (client.create, partial(client.apply, **by)):
        refused = await refusal(Forbidden, lambda write=write: write(SPROCKET, late, dry_run=True))
        assert refused.message == (
            f'{name} "late" is forbidden: create not allowed while custom resource definition is '
            "terminating"
        )
    status = {"metadata": metadata, "status": {"phase": "Ending"}}
    await client.apply(SPROCKET, status, subresource="status", **by)
    await client.patch(SPROCKET, "held", {"metadata": {"finalizers": None}}, api.namespace)
    await api.until(CRD, name, lambda found: found is None)
    for change, subresource in ((late, None), (status, "status")):
        await refusal(
            NotFound,
            lambda change=change, subresource=subresource: client.apply(
                SPROCKET, change, subresource=subresource, dry_run=True, **by
            ),
        )


async def refusal(error: type[ApiError], dry_run: Callable[[], Awaitable[object]]) -> ApiError:
    """Return how a request is refused, as soon as the API server's own caches have what etcd has."""
    refusals: list[ApiError] = []

    async def is_refused() -> bool:
        try:
            await dry_run()
        except ApiError as refused:
            refusals.append(refused)
        return bool(refusals) and isinstance(refusals[-1], error)

    await eventually(is_refused)
    return refusals[-1]


def is_terminating(crd: dict[str, Any] | None) -> bool:
    """Return whether a CRD is being deleted."""
    conditions = (crd or {}).get("status", {}).get("conditions") or []
    return any(each["type"] == "Terminating" and each["status"] == "True" for each in conditions)


def reference(owner: dict[str, object]) -> dict[str, object]:
    """Return the reference of an object to its owner."""
    metadata = owner["metadata"]
    assert isinstance(metadata, dict)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


async def test_the_pages_of_a_list_are_consistent(api: Api) -> None:
    """All pages show the list in the state and version of the first page."""
    for name in ("a", "b", "c"):
        await api.gizmo(name)
    names, versions = [], set()
    async for page in api.client.pages(GIZMO, api.namespace, limit=2):
        if not names:
            await api.client.delete(GIZMO, "c", api.namespace)
        names += [item["metadata"]["name"] for item in page]
        versions.add(page.version)
    assert names == ["a", "b", "c"]
    assert len(versions) == 1


async def test_large_objects_are_listed_in_small_pages(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that grows too large is requested again with fewer objects; none is lost."""
    monkeypatch.setattr(kube.client, "MAX_PAGE_BYTES", 20_000)
    monkeypatch.setattr(kube.page, "MAX_PAGE_BYTES", 20_000)
    names = [f"large-{number:02}" for number in range(12)]
    for name in names:
        await api.config_map(name, {"a": "x" * 4_000}, labels={"size": "large"})
    await api.config_map("larger", {"a": "x" * 40_000}, labels={"size": "large"})
    listed = api.client.pages(CONFIG_MAP, api.namespace, labels="size=large")
    pages = [[item["metadata"]["name"] for item in page] async for page in listed]
    assert [name for page in pages for name in page] == [*names, "larger"]
    assert max(map(len, pages)) <= 4
    assert pages[-1] == ["larger"]


async def test_listed_objects_have_apiversion_and_kind(api: Api) -> None:
    """Although the server omits them in a List, each object has its apiVersion and kind."""
    await api.config_map("one", labels={"app": "x"})
    found = [each async for each in api.client.list(CONFIG_MAP, api.namespace, labels="app=x")]
    assert [(each["apiVersion"], each["kind"]) for each in found] == [("v1", "ConfigMap")]


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("app=x", ["a"]),
        ("app!=x,app", ["b"]),
        ("app in (x, y)", ["a", "b"]),
        ("app notin (x),app", ["b"]),
        ("!app,test", ["c"]),
    ],
)
async def test_labels_choose(api: Api, selector: str, chosen: list[str]) -> None:
    """Label selectors mean the same on both servers."""
    await api.config_map("a", labels={"app": "x", "test": "1"})
    await api.config_map("b", labels={"app": "y", "test": "1"})
    await api.config_map("c", labels={"test": "1"})
    found = [
        object["metadata"]["name"]
        async for object in api.client.list(CONFIG_MAP, api.namespace, labels=selector)
    ]
    assert found == chosen


async def test_fields_choose(api: Api) -> None:
    """Names, and the fields that a CRD declares selectable, can be selected by."""
    await api.gizmo("a", color="red")
    await api.gizmo("b", color="blue")
    for selector in ("metadata.name=b", "spec.color=blue", "spec.color!=red"):
        found = [
            object["metadata"]["name"]
            async for object in api.client.list(GIZMO, api.namespace, fields=selector)
        ]
        assert found == ["b"]


async def test_other_fields_cannot_be_selected_by(api: Api) -> None:
    """A selector on any other field is refused rather than ignored."""
    with pytest.raises(BadRequest):
        _ = [each async for each in api.client.list(GIZMO, api.namespace, fields="spec.size=1")]


async def test_discovery_returns_what_the_server_serves(api: Api) -> None:
    """Discovery returns built-in kinds and those of CRDs, and no others."""
    assert await api.client.serves(CONFIG_MAP)
    assert await api.client.serves(GIZMO)
    assert await api.client.serves(CRD)
    assert not await api.client.serves(type(GIZMO)("absent.example.test", "v1", "gizmos", "Gizmo"))
    assert not await api.client.serves(type(GIZMO)(GIZMO.group, "v1", "others", "Other"))
    assert {CONFIG_MAP, GIZMO, CRD} <= set(await api.client.resources())
