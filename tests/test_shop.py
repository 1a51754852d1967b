"""From a table nobody has seen to a frontier: five commands, or ten lines."""

import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

import dpbandit
from dpbandit.clients import read_log
from dpbandit.envs import PricingFromLog
from dpbandit.offline import evaluate
from dpbandit.running.environments import problem_maker
from tests.each import each, refused
from tests.envs.contextual.logs import SHOP, clicks, many, shop

FIT = "fit prices.csv --feature age=18:90 --feature shop=A,B,C --price-range 1:3 --unit-cost 0.8"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shop(n=1500, seed=7).to_csv("prices.csv", index=False)
    return tmp_path


@pytest.fixture
def said(run):
    """Run a command that succeeds; return its output."""

    def command(line):
        code, out, errors = run(*line.split())
        assert code == 0, errors
        return out

    return command


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_five_commands(here, said, run):
    fitted = said(f"{FIT} --out conf/shop.toml --sweep sweep.toml --plot calibration.png")
    assert "1500 offers" in fitted
    assert "never a row of your log" in fitted
    assert "no diagnostic finds it" in fitted
    assert matplotlib.image.imread("calibration.png").std() > 0
    assert "Next: dpbandit compare conf/shop.toml --agents fade,priced:glm-ucb\n" in fitted
    compared = said("compare conf/shop.toml --agents fade --horizon 40 --replicas 2")
    assert "(--agents ...,priced:glm-ucb)" in " ".join(compared.split())
    assert "certified   epsilon 0.5" in said("certify fade --env conf/shop.toml --epsilon 0.5")
    small = (here / "sweep.toml").read_text().replace("20000", "40").replace("= 20\n", "= 2\n")
    small = small.replace(", 3.0, 10.0", "")
    (here / "sweep.toml").write_text(small)
    said("sweep sweep.toml --out results")
    results = dpbandit.Results.load("results")
    reported = said("report results --out report")
    assert "priced:glm-ucb" in {run.name for run in results}
    played = said("frontier conf/shop.toml --horizon 40 --replicas 2")
    for epsilon, printed in (("0.3", reported), ("1", reported), ("0.05", played), ("20", played)):
        assert re.search(rf"at epsilon {epsilon}\b.* priced:glm-ucb", printed.lower())
    assert results.frontier("frontier.png").exists()
    assert {r.setup.problem for r in results} == {"shop"}
    assert {r.setup.environment for r in results} == {"dpbandit/PricingFromLog-v0"}
    shop(n=1500, seed=8).to_csv("prices.csv", index=False)
    code, _, errors = run(*["compare", "conf/shop.toml", "--agents", "fade", "--horizon", "40"])
    assert (code, "prices.csv to be as it was, with sha256=" in errors) == (2, True)


DE = {"sep": ";", "decimal": ",", "yes": ["ja"], "drop_missing": True}
HER_COLUMNS = "--price Preis --sold gekauft --unit-cost 0.8 --price-range 1:3 --feature Alter=18:90"
HERS = [*HER_COLUMNS.split(), "--feature", "Laden=North ,Süd,C"]  # a level with a space


def export(frame):
    """Write export.csv as a spreadsheet does: a BOM, words, decimal commas, gaps, an empty row."""
    stores, words = {"A": "North ", "B": "Süd", "C": "C"}, ("nein", "Ja ")
    rows = ["Preis ;gekauft;Alter;Laden;Zeit;Uhr"]
    for i, row in enumerate(frame.itertuples()):
        price = "" if i == 3 else f"{row.price:.3f}".replace(".", ",")
        age = "" if i in (0, 1, 2, 4) else f"{row.age},0"
        rows.append(f"{price};{words[row.sold]};{age};{stores[row.shop]};t{i};12.30")
    rows += [rows[-1], ";;;;;", ""]
    Path("export.csv").write_text("\r\n".join(rows), "utf-8-sig", newline="")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_spreadsheet_in_one_command(run, said):
    """Oracle: the same rows in a plain table have the same fit; what is dropped is said."""
    frame = shop(n=1500, seed=7)
    export(frame)
    told = ["--sep", ";", "--decimal", ",", "--yes", "ja", "--drop-missing"]
    code, fitted, _ = run("fit", "export.csv", *HERS, *told, "--out", "hers.toml")
    assert code == 0
    assert "Dropped 6 of 1502 rows with missing entries: 5 in 'Alter', 1 in 'Laden', " in fitted
    assert "1 of 1496 rows repeat an earlier row in every column" in fitted
    plain = pd.concat([frame[5:], frame[-1:]])
    same = PricingFromLog(plain, **SHOP).diagnostics
    found = problem_maker("hers.toml")().diagnostics
    assert found.slope == pytest.approx(same.slope, rel=1e-9)
    assert [*found.coefficients.values()] == pytest.approx([*same.coefficients.values()])
    assert "fade" in said("compare hers.toml --agents fade --horizon 40 --replicas 2")
    words = ["evaluate", "export.csv", "--action", "Preis", "--reward", "gekauft", *HERS[8:], *told]
    code, _, _ = run(*words, "--policy", "always=1.5", "--out", "judged.csv")
    log = read_log(
        plain, action="price", reward="sold", reward_range=(0, 1), context=SHOP["features"]
    )
    law = np.broadcast_to(1.0 * (np.array(log.arms) == 1.5), (len(plain), len(log.arms)))
    wanted = evaluate(law, log)["estimate"]
    assert (code, pd.read_csv("judged.csv")["estimate"].tolist()) == (0, pytest.approx([*wanted]))


@each(("costs", "most"), [("0.8", 5.1), ("cost", 6.3)])
def test_a_log_of_units_is_evaluated_in_her_money(run, costs, most):
    """Oracle: the same rows with what each earned, by hand, as their reward; her column of prices
    may be called by its option in `fit`, and prices that are not listed are those of the log."""
    table = many(n=300)
    table["earned"] = (table.price - (table.cost if costs == "cost" else 0.8)) * table.units
    table.to_csv("units.csv", index=False)
    words = "evaluate units.csv --policy always=2 --feature cost=0.4:1 --unit EUR"
    money = f" --price price --units units --at-most 3 --unit-cost {costs} --out judged.csv"
    code, out, errors = run(*(words + money).split())
    assert (code, errors) == (0, "")
    assert "EUR a row; 2 earns" in out
    by_hand = f" --action price --reward earned --reward-range 0:{most} --out by_hand.csv"
    assert run(*(words + by_hand).split())[0] == 0
    found, wanted = (pd.read_csv(f"{name}.csv") for name in ("judged", "by_hand"))
    columns = ["estimate", "low", "high", "logged", "gain"]
    np.testing.assert_allclose(found[columns], wanted[columns], rtol=1e-9)


@each(
    ("reading", "says"),
    [
        ({}, "it looks like ; between cells and decimal commas: --sep ';' --decimal ','"),
        ({**DE, "decimal": None}, "hold numbers, such as 2.5, got '2,000': decimal commas"),
        ({"decimal": ","}, "and not sep=','"),
        ({"sep": ";;"}, "sep=';;' to be one letter"),
        ({"mark": ","}, "to have keys among"),
        ({"sep": ";", "decimal": ","}, "'gekauft', got 1 of 1502: fill them, or"),
        ({"sep": ";", "decimal": ",", "drop_missing": True}, "got 'Ja ': name the words for yes"),
        ({"sep": ";", "decimal": ",", "yes": "Ja"}, "no missing entries in column 'gekauft'"),
        ({"sep": ";", "decimal": ",", "yes": ["si"], "drop_missing": 1}, "drop_missing=1"),
        ({"sep": ";", "decimal": ",", "yes": ["si"]}, "si, and one .* no, got 'Ja ' and 'nein'"),
        ({"sep": ";", "decimal": ",", "yes": []}, "numbers such as 1234,5 .*'Uhr', got 12.30"),
    ],
)
def test_a_spreadsheet_is_refused_with_advice(reading, says):
    export(shop(n=1500, seed=7))
    price = "Uhr" if "Uhr" in says else "Preis"
    columns = {"price": price, "sold": "gekauft", "price_range": (1, 3), "unit_cost": 0.8}
    refused(says, PricingFromLog, "export.csv", **columns, features={}, reading=reading)


def test_yes_is_a_word_a_number_or_true():
    """Oracle: the plain column of 0 and 1; --yes of no entry is refused, with its value and column.

    Cells of spaces are gaps, and cautions are those of this reading, not of an earlier one."""
    frame = shop(n=1500, seed=7)
    same = PricingFromLog(frame, **SHOP).diagnostics
    for sold, yes in ((frame.sold + 1, "2"), (frame.sold > 0, "TRUE"), (frame.sold * 1.0, "1")):
        known = SHOP | {"reading": {"yes": [yes]}}
        assert PricingFromLog(frame.assign(sold=sold), **known).diagnostics == same
    says = r"'sold' to hold ja, and one other word for no, got .*: yes=\['ja'\] \(--yes\)"
    refused(says, PricingFromLog, frame, **SHOP, reading={"yes": "ja"})
    missing = frame.assign(sold=pd.array([None, *(frame.sold[1:] > 0)], "boolean"))
    refused("missing entries in column 'sold', got 1", PricingFromLog, missing, **known)
    for k, path in ((1, "gaps.csv"), (2, None)):
        gaps = pd.concat([frame, frame[:k].assign(shop="  ")])
        table = gaps if path is None else path
        gaps.to_csv("gaps.csv", index=False)
        with pytest.warns(UserWarning, match=f"Dropped {k} of {1500 + k} rows .*: {k} in 'shop'"):
            found = PricingFromLog(table, **SHOP, reading={"drop_missing": True}).diagnostics
        assert found.slope == same.slope
    refused("no missing entries in column 'shop', got 2 of", PricingFromLog, "gaps.csv", **SHOP)
    german = frame.assign(price=[f"0{price:.2f}".replace(".", ",") for price in frame.price])
    german.to_csv("german.csv", index=False, sep=";")
    reading = {"sep": ";", "decimal": ","}
    assert PricingFromLog("german.csv", **SHOP, reading=reading).diagnostics.slope == same.slope
    german.assign(price=german.price.where(german.index > 3, "x")).to_csv("x.csv", sep=";")
    refused(r"such as 2.5, got 'x'\.$", PricingFromLog, "x.csv", **SHOP, reading=reading)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ten_lines():
    """Epsilons of one agent are one line of the frontier."""
    problem = PricingFromLog("prices.csv", **SHOP)
    agents = ["linucb", *(f"fade:epsilon={epsilon}" for epsilon in (0.5, 2))]
    axes = dpbandit.compare(problem, agents, horizon=60, replicas=2).frontier()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [label for label in labels if "fade" in label] == ["fade"]


def test_clicks(said):
    clicks(n=900).to_csv("clicks.csv", index=False)
    fitted = said("fit clicks.csv --items news,sport,games --feature age=18:90 --out news.toml")
    assert "900 rows" in fitted
    assert "no diagnostic finds it" in fitted
    assert "fade" in said("compare news.toml --agents fade --horizon 40 --replicas 2")


@each(
    ("line", "says"),
    [
        ("fit prices.csv --feature age=1:2 --feature age=18:90", "Expected --feature age once"),
        ("fit prices.csv --feature age --price-range 1:3", "'age' to be NAME=LOW:HIGH or NAME="),
        ("fit prices.csv --feature age=1:x --price-range 1:3", "--feature age to have numbers"),
        ("fit prices.csv --price-range 3", "--price-range='3' to be LOW:HIGH"),
        ("fit prices.csv --unit-cost 1", "Expected --price-range, such as"),
        (FIT.replace("0.8", "2"), "every price above --unit-cost=2, .* state --prices"),
        (FIT + " --units sold", "Expected --at-most with --units='sold'"),
        ("fit prices.csv --items a,b --unit-cost 1", "--items without --unit-cost.$"),
        ("fit prices.csv --items a,b", "a column 'click', .*: name yours with --click.$"),
        (FIT.replace("A,B,C", "A,B"), "only the levels .* got 'C'"),
        (FIT + " --sold bought", r"a column 'bought', the table has .*\]\.$"),
        (FIT + " --units sold --at-most 2 --sold bought", "--units='sold' in place of --sold="),
        (FIT + " --out shop.json", "--out=shop.json to end in .toml"),
        (FIT + " --monotone yes", "Expected --monotone='yes'"),
        (FIT + " --visit v --items a,b --monotone clip", "--visit=v without --monotone"),
        (
            "evaluate words.csv --policy always=1 --action shop --reward word",
            "name the words for yes, --yes",
        ),
        (
            "evaluate prices.csv --policy uniform --price price --sold sold",
            "Expected --prices, .*, and --unit-cost together, without --arms",
        ),
        ("fit other.csv --price-range 1:3", "Cannot read other.csv"),
        ("compare none.toml --agents fade", "Cannot read none.toml"),
        ("compare bad.toml --agents fade", "bad.toml to hold id and .arguments. .* got 'agents'"),
        ("compare odd.toml --agents fade", "argument of PricingFromLog='cost'"),
        ("certify fade --env long.toml", "the horizon by --horizon .*, not in long.toml"),
    ],
)
def test_one_sentence_each(here, run, line, says):
    (here / "bad.toml").write_text('agents = ["fade"]')
    (here / "long.toml").write_text('id = "Arms"\n[arguments]\nhorizon = 9')
    (here / "odd.toml").write_text('id = "PricingFromLog"\n[arguments]\ncost = 1')
    shop(n=9).assign(word="ja").to_csv("words.csv", index=False)
    code, _, errors = run(*line.split())
    assert (code, errors.count("\n")) == (2, 1)
    assert re.search(says, errors)
