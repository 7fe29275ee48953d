"""`resolvent demo`: the main job without an argument."""

from resolvent.cli.flags import Json
from resolvent.cli.output import as_line, progress_wanted
from resolvent.compare import compare, compare_tokens
from resolvent.dataset import demo_tokens
from resolvent.setting import Setting, Tokens, Weights

DRAWS = 10


def demo(*, json: Json = False) -> None:
    """The main job without an argument: synthetic tokens, then real words."""
    progress = progress_wanted(json)
    results: dict[str, object] = {}

    def tell(text: str) -> None:
        if not json:
            print(text, flush=True)

    tell("1. Synthetic tokens: 1000 of dimension 500, |mu|^2 = 2, tanh\n")
    for align, title in ((0.0, "weights off"), (0.5, "weights aligned with the signal")):
        setting = Setting(Tokens(0.5, 2.0), Weights.aligned(align))
        made = compare(setting, n=1000, draws=DRAWS, progress=progress)
        results[f"synthetic, {title}"] = made.as_dict()
        tell(f"--- {title}: {made}\n")
    tell("2. Real words: 2237 word embeddings of MiniLM, labelled by the VADER sentiment lexicon\n")
    for align, title in ((0.0, "weights off"), (1.0, "weights aligned with the class direction")):
        own = compare_tokens(
            demo_tokens(), Setting(weights=Weights.aligned(align)), draws=DRAWS, progress=progress
        )
        results[f"words, {title}"] = own.as_dict()
        tell(f"--- {title}\n\n{own}\n")
    tell("Your own tokens: resolvent compare --tokens FILE --align 1")
    if json:
        print(as_line(results))
