"""What answers say, and to whom: pandas, polars, NetworkX, ArviZ, notebooks."""

import pickle
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pytest

import vti

from conftest import QUICK, measured


@pytest.fixture(scope="module")
def exact():
    return vti.select(measured(), response="y")


@pytest.fixture(scope="module")
def learned():
    return vti.select(measured(), response="y", likelihood="student-t:4", prior="normal:1", seed=1, **QUICK)


@pytest.fixture(scope="module")
def graph():
    return vti.dag(measured().drop(columns="group"), sem="linear")


def test_frames(exact, learned, graph):
    quantity = ["q", "corrected", "se", "exact"]
    assert list(exact.inclusion.columns) == quantity
    assert exact.inclusion.index.tolist() == ["a", "b", "c", "group"]
    # Sums over all models.
    models = exact.models
    assert abs(models["exact"].sum() - 1.0) < 1e-9
    with_a = models["word"].str[0] == "1"
    assert abs(models.loc[with_a, "exact"].sum() - exact.inclusion.loc["a", "exact"]) < 1e-9
    assert models["corrected"].is_monotonic_decreasing
    assert list(exact.coefficients.columns) == [*quantity, "sd", "low", "high"]
    assert learned.inclusion["q"].between(0, 1).all() and learned.inclusion["exact"].isna().all()
    assert graph.edges.shape == (12, 6) and graph.edges["corrected"].is_monotonic_decreasing
    for frame in (exact.inclusion.reset_index(), models, graph.edges):
        assert pl.DataFrame(frame).shape == frame.shape
    with pytest.raises(AttributeError, match="select has no edges"):
        exact.edges
    with pytest.raises(AttributeError, match="dag has no inclusion"):
        graph.inclusion


def test_verdict_and_evidence(exact, learned):
    assert exact.verdict.kind is vti.VerdictKind.TRUST and "exact" in str(exact.verdict)
    assert learned.verdict.kind is vti.VerdictKind.DO_NOT_TRUST
    assert float(exact.log_evidence) == exact.summary["exact"]["log_evidence"]
    assert exact.log_evidence.se == 0.0 and learned.log_evidence.se > 0.0
    assert exact.kind == "select" and exact.settings["problem"]["response"] == "y"
    assert exact.fit is not None and not exact.stopped


def test_draws_and_densities(exact, learned):
    for answer in (exact, learned):
        draws = answer.sample(300)
        assert len(draws) == 300 and list(draws.columns[:5]) == ["model", "word", "log_q", "log_target", "log_weight"]
        pd.testing.assert_frame_equal(draws, answer.sample(300))
        assert not draws.equals(answer.sample(300, batch=1))
        # Densities of draws are those that they were drawn with.
        np.testing.assert_allclose(answer.log_prob(draws), draws["log_q"], rtol=1e-4, atol=1e-4)
        both = answer.log_densities(draws)
        np.testing.assert_allclose(both["log_target"], draws["log_target"], rtol=1e-6, atol=1e-6)
        assert both["word"].tolist() == draws["word"].tolist()
    # Of exact draws log p(m, θ | y) is the target less the evidence.
    draws = exact.draws
    np.testing.assert_allclose(draws["log_q"], draws["log_target"] - float(exact.log_evidence), atol=1e-6)
    with pytest.raises(ValueError, match="no model has just these parameters"):
        exact.log_prob({name: [np.nan] for name in exact.coefficients.index})


def test_predictions(exact):
    frame = measured()
    new = frame.head(6).drop(columns="y")
    found = exact.predict(new, interval=0.8)
    assert list(found.columns) == ["mean", "mean_low", "mean_high", "new_low", "new_high"]
    assert (found["new_low"] < found["mean_low"]).all() and (found["mean_high"] < found["new_high"]).all()
    assert np.corrcoef(found["mean"], frame["y"].head(6))[0, 1] > 0.9
    new.loc[2, "group"] = "unheard of"
    with pytest.warns(UserWarning, match="1 of 6 rows have no prediction"):
        found = exact.predict(new)
    assert found["mean"].isna().tolist() == [False, False, True, False, False, False]
    with pytest.raises(ValueError, match="between 0 and 1"):
        exact.predict(new, interval=1.5)
    with pytest.raises(ValueError, match="group"):
        exact.predict(new.drop(columns="group"))


def test_graphs(graph):
    networkx = pytest.importorskip("networkx")
    found = graph.graph(threshold=0.3)
    assert isinstance(found, networkx.DiGraph) and set(found) == set(graph.nodes)
    for cause, effect, about in found.edges(data=True):
        i, j = graph.nodes.index(cause), graph.nodes.index(effect)
        assert about["probability"] == graph.adjacency[i, j] >= 0.3
    assert (graph.adjacency.diagonal() == 0).all()
    with pytest.raises(ValueError, match="no response to predict"):
        graph.predict(measured())


def test_plots_are_svg(exact, learned, graph):
    plots = [exact.plot_inclusion(), exact.plot_models(), exact.plot_coefficients(), exact.plot_pairs(), exact.plot_fit()]
    plots += [learned.plot_training(), learned.plot_inclusion(), graph.plot_graph(), graph.plot_edges(), graph.plot_models()]
    for plot in plots:
        root = ElementTree.fromstring(plot._repr_svg_())
        assert root.tag.endswith("svg") and float(root.get("width")) > 100 and float(root.get("height")) > 50
        assert "var(--" not in plot.svg
    assert "group" in exact.plot_inclusion().svg
    with pytest.raises(ValueError, match="nothing to plot about training"):
        exact.plot_training()


def test_pages(exact, tmp_path):
    exact.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    # The page of the run directory, made again.
    assert page == (exact.path / "report.html").read_text()
    assert exact._repr_html_().startswith("<iframe srcdoc=") and "inclusion probability" in repr(exact)


@pytest.fixture(scope="module")
def arviz():
    library = pytest.importorskip("arviz")
    pytest.importorskip("matplotlib").use("Agg")
    return library


def readable(arviz, tree):
    """What this ArviZ takes: trees, from its first version on."""
    return arviz.from_datatree(tree) if arviz.__version__.startswith("0.") else tree


def test_draws_for_arviz(exact, learned):
    tree = exact.to_arviz(draws=1500)
    posterior, stats = tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset()
    assert dict(posterior.sizes) == {"chain": 4, "draw": 375}
    assert set(posterior.data_vars) == set(exact.coefficients.index)
    assert set(stats.data_vars) == {"model", "active", "log_q", "log_target", "weight"}
    for name, mean in exact.coefficients["exact"].items():
        sd = exact.coefficients.loc[name, "sd"]
        assert abs(float(posterior[name].mean()) - mean) < 5 * sd / np.sqrt(1500) + 2e-3
        # 0 where it is not active, and only there.
        assert ((posterior[name] != 0) == stats["active"].sel(parameter=name)).all()
    top = exact.models.iloc[0]
    assert abs(float((stats["model"] == top["label"]).mean()) - top["exact"]) < 5 * np.sqrt(0.25 / 1500)
    leading = tree["model_1/posterior"]
    assert leading.attrs["word"] == top["word"] and "c" not in leading.data_vars
    assert leading.sizes["chain"] == 4 and (tree["model_1/sample_stats"]["model"] == top["label"]).all()
    # Draws that count differently are drawn again: means are the corrected ones.
    means = learned.to_arviz(draws=4000)["posterior"].to_dataset().mean()
    for name, row in learned.coefficients.iterrows():
        assert abs(float(means[name]) - row["corrected"]) < 0.05 * row["sd"] + 0.02, name
    with pytest.raises(ValueError, match="at least one draw"):
        exact.to_arviz(draws=3)


def test_arviz_summarises_them(arviz, exact, learned):
    for answer in (exact, learned):
        tree = answer.to_arviz()
        # All decimals: by default some of them are texts.
        table = arviz.summary(readable(arviz, tree), round_to="none").astype(float)
        assert list(table.index) == list(answer.coefficients.index)
        np.testing.assert_allclose(table["mean"], answer.coefficients["corrected"], atol=0.03)
        assert table["r_hat"].between(0.99, 1.1).all()
        model = arviz.summary(readable(arviz, tree["model_1"]), round_to="none")
        assert "c" not in model.index and len(model) < len(table)
        # Independent draws count in full, whatever models they are of; weighted ones for less.
        effective = table["ess_bulk"]
        if answer is exact:
            assert (effective > 1000).all()
        else:
            weights = np.exp(answer.draws["log_weight"] - answer.draws["log_weight"].max())
            kish = weights.sum() ** 2 / (weights**2).sum()
            assert effective.between(kish / 3, 3 * kish).all(), (kish, effective)


@pytest.mark.parametrize("name", ["forest", "trace", "density", "dist", "posterior", "rank", "autocorr", "ess", "mcse", "pair"])
def test_arviz_plots_them(arviz, exact, name):
    import matplotlib.pyplot

    plot, first = getattr(arviz, f"plot_{name}", None), arviz.__version__.startswith("0.")
    # The first versions call by that name a plot of values alone.
    if plot is None or (first and name == "dist"):
        pytest.skip(f"ArviZ {arviz.__version__} has no such plot")
    tree = exact.to_arviz(draws=400)
    plot(readable(arviz, tree), var_names=["a", "b", "c"])
    plot(readable(arviz, tree["model_1"]))
    matplotlib.pyplot.close("all")


def test_pickled_answers_are_whole(exact, learned):
    for answer in (exact, learned):
        copy = pickle.loads(pickle.dumps(answer))
        assert copy.summary == answer.summary and copy.path != answer.path
        pd.testing.assert_frame_equal(copy.sample(10), answer.sample(10))


def test_unfinished_directories(tmp_path):
    with pytest.raises(ValueError, match="not a run directory"):
        vti.load(tmp_path)
