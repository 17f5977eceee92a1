"""How many groups are in a sample? A mixture of normal distributions, of unknown number.

Forty-five measurements come from three groups of different size. Which group each is from is not known, nor how many groups there are.
"""

import numpy as np

import vti

random = np.random.default_rng(3)
sizes = np.concatenate([random.normal(10.0, 1.0, 20), random.normal(16.0, 1.0, 15), random.normal(25.0, 1.5, 10)])

# Few particles and steps, so that it takes a moment; the defaults look harder.
small = {"train.particles.particles": 128, "train.batch": 128, "check.opinion.smc.particles": 128, "check.opinion.smc.runs": 4}
answer = vti.mixture(
    {"size": sizes},
    max_components=4,
    count_prior="poisson:2",
    steps=200,
    check="quick",
    seed=1,
    set=small | {"check.draws": 2000, "check.lesson.rounds": 0},
)
print(answer.verdict)

# How probable is each number, and how probable are the data given it?
print(answer.components[["prior", "corrected", "se", "log_evidence", "log_evidence_se"]].round(3))
assert answer.most_probable == 3
# One or two groups cannot explain the sample. A fourth one does no harm, and the prior alone speaks against it.
assert answer.components.loc[[1, 2], "corrected"].sum() < 0.05

# The groups one by one, given that there are three.
three = answer.given.query("number == 3")
print(three.pivot(index="component", columns="parameter", values="mean").round(2))

# Which measurement is from which group? Those between two groups are not certain.
found = answer.memberships
shares = found.filter(regex="^p[0-9]+$").max(axis=1)
print(found["component"].value_counts().sort_index().to_dict(), f"least certain: {found['size'][shares.idxmin()]:.1f}")

# The density that a new measurement has, averaged over the number of groups, with bands.
print(answer.curves.query("curve.str.contains('density')")[["x", "mean", "low_90", "high_90"]].iloc[::80].round(3))
answer.plot_curves().save("density.svg")
answer.plot_numbers().save("groups.svg")
