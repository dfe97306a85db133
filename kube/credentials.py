"""Finds the API server: by kubeconfig, $KUBECONFIG, ~/.kube/config or service account."""

import os
from collections.abc import Mapping
from pathlib import Path

from kube.endpoint import CredentialsError, Endpoint, read, tls, token_file

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


async def load(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Endpoint:
    """Return the endpoint to use.

    Raises CredentialsError with the files that were tried and their errors.
    """
    files = [kubeconfig] if kubeconfig else kubeconfig_files(environment)
    if files:
        # Imported here: YAML is 7 % of the import time, and a Pod has no kubeconfig.
        from kube import kubeconfig as kubeconfigs

        return await kubeconfigs.endpoint(files, context)
    if "KUBERNETES_SERVICE_HOST" in environment:
        return in_cluster(environment, service_account)
    raise CredentialsError(
        "no API server: no --kubeconfig, no $KUBECONFIG, no ~/.kube/config, and not running in a "
        "Pod"
    )


def kubeconfig_files(environment: Mapping[str, str]) -> list[Path]:
    """Return the kubeconfig files of $KUBECONFIG that exist, or the one in the home directory."""
    if listed := environment.get("KUBECONFIG"):
        files = [Path(name).expanduser() for name in listed.split(os.pathsep) if name]
        if not (existing := [file for file in files if file.exists()]):
            raise CredentialsError(f"$KUBECONFIG: {listed}: no such file")
        return existing
    home = environment.get("HOME")
    own = Path(home) / ".kube" / "config" if home else None
    return [own] if own and own.exists() else []


def in_cluster(environment: Mapping[str, str], service_account: Path) -> Endpoint:
    """Return the endpoint in the environment of every Pod; its token is read again each minute."""
    host = environment["KUBERNETES_SERVICE_HOST"]
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    authorities = service_account / "ca.crt"
    return Endpoint(
        url=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ssl=tls(str(authorities), authorities=read(authorities)),
        authorization=token_file(service_account / "token"),
        namespace=read(service_account / "namespace").decode().strip(),
    )
