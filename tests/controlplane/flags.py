"""The command line of each component of the control plane."""

from collections.abc import Iterable
from pathlib import Path

from tests.controlplane.credentials import Credentials
from tests.controlplane.host import Host


def etcd(data: Path, host: Host, client_port: int, peer_port: int) -> list[str]:
    """One member with its data in `data`; it never waits for the disk."""
    client = f"http://{host.address}:{client_port}"
    return [
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls=http://{host.address}:{peer_port}",
        "--unsafe-no-fsync",
    ]


def kube_apiserver(
    credentials: Credentials,
    host: Host,
    etcd_port: int,
    port: int,
    *,
    audit: tuple[Path, Path] | None,
    service_accounts: bool,
    more: Iterable[str] = (),
) -> list[str]:
    """Return the flags; `audit` is the audit policy and the log. Without `service_accounts`, pods need none."""
    # TaintNodesByCondition would keep new nodes unschedulable until a node lifecycle controller has
    # seen them.
    disabled = ["TaintNodesByCondition"] + ([] if service_accounts else ["ServiceAccount"])
    audited = ()
    if audit:
        policy, log = audit
        audited = (
            f"--audit-policy-file={policy}",
            f"--audit-log-path={log}",
            "--audit-log-maxsize=100000",
        )
    reached = (
        ("--kubelet-preferred-address-types=InternalIP",)
        if host.has_node
        else ("--endpoint-reconciler-type=none",)
    )
    return [
        f"--etcd-servers=http://{host.address}:{etcd_port}",
        f"--bind-address={host.address}",
        f"--advertise-address={host.address}",
        f"--secure-port={port}",
        f"--tls-cert-file={credentials.certificate}",
        f"--tls-private-key-file={credentials.key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={credentials.service_account_public_key}",
        f"--service-account-signing-key-file={credentials.service_account_key}",
        f"--client-ca-file={credentials.ca}",
        f"--token-auth-file={credentials.token_file}",
        "--authorization-mode=RBAC",
        "--allow-privileged",
        *reached,
        f"--disable-admission-plugins={','.join(disabled)}",
        *audited,
        *more,
    ]


def kube_controller_manager(credentials: Credentials, kubeconfig: Path) -> list[str]:
    """All controllers except those that need a cloud or a network."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={credentials.service_account_key}",
        f"--root-ca-file={credentials.ca}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--controllers=*,-node-ipam-controller,-node-route-controller,-service-lb-controller,-cloud-node-lifecycle-controller",
    ]


def kube_scheduler(kubeconfig: Path) -> list[str]:
    """The scheduler, without leader election."""
    return [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def hollow_kubelet(kubeconfig: Path, nodes: Iterable[str]) -> list[str]:
    """Nodes that are Ready at once, and the default StorageClass, whose volumes exist at once."""
    return [f"--kubeconfig={kubeconfig}", f"--node={','.join(nodes)}"]
