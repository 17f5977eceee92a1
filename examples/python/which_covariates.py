"""Which of eight measurements go with the level of prostate-specific antigen?

97 men before surgery. A data frame goes in; probabilities, coefficients and predictions come out, each averaged over all models.
"""

from pathlib import Path

import pandas as pd

import vti

# The table comes with the repository; any data frame will do, polars' and pyarrow's as well.
table = pd.read_csv(Path(__file__).parents[2] / "data" / "prostate.csv")
answer = vti.select(table, response="lpsa")

# The first thing to read: can it be trusted? Here all 2⁸ models were summed, so it is exact.
print(answer.verdict)
assert answer.verdict.kind is vti.VerdictKind.TRUST

# How probable is it that each covariate belongs to the model?
print(answer.inclusion["corrected"].sort_values(ascending=False))

# The single best model has little of the probability: whoever picks it claims too much.
best = answer.models.iloc[0]
print(f"{best.label}: {best.corrected:.2f}")
assert best.corrected < 0.5

# Coefficients averaged over models, in the units of the data, with 95 % intervals.
print(answer.coefficients[["corrected", "sd", "low", "high"]])

# Predictions know which model they come from as little as we do.
new = table.head(3)
print(answer.predict(new, interval=0.9))

# A page to show around, and plots for a notebook.
answer.report("prostate.html")
answer.plot_inclusion().save("prostate.svg")
