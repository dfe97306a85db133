"""Workloads and disruption budgets, with only the fields that doctor uses."""

from pydantic import Field

from config.api.match import LabelSelector
from config.api.meta import ApiModel, ObjectMeta
from gatewright.doctor.models import ClusterObject


class VolumeSecret(ApiModel):
    """The Secret of a volume."""

    secret_name: str = ""


class SecretVolume(ApiModel):
    """A volume, if it is of a Secret."""

    secret: VolumeSecret | None = None


class TemplateSpec(ApiModel):
    """The spec of a pod template."""

    volumes: list[SecretVolume] = Field([])


class WorkloadTemplate(ApiModel):
    """A pod template."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: TemplateSpec = TemplateSpec.model_construct()


class WorkloadSpec(ApiModel):
    """The spec of a Deployment, StatefulSet or DaemonSet."""

    replicas: int | None = None
    template: WorkloadTemplate = WorkloadTemplate.model_construct()


class ServingWorkload(ClusterObject):
    """A Deployment, StatefulSet or DaemonSet."""

    spec: WorkloadSpec = WorkloadSpec.model_construct()

    @property
    def replicas(self) -> int | None:
        """The number of its pods; None for a DaemonSet."""
        return None if self.kind == "DaemonSet" else 1 if (n := self.spec.replicas) is None else n

    @property
    def secret_names(self) -> list[str]:
        """The Secrets that its pods mount."""
        volumes = self.spec.template.spec.volumes
        return [each.secret.secret_name for each in volumes if each.secret is not None]


class BudgetSpec(ApiModel):
    """The spec of a PodDisruptionBudget."""

    selector: LabelSelector | None = None


class DisruptionBudget(ClusterObject):
    """A PodDisruptionBudget."""

    spec: BudgetSpec = BudgetSpec.model_construct()
