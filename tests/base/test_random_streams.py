"""Random streams: a replica's numbers depend on its seed and the call site, on nothing else."""

import copy
import pickle
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpbandit import InputError, play
from dpbandit.agent import Arms
from dpbandit.base.random_streams import Streams
from dpbandit.envs import GLMBandit
from dpbandit.privacy.ledger import no_data
from dpbandit.specs import begin
from tests.each import refused

quick = settings(derandomize=True, deadline=None, max_examples=25)
seed = st.one_of(st.integers(0, 2**64), st.tuples(st.integers(0, 2**32), st.integers(0, 2**20)))
LAWS = ["normals", "uniforms", "chi_squares"]


def draws(streams, law, name="x"):
    """A call site of shape (2,)."""
    if law == "chi_squares":
        return streams.chi_squares(name, (3.0, 5.5))
    return getattr(streams, law)(name, 2)


def rounds(source, count):
    return np.stack([source() for _ in range(count)])


@given(st.lists(seed, min_size=1, max_size=6, unique=True), st.sampled_from(LAWS))
@quick
def test_replicas_do_not_depend_on_their_company(seeds, law):
    """Six together, the first once more, in another order, or alone: exactly the same numbers."""
    seeds = [*seeds, seeds[0]]
    together = rounds(draws(Streams(seeds), law), 5)
    turned = rounds(draws(Streams(seeds[::-1]), law), 5)
    assert (together == turned[:, ::-1]).all()
    for r, single in enumerate(seeds):
        assert (together[:, r] == rounds(draws(Streams([single]), law), 5)[:, 0]).all()


@given(st.integers(1, 300), st.lists(st.integers(1, 9), max_size=6), st.sampled_from(LAWS))
@quick
def test_block_size_changes_speed_never_values(ahead, sizes, law):
    """Blocks that are drawn, and blocks that are taken."""
    default = rounds(draws(Streams([1, 2]), law), 54)
    source = draws(Streams([1, 2]), law)
    blocks = np.concatenate([source.take(size) for size in (*sizes, 1)])[:54]
    assert (blocks == default[: len(blocks)]).all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpbandit.base.random_streams._VALUES_AHEAD", ahead)
        assert (default == rounds(draws(Streams([1, 2]), law), 54)).all()


@pytest.mark.parametrize("law", LAWS)
def test_distinct_names_replicas_and_families_give_distinct_numbers(law):
    """All 12 combinations of 2 seeds and 6 call sites: 240 numbers, no two alike; and taking more
    names, or drawing from them, leaves everybody else's numbers alone."""
    streams = Streams([1, (1, 1)])
    families = [streams, streams.child("environment"), streams.child("agent")]
    families.append(families[1].child("agent"))
    values = [rounds(draws(family, law, name), 5) for family in families[1:] for name in "ab"]
    assert len(np.unique(values)) == np.size(values) == 6 * 5 * 2 * 2
    assert (rounds(draws(Streams([1, (1, 1)]), law), 9) == rounds(draws(streams, law), 9)).all()


def test_children_and_call_sites_are_uncorrelated():
    """z tests of correlations, n = 40,000, three pairs: false alarm 2e-6, 0.05 caught."""
    streams = Streams([7])
    child = streams.child("environment")
    sources = [streams.normals("a"), streams.normals("b"), child.normals("a")]
    a, b, c = (source.take(40_000).ravel() for source in sources)
    stderr = 40_000**-0.5
    for x, y in ((a, b), (a, c), (b, c)):
        assert abs((x * y).mean()) < 5 * stderr < 0.05
        assert abs((x * (y + 0.05 * x)).mean()) > 5 * stderr


def test_a_name_is_taken_once():
    """Nor may two hash alike: a noise would be added to its own copy."""
    streams = Streams([1])
    streams.normals("noise")
    for take in (streams.normals, streams.uniforms, streams.child):
        refused("'noise' is taken", take, "noise")
    streams.child("agent").normals("noise")  # another family, another name
    refused("'agent' is taken", streams.child, "agent")
    assert crc32(b"plumless") == crc32(b"buckeroo")
    streams.child("plumless").normals("buckeroo")
    for take in (streams.normals, streams.child):
        refused("'buckeroo' would draw the numbers of 'plumless'", take, "buckeroo")


def test_replicas_are_counted_and_none_is_refused():
    assert len(Streams([3, (4, 5), 6])) == 3
    assert Streams([3, 4]).normals("x", 2, 5)().shape == (2, 2, 5)
    assert Streams([3, 4]).normals("x").take(6).shape == (6, 2)
    refused("at least one seed", Streams, [])
    for wrong in (-1, "abc", 1.5, (0, -1)):
        with pytest.raises(InputError, match="seed"):
            Streams([wrong]).normals("x")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_continue_in_the_middle_of_a_block(law, clone):
    streams = Streams([1, (2, 3)])
    source = draws(streams, law)
    rounds(source, 3)
    twin = clone(source)
    assert (rounds(source, 2000) == rounds(twin, 2000)).all()
    family = clone(streams)
    refused("taken", draws, family, law)
    assert (draws(family, law, "y")() == draws(streams, law, "y")()).all()


def test_laws():
    """z tests of mean and variance, n = 100,000: false alarm 4e-6 together; 5 % off is caught."""
    streams = Streams([11])
    samples = [streams.normals("n"), streams.uniforms("u"), streams.chi_squares("c", (4.5,))]
    for source, mean, variance in zip(samples, (0, 0.5, 4.5), (1, 1 / 12, 9), strict=True):
        x = source.take(100_000).ravel() - mean
        assert abs(x.mean()) < 5 * (variance / x.size) ** 0.5
        stderr = (x**2).std() / x.size**0.5
        assert abs((x**2).mean() - variance) < 5 * stderr < 0.05 * variance


class Twin(Arms):
    """Plays the best arm by the parameters of a problem that it makes again from its streams."""

    way: str = "seeds"

    def start(self):
        self.ledger = no_data()
        seeds = list(self.streams._seeds)
        if self.way == "the problem's":  # what it must not be able to compute
            seeds = [3, 4]
        if self.way == "generators":
            seeds = [g.bit_generator.seed_seq.entropy for g in self.streams.generators("any")]
        streams = Streams(seeds).child("agent") if self.way == "child" else Streams(seeds)
        self.twin = GLMBandit(horizon=self.spec.horizon)
        begin(self.twin, self.streams if self.way == "own" else streams)

    def scores(self, context):
        return self.twin._predict(context)

    def learn(self, context, action, feedback):
        """Nothing."""


def test_an_agent_cannot_make_its_problem_again():
    """From the problem's own seeds it loses nothing, which shows that the attempt is one; from what
    an agent is given it plays as if at random: within a factor of 4 of `Uniform`."""

    def regret(agent):
        return play("GLMBandit", agent, [3, 4], horizon=400, blocks=False).regret[-1]

    uniform = regret("uniform")
    assert (regret(Twin(way="the problem's")) == 0).all()
    assert (uniform > 0).all()
    for way in ("seeds", "generators", "child", "own"):
        assert (regret(Twin(way=way)) > uniform / 4).all()
