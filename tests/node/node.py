"""A cluster of one real node on this machine: control plane, kubelet, containerd, kube-proxy and CoreDNS."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.controlplane.api import Api
from tests.controlplane.plane import ControlPlane
from tests.controlplane.processes import Reaper
from tests.node import objects, parts
from tests.node.images import Image, Say, archive, build, pause
from tests.node.machine import Machine
from tests.node.programs import built, check_machine
from tests.node.slots import NodeError, Slot, taken

PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
READY_WITHIN = 60.0
CTR = ("ctr", "--namespace", "k8s.io")
MADE_FROM = "gatewright.made-from"


class Node:
    """The cluster. Its methods block."""

    def __init__(self, slot: Slot, say: Say) -> None:
        """Prepare everything, start nothing: `running` does both."""
        self.slot = slot
        self.say = say
        self._reaper = Reaper()
        self.machine = Machine(slot, self._reaper)
        self.plane = ControlPlane(slot.directory / "plane", PLANE, host=self.machine.host)
        self.kubectl = self.plane.kubectl
        self.processes = {
            name: self.machine.process(name, *command) for name, command in self._commands().items()
        }

    def start(self, images: Iterable[Image] = ()) -> None:
        """Start everything with these images on the node, and wait until it is ready."""
        wanted = [pause(), *images]
        build(wanted, self.say)
        self.say("starting the node")
        self.machine.on()
        self._start_containerd()
        for image in wanted:
            self._import(image)
        self.say("starting the control plane")
        self.plane.start_parts()
        self.apply(objects.cluster_dns(self.slot.address))
        self.apply(objects.volumes(self.slot.directory / "volumes"))
        self._start_services()

    def have(self, image: Image) -> None:
        """Ensure that an image is on the running node."""
        build([image], self.say)
        self._import(image)

    def restart(self) -> None:
        """Start everything again after `cut_power`, as it was."""
        self.machine.on()
        self._start_containerd()
        self.plane.start_parts()
        self._start_services()

    def cut_power(self) -> None:
        """End every process at once: pods, kubelet, control plane."""
        self.machine.off()
        for part in PLANE:
            self.plane.kill(part)
        for process in self.processes.values():
            process.kill()

    def close(self) -> None:
        """End everything. Files are left over; the next user of the slot removes them."""
        self.cut_power()
        self.plane.close()
        self._reaper.close()

    def apply(self, manifests: Iterable[dict[str, Any]]) -> None:
        """Apply objects as admin."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("apply", "--server-side", "-f", "-", input=listed)

    def check(self) -> None:
        """Raise an error if a part of the node has ended unexpectedly."""
        for process in self.processes.values():
            if process.died:
                raise NodeError(f"{process.name} died\n{process.tail()}")

    def _commands(self) -> dict[str, list[str | Path]]:
        admin, programs = self.plane.kubeconfig, built()
        directory = self.slot.directory
        return {
            "containerd": ["containerd", "--config", parts.containerd(self.slot)],
            "coredns": [programs["coredns"], "-conf", parts.coredns(self.slot, admin)],
            "kube-proxy": [
                *(programs["node"], "kube-proxy"),
                f"--config={parts.kube_proxy(self.slot, admin)}",
            ],
            "kubelet": [
                *(programs["node"], "kubelet"),
                f"--config={parts.kubelet(self.slot)}",
                f"--kubeconfig={admin}",
                f"--root-dir={directory / 'kubelet'}",
                f"--hostname-override={parts.NODE}",
                f"--node-ip={self.slot.address}",
            ],
        }

    def _start_containerd(self) -> None:
        """Start it without the containers that an earlier node left in its database."""
        process = self.processes["containerd"]
        process.start()
        self._until("containerd answers", lambda: self._ctr("version") is not None)
        if left := (self._ctr("containers", "list", "--quiet") or "").split():
            self.machine.run(*CTR, "containers", "delete", *left)
            process.kill()
            process.start()
            self._until("containerd answers", lambda: self._ctr("version") is not None)

    def _ctr(self, *arguments: str) -> str | None:
        try:
            return self.machine.run(*CTR, *arguments)
        except NodeError:
            self.check()
            return None

    def _import(self, image: Image) -> None:
        """Import an image into the node, unless the same version is there already."""
        same = f'labels."{MADE_FROM}"=={image.key}'
        if self.machine.run(*CTR, "images", "list", "--quiet", f"name=={image.name},{same}"):
            return
        self.say(f"loading {image.name}")
        path = self.slot.directory / "image.tar"
        path.unlink(missing_ok=True)  # of a node that was killed
        archive(image, path)
        self.machine.run(*CTR, "images", "import", path)
        self.machine.run(*CTR, "images", "label", image.name, f"{MADE_FROM}={image.key}")
        path.unlink()

    def _start_services(self) -> None:
        for name in ("kubelet", "kube-proxy", "coredns"):
            self.processes[name].start()
        api = self.plane.api
        self._until("the node is ready", lambda: _is_ready(api))
        dns = Api(f"http://{self.slot.address}:8181", self.plane.ca_file, "")
        with closing(dns):
            self._until("the DNS answers", lambda: dns.found("/ready"))

    def _until(self, what: str, sign: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_WITHIN
        while not sign():
            self.check()
            if time.monotonic() > deadline:
                ends = "\n".join(each.tail(8) for each in self.processes.values())
                raise NodeError(f"not so after {READY_WITHIN:.0f} s: {what}\n{ends}")
            time.sleep(0.1)


@contextmanager
def running(say: Say, images: Iterable[Image] = ()) -> Iterator[Node]:
    """Run a node with these images; afterwards only the cache is left."""
    check_machine()
    with taken() as slot:
        node = Node(slot, say)
        try:
            node.start(images)
            yield node
        finally:
            node.close()


def _is_ready(api: Api) -> bool:
    code, answer = api.request("GET", f"/api/v1/nodes/{parts.NODE}")
    conditions = json.loads(answer)["status"].get("conditions", ()) if code == 200 else ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
