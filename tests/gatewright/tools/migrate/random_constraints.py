"""Random parameters and objects for the constraints of Gatekeeper's library."""

from collections.abc import Callable
from random import Random
from typing import Any

from webhook.harness.bases import smallest

Object = dict[str, Any]
IMAGES = (
    "nginx", "nginx:latest", "nginx:1.25", "registry.example.com/team/app:v1", "example.com:5000/a",
    "registry.example.com/team/app@sha256:0123", "docker.io/library/nginx:dev", "a/b:dev", "a/b:v1",
)  # fmt: skip
PREFIXES = ("nginx", "registry.example.com/", "registry.example.com/team", "docker.io/", "a", "")
EXEMPT = ("nginx", "nginx:*", "registry.example.com/*", "a/b:dev", "*")
QUANTITIES = (
    "0", "1", "2", "0.5", "100m", "200m", "1500m", "1k", "1Mi", "64Mi", "1Gi", "1G", "1e3", "1E", "5u",
    "500", "1.5Gi", "128974848", "2048Ki", "3n",
)  # fmt: skip
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
PROBE_TYPES: dict[str, Any] = {
    "tcpSocket": {"port": 80}, "httpGet": {"port": 80}, "exec": {"command": ["a"]},
    "grpc": {"port": 80},
}  # fmt: skip
TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"


class RandomObjects:
    """Objects and parameters, decided by a seed."""

    def __init__(self, seed: int) -> None:
        """Draw from a seed."""
        self.random = Random(seed)

    def some(self, values: Any, most: int = 3) -> list[Any]:
        """Return some of the values, possibly none."""
        return self.random.sample(list(values), self.random.randint(0, min(most, len(values))))

    def maybe(self, draw: Callable[[], Any]) -> Any:
        """Return a value in two of three cases, else None."""
        return draw() if self.random.random() < 2 / 3 else None

    def flag(self) -> bool:
        """Return true or false."""
        return self.random.random() < 1 / 2

    def fields(self, **draws: Callable[[], Any]) -> Object:
        """Return an object with some of the fields."""
        drawn = {key: self.maybe(draw) for key, draw in draws.items()}
        return {key: each for key, each in drawn.items() if each is not None}

    def parameters(self, kind: str) -> Object:
        """Return random parameters of a constraint."""
        pick, some = self.random.choice, self.some

        def amount():
            return pick([*QUANTITIES, "-1"])

        def metadata():
            return [
                {"key": key} | self.fields(allowedRegex=lambda: pick(("^a", "b", "^[a-c]+$", "")))
                for key in some(("team", "example.com/owner", "app"))
            ]

        draws: dict[str, dict[str, Callable[[], Any]]] = {
            "K8sAllowedRepos": {"repos": lambda: some(PREFIXES)},
            "K8sDisallowedRepos": {"repos": lambda: some(PREFIXES)},
            "K8sContainerLimits": {"cpu": amount, "memory": amount},
            "K8sContainerRequests": {"cpu": amount, "memory": amount},
            "K8sContainerEphemeralStorageLimit": {"ephemeral-storage": amount},
            "K8sDisallowedTags": {"tags": lambda: some(("latest", "dev", "v1", "*", "v?"))},
            "K8sExternalIPs": {"allowedIPs": lambda: some(("10.0.0.1", "10.0.0.2"))},
            "K8sHttpsOnly": {"tlsOptional": self.flag},
            "K8sReplicaLimits": {
                "ranges": lambda: [
                    {"min_replicas": low, "max_replicas": low + self.random.randint(0, 3)}
                    for low in some(range(6))
                ]
            },
            "K8sRequiredAnnotations": {"annotations": metadata},
            "K8sRequiredLabels": {"labels": metadata, "message": lambda: "say so"},
            "K8sRequiredProbes": {
                "probes": lambda: some(PROBES),
                "probeTypes": lambda: some(PROBE_TYPES),
            },
            "K8sRequiredResources": {
                "limits": lambda: some(("cpu", "memory")),
                "requests": lambda: some(("cpu", "memory")),
            },
        }
        exempt = {"exemptImages": lambda: some(EXEMPT)} if self.random.random() < 1 / 3 else {}
        return self.fields(**draws.get(kind, {}), **exempt)

    def match(self) -> Object:
        """Return random fields of a constraint's match besides its kinds."""
        if self.random.random() < 2 / 3:
            return {}
        return self.fields(
            namespaces=lambda: self.some(("shop", "web", "prod-*")),
            excludedNamespaces=lambda: self.some(("shop", "prod-*", "*b")),
            labelSelector=lambda: {"matchLabels": {"app": "a"}},
            scope=lambda: self.random.choice(("*", "Namespaced", "Cluster")),
        )

    def container(self, name: str) -> Object:
        """Return a container."""
        pick = self.random.choice

        def probe():
            return {each: PROBE_TYPES[each] for each in self.some(PROBE_TYPES, 1)}

        def amounts():
            return self.fields(
                **{
                    resource: lambda: pick(QUANTITIES)
                    for resource in ("cpu", "memory", "ephemeral-storage")
                }
            )

        def windows():
            return {"hostProcess": self.flag()}

        def security():
            return self.fields(
                privileged=self.flag,
                allowPrivilegeEscalation=self.flag,
                readOnlyRootFilesystem=self.flag,
                windowsOptions=windows,
            )

        def mounts():
            return [{"name": "a", "mountPath": pick((TOKENS, "/data"))}]

        def resources() -> Object:
            found = self.fields(limits=amounts, requests=amounts)
            if "limits" in found:  # the API server's default of requests
                found["requests"] = found["limits"] | found.get("requests", {})
            return found

        return {"name": name, "image": pick(IMAGES)} | self.fields(
            resources=resources,
            securityContext=security,
            stdin=self.flag,
            tty=self.flag,
            volumeMounts=mounts,
            **dict.fromkeys(PROBES, probe),
        )

    def object(self, kind: str) -> Object:
        """Return an object of a kind."""
        made = smallest(kind, "web", self.random.choice(("shop", "web", "prod-1")))
        made["metadata"] |= self.fields(labels=self._texts, annotations=self._texts)
        if kind == "Pod":
            made["spec"] = self._pod()
        elif kind == "Deployment":
            made["spec"]["replicas"] = self.random.randint(0, 8)  # the API server sets it
        elif kind == "Service":
            made["spec"] |= self.fields(
                type=lambda: self.random.choice(("ClusterIP", "NodePort", "LoadBalancer")),
                externalIPs=lambda: self.some(("10.0.0.1", "10.0.0.2", "10.0.0.3")),
            )
        elif kind == "Ingress":
            made["spec"] = self.fields(
                tls=lambda: self.some([{"hosts": ["a.example.com"]}, {"secretName": "a"}]),
                rules=lambda: self.some(
                    [{"host": "a.example.com"}, {"host": "*.example.com"}, {"host": ""}, {}]
                ),
            )
        return made

    def _texts(self) -> Object:
        keys = self.some(("team", "example.com/owner", "app", "kubernetes.io/ingress.allow-http"))
        return {key: self.random.choice(("a", "b", "abc", "x", "false", "true")) for key in keys}

    def _pod(self) -> Object:
        count = self.random.randint(1, 3)
        lists = {"containers": [self.container(f"c{at}") for at in range(count)]}
        for name in ("initContainers", "ephemeralContainers"):
            if self.random.random() < 1 / 4:
                lists[name] = [self.container(f"{name[0]}0")]
        return lists | self.fields(
            **dict.fromkeys(("hostPID", "hostIPC", "hostNetwork"), lambda: self.flag() or None),
            automountServiceAccountToken=self.flag,
            securityContext=lambda: self.fields(
                windowsOptions=lambda: {"hostProcess": self.flag()},
                runAsUser=lambda: self.random.randint(0, 2),
            ),
            resources=lambda: {"limits": {"cpu": "1", "memory": "1Gi"}},
            os=lambda: {"name": self.random.choice(("linux", "windows"))},
        )
