"""Who chooses cameras: the frozen population, its questionnaire, and what answers tell."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

import dpbandit.envs
from dpbandit import InputError
from dpbandit.envs.contextual.camera_people import camera, camera_people, frozen, patterns

PEOPLE = camera_people()
SCRIPT = Path(dpbandit.envs.__file__).parent / "data" / "fit_camera.py"


def test_the_frozen_population():
    """Golden: person 0 is the mean, of price coefficient -exp(0.9848) = -2.6773; the least
    eigenvalue of the covariance is 0.449; 140 estimates, 95 of them distinct."""
    mean = np.array(frozen()["mean"])
    assert PEOPLE.part_worths.shape == (4096, 10)
    np.testing.assert_allclose(PEOPLE.part_worths[0], [*mean[:9], -np.exp(mean[9])], rtol=1e-12)
    assert PEOPLE.part_worths[0, 9] == pytest.approx(-2.6773, abs=5e-5)
    covariance = np.array(frozen()["covariance"])
    assert (covariance == covariance.T).all()
    assert np.linalg.eigvalsh(covariance)[0] == pytest.approx(0.449, abs=5e-4)
    names = ("mean", "mean_posterior_sd", "sd", "sd_posterior_sd", "covariance")
    numbers = np.concatenate([np.ravel(frozen()[name]) for name in names])
    assert (len(numbers), len(np.unique(numbers))) == (140, 95)


def test_patterns_have_the_frozen_weights():
    """Golden: P(none four times) = 0.124849, P(first camera four times) = 0.014465; 168 patterns
    count, the exponential of their entropy."""
    w = PEOPLE.weights
    assert (len(w), (w > 0).all()) == (625, True)
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert [w[624], w[0]] == pytest.approx([0.124849, 0.014465], abs=5e-7)
    assert np.exp(-(w * np.log(w)).sum()) == pytest.approx(168, abs=0.5)
    assert patterns(4)[[0, 1, 624]].tolist() == [[0] * 4, [0, 0, 0, 1], [4] * 4]


def test_probabilities_of_answers_are_those_of_a_multinomial_logit():
    """Oracle: three patterns of two people, from the utilities one by one."""
    design = np.array(frozen()["questionnaire"]["design"])[:4]
    for person, pattern in ((0, 0), (17, 624), (4095, 123)):
        chance, taken = 1.0, patterns(4)[pattern]
        for task, answer in zip(design, taken, strict=True):
            worth = np.exp([*(task @ PEOPLE.part_worths[person]), 0.0])
            chance *= worth[answer] / worth.sum()
        assert PEOPLE.answers[person, pattern] == pytest.approx(chance, rel=1e-10)


def test_contexts():
    """Golden: the largest posterior mean has norm 3.8618, the largest Newton step 4.3063; 600
    contexts differ, those of the answers all; share of variance explained."""
    t = PEOPLE.expected(PEOPLE.standardised)
    assert np.linalg.norm(t, axis=1).max() == pytest.approx(3.8618, abs=5e-5)
    explained = PEOPLE.weights @ t**2
    assert explained[:4].round(2).tolist() == [0.53, 0.52, 0.54, 0.53]
    assert explained[4:].round(2).tolist() == [0.44, 0.45, 0.26, 0.28, 0.30, 0.51]
    for kind, width, distinct in (("posterior", 11, 600), ("answers", 17, 625), ("score", 11, 600)):
        x = PEOPLE.context(kind)
        assert x.shape == (625, width)
        assert len(np.unique(x.round(9), axis=0)) == distinct
        assert np.linalg.norm(x, axis=1).max() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(PEOPLE.context()[:, 1:] * np.sqrt(2) * 3.8618346, t, atol=1e-6)


def test_one_newton_step():
    """Oracle: the score and the information at the mean by finite differences of log P."""
    mean, covariance = np.array(frozen()["mean"]), np.array(frozen()["covariance"])
    design, taken = np.array(frozen()["questionnaire"]["design"])[:4], patterns(4)[33]

    def log_likelihood(theta):
        utility = design @ np.append(theta[:9], -np.exp(theta[9]))
        chosen = [*utility.T, np.zeros(4)]
        return sum(chosen[k][j] for j, k in enumerate(taken)) - np.logaddexp.reduce(chosen).sum()

    step = 1e-5 * np.eye(10)
    g = [(log_likelihood(mean + e) - log_likelihood(mean - e)) / 2e-5 for e in step]
    x = np.pad(design, ((0, 0), (0, 1), (0, 0)))
    x[..., 9] *= -np.exp(mean[9])
    p = np.exp(x[..., :9] @ mean[:9] + x[..., 9])
    p /= p.sum(axis=1, keepdims=True)
    centred = x - (p[..., None] * x).sum(axis=1, keepdims=True)
    H = np.einsum("tk,tka,tkb->ab", p, centred, centred)
    t = np.linalg.solve(np.linalg.inv(covariance) + H, g) / np.sqrt(np.diag(covariance))
    found = PEOPLE.context("score")[33, 1:] * np.sqrt(2)
    np.testing.assert_allclose(found * 4.306273448, t, atol=1e-7)


def test_customers_are_drawn_with_their_weights():
    """A grid of 100,000 uniforms finds every pattern within one of 100,000 w(c); the ends too."""
    found = PEOPLE.drawn((np.arange(100_000) + 0.5) / 100_000)
    count = np.bincount(found, minlength=625)
    assert np.abs(count - 100_000 * PEOPLE.weights).max() <= 1
    assert PEOPLE.drawn(np.array([0.0, 1 - 2**-53])).tolist() == [0, 624]


def test_a_camera_has_names_and_a_questionnaire_has_five_tasks():
    with pytest.raises(InputError, match="attribute='leica'"):
        camera("leica")
    for tasks in (0, 6, 2.5, "4"):
        with pytest.raises(InputError, match="tasks"):
            camera_people(tasks)
    with pytest.raises(InputError, match="contexts='demographics'"):
        PEOPLE.context("demographics")


def test_the_fit_says_what_it_has_to_download():
    """Without the answers, which are not shipped, nothing is fitted and nothing is fetched."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "apt-get download r-cran-bayesm" in done.stderr
    assert "pip install rdata" in done.stderr


def test_one_logit_for_everybody_is_fitted():
    """Statistical: 5,312 choices of people who are all alike give back their part-worths, within
    5 standard errors (false alarm 6e-6); and the script's part-worths are the simulator's."""
    spec = spec_from_file_location("fit_camera", SCRIPT)
    fit = module_from_spec(spec)
    spec.loader.exec_module(fit)
    rng, truth = np.random.default_rng(1), np.array([1.0, 0.5, 0, -0.5, 1, 0.3, 0, 0.2, -0.2, -1.5])
    shown = np.pad(rng.integers(0, 2, (332, 16, 4, 10)) * 1.0, ((0, 0),) * 2 + ((0, 1), (0, 0)))
    chance = softmax(shown @ truth, axis=2)
    chosen = (rng.random((332, 16, 1)) > chance.cumsum(axis=2)).sum(axis=2)
    theta, per_task = fit.pooled(shown, chosen)
    x = shown.reshape(-1, 5, 10)
    centred = x - np.einsum("uj,ujd->ud", chance.reshape(-1, 5), x)[:, None]
    H = np.einsum("nj,nja,njb->ab", chance.reshape(-1, 5), centred, centred)
    assert (np.abs(theta - truth) < 5 * np.sqrt(np.diag(np.linalg.inv(H)))).all()
    assert per_task < 0
    mean = np.array(frozen()["mean"])
    np.testing.assert_allclose(fit.part_worths(mean), PEOPLE.part_worths[0], rtol=1e-12)
