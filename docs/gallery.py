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


def main(arguments: list[str]) -> None:
    """Draw the named figures, keep the others' entries."""
    names = [name for name in arguments if name != "--quick"] or list(FIGURES)
    page = HERE / "gallery.md"
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    entries = {text.partition("\n")[0]: text for text in old.split("\n## ")[1:]}
    for name in names:
        with TemporaryDirectory() as folder:
            drawn = draw_figure(name, folder, quick="--quick" in arguments)
            shrink(drawn.files[0], HERE / "images" / f"figure-{name}.png")
        title = FIGURES[name].title
        entries[title] = f"{title}\n\n`{name}`\n\n![{drawn.caption}](images/figure-{name}.png)\n"
    titles = [figure.title for figure in FIGURES.values() if figure.title in entries]
    page.write_text(
        HEAD + "".join("\n## " + entries[title].strip() + "\n" for title in titles), encoding="utf-8"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
