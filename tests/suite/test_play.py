"""The page to play with: what it holds is what was measured, and every choice of it is drawn."""

import json
import re
import subprocess
from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.privacy.curves import epsilon_of, mu_of
from dpbandit.suite import frozen, problems
from dpbandit.suite.play import DELTA, provable, write_page
from tools import readme

BROWSER = readme.browser()
EVERY_CHOICE = """<script>
let drawn = 0, wrong = [];
window.onerror = (message) => wrong.push(message);
for (const [i, problem] of data.problems.entries()) for (const e of data.epsilons.keys()) {
  $("problem").value = i; $("epsilon").value = e; $("runs").value = (i + e) % data.audits.length;
  $("epsilon").dispatchEvent(new Event("input"));
  if (/NaN|undefined|Infinity/.test(document.body.innerText + $("lost").innerHTML
      + $("curve").innerHTML + $("age").innerHTML)) wrong.push(`${problem.name} at ${e}`);
  drawn += 1;
}
document.title = JSON.stringify({drawn, wrong, wide: document.body.scrollWidth - innerWidth});
</script></body>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("play") / "play.html")


def test_the_page_holds_what_was_measured(page):
    """Oracle: every private run of the shipped results stands in the page; nothing is asked of a
    network; epsilon by age is the certificate's; an audit never proves more than is true."""
    text = page.read_text()
    assert not re.search(r"(?:src|href|url\()=?[\"']?https?:", text)
    data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', text)[1])
    assert [one["name"] for one in data["problems"]] == [*problems()]
    shown = {
        (one["name"], row["agent"], round(row["certified"], 9)): row["regret"]
        for one in data["problems"]
        for row in one["rows"]
    }
    met = 0
    for run in frozen("small"):
        counted = problems()[run.setup.problem].counted(run.certificate)
        if 0 < counted < inf:
            found = shown[run.setup.problem, run.name, round(counted, 9)]
            assert found == pytest.approx(run.regret[-1].mean(), abs=0.01)
            met += 1
    assert 80 < met < len(shown), "and those that were compared"
    for epsilon in (0.1, 1.0, 10.0):
        proven = [provable(epsilon, runs) for runs in (100, 1000, 10**5, 10**8)]
        assert proven == sorted(proven)
        assert 0.9 * mu_of(epsilon, DELTA) < proven[-1] < mu_of(epsilon, DELTA)
    for ages in data["strategies"][1].values():
        assert np.all(np.diff(ages) >= 0)
        assert ages[-1] == pytest.approx(1.0, abs=1e-3)
    (one, row), *_ = ((p, r) for p in data["problems"] for r in p["rows"] if r.get("ages"))
    played = problems()[one["name"]]
    told = {"horizon": one["rounds"], "env_kwargs": played.arguments, "accountants": False}
    proof = certify(f"{row['agent']}:epsilon={row['target']}", played.environment, **told)
    assert row["ages"] == [round(proof.by_age(age), 4) for age in data["ages"]]
    at_once = epsilon_of(mu_of(1.0, DELTA) / np.sqrt((999).bit_length()), DELTA)
    assert data["strategies"][1]["prefix sums, tree"][0] == pytest.approx(at_once, abs=1e-3)


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium, as .ci/run installs it")
@pytest.mark.parametrize("width", [500, 1280])
def test_every_choice_is_drawn_in_a_browser(page, tmp_path, width):
    """All problems and epsilons, without an error, a number that is none, or a page too wide."""
    played = tmp_path / "every.html"
    played.write_text(page.read_text().replace("</body>", EVERY_CHOICE))
    how = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900"]
    command = [BROWSER, *how, f"--user-data-dir={tmp_path}", "--dump-dom", played.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    told = json.loads(re.search(r"<title>(.*?)</title>", done.stdout)[1])
    assert told["wrong"] == []
    assert told["drawn"] == 3 * len(problems())
    assert told["wide"] <= 0
