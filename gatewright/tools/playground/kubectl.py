"""The output of kubectl for a request and its response."""

from kube.resource import group_version_kind
from webhook.harness.reviews import Admission, ReviewAnswer

VERBS = {  # kubectl's command, present participle and past participle, by operation
    "CREATE": ("create", "creating", "created"),
    "UPDATE": ("replace", "replacing", "replaced"),
    "DELETE": ("delete", "deleting", "deleted"),
}


def output(admission: Admission, answer: ReviewAnswer, namespace: str) -> str:
    """Return the command and the output of `kubectl create`, `replace` or `delete`."""
    command, doing, done = VERBS[admission.operation]
    lines = [f"$ kubectl {command} -f object.yaml"]
    response = answer.response
    lines += [f"Warning: {each}" for each in response.get("warnings", ())]
    if not answer.allowed:
        status = response["status"]
        lines.append(
            f'Error from server ({status["reason"]}): error when {doing} "object.yaml": admission '
            f'webhook "{answer.hook}.gatewright.io" denied the request: {status["message"]}'
        )
        return "\n".join(lines)
    group, _, kind = group_version_kind(admission.about)
    metadata = admission.about["metadata"]
    name = metadata.get("name") or f"{metadata.get('generateName', '')}x7k2p"
    resource = f"{kind.lower()}{f'.{group}' if group else ''}"
    if admission.operation == "DELETE":
        where = f" from {namespace} namespace" if namespace else ""
        lines.append(f'{resource} "{name}" deleted{where}')
    else:
        lines.append(f"{resource}/{name} {done}")
    return "\n".join(lines)
