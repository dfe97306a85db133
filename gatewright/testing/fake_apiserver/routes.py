"""The HTTP layer: paths, verbs, content types, and a Status for every error."""

import re
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

from gatewright.testing.fake_apiserver.cluster import FakeCluster
from gatewright.testing.fake_apiserver.objects import parse_object
from gatewright.testing.fake_apiserver.reads import StorageReader, metadata_only
from gatewright.testing.fake_apiserver.refusals import StatusError, invalid, not_found
from gatewright.testing.fake_apiserver.requests import Logged, Requests
from gatewright.testing.fake_apiserver.watches import WatchStreams
from gatewright.testing.fake_apiserver.write_request import WriteRequest
from gatewright.testing.fake_apiserver.writes import Writes
from kube.resource import JsonObject

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
AGGREGATED = "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2"
PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>v[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/(?!status$|finalize$)))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[^/]+))?"
)


class Routes:
    """Answers every request."""

    def __init__(
        self,
        cluster: FakeCluster,
        reads: StorageReader,
        writes: Writes,
        watches: WatchStreams,
        requests: Requests,
        token: str | None,
    ) -> None:
        self._cluster = cluster
        self._reads = reads
        self._writes = writes
        self._watches = watches
        self._requests = requests
        self._token = token

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Log a request, and answer it or inject a fault."""
        logged = Logged(
            request.method,
            request.path,
            dict(request.query),
            request.content_type,
            request.headers.get("User-Agent", ""),
        )
        self._requests.record(logged)
        try:
            if body := await request.read():
                logged.body = orjson.loads(body)
            if fault := self._requests.fault(logged):
                response: web.StreamResponse = fault.answer()
            elif self._token and request.headers.get("Authorization") != f"Bearer {self._token}":
                raise StatusError(401, "Unauthorized")
            else:
                response = await self._route(request, logged)
        except orjson.JSONDecodeError:
            response = encode(400, StatusError(400, "the body is not JSON").status)
        except StatusError as refusal:
            response = encode(refusal.code, refusal.status)
        self._requests.record_code(logged, response.status)
        return response

    async def _route(self, request: web.Request, logged: Logged) -> web.StreamResponse:
        if (discovered := self._discovery(request.path, request.headers.get("Accept"))) is not None:
            return encode(200, discovered)
        if (match := PATH.fullmatch(request.path)) is None:
            raise StatusError(404, "the server could not find the requested resource")
        part: dict[str, str] = {name: value or "" for name, value in match.groupdict().items()}
        kind = self._cluster.kind(part["group"], part["version"], part["plural"])
        write = WriteRequest(
            kind,
            part["namespace"],
            part["name"],
            part["subresource"],
            request.query.get("fieldManager") or logged.user_agent.partition("/")[0],
            request.query.get("dryRun") == "All",
        )
        if write.subresource and not (write.subresource == "status" and kind.status):
            raise not_found(f"{kind.resource.plural}/{write.subresource}", write.name)
        if request.method == "GET":
            return await self._read(request, logged, write)
        code, object = self._write(request, logged, write)
        return encode(code, self._reads.form(kind, object))

    async def _read(
        self, request: web.Request, logged: Logged, write: WriteRequest
    ) -> web.StreamResponse:
        kind = write.kind
        partial = "as=PartialObjectMetadata" in request.headers.get("Accept", "")
        form: Callable[[JsonObject], JsonObject] = (
            metadata_only if partial else lambda each: self._reads.form(kind, each)
        )
        if write.name:
            return encode(200, form(self._writes.existing(write)))
        if logged.watch:
            watcher = self._watches.start(kind, write.namespace, request.query, form)
            self._requests.record_code(logged, 200)
            return await self._watches.serve(
                request, watcher, float(request.query.get("timeoutSeconds") or 1800)
            )
        page = self._reads.page(kind, write.namespace, request.query)
        return encode(200, metadata_only(page) if partial else page)

    def _write(
        self, request: web.Request, logged: Logged, write: WriteRequest
    ) -> tuple[int, JsonObject]:
        body = logged.body
        if request.method == "DELETE" and write.name:
            return 200, self._writes.delete(write, body or {})
        if request.method == "PATCH" and write.name:
            return self._patch(request, write, body)
        if request.method not in ("POST", "PUT") or bool(write.name) != (request.method == "PUT"):
            raise StatusError(
                405, "the server does not allow this method on the requested resource"
            )
        object = parse_object(body, write.kind)
        if request.method == "POST":
            return 201, self._writes.create(write, object)
        return 200, self._writes.replace(write, object)

    def _patch(
        self, request: web.Request, write: WriteRequest, body: Any
    ) -> tuple[int, JsonObject]:
        if request.content_type == APPLY_PATCH:
            if "fieldManager" not in request.query:
                raise invalid(
                    "PatchOptions",
                    "",
                    ("fieldManager", "Required value: is required for apply patch"),
                )
            if not (isinstance(body, dict) and body.get("apiVersion") and body.get("kind")):
                raise StatusError(400, "apiVersion and kind must be set")
            object = parse_object(body, write.kind, malformed=500)
            applied, new = self._writes.apply(
                write, object, force=request.query.get("force") == "true"
            )
            return 201 if new else 200, applied
        if request.content_type == JSON_PATCH and isinstance(body, list):
            return 200, self._writes.json_patch(write, body)
        if request.content_type == MERGE_PATCH and isinstance(body, dict):
            return 200, self._writes.merge_patch(write, body)
        raise StatusError(
            415, f"the body of the request was in an unknown format: {request.content_type}"
        )

    def _discovery(self, path: str, accept: str | None) -> JsonObject | None:
        """Return the response of a discovery path; None for other paths."""
        if accept == AGGREGATED and path in ("/api", "/apis"):
            served = self._cluster.groups() if path == "/apis" else {"": ["v1"]}
            return {
                "kind": "APIGroupDiscoveryList",
                "items": [self._group(*each) for each in served.items()],
            }
        if path == "/version":
            return {"major": "1", "minor": "36", "gitVersion": "v1.36.0-fake"}
        if path == "/apis":
            groups = [
                {
                    "name": group,
                    "versions": [
                        {"groupVersion": f"{group}/{version}", "version": version}
                        for version in versions
                    ],
                    "preferredVersion": {
                        "groupVersion": f"{group}/{versions[0]}",
                        "version": versions[0],
                    },
                }
                for group, versions in self._cluster.groups().items()
            ]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        if (match := re.fullmatch(r"/(?:api|apis/([^/]+))/(v[^/]+)", path)) is None:
            return None
        group, version = match[1] or "", match[2]
        kinds = self._cluster.kinds(group, version)
        if not kinds:
            raise StatusError(404, "the server could not find the requested resource")
        resources = [
            {
                "name": kind.resource.plural,
                "kind": kind.resource.kind,
                "namespaced": kind.resource.namespaced,
            }
            for kind in kinds
        ]
        return {
            "kind": "APIResourceList",
            "groupVersion": f"{group}/{version}".lstrip("/"),
            "resources": resources,
        }

    def _group(self, group: str, versions: list[str]) -> JsonObject:
        """Return a group in the form of aggregated discovery."""
        resources = {
            version: [
                {
                    "resource": kind.resource.plural,
                    "responseKind": {"kind": kind.resource.kind},
                    "scope": "Namespaced" if kind.resource.namespaced else "Cluster",
                    "verbs": ["list"],
                }
                for kind in self._cluster.kinds(group, version)
            ]
            for version in versions
        }
        served = [{"version": version, "resources": each} for version, each in resources.items()]
        return {"metadata": {"name": group}, "versions": served}


def encode(code: int, object: JsonObject) -> web.Response:
    """Return an object as JSON, with the headers that its Status needs."""
    wait = (
        (object.get("details") or {}).get("retryAfterSeconds")
        if object.get("kind") == "Status"
        else None
    )
    headers = {"Retry-After": str(wait)} if wait else {}
    return web.Response(
        status=code, body=orjson.dumps(object), content_type="application/json", headers=headers
    )
