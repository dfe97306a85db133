"""AppConfig: an application's settings for one environment, rendered into a ConfigMap that its workloads use."""

from typing import Literal

from pydantic import Field

from config.api.definition import AGE, MESSAGE, Column, Definition
from config.api.meta import ApiModel, CustomResource, Int64, Status, Timestamp


class AppConfigSpec(ApiModel):
    """What the application should be told."""

    application: str | None = Field(
        None, description="Name of the application; the ConfigMap is <application>-config. Needed."
    )
    environment: Literal["dev", "staging", "prod"] = Field("dev", description="Environment: dev, staging or prod.")
    config: dict[str, str] = Field(
        {},
        description="What the ConfigMap holds. Values are Jinja2 templates over environment, application and "
        "namespace, with the filters capitalize, lower, replace, title, trim and upper.",
    )


class ConfigMapStatus(Status):
    """What was last observed of a ConfigMap whose users are restarted when its data changes."""

    config_map_name: str | None = Field(None, description="Name of the ConfigMap.")
    checksum: str | None = Field(None, description="Checksum of its data.")
    revision: Int64 | None = Field(
        None, description="The change of its data that everything which used it was restarted for, counted from 1."
    )
    last_updated: Timestamp | None = Field(None, description="When its data last changed.")


class AppConfig(CustomResource):
    """An application's settings: the controller makes a ConfigMap, and restarts what uses it when they change."""

    definition = Definition(
        group="config.example.com",
        version="v1",
        kind="AppConfig",
        plural="appconfigs",
        short_names=("ac",),
        columns=(
            Column("Application", ".spec.application", description="Name of the application."),
            Column("Environment", ".spec.environment", description="dev, staging or prod."),
            Column("ConfigMap", ".status.configMapName", description="Name of the ConfigMap."),
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether all of it is done."),
            Column("Updated", ".status.lastUpdated", "date", "When the data last changed."),
            AGE,
            MESSAGE,
        ),
    )

    spec: AppConfigSpec = Field(AppConfigSpec.model_construct(), description="What the application should be told.")
    status: ConfigMapStatus = Field(default_factory=ConfigMapStatus, description="What was last observed.")
