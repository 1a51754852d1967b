"""What the loop makes of numbers that cannot be: counted beyond their bounds, or one sentence."""

from dataclasses import replace

import numpy as np
import pytest

from dpbandit import InputError, compare
from dpbandit.agents import Uniform
from dpbandit.specs.convex import ExpertsSpec
from dpbandit.specs.protocols import PriceSpec, Step
from tests.each import each
from tests.running.test_loop import ARMS, GIVEN, Plays, Script, arms, played, points


def clipped(problem, actions=ARMS):
    return played(problem, actions).clipped.tolist()


def test_a_round_beyond_its_bounds_is_counted_once():
    """Golden: replica 0 has a long context in round 2 and in round 3, where its reward is too large
    as well; replica 1 a reward too small in rounds 3 and 6."""
    problem = Script(arms(most_outside=1))
    problem.contexts[1:3, 0], problem.rewards[2, 0], problem.rewards[2::3, 1] = 2.1, 1.1, -0.1
    assert clipped(problem) == [2 / 6, 2 / 6]
    problem.spec = replace(problem.spec, delay=2)  # rewards of rounds 3 and 6: in 5 and never
    assert clipped(problem) == [3 / 6, 1 / 6]


def test_zeros_before_the_first_late_reward_are_none():
    problem = Script(arms(delay=2, reward_low=0.01), rewards=GIVEN + 0.01)
    assert clipped(problem) == [0, 0]


@pytest.mark.parametrize("beyond", [1 + 2e-6, -1 - 2e-6, np.nan])
@pytest.mark.parametrize("kind", ["losses", "costs"])
def test_losses_and_data_have_bounds_too(kind, beyond):
    """Experts' losses in [0, 1]; costs of norm 1 on a ball. From round 16 on in replica 1, also
    where they are no numbers (after the first rounds); a bound that is reached is kept."""
    spec = points("datum") if kind == "costs" else ExpertsSpec(horizon=60, n_actions=2)
    spec, told = replace(spec, horizon=60, most_outside=1), np.zeros((60, 2, 2))
    told[:, 0, 0], told[15:, 1, 1] = 1.0, beyond
    shown, paid = np.zeros((60, 2, *spec.context_shape)), np.full((60, 2), spec.reward_low)
    actions = np.zeros((60, 2, 2) if kind == "costs" else (60, 2))
    log = played(Script(spec, shown, paid, told), actions, [60])
    assert log.clipped.tolist() == [0, 45 / 60]


def broken(what, where, value):
    """A change of one entry, or of the whole array, of what is handed over."""

    def change(problem, agent):
        owner = agent if what == "actions" else problem
        array = np.array(getattr(owner, what), float)
        if where is None:
            setattr(owner, what, value(array))
        else:
            array[where] = value
            setattr(owner, what, array)

    return change


FIRST_ROUNDS = {
    "a context of another width": ("contexts", None, lambda x: np.repeat(x, 2, axis=2)),
    "a context for one replica": ("contexts", None, lambda x: x[:, :1]),
    "a context without an axis": ("contexts", None, lambda x: x[..., 0]),
    "a NaN in a context": ("contexts", (3, 1, 0), np.nan),
    "an infinite context": ("contexts", (3, 1, 0), np.inf),
    "a context of words": ("contexts", None, lambda x: x.astype(str)),
    "a context of objects": ("contexts", None, lambda x: x.astype(object)),
    "a context that is a list": ("contexts", None, lambda x: x.tolist()),
    "a reward for one replica": ("rewards", None, lambda r: r[:, :1]),
    "rewards in a column": ("rewards", None, lambda r: r[..., None]),
    "a NaN as reward": ("rewards", (3, 1), np.nan),
    "rewards that are objects": ("rewards", None, lambda r: r.astype(object)),
    "rewards in a list": ("rewards", None, lambda r: r.tolist()),
    "an arm too many": ("actions", (3, 1), 3),
    "an arm that is no int64": ("actions", (3, 1), 1e300),
    "a negative arm": ("actions", (3, 1), -1),
    "half an arm": ("actions", (3, 1), 0.5),
    "no arm": ("actions", (3, 1), np.nan),
    "an arm for one replica": ("actions", None, lambda a: a[:, :1]),
    "arms in a column": ("actions", None, lambda a: a[..., None]),
    "complex arms": ("actions", None, lambda a: a + 0j),
    "arms that are durations": ("actions", None, lambda a: a.astype("m8[s]")),
    "arms that are objects": ("actions", None, lambda a: [[None, None]] * 6),
}
SAYS = {
    "a context of another width": r"contexts in round 1 of shape \(2, 1\), got \(2, 2\)",
    "a NaN in a context": "finite contexts in round 4, got nan",
    "a context of objects": "contexts in round 1 to be an array of numbers, got one of object",
    "a context that is a list": "contexts in round 1 to be an array of numbers, got list",
    "rewards in a column": r"round 1: Expected reward of shape \(2,\), got \(2, 1\)",
    "a NaN as reward": "In round 4: Expected finite reward, got nan",
    "an arm too many": r"In round 4: Expected actions in \[0, 3\), got 3,",
    "an arm that is no int64": r"got 1e\+300,",
    "half an arm": r"In round 4: Expected whole numbers as actions, got 0\.5,",
}


@each("name", FIRST_ROUNDS)
def test_what_breaks_its_spec_in_the_first_rounds_gets_one_sentence(name):
    """In `compare`, which without these checks broadcasts it, or plays another arm, or goes on."""
    problem, agent = Script(arms()), Plays(ARMS)
    broken(*FIRST_ROUNDS[name])(problem, agent)
    with pytest.raises(InputError, match=SAYS.get(name, r"Expected .*, got ")) as told:
        compare(lambda horizon: problem, {"mine": agent}, horizon=6, replicas=2, progress=False)
    assert "\n" not in str(told.value)
    assert "round" in str(told.value)


UNBELIEVABLE = {
    "step": {
        r"mean rewards in \[0, 1\], as rewards are, got \d+": lambda step: step._replace(
            expected=100 * step.expected, oracle=100 * step.oracle, regret=100 * step.regret
        ),
        "regret=.* to be oracle - expected": lambda step: step._replace(regret=-step.regret),
        "oracle=.* to be at least expected=": lambda step: step._replace(
            oracle=step.oracle - 1, regret=step.regret - 1
        ),
    },
    "hindsight": {
        "hindsight to be an array of numbers, got float": lambda lacks: np.nan,
        "hindsight to be an array of numbers, got NoneType": lambda lacks: None,
        r"hindsight of shape \(2,\), got \(3,\)": lambda lacks: np.zeros(3),
    },
    "best_fixed": {
        "best_fixed to be an array of 2 actions, got None": lambda best: None,
        "best_fixed to be an array of 2 actions, got 2": lambda best: 2,
        r"best_fixed to be an array of 2 actions, got array": lambda best: best[:1],
    },
}


@each(
    ("method", "says"), [(method, says) for method in UNBELIEVABLE for says in UNBELIEVABLE[method]]
)
def test_what_a_problem_says_of_itself_is_looked_at(method, says):
    """Else negative regret and NaNs stand in tables."""
    problem = Script(arms())
    right, wrong = getattr(problem, method), UNBELIEVABLE[method][says]
    setattr(problem, method, lambda *action: wrong(right(*action)))
    with pytest.raises(InputError, match=f"Expected {says}"):
        played(problem, ARMS)


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.float32, bool])
def test_numbers_of_any_kind_are_numbers(kind):
    problem = Script(arms())
    problem.contexts = np.ones((6, 2, 1), kind)
    problem.rewards = np.ones((6, 2), kind)
    log = played(problem, ARMS.astype(kind) if kind is not bool else ARMS)
    np.testing.assert_array_equal(log.reward[-1], [6, 6])


@pytest.mark.parametrize(
    ("spec", "actions", "says"),
    [
        (points(), np.full((6, 2, 2), np.nan), "In round 1: Expected finite actions, got nan"),
        (points(), np.zeros((6, 2, 3)), r"Expected actions of shape \(2, 2\), got \(2, 3\)"),
        (points(), np.zeros((6, 2)), r"Expected actions of shape \(2, 2\), got \(2,\)"),
        (PriceSpec(dim=1, horizon=6, low=1, high=2), np.ones((6, 2)) * 3, r"prices in \[1, 2\]"),
        (ExpertsSpec(n_actions=2, horizon=6), ARMS, r"round 4: Expected actions in \[0, 2\)"),
    ],
    ids=["NaN", "too wide", "one number", "price", "expert"],
)
def test_actions_of_other_kinds_are_looked_at_too(spec, actions, says):
    """By the loop, whatever the problem itself does with them."""
    shown, told = np.zeros((6, 2, *spec.context_shape)), np.zeros((6, 2, 2))
    problem = Script(spec, shown, np.full((6, 2), spec.reward_low), told)
    with pytest.raises(InputError, match=says):
        played(problem, actions)


def test_a_step_is_a_step_with_its_datum():
    shown = np.zeros((6, 2, 2))
    with pytest.raises(InputError, match="In round 1: Expected datum to be an array of numbers"):
        played(Script(points("datum"), shown, -GIVEN / 2), np.zeros((6, 2, 2)))
    wide = Script(points("datum"), shown, -GIVEN / 2, np.zeros((6, 2, 3)))
    with pytest.raises(InputError, match=r"Expected datum of shape \(2, 2\), got \(2, 3\)"):
        played(wide, np.zeros((6, 2, 2)))

    class Gymnast(Script):
        def step(self, action):
            return tuple(super().step(action))

    with pytest.raises(InputError, match="Expected step to return a Step, got a tuple"):
        played(Gymnast(arms()), ARMS)


def test_a_context_that_its_problem_overwrites_is_told():
    """An agent would be told the next user's context with this user's reward."""

    class Overwrites(Script):
        def context(self):
            self.shown = super().context()
            return self.shown

        def step(self, action):
            step = super().step(action)
            self.shown[...] = self.contexts[self.t % 6]
            return step

    with pytest.raises(InputError, match=r"In round 1: Expected act and step to leave .* alone"):
        played(Overwrites(arms()), ARMS)


@pytest.mark.parametrize("name", ["reward", "regret"])
def test_infinities_after_the_first_rounds_are_told(name):
    """Rewards in their round, regret at the next mark: never as a number in a table."""

    class Late(Script):
        def context(self):
            return np.zeros((2, 1))

        def step(self, action):
            self.t += 1
            wild = np.array([0, np.inf if self.t == 20 else 0])
            zero = np.zeros(2)
            return Step(*((wild, zero) if name == "reward" else (zero, wild)), zero, wild)

    problem = Late(arms(horizon=40))
    sentence = {"reward": "In round 20: Expected finite rewards", "regret": "finite .* by round 25"}
    with pytest.raises(InputError, match=sentence[name]):
        played(problem, np.zeros((40, 2), np.int64), [5, 25, 40])


def beyond(rounds, what, horizon=1000, **more):
    """A problem whose replica 1 is beyond its bound in so many rounds, evenly spread."""
    problem = Script(arms(horizon=horizon, **more), np.ones((horizon, 2, 1)))
    problem.rewards = np.zeros((horizon, 2))
    if rounds:
        spread = np.linspace(0, horizon - 1, rounds).astype(int)
        getattr(problem, what)[spread, 1] = 50.0
    return problem


def compared(problem):
    def make(horizon):
        return replace(problem, calls=[])

    return compare(make, {"Uniform": Uniform()}, horizon=1000, replicas=2, progress=False)


@pytest.mark.parametrize("what", ["contexts", "rewards"])
def test_few_rounds_beyond_the_bounds_are_counted_and_many_refused(what):
    """Half a percent of all rounds is said in every result, and runs as before, also where it comes
    first; five percent, data in other units, is refused, unless that is asked for."""
    results = compared(beyond(10, what))
    assert [run.clipped.tolist() for run in results.runs] == [[0, 0.01]] * 2
    assert results.summary()["clipped"].tolist() == [0.005] * 2
    word = "l_2 norm at most context_bound=2" if what == "contexts" else r"rewards in \[0, 1\]"
    says = rf"^In round 1: Expected .*{word}, got 50, and so far .* % of 1000 rounds are beyond"
    for rounds, most in ((100, 0.01), (11, 0.01), (1, 0.0), (51, 0.05)):
        with pytest.raises(InputError, match=f"{says}, more than most_outside={most:g}: ") as told:
            compared(beyond(rounds, what, most_outside=most))
        assert "\n" not in str(told.value)
    for rounds, most in ((50, 0.05), (290, 0.29), (1000, 1)):
        results = compared(beyond(rounds, what, most_outside=most))
        assert results.summary()["clipped"].tolist() == [rounds / 2000] * 2


def test_each_kind_is_held_against_the_share_that_is_allowed():
    """0.8 % of contexts and 0.9 % of other rounds' rewards: neither is more than one percent."""
    problem = beyond(8, "contexts")
    problem.rewards[10:19, 1] = 50.0
    assert compared(problem).summary()["clipped"].tolist() == [0.0085] * 2


def test_plain_nonsense_is_refused_long_before_the_end():
    """All contexts 25 times too long: with round 11 of 1,000, looked at in round 15 at last."""
    problem = beyond(1000, "contexts")
    with pytest.raises(InputError, match=r"so far 1\.5 % of 1000 rounds"):
        played(problem, np.zeros((1000, 2), np.int64), [1000])
    assert problem.calls[-1] == "step 15"
