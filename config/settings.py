"""Settings of the processes: one model for flags, GATEWRIGHT_… and a settings file; its types."""

import os
import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from config.faults import FaultsError, did_you_mean, faults
from config.presets import policy_path, presets

if TYPE_CHECKING:
    from config.documents import Document

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


def _duration(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    parts = DURATION.findall(value)
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise ValueError("must be a duration such as 15s or 1m30s")
    return timedelta(seconds=sum(float(number) * UNITS[unit] for number, unit in parts))


def _address(value: Any) -> Any:
    if isinstance(value, tuple):
        return value
    host, colon, port = str(value).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError("must be an address of the form HOST:PORT, or :PORT for every interface")
    return host or None, int(port)


def _several(value: Any) -> Any:
    """Split `a,b` into two values, on the command line, in the environment and in files."""
    values = value if isinstance(value, list | tuple) else [value]
    return [
        part
        for given in values
        for part in (given.split(",") if isinstance(given, str) else [given])
        if part
    ]


def _policy_paths(value: Any) -> Any:
    return [policy_path(each) if isinstance(each, str) else each for each in _several(value)]


def _preset_names(value: list[str]) -> list[str]:
    for name in value:
        if name not in presets():
            raise ValueError(f"no preset {name}{did_you_mean(name, presets())}")
    return value


def _url(value: str) -> str:
    """Return a URL that the API server accepts for a webhook."""
    url = urlsplit(value)
    if url.scheme != "https" or not url.hostname or "@" in url.netloc or url.query or url.fragment:
        raise ValueError("must be an address of the form https://HOST:PORT")
    return value


DurationText = Annotated[timedelta, BeforeValidator(_duration)]
ListenAddress = Annotated[tuple[str | None, int], BeforeValidator(_address)]
NameList = Annotated[list[str], BeforeValidator(_several)]
PresetNames = Annotated[list[str], BeforeValidator(_several), AfterValidator(_preset_names)]
PolicyPaths = Annotated[list[Path], BeforeValidator(_policy_paths)]
Paths = Annotated[list[Path], BeforeValidator(_several)]
Url = Annotated[str, AfterValidator(_url)]

PREFIX = "GATEWRIGHT_"
# Environment variables that Kubernetes adds to pods for Services.
SERVICE_LINK = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_.*)?)")


class Settings(BaseModel):
    """All settings. Each command uses those that concern it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kubeconfig: Path | None = Field(
        None, description="kubeconfig file; default: $KUBECONFIG, ~/.kube/config or the pod's own"
    )
    context: str | None = Field(
        None, description="context in the kubeconfig; default: its current context"
    )
    cluster: bool = Field(
        True, description="use an API server; without one, policies with look-ups fail"
    )
    policies: PolicyPaths = Field(
        [], description="policy sets: names of presets, YAML files, or directories of them"
    )
    policies_config_map: NameList = Field(
        [],
        description="ConfigMaps with policy sets or cases, in Gatewright's namespace; watched",
    )
    preset_cases: PresetNames = Field(
        [], description="presets whose cases must pass before any policy is in force"
    )
    policies_dir: Paths = Field([], description="directories with your own policy modules")
    pod_kinds: NameList = Field(
        [],
        description="custom kinds with pods: argoproj.io/v1alpha1/Rollout=spec.template.spec, or "
        "batch.volcano.sh/v1alpha1/Job=spec.tasks[].template.spec",
    )
    listen: ListenAddress = Field(
        (None, 9443), description="address the webhook listens on, with TLS"
    )
    tls_cert: Path | None = Field(None, description="serving certificate of the webhook, PEM")
    tls_key: Path | None = Field(None, description="private key of the serving certificate, PEM")
    client_ca: Path | None = Field(
        None, description="CA bundle, PEM: only clients with a certificate of it may send reviews"
    )
    client_names: NameList = Field(
        [], description="common names that --client-ca's certificates must have; any by default"
    )
    tls_minimum: Literal["1.2", "1.3"] = Field("1.3", description="lowest TLS version")
    metrics_listen: ListenAddress = Field((None, 8080), description="address of /metrics")
    health_listen: ListenAddress = Field(
        (None, 8081), description="address of /healthz and /readyz"
    )
    kinds: NameList = Field([], description="kinds to reconcile, or `none`; all by default")
    namespaces: NameList = Field([], description="namespaces to reconcile; all by default")
    workers: int = Field(5, ge=1, le=100, description="concurrent reconciles of each kind")
    object_metrics: bool = Field(
        True, description="metrics with labels for each object; turn off in large clusters"
    )
    registry: str = Field(
        "",
        description=(
            "registry for the images that the controller chooses; default: where they are published"
        ),
    )
    leader_elect: bool = Field(
        True, description="elect a leader with a Lease; other replicas stand by"
    )
    namespace: str | None = Field(
        None, description="namespace Gatewright is installed in; by default that of the credentials"
    )
    lease_name: str = Field("gatewright-controller-lock", description="name of the Lease")
    lease_duration: DurationText = Field(
        timedelta(seconds=15), description="how long standbys wait for a leader that does not renew"
    )
    renew_deadline: DurationText = Field(
        timedelta(seconds=10), description="how long a leader tries to renew before it stops"
    )
    retry_period: DurationText = Field(
        timedelta(seconds=2),
        description="interval at which the leader renews the Lease and standbys try to acquire it",
    )
    webhook_url: Url | None = Field(None, description="register this URL instead of the Service")
    webhook_service: str = Field(
        "gatewright-webhook", description="Service the webhook is registered under"
    )
    webhook_configuration: str | None = Field(
        None, description="register the webhook in configurations of this name"
    )
    excluded_namespaces: NameList = Field(
        [],
        description=(
            "namespaces never sent to the webhook, besides kube-system, kube-node-lease and "
            "Gatewright's own"
        ),
    )
    validating_timeout_seconds: int = Field(
        3, ge=1, le=30, description="how long the API server waits for a verdict"
    )
    mutating_timeout_seconds: int = Field(
        1, ge=1, le=30, description="how long the API server waits for a patch"
    )
    tls_secret: str = Field(
        "gatewright-webhook-tls",
        description=(
            "Secret with the serving certificate: the controller maintains it, the webhook watches "
            "it instead of reading files"
        ),
    )
    ca_secret: str = Field("gatewright-ca", description="Secret with the certificate authority")
    controller_account: str = Field(
        "gatewright-controller-manager", description="ServiceAccount of the controller"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="minimum severity of log lines"
    )
    registry_config: Path | None = Field(
        None, description="docker config file with logins of registries, for policies about images"
    )
    registry_ca: Path | None = Field(
        None, description="further authorities of registries, PEM, for policies about images"
    )
    insecure_registries: list[str] = Field(
        [], description="registry that policies read over plain HTTP, as HOST:PORT; may be repeated"
    )
    record_reviews: Path | None = Field(
        None,
        description=(
            "file for a sample of the reviews, for `gatewright impact`; without values of Secrets, "
            "ConfigMaps and environment variables, but with annotations and arguments"
        ),
    )
    record_share: float = Field(0.01, gt=0, le=1, description="share of the reviews to record")
    audit: bool = Field(
        False, description="judge existing objects in the cluster and write reports"
    )
    audit_interval: DurationText = Field(
        timedelta(minutes=10), description="pause between two audits"
    )
    audit_qps: float = Field(
        20.0, gt=0, le=1000, description="maximum requests per second of an audit"
    )
    audit_reports: Literal["openreports", "wgpolicyk8s"] = Field(
        "openreports",
        description="API of the reports: openreports.io/v1alpha1 or wgpolicyk8s.io/v1alpha2",
    )
    measure_enforcement: bool = Field(
        False,
        description="measure each minute, by dry runs that must be denied, whether policies in "
        "force are enforced",
    )
    kubernetes_policies: bool = Field(
        True, description="also judge existing objects by the cluster's ValidatingAdmissionPolicies"
    )
    cert_manager: bool = Field(False, description="cert-manager issues the certificates")


def planner_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings that plans depend on; webhook and controller must use the same values."""
    return {"registry": settings.registry}


def load_settings(
    flags: Mapping[str, Any],
    file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    *,
    used: Collection[str] = Settings.model_fields,
) -> Settings:
    """Return the settings: flags win over the environment, then the file, then the defaults.

    Raises DocumentError, with the line, for an error in the file, and for a setting that is not
    `used`; FaultsError for an error in a flag or variable.
    """
    document = _document(file) if file is not None else None
    variables = _variables(environment)
    in_file = document.value if document is not None else {}
    written = {key.replace("-", "_"): value for key, value in in_file.items()}
    if document is not None:
        _require_used(document, used)
    try:
        return Settings(**{**written, **variables, **flags})
    except ValidationError as error:
        path_faults = faults(Settings, error, noun="setting")
    raise _locate(path_faults, flags, variables, document)


def _require_used(document: "Document", used: Collection[str]) -> None:
    """Raise DocumentError for each setting of a file that the command would ignore."""
    from config.documents import DocumentError

    unused = [
        f"{document.where(key)}: {key}: this command does not use the setting"
        for key in document.value
        if (name := key.replace("-", "_")) in Settings.model_fields and name not in used
    ]
    if unused:
        raise DocumentError("\n".join(unused))


def _document(file: Path) -> "Document | None":
    # Imported here: YAML takes 2 MB, and most processes have no file.
    from config.documents import DocumentError, read_documents

    documents = list(read_documents(file))
    if len(documents) > 1 or any(not isinstance(document.value, dict) for document in documents):
        raise DocumentError(f"{file}: a settings file is one YAML object")
    return documents[0] if documents else None


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are settings.

    Raises FaultsError for an unknown GATEWRIGHT_ variable.
    """
    variables = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    settings = {PREFIX + name.upper(): name for name in Settings.model_fields}
    unknown = [
        name for name in variables if name not in settings and not SERVICE_LINK.fullmatch(name)
    ]
    if unknown:
        raise FaultsError(
            (f"${name}", f"unknown setting{did_you_mean(name, settings)}") for name in unknown
        )
    return {settings[name]: value for name, value in variables.items() if name in settings}


def _locate(
    found: list[tuple[str, str]],
    flags: Mapping[str, Any],
    variables: Mapping[str, str],
    document: "Document | None",
) -> ValueError:
    """Return the source of each error: a flag, a variable, or a line of the file."""
    lines, in_file = [], []
    for path, text in found:
        name = re.split(r"[.\[]", path)[0]
        if name in flags:
            lines.append((f"--{name.replace('_', '-')}", text))
        elif name in variables:
            lines.append((f"${PREFIX}{name.upper()}", text))
        elif document is not None:
            key = name if name in document.value else name.replace("_", "-")
            in_file.append(f"{document.where(key)}: {key}: {text}")
    if lines:
        return FaultsError(lines)
    from config.documents import DocumentError

    return DocumentError("\n".join(in_file))
