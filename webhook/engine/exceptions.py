"""PolicyExceptions: those that apply to a policy in force, and errors in one."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from config.api.policy_exception import ExceptionEntry, PolicyExceptionSpec
from config.faults import FaultsError, did_you_mean, parse
from webhook.engine.bound import BoundPolicy
from webhook.engine.exemptions import NOW, Exemption, Exemptions
from webhook.engine.globs import Globs
from webhook.engine.images import ImagePattern
from webhook.engine.match import globs
from webhook.engine.policy import Params

# default namespace of Gatewright, in which exceptions from cluster policies take effect
HOME = "gatewright-system"


@dataclass(frozen=True)
class BoundException:
    """A PolicyException as it was written; the namespace is None for one from a file.

    Its entries are compiled once for each policy, not at each change of others. `size` is that of
    its object as JSON, in bytes.
    """

    namespace: str | None
    spec: PolicyExceptionSpec
    name: str = ""
    size: int = field(default=0, compare=False)
    compiled: dict[tuple[int, str | None, str], tuple[Params, Exemption]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def entries(self) -> tuple[tuple["NamespaceAndPolicy", "BoundEntry"], ...]:
        """Its entries, each with the policy that it names where it counts."""
        return tuple(
            ((self.namespace, entry.policy), (self, entry)) for entry in self.spec.exceptions
        )

    @property
    def title(self) -> str:
        """The name of the exception in messages."""
        place = "" if self.namespace is None else f"{self.namespace}/"
        return f"PolicyException {place}{self.name}"


BoundEntry = tuple[BoundException, ExceptionEntry]
NamespaceAndPolicy = tuple[str | None, str]  # its namespace, if it is a tenant's, and its name


def check_exception(
    exception: BoundException,
    policies: Iterable[BoundPolicy],
    home: str | None = None,
    *,
    invalid: Collection[str | None] = (),
) -> None:
    """Reject an exception from a policy that does not exist, or with unknown parameters.

    If `home` is known (as for `in_force`), also reject one that has no effect in its namespace, or
    that exempts no kind that the policy judges. What it exempts from policies named in `invalid`,
    whose objects are invalid themselves, is not judged. Raises FaultsError with all faults.
    """
    policies = tuple(policies)
    wanted = {entry.policy for entry in exception.spec.exceptions}
    candidates = [policy for policy in policies if policy.name in wanted]
    elsewhere = {policy.name: policy.namespace for policy in candidates}
    named = {
        policy.name: policy
        for policy in candidates
        if home is None or exception.namespace in _places(policy, home)
    }
    faults: list[tuple[str, str]] = []
    for index, entry in enumerate(exception.spec.exceptions):
        at, name = f"spec.exceptions[{index}]", entry.policy
        if name in named:
            if home is not None:
                without_effect = _without_effect(named[name], entry)
                faults += ((f"{at}.{field}", text) for field, text in without_effect)
            try:
                _exemption(named[name], exception, entry, f"{at}.params")
            except FaultsError as error:
                faults += error.faults
            continue
        if name in invalid:
            continue
        tenant = elsewhere.get(name)
        in_place = (
            policy.name
            for policy in policies
            if home is None or exception.namespace in _places(policy, home)
        )
        text = f'no policy object "{name}"{did_you_mean(name, in_place)}'
        if name in elsewhere and tenant is None:
            is_of = f'"{name}" is a cluster policy'
            text = f"{is_of}; exceptions from it count in namespace {home} only"
        elif exception.namespace in (None, home) and tenant is not None:
            is_of = f'"{name}" is a policy of namespace {tenant}'
            text = f"{is_of}; exceptions from it count there only"
        faults.append((f"{at}.policy", text))
    if faults:
        raise FaultsError(faults)


def changed_names(before: Iterable[BoundPolicy], now: Iterable[BoundPolicy]) -> set[str]:
    """Return the names of the policies that other exceptions may be valid for now.

    A policy with other exemptions only is not among them. Policies in both may be left out.
    """
    removed, added = (
        {(each.namespace, each.name): each for each in several} for several in (before, now)
    )
    return {
        title[1]
        for title in {**removed, **added}
        if title not in removed
        or title not in added
        or removed[title].params is not added[title].params
        or removed[title].match is not added[title].match
    }


def _without_effect(policy: BoundPolicy, entry: ExceptionEntry) -> Iterator[tuple[str, str]]:
    """Yield the fields that make an entry ineffective for its policy, each with the reason."""
    targets, own = policy.match.select_targets(policy.targets), policy.namespace
    if entry.kinds and {target.kind.kind for target in targets}.isdisjoint(entry.kinds):
        yield "kinds", f"{entry.policy} judges no {' or '.join(entry.kinds)}"
    if entry.namespaces and own is not None and not Globs(entry.namespaces).match(own):
        yield "namespaces", f"{entry.policy} is in force in namespace {own} only"
    if not policy.policy.judges_containers:
        text = f"{entry.policy} reports nothing about single containers"
        for field in ("containers", "images"):
            if getattr(entry, field):
                yield field, f"{text}; use kinds, names or namespaces"


def _places(policy: BoundPolicy, home: str | None) -> tuple[str | None, ...]:
    """Return the namespaces in which exceptions from this policy take effect."""
    if policy.namespace is not None:
        return (policy.namespace,)
    return (None,) if home is None else (None, home)


class AppliedExceptions:
    """Applies exceptions to one set of policies after the other: what stays is the same object."""

    def __init__(self, home: str | None) -> None:
        """Take the namespace of exceptions from cluster policies."""
        self._home = home
        self._exceptions: Sequence[BoundException] = ()
        self._entries: dict[NamespaceAndPolicy, list[BoundEntry]] = {}
        # The policy without and with its exceptions, and their entries.
        self._applied: dict[
            NamespaceAndPolicy, tuple[BoundPolicy, list[BoundEntry], BoundPolicy]
        ] = {}

    def apply(
        self, policies: Sequence[BoundPolicy], exceptions: Sequence[BoundException]
    ) -> tuple[BoundPolicy, ...]:
        """Return the policies with their exceptions.

        An exception with unknown parameters has no effect. Of several exceptions for one object or
        container, one without parameters applies, else the first.
        """
        if exceptions is not self._exceptions:
            self._entries = {}
            for exception in exceptions:
                for name, entry in exception.entries:
                    self._entries.setdefault(name, []).append(entry)
            self._exceptions = exceptions
        before, self._applied = self._applied, {}
        if not self._entries:
            return tuple(policies)
        names = {name for _, name in self._entries}
        return tuple(
            self._apply(policy, before) if policy.name in names else policy for policy in policies
        )

    def _apply(
        self,
        policy: BoundPolicy,
        before: Mapping[NamespaceAndPolicy, tuple[BoundPolicy, list[BoundEntry], BoundPolicy]],
    ) -> BoundPolicy:
        """Return one policy with its exceptions: as before, if these are the same."""
        name = policy.namespace, policy.name
        entries = list[BoundEntry]()
        for place in _places(policy, self._home):
            entries += self._entries.get((place, policy.name), ())
        if not entries:
            return policy
        state = before.get(name)
        if state is None or state[0] is not policy or state[1] != entries:
            exemptions = []
            for exception, entry in entries:
                with suppress(FaultsError):  # reported where the exception is checked
                    exemptions.append(_compile_entry(policy, exception, entry))
            exemptions.sort(key=lambda each: each.params is not None)
            applied = replace(policy, exemptions=Exemptions(exemptions)) if exemptions else policy
            state = policy, entries, applied
        self._applied[name] = state
        return state[2]


def _compile_entry(
    policy: BoundPolicy, exception: BoundException, entry: ExceptionEntry
) -> Exemption:
    """Return an entry compiled for a policy, again only for other parameters of the policy."""
    key = id(entry), policy.namespace, policy.name
    compiled = exception.compiled.get(key)
    if compiled is None or compiled[0] is not policy.params:
        compiled = policy.params, _exemption(policy, exception, entry)
        exception.compiled[key] = compiled
    return compiled[1]


def _exemption(
    policy: BoundPolicy, exception: BoundException, entry: ExceptionEntry, at: str = "params"
) -> Exemption:
    """Return an entry compiled for a policy. Raises FaultsError if its parameters are invalid."""
    params = None
    if entry.params is not None:
        values = policy.params.model_dump(mode="json") | entry.params
        params = parse(policy.policy.params, values, noun="parameter", at=at)
    needs = frozenset({NOW}) if params is None else policy.policy.needed_look_ups(params) | {NOW}
    return Exemption(
        needs=needs,
        expires=exception.spec.expires,
        kinds=None if entry.kinds is None else frozenset(entry.kinds),
        names=globs(entry.names),
        namespaces=globs(entry.namespaces),
        containers=globs(entry.containers),
        images=None if entry.images is None else tuple(map(ImagePattern, entry.images)),
        paths=None if entry.paths is None else frozenset(entry.paths),
        params=params,
        title=exception.title,
    )
