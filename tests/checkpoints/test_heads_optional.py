"""The readers import nothing that isn't asked for."""

import subprocess
import sys

CODE = """
import sys
for name in "gguf onnx huggingface_hub torch safetensors matplotlib numba scipy.linalg".split():
    sys.modules[name] = None
import numpy as np
from resolvent.checkpoints import read_heads, signal_shares, summarise_heads
heads = list(read_heads({"h.0.attn.c_attn.weight": np.arange(54.0).reshape(3, 18)[:, :9] % 7}, heads=1))
tokens = np.arange(12.0).reshape(3, 4) ** 2 % 5
print(len(list(summarise_heads(heads, fit_rank=0))), len(signal_shares(heads, tokens, [1, -1] * 2)))
"""


def test_core_works_without_the_extras():
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        check=False,
    )
    assert done.stdout.split() == ["1", "1"], done.stderr
