"""Judge a draft: a policy set, an object and a user."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from config.documents import Document, DocumentError, parse_documents
from config.schemas import CustomTypes
from config.settings import Settings, planner_settings
from gatewright.checks.loaded_policies import PoliciesInForce, known_of
from gatewright.outputs.redaction import redact
from gatewright.outputs.yaml_text import to_yaml
from gatewright.plans.children import has_planned_kind, parent_of, plan_children
from gatewright.processes.planners import planners_of
from gatewright.tools.playground import kubectl
from kube.resource import JsonObject
from webhook.engine import NOW
from webhook.engine.exceptions import HOME
from webhook.harness.manifests import JudgedManifest, kinds_in
from webhook.harness.objects import is_whole
from webhook.harness.reviews import Admission, ReviewAnswer, ask
from webhook.review import MalformedRequestError

POLICIES, OBJECT, OLD_OBJECT = "policies.yaml", "object.yaml", "old-object.yaml"


class Draft(BaseModel):
    """The texts of the page; after the first object come other objects of the cluster."""

    model_config = ConfigDict(frozen=True, strict=True)

    policies: str
    object: str
    old_object: str
    username: str
    groups: list[str]
    namespace: str  # the default namespace of objects


@dataclass(frozen=True, slots=True)
class JudgedDraft:
    """A draft with its request, the response, and the policies without planners for a case."""

    draft: Draft
    document: Document
    admission: Admission
    looked_up: Mapping[str, Any]
    answer: ReviewAnswer
    verdict: JudgedManifest

    @classmethod
    def of(cls, draft: Draft, now: datetime) -> Self:
        """Judge a draft.

        Raises DocumentError or PolicySetError, with file and line, if a text cannot be used.
        """
        objects, olds = (
            list(parse_documents(text.encode(), source))
            for text, source in ((draft.object, OBJECT), (draft.old_object, OLD_OBJECT))
        )
        if not objects and not olds:
            raise DocumentError(f"{OBJECT}: no object")
        data = known_of(filter(is_whole, [*objects[1:], *olds]), draft.namespace, {})
        policies = PoliciesInForce.read(
            list(parse_documents(draft.policies.encode(), POLICIES)),
            HOME,
            planners_of(Settings(), HOME),
            now,
            kinds=kinds_in(filter(is_whole, [*objects, *olds]), {}),
            custom=CustomTypes.of(each.value for each in objects),
            sources=[POLICIES],
        )
        if policies.problems:
            raise DocumentError("\n".join(map(str, policies.problems)))
        judge = policies.judge(data, draft.namespace)
        document = (objects or olds)[0]
        admission, where = judge.admission(document)
        admission = replace(admission, username=draft.username, groups=tuple(draft.groups))
        if olds:
            admission = replace(
                admission,
                operation="UPDATE" if objects else "DELETE",
                object=admission.object if objects else None,
                old_object=judge.admission(olds[0])[0].object,
            )
        if not data.knows(where):
            data.set_labels(where, {})
        looked_up = {NOW: now, **data.about(where)}
        try:
            answer = ask(policies.engine, admission, looked_up)
        except MalformedRequestError as error:
            raise DocumentError(f"{document.where()}: {error}") from None
        verdict = judge.verdict(document, where, admission, answer)
        return cls(draft, document, admission, looked_up, answer, verdict)

    def render(self, now: datetime) -> dict[str, str]:
        """Return the texts for the page: verdict, kubectl's output, diff and planned children."""
        return {
            "verdict": self.verdict.verdict,
            "title": f"{self.admission.operation} {self.verdict.title}",
            "said": kubectl.output(self.admission, self.answer, self.verdict.namespace),
            "patch": "\n".join(self._patch()),
            "children": "---\n".join(self._children(now)),
        }

    def _patch(self) -> Iterator[str]:
        """Yield a diff of the changes by policies, with some context."""
        before, after = self.admission.object, self.answer.object
        if before is not None and after is not None and self.answer.allowed and before != after:
            old, new = (to_yaml(each).splitlines() for each in (before, after))
            yield from difflib.unified_diff(old, new, "sent", "stored", lineterm="")

    def _children(self, now: datetime) -> Iterator[str]:
        """Yield the objects that the controller would create; none for a rejected object."""
        stored: JsonObject | None = self.answer.object
        if stored is None or not has_planned_kind(self.document):
            return
        try:
            parent = parent_of(self.document, self.draft.namespace).with_object(stored)
            for child in plan_children(parent, now, planner_settings(Settings())):
                yield f"{child.comment}{to_yaml(redact(child.object))}"
        except DocumentError as error:
            yield f"# {error}\n"
