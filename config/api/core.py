"""The core/v1 types that Gatewright's kinds embed, with all their fields."""

from typing import Annotated, Literal

from pydantic import Field, SerializeAsAny, StringConstraints, WithJsonSchema

from config.api.formats import ObjectName, ProcMount, WindowsUser
from config.api.meta import INT_OR_STRING, ApiModel, Int64, keyed_by

_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY_PATTERN = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"
QuantityText = Annotated[
    int | Annotated[str, StringConstraints(pattern=QUANTITY_PATTERN)],
    WithJsonSchema({**INT_OR_STRING, "pattern": QUANTITY_PATTERN}),
    # serialize the value as its own type, without trying the branches of the union
    SerializeAsAny(),
]


class ResourceClaim(ApiModel):
    """One entry of the pod's resourceClaims."""

    name: str = Field(description="Name of one entry in the pod's spec.resourceClaims.")
    request: str | None = Field(
        None, description="Name chosen for a request in that claim; all of it if unset."
    )


class ResourceRequirements(ApiModel):
    """Compute resources of a container (core/v1 ResourceRequirements)."""

    claims: list[ResourceClaim] | None = Field(
        None,
        description="Resources of spec.resourceClaims that the container uses.",
        json_schema_extra=keyed_by("name"),
    )
    limits: dict[str, QuantityText] | None = Field(
        None, description='Maximum amounts, such as cpu: "500m".'
    )
    requests: dict[str, QuantityText] | None = Field(
        None, description="Minimum amounts, which the scheduler reserves."
    )


def _set_of(description: str) -> list[str] | None:
    """Declare a list whose order does not matter but is kept."""
    return Field(
        None, description=description, json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )


class Capabilities(ApiModel):
    """Linux capabilities added to and dropped from the runtime's default."""

    add: list[str] | None = _set_of("Capabilities added.")
    drop: list[str] | None = _set_of("Capabilities dropped, such as ALL.")


class AppArmorProfile(ApiModel):
    """AppArmor profile of a container."""

    type: Literal["Localhost", "RuntimeDefault", "Unconfined"] = Field(
        description="Which kind of profile."
    )
    localhost_profile: str | None = Field(
        None, description="Name of a profile on the node, for type Localhost."
    )


class SeccompProfile(ApiModel):
    """Seccomp profile of a container."""

    type: Literal["Localhost", "RuntimeDefault", "Unconfined"] = Field(
        description="Which kind of profile."
    )
    localhost_profile: str | None = Field(None, description="File on the node, for type Localhost.")


class SELinuxOptions(ApiModel):
    """SELinux labels of a container."""

    level: str | None = Field(None, description="SELinux level label.")
    role: str | None = Field(None, description="SELinux role label.")
    type: str | None = Field(None, description="SELinux type label.")
    user: str | None = Field(None, description="SELinux user label.")


class WindowsOptions(ApiModel):
    """Settings of Windows containers."""

    gmsa_credential_spec: str | None = Field(
        None, description="Contents of the GMSA credential spec."
    )
    gmsa_credential_spec_name: ObjectName | None = Field(
        None, description="Name of the GMSA credential spec."
    )
    host_process: bool | None = Field(
        None, description="Whether it runs as a host process container."
    )
    run_as_user_name: WindowsUser | None = Field(
        None, description="User that the entrypoint runs as."
    )


class SecurityContext(ApiModel):
    """Security settings of a container (core/v1 SecurityContext)."""

    allow_privilege_escalation: bool | None = Field(
        None, description="Whether a process may gain more privileges than its parent."
    )
    app_armor_profile: AppArmorProfile | None = Field(
        None, description="AppArmor profile; the pod's if unset."
    )
    capabilities: Capabilities | None = Field(
        None, description="Linux capabilities; the runtime's default if unset."
    )
    privileged: bool | None = Field(
        None, description="Whether it runs privileged: as root on the node."
    )
    proc_mount: ProcMount | None = Field(
        None, description="How /proc is mounted: Default or Unmasked."
    )
    read_only_root_filesystem: bool | None = Field(
        None, description="Whether its root filesystem is read-only."
    )
    run_as_group: Int64 | None = Field(None, description="Group that the entrypoint runs as.")
    run_as_non_root: bool | None = Field(
        None, description="Whether the kubelet refuses to start it as root."
    )
    run_as_user: Int64 | None = Field(None, description="User that the entrypoint runs as.")
    se_linux_options: SELinuxOptions | None = Field(
        None, description="SELinux labels; the pod's if unset."
    )
    seccomp_profile: SeccompProfile | None = Field(
        None, description="Seccomp profile; the pod's if unset."
    )
    windows_options: WindowsOptions | None = Field(
        None, description="Settings of Windows containers."
    )
