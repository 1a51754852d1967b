"""Actions that come and go: masks of environments, agents, clients and logs."""

import json
from dataclasses import replace
from itertools import permutations, product

import gymnasium as gym
import numpy as np
import pytest

from dpbandit import certify, compare
from dpbandit.agents import DPUCB, AllocationTS, LinUCB, ListFADE, RankedLinUCB, Uniform
from dpbandit.base import InputError, Streams
from dpbandit.clients import Foreign, FromGymnasium, Player
from dpbandit.clients.logs import record
from dpbandit.envs import Arms, GLMBandit, ListRecommendation
from dpbandit.envs.adapters import make_problem
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.offline import evaluate, replay, snapshot
from dpbandit.running.environments import as_words
from dpbandit.running.loop import play
from dpbandit.specs import ContextualSpec
from dpbandit.testing import check_agent, check_problem

MEANS, SCHEDULE = (0.3, 0.6, 0.9), ["0:-5", "2:2-3", "2:6-"]


def there(arm, t):
    """Whether the schedule has the arm in round t, by hand."""
    return (t <= 5, True, t in (2, 3) or t >= 6)[arm]


ROUNDS = range(1, 7)
BEST = sum(max(MEANS[a] for a in range(3) if there(a, t)) for t in ROUNDS)


def average(t):
    return np.mean([MEANS[a] for a in range(3) if there(a, t)])


FIXED = [sum(MEANS[a] if there(a, t) else average(t) for t in ROUNDS) for a in range(3)]
"""What an arm earns for which another stands in where it is not there."""


def test_regret_is_against_the_best_arm_that_is_there():
    """Brute force: all plays of six rounds that the schedule allows, a replica each; other plays
    are refused. Uniform and BestFixed within 5 standard errors of what is enumerated, of 1,000."""
    plays = np.array(list(product(*([a for a in range(3) if there(a, t)] for t in ROUNDS)))).T
    problem = make_problem(Arms, means=MEANS, horizon=6, available=SCHEDULE)
    problem.reset(Streams(range(plays.shape[1])))
    regret = 0.0
    for t, action in zip(ROUNDS, plays, strict=True):
        problem.context()
        assert (problem.mask() == [there(a, t) for a in range(3)]).all()
        for gone in [a for a in range(3) if not there(a, t)]:
            with pytest.raises(InputError, match=f"there in this round, got {gone}"):
                problem.step(np.full_like(action, gone))
        regret = regret + problem.step(action).regret
    np.testing.assert_allclose(regret, BEST - np.array(MEANS)[plays].sum(axis=0), atol=1e-12)
    assert (problem.best_fixed() == np.argmax(FIXED)).all()
    problem = make_problem(Arms, means=MEANS, horizon=6, available=SCHEDULE)
    found = compare(problem, {}, replicas=1000, progress=False)
    regret = {run.name: run.regret[-1] for run in found.runs}
    uniform, fixed = BEST - sum(average(t) for t in ROUNDS), BEST - max(FIXED)
    for name, mean in (("Uniform", uniform), ("BestFixed", fixed)):
        error = regret[name].std() / 1000**0.5
        assert abs(regret[name].mean() - mean) < 5 * error < abs(uniform - fixed)


def test_oracle_of_lists_is_the_best_of_all_lists_that_are_there():
    problem = make_problem(
        ListRecommendation, n_items=5, length=2, taste=3, horizon=30, absent=0.5, available="4:9-"
    )
    problem.reset(Streams(range(3)))
    seen = set()
    for t in range(1, 31):
        u, mask = problem.context(), problem.mask()
        assert (mask.sum(axis=1) >= 2).all()
        assert t >= 9 or not mask[:, 4].any()
        seen |= set(mask.sum(axis=1).tolist())
        attraction, model = problem._attraction(u), problem._model
        lists = np.array(list(permutations(range(5), 2)))
        for r in range(3):
            allowed = mask[r][lists].all(axis=1)
            worth = model.expected(attraction[r][lists])
            best = worth[allowed].max()
            action = np.array([np.flatnonzero(row)[:2] for row in mask])
            oracle = problem.step(action).oracle if r == 2 else None
        assert oracle[2] == pytest.approx(best)
    assert seen >= {2, 3}


def test_blocks_give_the_same_bits():
    """Would catch masks that are drawn, or agents that draw, otherwise in blocks than in rounds."""
    kwargs = {"n_actions": 4, "dim": 3, "available": ["3:150-", "0:-225"]}
    for agent, absent in (
        ("dp-ucb:refresh_every=50", 0.3),
        ("fade:first_batch=50", 0.0),
        (Uniform(), 0.3),
    ):
        kwargs["absent"] = absent
        logs = [
            play("GLMBandit", agent, range(3), horizon=300, env_kwargs=kwargs, blocks=blocks)
            for blocks in (True, False)
        ]
        for name in ("regret", "reward", "switches", "best_fixed"):
            np.testing.assert_array_equal(getattr(logs[0], name), getattr(logs[1], name))


class OwnMasks(ContextualProblem):
    """Users who may be offered arm 1 only where their feature is positive."""

    spec = ContextualSpec(n_actions=2, dim=1, horizon=40, masks="user")

    def _start(self, streams):
        self._luck = streams.uniforms("users", 2)

    def _users(self, count):
        luck = self._luck.take(count)
        x = 2 * luck[..., :1] - 1
        mean = np.broadcast_to([0.3, 0.6], (*x.shape[:2], 2))
        mask = np.concatenate([np.ones_like(x, dtype=bool), x > 0], axis=2)
        return Users(x, mean, 1.0 * (luck[..., 1:] < mean), mask)


class NoMasks(OwnMasks):
    def _users(self, count):
        return super()._users(count)._replace(mask=None)


class Followed(OwnMasks):
    spec = replace(OwnMasks.spec, masks="public")

    def _users(self, count):
        users = super()._users(count)
        yes = np.repeat(users.reward[..., :1], 2, axis=2)
        return users._replace(mean=np.full(yes.shape, 0.3), reward=yes)

    def step(self, action):
        step = super().step(action)
        self._mask = self._mask.copy()
        self._mask[self._next :, action == 0] = True
        return step


class Unheeding(LinUCB):
    def act_among(self, context, mask):
        return self.act(context)


class Remembering(DPUCB):
    def act_among(self, context, mask):
        self.last = mask.copy()
        return super().act_among(context, mask)


class Counting(AllocationTS):
    masks = ("user",)


ARMS = ContextualSpec(n_actions=4, dim=2, horizon=24, masks="user")


def test_checks_pass_ours_and_catch_what_is_broken():
    """That the agents which come with masks pass on the users' own is for conformance; here public
    ones, lists, problems of ours and somebody's own; and what must not pass."""
    lists = make_problem(ListRecommendation, n_items=9, length=3, horizon=24, absent=0.2).spec
    for config, spec in (
        (AllocationTS(first=1.0, draws=50), replace(ARMS, masks="public")),
        (RankedLinUCB(), lists),
        (ListFADE(first_batch=2), lists),
    ):
        assert check_agent(config, spec, rounds=12)
    for broken, sentence in (
        (Unheeding(), "Unheeding: Expected an action that is there"),
        (Remembering(), "replacing her changed what the agent remembers"),
        (Counting(first=1.0, draws=50), "to enter CountedSums in no other round"),
    ):
        with pytest.raises(AssertionError, match=sentence):
            check_agent(broken, ARMS)
    told = check_problem(OwnMasks())
    assert any(line.startswith("masks: user, 0.7") for line in told)
    for kind, kwargs in (
        (GLMBandit, {"available": ["2:5-"]}),
        (ListRecommendation, {"n_items": 9, "length": 3, "available": ["2-4:5-"], "absent": 0.2}),
    ):
        assert check_problem(make_problem(kind, horizon=30, **kwargs))

    with pytest.raises(AssertionError, match="public masks not to depend on what is played"):
        check_problem(Followed())
    with pytest.raises(AssertionError, match="_users of NoMasks to bring a mask"):
        check_problem(NoMasks())


def test_refusals_and_whose_data_masks_are():
    """Masks of the users' own stay theirs with a schedule on top, or an empty one; certificates say
    whose data masks are."""
    assert json.dumps(as_words({"absent": np.float32(0.5)})) == '{"absent": 0.5}'  # no digest
    for agent, said in (
        ("glm-ucb", "Expected an agent that plays only what is there .*, got GLMUCB"),
        ("fade:model=arms", "got FADE"),
        ("guarded:dp-ucb", "got Guard"),
        ("squarecb", "got SquareCB"),  # whose `act` is not that of what it is built on
        ("allocation-ts", "Expected masks='user' of the problem to be public for AllocationTS"),
    ):
        with pytest.raises(InputError, match=said):
            certify(agent, ARMS)
    for env, kwargs, said in (
        ("Arms", {"available": "0:5-3"}, "available='0:5-3' to name actions from 0 to 1"),
        ("Arms", {"available": "2:5-"}, "available='2:5-' to name actions from 0 to 1"),
        ("Arms", {"available": 3}, "available="),
        ("Arms", {"available": "1:9-", "horizon": 8}, "'1:9-' to begin within horizon=8"),
        ("Arms", {"available": "first"}, "words such as '3:200-'"),
        ("Arms", {"absent": 1.5}, "absent=1.5"),
        ("Arms", {"available": ["0:-5", "1:7-"]}, "at least 1 of 2 actions .* 0 in round 6"),
        ("Arms", {"absent": 0.1, "drift": "walk"}, "a ChangingArmsSpec without masks"),
        ("Experts", {"absent": 0.1}, "available= and absent= with arms or lists"),
        ("ReturningLists", {"absent": 0.1}, "a ReturningSpec without masks"),
    ):
        with pytest.raises(InputError, match=said):
            make_problem(gym.spec(f"dpbandit/{env}-v0").kwargs["problem"], **kwargs)
    for available in ([], "0:-", ["1:5-"]):
        assert make_problem(OwnMasks, available=available).spec.masks == "user"
    said = {masks: certify("dp-ucb", replace(ARMS, masks=masks)) for masks in ("public", "user")}
    assert said["public"].notion.endswith("; which actions there are in a round is public")
    assert said["user"].notion.endswith("; which actions there are for her is part of her round")
    assert "own data reach her own actions" in certify("uniform", ARMS).notion
    OwnMasks.spec, told = replace(OwnMasks.spec, masks="none"), OwnMasks.spec
    try:
        with pytest.raises(InputError, match="whose _users bring masks, got 'none'"):
            play(OwnMasks(), LinUCB(), [0])
    finally:
        OwnMasks.spec = told


def test_gymnasium_shows_masks():
    kwargs = {"n_actions": 4, "dim": 2, "horizon": 5, "available": ["3:3-"], "absent": 0.3}
    env = gym.make("dpbandit/GLMBandit-v0", **kwargs)
    several = gym.make_vec("dpbandit/GLMBandit-v0", num_envs=2, **kwargs)
    (_, info), (_, infos) = env.reset(seed=0), several.reset(seed=0)
    for t in range(1, 6):
        mask = info["action_mask"]
        assert mask.dtype == np.int8
        assert mask[3] == 0 or t >= 3
        np.testing.assert_array_equal(infos["action_mask"][0], mask)
        with pytest.raises(InputError, match="which the mask forbids"):
            env.step(int(mask.argmin())) if not mask.all() else env.unwrapped.problem.step([9])
        assert env.action_space.contains(int(env.action_space.sample(mask)))
        actions = infos["action_mask"].argmax(axis=1)
        *_, over, info = env.step(int(actions[0]))
        *_, infos = several.step(actions)
    assert over


def test_clients_pass_masks_on():
    """Would catch a player, a bridge or a foreign policy that is not told, or does not listen."""
    kwargs = {"n_actions": 4, "dim": 2, "available": ["3:10-"], "absent": 0.3, "horizon": 40}
    env = gym.make("dpbandit/GLMBandit-v0", **kwargs)
    bounds = {"reward_range": (-1.4, 1.4), "context_bound": 1.0, "masks": "user"}
    player = Player("dp-ucb:refresh_every=4", env, horizon=40, **bounds)
    observation, info = env.reset(seed=0)
    with pytest.raises(InputError, match="an action_mask of 4 ones and zeros"):
        player.act(observation)
    for _ in range(40):
        action, shown = player.act(observation, info["action_mask"]), observation.copy()
        observation, reward, _, _, info = env.step(action)  # which refuses others
        player.update(shown, action, reward)

    class First:
        def act(self, context, mask):
            return mask.argmax()

        def update(self, context, action, reward): ...

    bridge = FromGymnasium(lambda: gym.make(env.spec.id, **kwargs), regret="info:regret", **bounds)
    first = Foreign(policy=lambda spec, seed: First())
    assert compare(bridge, {"first": first, "linucb": LinUCB()}, horizon=60, replicas=2)


def test_logs_know_masks():
    """The log's own policy has weights of 1, whatever the masks; a replay and a snapshot play what
    is there, and what plays anything is refused."""
    kwargs = {"n_actions": 4, "dim": 2, "available": ["3:200-"], "absent": 0.3}
    log = record("GLMBandit", horizon=400, env_kwargs=kwargs)

    class Same:
        def probabilities(self, context, mask):
            return mask / mask.sum(axis=1, keepdims=True)

    ips = evaluate(Same(), log).set_index("estimator")["estimate"]["ips"]
    assert ips == pytest.approx(log.reward.mean())
    agent = LinUCB().make(log.spec, Streams([0]))
    law = snapshot(agent, log.spec).probabilities(log.context, log.mask)
    assert not law[~log.mask].any()
    assert replay(LinUCB(), log).kept.min() > 0
    with pytest.raises(InputError, match="to have been possible"):
        evaluate(np.full((400, 4), 0.25), log)
    taught = record("GLMBandit", horizon=400, agent="linucb", explore=0.5, env_kwargs=kwargs)
    assert (taught.propensity >= 0.125).all()
    with pytest.raises(InputError, match="probabilities= of all arms"):
        replace(taught, probabilities=None, lowest=None)
