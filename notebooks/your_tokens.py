# %% [markdown]
# # From your tokens to a decision
#
# Real words stand in for your tokens: MiniLM embeddings with the sign of a human sentiment rating. Replace
# the first cell by `read_tokens("mine.npz")`.

# %%
import numpy as np

from resolvent import Setting, Weights
from resolvent.compare import compare_tokens
from resolvent.dataset import LabelledTokens, broken_assumptions, demo_tokens, estimate, standardise

words = demo_tokens()
some = np.random.default_rng(0).permutation(words.n)[:600]  # fewer, so that this runs in seconds
mine = LabelledTokens.from_arrays(
    words.tokens[:, some],
    words.labels[some],
    background_mean=words.background_mean,
    background_cov=words.background_cov,
    source="600 words",
)

# %% [markdown]
# ## What the theory needs to know
#
# The ratio p/n, the signal's strength, and how far the noise is from white.

# %%
found = estimate(standardise(mine))
print(found)

# %% [markdown]
# ## What these tokens break

# %%
for sentence in broken_assumptions(found):
    print("-", sentence)

# %% [markdown]
# ## Who wins, with weights off and on
#
# Test errors are over random splits; everything that looks at labels is fitted on the training part.

# %%
results = {
    align: compare_tokens(mine, Setting(weights=Weights.aligned(align), ridge=1.0), draws=6)
    for align in (0.0, 1.0)
}
for align, result in results.items():
    print(f"align {align:g}, lower test error: {result.winner['test']}")
    print(result.reason)

# %% [markdown]
# The probe to take is the one with the lower measured test error. The prediction beside it tells whether that
# was to be expected, and so whether it will be the same on the next tokens of this kind.

# %%
print(results[1.0])
