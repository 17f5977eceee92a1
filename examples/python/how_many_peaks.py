"""How many peaks are in a spectrum? A likelihood of one's own, written with JAX.

The model is how many peaks there are; its parameters are their heights and places. `vti.jax` makes of a function for one draw one
for a whole batch, with gradients.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

import vti

MOST, WIDTH, NOISE = 3, 0.05, 0.1

# A spectrum of two peaks, with errors of standard deviation 0.1.
x = np.linspace(0.0, 1.0, 60)
errors = np.random.default_rng(2).normal(scale=NOISE, size=x.size)
y = 1.0 * np.exp(-0.5 * ((x - 0.35) / WIDTH) ** 2) + 0.6 * np.exp(-0.5 * ((x - 0.7) / WIDTH) ** 2) + errors


def log_density(word, theta, mask):
    """log p(y, θ | k): `word` is k, `theta` has the height of each peak and how far it is from the one before to the end."""
    height, share = theta[0::2], theta[1::2]
    there = mask[0::2]
    # Places in order, so that peaks cannot exchange their names: each lies somewhere behind the one before.
    before, places, log_prior = 0.0, [], gammaln(1.0 + there.sum())
    for peak in range(MOST):
        place = before + (1.0 - before) * share[peak]
        # In order, k places are uniform with density k!; each share stretches by what was left.
        log_prior += jnp.where(there[peak], jnp.log1p(-before), 0.0)
        places.append(place)
        before = place
    # Heights are exponential beforehand.
    log_prior += -jnp.sum(jnp.where(there, height, 0.0))
    shape = jnp.exp(-0.5 * ((x[:, None] - jnp.stack(places)) / WIDTH) ** 2)
    rest = y - shape @ jnp.where(there, height, 0.0)
    return log_prior - 0.5 * jnp.sum((rest / NOISE) ** 2) - x.size * jnp.log(NOISE * jnp.sqrt(2 * jnp.pi))


# A model of k peaks has the first 2k parameters.
space = vti.OneOf({f"{k} peaks": 2 * k for k in range(MOST + 1)})
answer = vti.fit(
    vti.jax(log_density),
    space,
    parameters=[f"{what}{peak}" for peak in range(1, MOST + 1) for what in ("height", "share")],
    constraints=["positive", ("interval", 0.0, 1.0)] * MOST,
    # Wherever parameters may lie, in free coordinates: log heights and logits of shares.
    reference=[(-0.5, 1.5), (0.0, 2.0)] * MOST,
    title="How many peaks are there?",
    steps=600,
    set={"train.batch": 256},
    time_limit="40s",
    seed=1,
)
print(answer.verdict)
print(answer.models[["label", "q", "corrected", "se"]])
best = answer.models.iloc[0]
assert best.label == "2 peaks" and best.corrected > 0.5

# Draws of the parameters, given two peaks.
two = answer.draws.query("model == '2 peaks'")
print(two[["height1", "share1", "height2", "share2"]].describe().loc[["mean", "std"]])
