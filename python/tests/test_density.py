"""Densities of one's own: called once for each batch, right, and allowed to fail."""

import traceback

import numpy as np
import pytest

import vti

LOG_TAU = np.log(2 * np.pi)
# Each part multiplies the evidence by e.
INCLUSION = np.e / (1 + np.e)
SMALL = dict(steps=250, seed=1, set={"train.batch": 256, "check.draws": 4000}, threads=2)


def standard(words, theta, mask):
    """Every parameter has a standard normal posterior, of evidence e."""
    return (mask * (1.0 - 0.5 * theta**2 - 0.5 * LOG_TAU)).sum(axis=1), -theta * mask


class Counted:
    """A density with a record of its calls."""

    def __init__(self, function=standard):
        self.function, self.shapes = function, []

    def __call__(self, words, theta, mask):
        self.shapes.append(theta.shape)
        assert words.shape == (len(theta), 2) and mask.shape == theta.shape and mask.dtype == bool
        # Parameters that a model does not have are 0, and a bit says which it has.
        assert (theta[~mask] == 0).all() and (words.astype(bool) == mask).all()
        return self.function(words, theta, mask)


def right(answer):
    for row in answer.inclusion.itertuples():
        assert abs(row.corrected - INCLUSION) < 5 * row.se + 0.01
    # Models are equally probable beforehand: ((1 + e) / 2)².
    assert abs(float(answer.log_evidence) - 2 * np.log((1 + np.e) / 2)) < 5 * answer.log_evidence.se + 0.01


def test_one_call_for_each_batch():
    density = Counted()
    answer = vti.fit(density, vti.Subsets(["u", "v"]), check="none", **SMALL)
    right(answer)
    batches = [shape for shape in density.shapes if shape[0] == 256]
    assert len(batches) == answer.summary["steps"] == 250
    # The rest are the check, and single rows that tell densities apart.
    assert {shape[1] for shape in density.shapes} == {2}
    assert len(density.shapes) < 250 + 60


def test_a_reference_lets_the_check_look_beyond():
    answer = vti.fit(standard, vti.Subsets(["u", "v"]), reference=(0.0, 3.0), title="Which of two?", **SMALL)
    right(answer)
    assert answer.verdict.kind is vti.VerdictKind.TRUST, answer.verdict.text
    assert "Which of two?" in answer.report() and answer.kind == "own"


def test_without_gradients():
    density = Counted(lambda *batch: standard(*batch)[0])
    answer = vti.fit(density, vti.Subsets(["u", "v"]), check="none", **SMALL)
    right(answer)
    # One call for each batch, of each row and its steps; the first showed that there are no gradients.
    steps = [rows for rows, _ in density.shapes if rows > 256]
    assert abs(len(steps) - 250) < 40 and max(rows for rows in steps[:100]) <= 256 * 5


def test_constraints_names_and_priors():
    def density(words, theta, mask):
        # One scale is exponential, one share is uniform, and the second model has both.
        return -theta[:, 0], np.stack([-np.ones(len(theta)), np.zeros(len(theta))], axis=1)

    answer = vti.fit(
        density,
        vti.OneOf({"scale": [0], "both": [0, 1]}),
        parameters=["scale", "share"],
        constraints=["positive", ("interval", 0.0, 1.0)],
        log_prior=lambda words: np.log([0.8, 0.2])[words[:, 0]],
        **SMALL,
    )
    models = answer.models.set_index("label")
    assert abs(models.loc["both", "corrected"] - 0.2) < 0.02
    draws = answer.sample(2000)
    assert list(draws.columns[5:]) == ["scale", "share"]
    assert (draws["scale"] > 0).all() and draws["share"].dropna().between(0, 1).all()
    assert (draws["share"].isna() == (draws["model"] == "scale")).all()
    mean = np.average(draws["scale"], weights=np.exp(draws["log_weight"] - draws["log_weight"].max()))
    assert abs(mean - 1.0) < 0.1


def test_products_of_spaces():
    space = vti.Product(vti.Subsets(2), vti.OneOf([0, 1]))
    assert space.arities == [2, 2, 2] and space.coordinates == 3
    answer = vti.fit(standard, space, check="none", **SMALL)
    assert abs(answer.models["corrected"].sum() - 1.0) < 1e-6


class Mistake(Exception):
    pass


def test_what_a_density_raises_ends_the_run_which_can_go_on(tmp_path):
    calls = 0

    def breaks(words, theta, mask):
        nonlocal calls
        calls += len(theta) > 1
        if calls > 50:
            raise Mistake("at call 51")
        return standard(words, theta, mask)

    run = SMALL | dict(check="none", out=tmp_path / "run")
    with pytest.raises(Mistake, match="at call 51") as raised:
        vti.fit(breaks, vti.Subsets(2), **run)
    assert any(frame.name == "breaks" for frame in traceback.extract_tb(raised.tb))
    again = Counted()
    mended = vti.fit(again, vti.Subsets(2), resume=True, **run)
    assert sum(shape[0] == 256 for shape in again.shapes) == 200
    whole = vti.fit(standard, vti.Subsets(2), **(run | dict(out=None)))
    assert mended.summary["steps"] == 250
    assert mended.summary["models"] == whole.summary["models"]
    with pytest.raises(ValueError, match="another problem|densities"):
        vti.load(tmp_path / "run", lambda w, t, m: (-5 * (t**2).sum(1), -10 * t), vti.Subsets(2)).sample(3)


def test_runs_are_loaded_with_their_density(tmp_path):
    answer = vti.fit(standard, vti.Subsets(2), check="none", out=tmp_path / "run", **SMALL)
    again = vti.load(tmp_path / "run")
    assert again.summary == answer.summary and len(again.draws) > 100
    with pytest.raises(ValueError, match="(?s)function of a program.*vti.load"):
        again.sample(3)
    with_density = vti.load(tmp_path / "run", standard, vti.Subsets(2))
    assert with_density.sample(3).equals(answer.sample(3))
    drawn = answer.sample(20)
    np.testing.assert_allclose(with_density.log_prob(drawn), drawn["log_q"], atol=1e-4)
    point = {"word": ["10"], "theta1": [0.5], "theta2": [np.nan]}
    np.testing.assert_allclose(answer.log_densities(point)["log_target"], 1 - 0.5 * 0.25 - 0.5 * LOG_TAU - np.log(4))
    with pytest.raises(ValueError, match="no model has just these parameters"):
        answer.log_prob(point | {"word": ["11"]})


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda n, p: np.zeros(n + 1), "values of shape"),
        (lambda n, p: (np.zeros(n), np.zeros((n, p + 1))), "gradients of shape"),
        (lambda n, p: "text", "could not convert|text"),
        (lambda n, p: None, "values of shape|NoneType"),
    ],
)
def test_wrong_returns(returned, message):
    with pytest.raises((ValueError, TypeError), match=message):
        vti.fit(lambda words, theta, mask: returned(*theta.shape), vti.Subsets(2), **SMALL)


def test_densities_that_are_nowhere_defined():
    with pytest.raises(RuntimeError, match="draws were not finite"):
        vti.fit(lambda words, theta, mask: (np.full(len(theta), np.nan), theta), vti.Subsets(2), **SMALL)


def test_wrong_spaces():
    with pytest.raises(TypeError, match="space of models"):
        vti.fit(standard)
    for wrong, message in [
        (lambda: vti.Subsets(2, each=[1]), "things"),
        (lambda: vti.Subsets(2, sizes=(2, 1)), "."),
        (lambda: vti.Subsets(["a", "a"]), "."),
        (lambda: vti.OneOf([]), "."),
        (lambda: vti.fit(standard, vti.Subsets(2), parameters=["one"]), "names of parameters"),
        (lambda: vti.fit(standard, vti.Subsets(2), constraints=["positive"]), "free coordinates"),
        (lambda: vti.fit(standard, vti.Subsets(2), constraints=["negative"] * 2), "constraints"),
        (lambda: vti.fit(standard, vti.Subsets(2), constraints=[("simplex",)] * 2), "no constraint"),
        (lambda: vti.fit(standard, vti.Subsets(2), reference=[(0.0, -1.0)] * 2), "positive standard"),
        (lambda: vti.fit(standard, vti.Subsets(2), log_prior=lambda words: np.zeros(3)), "log_prior"),
    ]:
        with pytest.raises(ValueError, match=message):
            wrong()


def test_jax():
    jax = pytest.importorskip("jax")

    def one(word, theta, mask):
        return jax.numpy.sum(mask * (1.0 - 0.5 * theta**2 - 0.5 * LOG_TAU))

    right(vti.fit(vti.jax(one), vti.Subsets(["u", "v"]), check="none", **SMALL))


def test_torch():
    torch = pytest.importorskip("torch")

    def one(word, theta, mask):
        return torch.sum(mask * (1.0 - 0.5 * theta**2 - 0.5 * LOG_TAU))

    right(vti.fit(vti.torch(one), vti.Subsets(["u", "v"]), check="none", **SMALL))
