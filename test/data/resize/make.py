"""Writes what Pillow makes of small pictures, for the tests of resizing.

    python test/data/resize/make.py > test/data/resize/pillow.json

Wants Pillow. `fit` is what CLIP's image processor does: the shorter side made `fit` pixels, then the square in the middle.
"""

import base64
import json
import random

import PIL
from PIL import Image

CASES = (
    ((13, 17), (8, 8), 3, "bicubic"), ((5, 4), (9, 11), 3, "bicubic"), ((9, 9), (9, 4), 1, "bicubic"), ((30, 7), (3, 15), 3, "bicubic"),
    ((13, 17), (8, 8), 3, "bilinear"), ((5, 4), (9, 11), 1, "bilinear"), ((1, 6), (4, 6), 3, "bicubic"), ((6, 6), (6, 6), 3, "bicubic"),
)


def encoded(data):
    return base64.b64encode(data).decode()


def main():
    rng = random.Random(7)

    def picture(height, width, channels):
        # Extremes side by side, so that a cubic overshoots and is clipped.
        pixels = bytes(rng.choice((0, 255, rng.randrange(256))) for _ in range(height * width * channels))
        return Image.frombytes("RGB" if channels == 3 else "L", (width, height), pixels)

    resized = []
    for (height, width), (new_height, new_width), channels, name in CASES:
        image = picture(height, width, channels)
        filter = Image.BICUBIC if name == "bicubic" else Image.BILINEAR
        result = image.resize((new_width, new_height), filter).tobytes()
        resized.append(dict(filter=name, size=[height, width], to=[new_height, new_width], pixels=encoded(image.tobytes()), result=encoded(result)))
    fitted = []
    for (height, width), size in (((11, 19), 6), ((19, 12), 5), ((4, 7), 9)):
        image = picture(height, width, 3)
        short = min(height, width)
        high, wide = int(size * height / short), int(size * width / short)
        top, left = (high - size) // 2, (wide - size) // 2
        result = image.resize((wide, high), Image.BICUBIC).crop((left, top, left + size, top + size)).tobytes()
        fitted.append(dict(size=[height, width], fit=size, pixels=encoded(image.tobytes()), result=encoded(result)))
    print(json.dumps(dict(pillow=PIL.__version__, resized=resized, fitted=fitted), indent=2))


main()
