"""Objects of an API server by the names that kubectl takes, read without a process for each request."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from tests.controlplane.api import Api

Object = dict[str, Any]


class Resources:
    """Reads objects: a wait that asks ten times a second would cost half a core with kubectl."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[str, tuple[str, str, bool]] = {}

    def get(self, what: str, namespace: str) -> Object:
        """Return an object, `deployment/shop`, as kubectl prints it."""
        resource, _, name = what.partition("/")
        found = self._api.get(f"{self._path(resource, namespace)}/{name}")
        found["metadata"].pop("managedFields", None)
        return found

    def find(self, resource: str, namespace: str, selector: str = "") -> list[Object]:
        """Return the objects of a namespace, those that a label selector matches."""
        query = urlencode({"labelSelector": selector})
        return list(self._api.get(f"{self._path(resource, namespace)}?{query}")["items"])

    def logs(self, pod: str, namespace: str) -> list[str]:
        """Return the lines that a pod's only container logged."""
        code, answer = self._api.request("GET", f"{self._path('pod', namespace)}/{pod}/log")
        assert code == 200, answer
        return answer.decode().splitlines()

    def _path(self, resource: str, namespace: str) -> str:
        if resource not in self._known:  # at first, or one of a CRD that is new
            self._known = dict(reversed([*self._discover()]))  # the first of a name counts
        assert resource in self._known, f"the API server has no {resource}"
        root, plural, is_namespaced = self._known[resource]
        return f"{root}/namespaces/{namespace}/{plural}" if is_namespaced else f"{root}/{plural}"

    def _discover(self) -> Iterator[tuple[str, tuple[str, str, bool]]]:
        """Yield root, plural and scope of each resource by each of its names."""
        groups = self._api.get("/apis")["groups"]
        preferred = (group["preferredVersion"]["groupVersion"] for group in groups)
        for root in ("/api/v1", *(f"/apis/{version}" for version in preferred)):
            code, answer = self._api.request("GET", root)
            # an API behind a Service may not answer
            for resource in json.loads(answer)["resources"] if code == 200 else ():
                if "/" not in resource["name"]:
                    at = root, resource["name"], resource["namespaced"]
                    singular = resource["singularName"] or resource["kind"].lower()
                    for name in (resource["name"], singular, *resource.get("shortNames", ())):
                        yield name, at
