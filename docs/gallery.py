"""Draw every figure and write the gallery: docs/images/NAME.png and docs/gallery.md.

python docs/gallery.py [--quick] [NAME ...]      some minutes; without names all figures
"""

import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from resolvent.figures import FIGURES, draw_figure

HERE = Path(__file__).parent
LARGEST = 100_000  # bytes of a picture
HEAD = """# Gallery

Points are measured, with one standard error; curves are predicted. Every figure is drawn by one command, and
its caption is computed from its own data, so that it says what holds there and what does not:

```{code-block} text
resolvent figure NAME -o DIR        # NAME.png, NAME.pdf, and the numbers as NAME.csv; all draws every one
```
"""


def shrink(source: Path, target: Path) -> None:
    """The picture in 64 colours, which is all that it has."""
    buffer = BytesIO()
    Image.open(source).convert("RGB").quantize(64).save(buffer, "png", optimize=True)
    assert buffer.tell() < LARGEST, f"{target.name} takes {buffer.tell()} bytes"
    target.write_bytes(buffer.getvalue())


def entry(name: str, caption: str, picture: Path) -> str:
    """What the gallery shows of a figure, its picture put in place."""
    shrink(picture, HERE / "images" / f"figure-{name}.png")
    return f"{FIGURES[name].title}\n\n`resolvent figure {name}`\n\n![{caption}](images/figure-{name}.png)"


def write(new: dict[str, str]) -> None:
    """The page with new entries, by figure, in place of old ones."""
    page = HERE / "gallery.md"
    old = page.read_text(encoding="utf-8").split("\n## ")[1:] if page.exists() else []
    entries = {text.partition("\n")[0]: text.strip() for text in old}
    entries |= {FIGURES[name].title: text for name, text in new.items()}
    titles = [figure.title for figure in FIGURES.values() if figure.title in entries]
    page.write_text("".join([HEAD, *(f"\n## {entries[title]}\n" for title in titles)]), encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Draw the named figures and keep the others' entries."""
    for name in [name for name in arguments if name != "--quick"] or list(FIGURES):
        with TemporaryDirectory() as folder:
            drawn = draw_figure(name, folder, quick="--quick" in arguments)
            write({name: entry(name, drawn.caption, drawn.files[0])})


if __name__ == "__main__":
    main(sys.argv[1:])
