"""Models on the Hugging Face hub, through the `huggingface_hub` package and its cache."""

from __future__ import annotations

from pathlib import Path

WANTED = ("*.safetensors", "*.safetensors.index.json", "config.json")


def download(name: str) -> Path:
    """The local folder of a model's safetensors and configuration; never its pickles or code.

    Raises ValueError, in one line, without the package, without a network, or for a model without
    safetensors.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise ValueError(
            f"no file {name!r} here, and fetching it from the hub needs: pip install 'resolvent[checkpoints]'"
        ) from None
    try:
        folder = Path(snapshot_download(name, allow_patterns=list(WANTED)))
    except Exception as error:  # the package raises its own, requests' and httpx's errors
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
        raise ValueError(f"{name!r} is no file here and can't be fetched from the hub: {reason}") from None
    if not any(folder.glob("*.safetensors")):
        raise ValueError(f"{name!r} has no safetensors on the hub; pickled weights are not read")
    return folder
