"""The API resources that kinds own and read: Kubernetes' own, and kinds that other kinds create."""

from config.api.backup import Backup
from config.api.postgresql import PostgreSQL
from kube.resource import Resource

CLAIM = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
POD = Resource("", "v1", "pods", "Pod")
SECRET = Resource("", "v1", "secrets", "Secret")
SERVICE = Resource("", "v1", "services", "Service")
SERVICE_ACCOUNT = Resource("", "v1", "serviceaccounts", "ServiceAccount")
DAEMON_SET = Resource("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
STATEFUL_SET = Resource("apps", "v1", "statefulsets", "StatefulSet")
AUTOSCALER = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
CRON_JOB = Resource("batch", "v1", "cronjobs", "CronJob")
JOB = Resource("batch", "v1", "jobs", "Job")
ENDPOINT_SLICE = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
INGRESS = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
BUDGET = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
ROLE = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDING = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
STORAGE_CLASS = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)

BACKUP = Backup.definition.resource
POSTGRESQL = PostgreSQL.definition.resource
