"""One control plane for many tests: it has no controllers, and after each test its objects are restored.

Objects are deleted in etcd: without kube-controller-manager, no namespace ends, and a test's webhooks
and finalizers could stop any deletion through the API server.
"""

import json
import shutil
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.controlplane.plane import ControlPlane, ControlPlaneError
from tests.controlplane.sentinels import await_admission
from tests.waiting import until

PARTS = ("etcd", "kube-apiserver")
LAST_AT_START = "/registry/services/specs/default/kubernetes"
# The API server renews these every 10 s.
RENEWED = ("/registry/leases/kube-system/apiserver-", "/registry/peerserverleases/")
VIEWS = ("/apis", "/openapi/v3")  # which show custom resources
MAX_OPERATIONS = 128  # of one transaction of etcd


class LentPlane:
    """An API server that is lent to one test after the other; the first one starts it.

    Between them it is frozen: an idle control plane uses as much CPU in five minutes as a start.
    """

    def __init__(self, make_directory: Callable[[], Path]) -> None:
        self._make_directory = make_directory
        self._plane: ControlPlane | None = None
        self._is_lent = False

    @contextmanager
    def lend(self) -> Iterator[ControlPlane]:
        """Yield the control plane with no objects but Kubernetes' own, and restore it afterwards.

        If that fails, since a part was stopped for example, the next test gets another one.
        """
        if self._is_lent:
            raise RuntimeError("this control plane is lent already, to a fixture of wider scope")
        plane = self._running()
        self._is_lent = True
        try:
            yield plane
            self._contents.restore()
            for part in reversed(PARTS):
                plane.stop(part)
        except BaseException:
            self.close()
            raise
        finally:
            self._is_lent = False

    def _running(self) -> ControlPlane:
        """Start the control plane, or continue it."""
        if self._plane is None:
            self._plane = ControlPlane.start(self._make_directory(), parts=PARTS, audit=False)
            self._contents = Contents(self._plane)
            return self._plane
        for part in PARTS:
            self._plane.cont(part)
        api = self._plane.api
        until(lambda: api.found("/readyz"))
        return self._plane

    def close(self) -> None:
        """End the control plane, if it runs, and remove its data."""
        if self._plane is not None:
            self._plane.close()
            shutil.rmtree(self._plane.directory / "etcd")
            self._plane = None


class Contents:
    """The objects of a new control plane that has only etcd and an API server."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        until(lambda: LAST_AT_START in self._read())
        self._objects = self._read()
        self._views = self._read_views()

    def restore(self) -> None:
        """Delete what is new, restore what differs, and wait until the API server has noticed.

        Raises ControlPlaneError if etcd does not answer.
        """
        until(self._is_restored)
        until(lambda: self._read_views() == self._views)
        await_admission(self._plane.api)
        until(self._is_restored)
        shutil.rmtree(self._plane.directory / "kubectl-cache", ignore_errors=True)

    def _is_restored(self) -> bool:
        """Return whether etcd has the objects of the start; restore those that differ."""
        now = self._read()
        changed = sorted({key for key, _ in now.items() ^ self._objects.items()})
        for first in range(0, len(changed), MAX_OPERATIONS):
            some = changed[first : first + MAX_OPERATIONS]
            self._etcd("txn", {"success": [self._restoring(key) for key in some]})
        return not changed

    def _restoring(self, key: str) -> dict[str, Any]:
        encoded = _encode(key)
        if key not in self._objects:
            return {"requestDeleteRange": {"key": encoded}}
        return {"requestPut": {"key": encoded, "value": self._objects[key]}}

    def _read(self) -> dict[str, str]:
        """Return the objects by their keys, encoded in base64."""
        body = {"key": _encode("/registry/"), "range_end": _encode("/registry0")}
        stored = self._etcd("range", body)["kvs"]
        objects = {b64decode(each["key"]).decode(): each["value"] for each in stored}
        return {key: value for key, value in objects.items() if not key.startswith(RENEWED)}

    def _read_views(self) -> list[bytes]:
        return [self._plane.api.request("GET", path)[1] for path in VIEWS]

    def _etcd(self, call: str, body: dict[str, Any]) -> dict[str, Any]:
        code, answer = self._plane.etcd.request("POST", f"/v3/kv/{call}", body)
        if code != 200:
            raise ControlPlaneError(f"etcd: {call}: {code} {answer.decode()}")
        return dict(json.loads(answer))


def _encode(text: str) -> str:
    return b64encode(text.encode()).decode()
