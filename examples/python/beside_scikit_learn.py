"""The same table by scikit-learn and by us: a lasso picks columns, we say how sure that is.

`vti.sklearn` has a selector and a regressor that go into pipelines and cross-validation like any other.
"""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LassoCV, LinearRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vti.sklearn import Regressor, Selector

table = pd.read_csv(Path(__file__).parents[2] / "data" / "prostate.csv")
x, y = table.drop(columns="lpsa"), table["lpsa"]

lasso = make_pipeline(StandardScaler(), LassoCV(cv=5, random_state=0)).fit(x, y)
ours = Regressor().fit(x, y)

# The lasso's zeros are a decision; inclusion probabilities say how sure one can be of it.
compared = pd.DataFrame(
    {"lasso": lasso[-1].coef_, "inclusion probability": ours.inclusion_probabilities_},
    index=x.columns,
)
print(compared.round(3))
assert compared.loc["lcavol", "inclusion probability"] > 0.99

# Out of sample they predict about equally well; ours come with intervals.
folds = KFold(5, shuffle=True, random_state=0)
scores = {}
for name, model in {"lasso": lasso, "averaged": Regressor(), "selected": make_pipeline(Selector(), LinearRegression())}.items():
    scores[name] = cross_val_score(model, x, y, cv=folds, scoring="neg_root_mean_squared_error").mean()
    print(f"{name}: root mean squared error {-scores[name]:.3f}")
assert abs(scores["lasso"] - scores["averaged"]) < 0.1

intervals = ours.predict(x, interval=0.9)
inside = np.mean((intervals["new_low"] <= y) & (y <= intervals["new_high"]))
print(f"{inside:.0%} of the rows lie in their 90 % intervals")
