"""AppConfig: an application's settings for its environment, rendered into a ConfigMap."""

from typing import Literal

from pydantic import Field

from config.api.components import KeyReference
from config.api.definition import AGE, MESSAGE, READY, Column, Definition
from config.api.meta import ApiModel, CustomResource, Int64, Rfc3339Time, Status

AppEnvironment = Literal["dev", "staging", "prod"]
FROM_NAMESPACE = "from-namespace"


class EnvironmentValues(ApiModel):
    """The values of one key by environment, each a template as in `config`."""

    default: str | None = Field(None, description="Value where the environment has none here.")
    dev: str | None = Field(None, description="Value in environment dev.")
    staging: str | None = Field(None, description="Value in environment staging.")
    prod: str | None = Field(None, description="Value in environment prod.")


class AppConfigSpec(ApiModel):
    """The settings of the application."""

    application: str | None = Field(
        None,
        description="Name of the application; the ConfigMap is <application>-config. Required.",
    )
    environment: Literal[AppEnvironment, "from-namespace"] = Field(
        "dev",
        description="Environment: dev, staging, prod, or from-namespace: that of the namespace's "
        "label environment, or else of its name (production and development count, too).",
    )
    config: dict[str, str] = Field(
        {},
        description="Data of the ConfigMap. Values are Jinja2 templates over environment, "
        "application and "
        "namespace, with the filters capitalize, lower, replace, title, trim and upper.",
    )
    values: dict[str, EnvironmentValues] = Field(
        {},
        description="More data of the ConfigMap: for each key its value by environment, or the "
        "default. A key is either here or in config.",
    )
    secrets: dict[str, KeyReference] = Field(
        {},
        description="Variables that containers with the ConfigMap in envFrom get beside its keys, "
        "each from a key of a Secret in the same namespace. Its value is neither read nor copied.",
    )


class ConfigMapStatus(Status):
    """The observed state of a ConfigMap whose users are restarted when its data changes."""

    config_map_name: str | None = Field(None, description="Name of the ConfigMap.")
    checksum: str | None = Field(None, description="Checksum of its data.")
    revision: Int64 | None = Field(
        None,
        description=(
            "Counts the changes of the data; all workloads that use it were restarted for this one."
        ),
    )
    last_updated: Rfc3339Time | None = Field(None, description="When its data last changed.")


class AppConfigStatus(ConfigMapStatus):
    """The observed state of an AppConfig."""

    environment: AppEnvironment | None = Field(
        None, description="The environment whose values the ConfigMap has."
    )


class AppConfig(CustomResource):
    """Settings of an application: the controller creates a ConfigMap and restarts its users."""

    definition = Definition(
        group="config.example.com",
        version="v1",
        kind="AppConfig",
        plural="appconfigs",
        short_names=("ac",),
        columns=(
            Column("Application", ".spec.application", description="Name of the application."),
            Column(
                "Environment",
                ".status.environment",
                description="The environment whose values the ConfigMap has.",
            ),
            Column("ConfigMap", ".status.configMapName", description="Name of the ConfigMap."),
            Column(
                "Ready",
                READY,
                description="Whether the ConfigMap is up to date and its users are restarted.",
            ),
            Column("Updated", ".status.lastUpdated", "date", "When the data last changed."),
            AGE,
            MESSAGE,
        ),
    )

    spec: AppConfigSpec = Field(
        AppConfigSpec.model_construct(), description="Settings of the application."
    )
    status: AppConfigStatus = Field(
        default_factory=AppConfigStatus, description="The observed state."
    )
