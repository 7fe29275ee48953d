# %% [markdown]
# # Which ridge, and does alignment pay?
#
# A ridge probe reads attention features or plain tokens. Here is how its test error depends on the ridge,
# predicted for large sizes and measured at a small one. The model is that of arXiv 2506.18656.

# %%
import numpy as np
from matplotlib import pyplot

from resolvent import Setting, Tokens, Weights, predict, simulate

tokens = Tokens(ratio=0.5, snr=2.0)
weights = {"off": Weights.none(), "aligned": Weights.aligned(1.0)}
ridges = np.logspace(-3, 3, 121)

# %% [markdown]
# Predictions are one vectorised call for each kind of weights.

# %%
predicted = {name: predict(Setting(tokens, w, ridge=ridges)) for name, w in weights.items()}
for name, limits in predicted.items():
    best = np.argmin(limits.attention.test)
    print(f"weights {name}: test error {limits.attention.test[best]:.3f} at ridge {ridges[best]:.2f}")
linear = predicted["off"].linear.test
print(f"linear regression: test error {linear.min():.3f} at ridge {ridges[np.argmin(linear)]:.2f}")

# %% [markdown]
# Measurements at n = 300, p = 150: all ridges share their draws and one factorisation each.

# %%
few = ridges[::20]
measured = {
    name: simulate(Setting(tokens, w, ridge=few), n=300, draws=8, seed=0).attention.test
    for name, w in weights.items()
}

# %%
figure, axes = pyplot.subplots(figsize=(6.0, 3.6), layout="constrained")
for name, colour in (("off", "#009E73"), ("aligned", "#0072B2")):
    axes.semilogx(ridges, predicted[name].attention.test, color=colour, label=f"attention, weights {name}")
    axes.errorbar(few, measured[name].mean, measured[name].se, fmt="o", color=colour, mfc="white", capsize=3)
axes.semilogx(ridges, linear, "--", color="#D55E00", label="linear regression")
axes.set(xlabel="ridge", ylabel="test error", ylim=(0.0, 2.0))
axes.legend(frameon=False)

# %% [markdown]
# Aligned weights are below linear regression at the best ridge of each. At this size they do better still
# than the limit says: ask for the refined equivalent.

# %%
at_size = predict(Setting(tokens, weights["aligned"], ridge=few[few > 1e-2]), p=150).refined.attention.test
gap = np.abs(at_size - measured["aligned"].mean[few > 1e-2]) / measured["aligned"].se[few > 1e-2]
print(f"refined and measured differ by at most {gap.max():.1f} standard errors")
