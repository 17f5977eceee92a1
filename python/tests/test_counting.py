"""How many there are of something: change points, components of mixtures, peaks, layers."""

import datetime
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pytest

import vti

from conftest import COUNTED, changing, sounded

QUANTITY = ["q", "corrected", "se", "exact"]
BANDS = ["low_50", "high_50", "low_90", "high_90"]


@pytest.fixture(scope="module")
def changes():
    return vti.changepoints(changing(), kind="means", time="t", value="v", max_changes=4)


@pytest.fixture(scope="module")
def mixed():
    return vti.mixture(changing()["v"], max_components=3, seed=1, **COUNTED)


@pytest.fixture(scope="module")
def peaked():
    x = np.linspace(0.0, 1.0, 40)
    y = np.exp(-0.5 * ((x - 0.4) / 0.06) ** 2) + 0.05 * np.sin(37.0 * np.arange(40))
    return vti.peaks({"x": x, "y": y}, x="x", y="y", max_peaks=2, seed=1, **COUNTED)


@pytest.fixture(scope="module")
def layered():
    return vti.layers(sounded(), forward="mt", max_layers=3, seed=1, **COUNTED)


@pytest.fixture(scope="module")
def answers(changes, mixed, peaked, layered):
    return [changes, mixed, peaked, layered]


def test_probabilities_and_evidences_of_numbers(answers):
    named = {"change points": 5, "components": 3, "peaks": 3, "interfaces": 3}
    for answer, (name, rows) in zip(answers, named.items()):
        assert answer.kind == "count" and answer.counted == name
        found = answer.components
        evidences = ["log_evidence", "log_evidence_se", "log_evidence_exact"]
        assert list(found.columns) == [*QUANTITY, "prior", *evidences]
        assert found.index.name == name and len(found) == rows and found.index.is_monotonic_increasing
        assert abs(found["corrected"].sum() - 1.0) < 1e-9 and abs(found["prior"].sum() - 1.0) < 1e-9
        assert answer.most_probable == found["corrected"].idxmax()
        mean = (found.index * found["corrected"]).sum()
        assert abs(answer.mean["corrected"] - mean) < 1e-6
        assert isinstance(answer.verdict.kind, vti.VerdictKind) and str(answer.verdict)
        assert np.isfinite(float(answer.log_evidence))
        assert pl.DataFrame(found.reset_index()).shape == (rows, 9)


def test_exact_numbers_follow_from_their_evidences(changes):
    assert changes.verdict.kind is vti.VerdictKind.TRUST and changes.most_probable == 1
    found = changes.components
    # p(k | y) = p(k) p(y | k) / p(y).
    posterior = np.exp(np.log(found["prior"]) + found["log_evidence"] - float(changes.log_evidence))
    np.testing.assert_allclose(found["exact"], posterior, atol=1e-12)
    assert (found["log_evidence_se"] == 0).all() and (found["log_evidence"] == found["log_evidence_exact"]).all()


def test_curves_positions_and_components_one_by_one(answers):
    for answer in answers:
        curves = answer.curves
        assert list(curves.columns) == ["curve", "x", "mean", "median", *BANDS]
        for low, high in zip(BANDS[::2], BANDS[1::2]):
            assert (curves[low] <= curves["median"]).all() and (curves["median"] <= curves[high]).all()
        # The files of the run directory say the same.
        pd.testing.assert_frame_equal(curves, pd.read_csv(answer.path / "curves.csv", float_precision="round_trip"))
        positions = answer.positions
        pd.testing.assert_frame_equal(positions, pd.read_csv(answer.path / "positions.csv", float_precision="round_trip"))
        assert list(answer.given.columns) == ["number", "component", "parameter", "mean", "sd", "low", "high"]
    changes = answers[0]
    # As many as there are changes, and most of them where the change is.
    assert abs(changes.positions["expected"].sum() - changes.mean["corrected"]) < 1e-6
    most = changes.positions.sort_values("expected").iloc[-1]
    assert most["from"] <= 5.75 <= most["to"] + 0.25
    one = changes.given.query("number == 1 and parameter == 'mean'")
    assert one["component"].tolist() == ["segment 1", "segment 2"]
    np.testing.assert_allclose(one["mean"], [0.0, 2.0], atol=0.3)


def test_memberships(mixed, changes):
    found = mixed.memberships
    assert len(found) == 36 and list(found.columns[:3]) == ["row", "v", "component"]
    np.testing.assert_allclose(found.filter(regex="^p[0-9]").sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_array_equal(found["v"], changing()["v"])
    with pytest.raises(AttributeError, match="change points has no memberships"):
        changes.memberships


def test_draws_and_densities(answers):
    for answer in answers:
        draws = answer.sample(100)
        assert len(draws) == 100 and not draws.equals(answer.sample(100, batch=1))
        np.testing.assert_allclose(answer.log_prob(draws), draws["log_q"], rtol=1e-3, atol=1e-3)
        assert len(answer.draws) > 100
        with pytest.raises(ValueError, match="no response to predict"):
            answer.predict(changing())


def test_plots_and_pages(answers, tmp_path):
    for answer in answers:
        for plot in (answer.plot_numbers(), answer.plot_curves(), answer.plot_positions(), answer.plot_models()):
            assert ElementTree.fromstring(plot._repr_svg_()).tag.endswith("svg") and "var(--" not in plot.svg
        page = answer.report(tmp_path / "page.html")
        assert page == (answer.path / "report.html").read_text() == (tmp_path / "page.html").read_text()
        assert answer._repr_html_().startswith("<iframe srcdoc=") and answer.counted in repr(answer)
        for name in ("inclusion", "edges", "adjacency"):
            with pytest.raises(AttributeError, match="count has no"):
                getattr(answer, name)
        with pytest.raises(ValueError, match="nothing to plot about graph"):
            answer.plot_graph()


def test_values_alone_are_tables(changes):
    values = changing()["v"]
    expected = vti.changepoints({"value": values}, kind="means", max_changes=2)
    for alone in (values.to_numpy(), values.tolist(), pl.Series("value", values), values):
        found = vti.changepoints(alone, kind="means", max_changes=2)
        pd.testing.assert_frame_equal(found.components, expected.components)
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(day)) for day in (0, 3, 5, 9, 11, 40, 90, 130)]
    events = vti.changepoints(days, kind="events", end=datetime.date(2024, 6, 1), max_changes=2)
    assert events.components["exact"].sum() == pytest.approx(1.0)


def test_what_is_refused():
    with pytest.raises(ValueError, match="kind"):
        vti.changepoints(changing())
    with pytest.raises(ValueError, match="there are|possible values"):
        vti.changepoints(changing(), kind="medians")
    with pytest.raises(TypeError, match="(?s)no argument max_component.*did you mean max_components"):
        vti.mixture(changing(), max_component=2)
    with pytest.raises(ValueError, match="column must say which column"):
        vti.mixture(changing())
    with pytest.raises(TypeError, match="(?s)background=2.*background_degree"):
        vti.peaks(changing(), x="t", y="v", background=2)
    with pytest.raises(ValueError, match="all values are 1"):
        vti.peaks(changing().assign(v=1.0), x="t", y="v")
    odd = changing().rename(columns={"v": "v, in all"})
    with pytest.raises(ValueError, match="v, in all is named twice"):
        vti.mixture(odd, column=["v, in all", "v, in all"])
