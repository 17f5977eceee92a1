"""Variable selection as scikit-learn knows it: a selector of columns, and a regressor that averages over models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._options import SelectOptions
from ._questions import select

if TYPE_CHECKING:
    from ._answer import Answer


class _Fitted(BaseEstimator):  # type: ignore[misc]
    """What both have: settings of `vti.select`, and what came out."""

    def __init__(
        self,
        *,
        likelihood: str = "gaussian",
        prior: str | None = None,
        model_prior: str = "uniform",
        method: Literal["auto", "exact", "search", "vti"] = "auto",
        seed: int = 1,
        steps: int | None = None,
        time_limit: float | str | None = None,
        draws: int = 2000,
        threads: int = 0,
    ) -> None:
        self.likelihood = likelihood
        self.prior = prior
        self.model_prior = model_prior
        self.method = method
        self.seed = seed
        self.steps = steps
        self.time_limit = time_limit
        self.draws = draws
        self.threads = threads

    def fit(self, X: Any, y: Any) -> Any:
        """Asks which columns matter for `y`."""
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64, ensure_min_samples=3)
        names = [f"x{number}" for number in range(1, X.shape[1] + 1)]
        # Columns of one value tell nothing, and are never in a model.
        varies = np.ptp(X, axis=0) > 0
        included = np.zeros(len(names))
        self.answer_: Answer | None = None
        self.mean_ = float(np.mean(y))
        if varies.any() and np.ptp(y) > 0:
            columns = {name: X[:, place] for place, name in enumerate(names) if varies[place]}
            prior = self.prior or ("g" if len(y) >= len(columns) + 2 else "normal:1")
            options: SelectOptions = {
                "response": "response",
                "likelihood": self.likelihood,
                "prior": prior,
                "model_prior": self.model_prior,
                "method": self.method,
                "seed": self.seed,
                "steps": self.steps,
                "time_limit": self.time_limit,
                "threads": self.threads,
                "set": {"check.draws": self.draws},
                "progress": False,
            }
            self.answer_ = select(columns, y, **options)
            found = self.answer_.inclusion["corrected"]
            included = np.array([found.get(name, 0.0) for name in names])
        self.inclusion_probabilities_ = included
        self.feature_importances_ = included
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class Selector(SelectorMixin, _Fitted):  # type: ignore[misc]
    """Keeps the columns whose inclusion probability is at least ½: the median-probability model."""

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        support: np.ndarray = self.inclusion_probabilities_ >= 0.5
        return support


class Regressor(RegressorMixin, _Fitted):  # type: ignore[misc]
    """Predicts the response, averaged over models."""

    def predict(self, X: Any, interval: float | None = None) -> Any:
        """The mean of the response for each row; with `interval` a data frame that has intervals of that probability, too."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        if self.answer_ is None:
            return np.full(len(X), self.mean_)
        new = {f"x{number}": X[:, number - 1] for number in range(1, X.shape[1] + 1)}
        found = self.answer_.predict(new, 0.9 if interval is None else interval)
        return found["mean"].to_numpy() if interval is None else found
