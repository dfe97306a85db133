"""Finds the pod templates of an object that has several, such as a list of them."""

from collections.abc import Iterator

from webhook.engine.fields import Fields


def pod_templates(object: Fields, paths: tuple[str, ...]) -> Iterator[Fields]:
    """Yield the templates with a spec at `paths`, such as `spec.tasks[].template.spec`.

    Raises WrongTypeError for a wrong JSON type.
    """
    for path in paths:
        *lists, rest = path.split("[].")
        holders = [object]
        for container_list in lists:
            holders = [item for holder in holders for item in holder.each(container_list)]
        above = rest.removesuffix("spec").removesuffix(".")
        for holder in holders:
            template = holder.fields(above) if above else holder
            if template.value.get("spec") is not None:
                yield template
