"""Notions of privacy as values: the actions covered, the unit protected, the conditions.

Notions are compared field by field, and `Notion.implies` tells which one is stronger. `__str__` and
`brief` alone put them into words.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Protocol, TypeAlias, get_args

from dpbandit.base import InputError, abbrev, made, one_of, share, whole

Pattern: TypeAlias = Literal["private", "public"]


@dataclass(frozen=True)
class Round:
    """Unit of protection: neighbouring streams differ in one round of one user."""

    returning: bool = False
    """True if the user may have other rounds, which are not protected together with this one"""

    def __str__(self) -> str:
        return "one round of a person, who has others" if self.returning else "one user's round"


@dataclass(frozen=True)
class Visits:
    """Unit of protection: one person with at most `cap` rounds, any two `separation` apart.

    Neighbouring streams differ in one PERSON, in everything she sends or would send. If the pattern
    is private they differ in her time slots as well: slots that she leaves become empty, slots
    that she takes were empty, all others stay. `cap` = 1 with a public pattern is a user's round.

    >>> str(Visits(20, 100))
    'one person, of at most 20 rounds, 100 or more apart, which may move'
    """

    cap: int = 1
    """largest number of rounds of a person that mechanisms learn from"""
    separation: int = 1
    """least distance of two rounds of a person, in time slots; 1 allows any"""
    pattern: Pattern = "private"
    """private if neighbours may differ in the time slots of a person's rounds, else public"""

    def __post_init__(self) -> None:
        whole("cap", self.cap, 1)
        whole("separation", self.separation, 1)
        one_of("pattern", self.pattern, get_args(Pattern))

    @property
    def rounds(self) -> int:
        """Largest number of time slots in which neighbours differ, also those a person leaves."""
        return self.cap if self.pattern == "public" else 2 * self.cap

    def __str__(self) -> str:
        rounds = "1 round" if self.cap == 1 else f"at most {self.cap} rounds"
        apart = f", {self.separation} or more apart" if min(self.separation, self.cap) > 1 else ""
        moves = ", which may move" if self.pattern == "private" else ""
        return f"one person, of {rounds}{apart}{moves}"


Unit: TypeAlias = Round | Visits
TrustModel: TypeAlias = Literal["central", "aggregated", "shuffled", "local"]
SHARING: tuple[TrustModel, ...] = ("aggregated", "shuffled")
"""Trust models in which each device adds a share of the noise; the shares sum to all of it"""
TRUSTED: dict[TrustModel, str] = {
    "central": "",
    "aggregated": "the server sees noisy sums of batches alone",
    "shuffled": "the server sees the messages of a batch in random order",
    "local": "the server sees private messages alone",
}
"""View of the server in words by trust model, from most trust to least"""


@dataclass(frozen=True)
class Trust:
    """Trust model: who sees exact data, and the fraction of devices that has to add noise.

    >>> Trust("shuffled", 0.5).implies(Trust("aggregated")), Trust().implies(Trust("local"))
    (True, False)
    """

    model: TrustModel = "central"
    honest: float = 1.0
    """fraction that has to add noise, in (0, 1]; below 1 only where devices share the noise"""
    of: Literal["devices", "slots", "people"] = "devices"
    """population of which `honest` is a fraction; where people return, time slots (empty ones
    included) or the people (whose devices send in every batch)"""

    def __post_init__(self) -> None:
        one_of("trust", self.model, get_args(TrustModel))
        one_of("of", self.of, ("devices", "slots", "people"))
        share("honest", self.honest)
        if self.model not in SHARING and (self.honest < 1 or self.of != "devices"):
            raise InputError(
                f"Expected honest={self.honest} to be 1, or between 0 and 1 with "
                f"trust='aggregated' or 'shuffled', got trust={self.model!r}."
            )

    def implies(self, other: "Trust") -> bool:
        """Tell whether this model trusts nobody with more than `other` does."""
        models = get_args(TrustModel)
        if models.index(self.model) < models.index(other.model):
            return False
        alone = self.model not in SHARING  # no other device's noise hides her
        alike = self.of == other.of or other.model not in SHARING
        return alone or (self.honest <= other.honest and alike)

    def words(self, unit: Unit) -> str:
        """Return the server's view and the devices it depends on in words; empty if central."""
        if self.model == "central":
            return ""
        words = f"; {TRUSTED[self.model]}"
        words += " and who sends in which slot" * isinstance(unit, Visits)
        part = f"{100 * self.honest:g} % of" if self.honest < 1 else "all"
        if self.of == "slots":
            words += f", if a device adds its noise in {part} slots, empty ones included"
        elif self.of == "people":
            words += f", if the devices of {part} people add their noise in every batch"
        elif self.honest < 1:
            words += f", if {part} devices are honest"
        return words

    @property
    def brief(self) -> list[str]:
        """Words for the model, and for the honest fraction if that is below 1."""
        whom = "" if self.of == "devices" else f" of {self.of}"
        part = [f"{100 * self.honest:g} %{whom} honest"] if self.honest < 1 else []
        return [*([] if self.model == "central" else [str(self.model)]), *part]


Covered: TypeAlias = Literal["later actions", "own action"]
Reads: TypeAlias = Literal["nothing", "own data", "mechanisms", "releases in full", "exact data"]
Adjacency: TypeAlias = Literal["replace", "zero out"]
Masking: TypeAlias = Literal["none", "public", "user"]
LATER_ACTIONS: frozenset[Covered] = frozenset({"later actions"})  # covered by joint DP
ALL_ACTIONS: frozenset[Covered] = LATER_ACTIONS | {"own action"}  # covered by DP of all actions

_READ: dict[Reads, str] = {  # `Notion.reads` -> kind of privacy in words
    "nothing": "plays without looking at any user's data",
    "own data": "a person's own data reach her own actions and nobody else's",
    "releases in full": "none: a baseline, each release of which spends the whole budget",
    "exact data": "none: exact data reaches later actions",
}
_NOT_COVERED = (  # kind of privacy in words if a notion covers no actions
    "not covered: what one user does changes what the world answers later ones, and no mechanism "
    "stands between"
)
_MASKED: dict[Masking, str] = {  # `Notion.masks` -> its part of a notion in words
    "none": "",
    "public": "; which actions there are in a round is public",
    "user": "; which actions there are for her is part of her round",
}


class Facts(Protocol):
    """Protocol of a problem's properties that a notion depends on, see `dpbandit.specs.Spec`."""

    @property
    def covers(self) -> frozenset[Covered]:
        """Actions that others observe, and that the notion covers."""
        ...

    @property
    def unit(self) -> Unit:
        """Unit of protection, in which neighbouring streams differ."""
        ...

    @property
    def masks(self) -> Masking:
        """Owner of the action masks (nobody, the public, or the user of the round)."""
        ...

    @property
    def carries(self) -> bool:
        """True if a user's round changes the environment that later users meet."""
        ...


@dataclass(frozen=True)
class Notion:
    """Notion of privacy: the unit in which neighbours differ, the actions covered, conditions.

    `window` = W protects only the users of the last W rounds, at every round (window DP; Lou and
    Cheung 2020): later releases may reveal them completely. None protects every user for ever. An
    epsilon must be displayed with its notion or `brief`, so that no restriction is read as
    ordinary DP.

    >>> print(Notion(window=3).brief, Notion().implies(Notion(window=3)))
    window-DP, last 3 True
    """

    unit: Unit = Round()
    adjacency: Adjacency = "replace"
    """replacement of the differing user by any other user, or zeroing out of her data"""
    covers: frozenset[Covered] = LATER_ACTIONS
    """actions that the notion covers; a user's own action only if named, nothing if empty"""
    reads: Reads = "mechanisms"
    """path by which users' data reaches other users' actions, from nothing to exact data"""
    contexts: Pattern = "private"
    """public if neighbours agree in contexts, so that answers alone are protected"""
    masks: Masking = "none"
    """owner of the action masks (nobody, the public, or the user of the round)"""
    trust: Trust = Trust()
    window: int | None = None
    conditions: tuple[str, ...] = ()
    """conditions in words that the notion depends on and no code enforces"""

    def __post_init__(self) -> None:
        for name, words in (("adjacency", Adjacency), ("reads", Reads), ("masks", Masking)):
            one_of(name, getattr(self, name), get_args(words))
        one_of("contexts", self.contexts, get_args(Pattern))
        known = (Round, Visits, Trust)
        for name, kind in (("unit", Unit), ("trust", Trust), ("conditions", tuple)):
            value = getattr(self, name)
            # The `implies` of a subclass cannot be relied on
            subclass = isinstance(value, known) and type(value) not in known
            if not isinstance(value, kind) or subclass:
                raise InputError(f"Expected {name}={abbrev(value)} to be of {kind}.")
        if not isinstance(self.covers, frozenset) or not self.covers <= {*get_args(Covered)}:
            raise InputError(
                f"Expected covers={abbrev(self.covers)} to be a frozenset of {get_args(Covered)}."
            )
        if self.window is not None:
            whole("window", self.window, 1)
        if self.visits and self.trust.model != "central" and self.visits.pattern == "private":
            raise InputError(
                f"Expected visits with pattern='public' under trust={self.trust.model!r}, where "
                "the server sees who sends in which slot."
            )

    @property
    def visits(self) -> Visits | None:
        """Visits of a person, if the unit is a person; else None."""
        return self.unit if isinstance(self.unit, Visits) else None

    def of_person(self, visits: Visits, of: Literal["slots", "people"] = "slots") -> "Notion":
        """Return this notion for a person with `visits`, at public times unless trust is central.

        A fraction of honest devices becomes a fraction of slots or of people, as `of` says.
        """
        if self.trust.model == "central":
            return replace(self, unit=visits)
        shares = self.trust.model in SHARING
        trust = replace(self.trust, of=of) if shares else self.trust
        return replace(self, unit=replace(visits, pattern="public"), trust=trust)

    def conditional_on(self, condition: str) -> "Notion":
        """Return this notion with one more condition."""
        return replace(self, conditions=(*dict.fromkeys((*self.conditions, condition)),))

    def on(self, problem: Facts) -> "Notion":
        """Return this notion for an agent on a problem, adapted to the problem's properties;
        nothing is covered if a user's round changes the environment that later users meet."""
        if not self.covers or problem.carries:
            return replace(self, covers=frozenset())
        unit, reads, masks = self.unit, self.reads, problem.masks
        if isinstance(problem.unit, Visits) and isinstance(unit, Round):
            about_person = reads in ("nothing", "own data")
            unit = problem.unit if about_person else Round(returning=True)
        if reads == "nothing" and masks == "user":
            reads = "own data"
        covers = self.covers | problem.covers
        return replace(self, unit=unit, reads=reads, masks=masks, covers=covers)

    def implies(self, other: "Notion") -> bool:
        """Tell whether this notion is at least as strong as `other` in every field.

        A field without an order in `_ORDERS` implies only an equal value.
        """
        return not self.lacks(other)

    def lacks(self, other: "Notion") -> list[str]:
        """Return the names of fields in which this notion does not imply `other`; none for an agent
        that reads no data, which satisfies every notion."""
        if self.covers and self.reads == "nothing":
            return []
        pairs = ((f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return [name for name, ours, theirs in pairs if not _implies(name, ours, theirs)]

    def weaker(self, other: "Notion") -> "Notion":
        """Return the notion that both imply: in each field the weaker value, and all conditions.

        Raises `InputError` where neither of two values implies the other.
        """
        if self.implies(other) or other.implies(self):
            return other if self.implies(other) else self
        conditions = dict.fromkeys((*self.conditions, *other.conditions))
        found: dict[str, Any] = {"conditions": (*conditions,)}
        for name in (f.name for f in fields(self) if f.name not in found):
            ours, theirs = getattr(self, name), getattr(other, name)
            if not (_implies(name, ours, theirs) or _implies(name, theirs, ours)):
                raise InputError(
                    f"Expected promises that can be added up, got {name}={ours!r} and {theirs!r}, "
                    "neither of which implies the other: certify both for the same."
                )
            found[name] = theirs if _implies(name, ours, theirs) else ours
        return Notion(**found)

    @property
    def kind(self) -> str:
        """Kind of privacy in words, without unit, trust and conditions."""
        if not (self.covers or self.reads in ("releases in full", "exact data")):
            return _NOT_COVERED
        if self.reads != "mechanisms":
            return _READ[self.reads]
        what = "DP of all actions" if "own action" in self.covers else "joint DP"
        return f"{what} under continual observation"

    def __str__(self) -> str:
        words = self.kind
        if self.covers and self.reads == "mechanisms":
            words += f", {self.adjacency} {self.unit}"
            words += _MASKED[self.masks]
        if self.window is not None:
            words = f"window DP ({words}) for the last {self.window} rounds only "
            words += "(older data may be revealed completely)"
        if self.contexts == "public":
            words += ", for her answers alone: contexts are public"
        words += self.trust.words(self.unit)
        return words + (f"; CONDITIONAL: {'; '.join(self.conditions)}" if self.conditions else "")

    @property
    def brief(self) -> str:
        """Restrictions of the notion in few words, for legends and table cells; empty if none."""
        window = [] if self.window is None else [f"window-DP, last {self.window}"]
        public = ["contexts public"] if self.contexts == "public" else []
        words = [*window, *public]
        if self.kind == _NOT_COVERED:
            words.append("not covered")
        if self.reads == "own data":
            words.append("own data alone")
        words += ["conditional"] * bool(self.conditions)
        if self.reads == "mechanisms":
            words += ["one round of a person"] * (self.unit == Round(returning=True))
            words += ["zeroed out"] * (self.adjacency == "zero out")
            words += [f"person, {self.visits.cap} rounds"] if self.visits else []
        return ", ".join([*words, *self.trust.brief])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_dict` is the inverse."""
        unit = {"kind": type(self.unit).__name__, **asdict(self.unit)}
        return {**asdict(self), "unit": unit, "covers": sorted(self.covers)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Notion":
        """Return the notion of a dict of `to_dict`; raises `ValueError` for a missing field, and
        for an unknown one, which may be a restriction."""
        known = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping) or set(values) != known:
            raise ValueError(f"Expected a notion with the fields {sorted(known)}, got {values!r}.")
        kinds: dict[str, Any] = {"Round": Round, "Visits": Visits}
        unit = made(kinds[values["unit"]["kind"]], values["unit"])
        return made(cls, {**values, "unit": unit})


def _unit_implies(ours: Unit, theirs: Unit) -> bool:
    # a round is not hidden from the same person's later rounds, so neither implies the other
    if not (isinstance(ours, Visits) and isinstance(theirs, Visits)):
        return ours == theirs
    moves = ours.pattern == "private" or ours.pattern == theirs.pattern
    return ours.cap >= theirs.cap and ours.separation <= theirs.separation and moves


_READS = get_args(Reads)  # values of `Notion.reads`, strongest first
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "unit": _unit_implies,
    "adjacency": lambda ours, theirs: bool(ours == "replace"),
    "covers": lambda ours, theirs: bool(ours >= theirs),
    "reads": lambda ours, theirs: _READS.index(ours) <= _READS.index(theirs),
    "contexts": lambda ours, theirs: bool(ours == "private"),
    "trust": lambda ours, theirs: bool(ours.implies(theirs)),
    "window": lambda ours, theirs: ours is None or (theirs is not None and theirs <= ours),
    "conditions": lambda ours, theirs: {*ours} <= {*theirs},
}
"""Order of each field of a notion: function that is true if its first value implies the second"""


def _implies(name: str, ours: Any, theirs: Any) -> bool:
    return bool(ours == theirs or (name in _ORDERS and _ORDERS[name](ours, theirs)))


JOINT_DP = Notion()  # joint DP for one user's round
NO_DATA = Notion(reads="nothing")  # of agents that read no data
OWN_DATA = Notion(reads="own data")  # of agents that use a person's data for her alone
LOCAL_DP = Notion(trust=Trust("local"))  # of agents that receive private messages alone
NO_PRIVACY = Notion(reads="exact data", covers=frozenset())  # of agents without privacy
IN_FULL = Notion(reads="releases in full", covers=frozenset())  # each release spends the budget


def strongest(problem: Facts, trust: TrustModel = "central") -> Notion:
    """Return the strongest notion that an agent can satisfy on a problem, under a trust model.

    A notion that does not imply this one is narrower, and has to be displayed as such.
    """
    central = Notion(covers=problem.covers, masks=problem.masks)
    central = replace(central, trust=Trust(trust))
    return central.of_person(problem.unit) if isinstance(problem.unit, Visits) else central
