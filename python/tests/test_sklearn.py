"""Estimators as scikit-learn wants them."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from vti.sklearn import Regressor, Selector


@pytest.mark.parametrize("estimator", [Selector(draws=200, threads=1), Regressor(draws=200, threads=1)])
def test_check_estimator(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(estimator)


def table(rows=80):
    random = np.random.default_rng(4)
    x = random.normal(size=(rows, 6))
    return x, 1.5 * x[:, 1] - x[:, 4] + 0.5 * random.normal(size=rows)


def test_the_right_columns_are_kept():
    x, y = table()
    selector = Selector().fit(x, y)
    assert selector.get_support().tolist() == [False, True, False, False, True, False]
    assert selector.transform(x).shape == (80, 2)
    assert (selector.feature_importances_ == selector.inclusion_probabilities_).all()
    assert selector.inclusion_probabilities_[1] > 0.99 > selector.inclusion_probabilities_[0]


def test_pipelines_and_cross_validation():
    x, y = table()
    for pipeline in [make_pipeline(StandardScaler(), Regressor(draws=500)), make_pipeline(Selector(draws=500), LinearRegression())]:
        scores = cross_val_score(pipeline, x, y, cv=3)
        assert scores.mean() > 0.85
    regressor = Regressor().fit(x, y)
    found = regressor.predict(x[:5], interval=0.5)
    assert ((found["new_low"] < found["mean"]) & (found["mean"] < found["new_high"])).all()
    np.testing.assert_allclose(regressor.predict(x[:5]), found["mean"])
