"""Damage files of images and read them as a fit does: a picture or ``BadImageError``, and nothing else.

``python benchmarks/fuzz_images.py --cases 10000 --seed 0`` takes JPEG, PNG, GIF, WebP, TIFF, BMP and some
others, flips, cuts, doubles and moves their bytes (of PNG also with checksums made right again), and prints
how reading them ended. The exit code is 1 if one ended in another error, a crash, a hang, a program that was
started or too much memory.
"""

from __future__ import annotations

import io
import struct
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
from _fuzzing import make_parser, run_cases, run_worker, tell, work_in_temporary
from _mutations import damage_bytes, pick

from pnp_gcd.exceptions import BadImageError
from pnp_gcd.images import read_images

_MEMORY = 3 * 2**30
_POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"


def make_files() -> dict[str, bytes]:
    """Return small images of many formats and modes as bytes."""
    from PIL import Image

    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(256, size=(24, 20, 3), dtype=np.uint8))
    smooth = noise.resize((64, 48))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    files = {"eps": _POSTSCRIPT}
    kinds = {
        "jpeg": [{}, {"progressive": True}, {"exif": exif}, {"quality": 5, "comment": b"c"}],
        "png": [{}, {"optimize": True}, {"exif": exif}],
        "gif": [{}, {"save_all": True, "append_images": [smooth, noise]}],
        "webp": [{}, {"lossless": True}, {"save_all": True, "append_images": [smooth.rotate(90)]}],
        "tiff": [{}, {"compression": "tiff_lzw"}, {"compression": "tiff_adobe_deflate"}, {"exif": exif}],
        "bmp": [{}],
        "ppm": [{}],
        "tga": [{"compression": "tga_rle"}],
        "ico": [{}],
        "jpeg2000": [{}],
        "pcx": [{}],
        "sgi": [{}],
    }
    for kind, settings in kinds.items():
        for number, options in enumerate(settings):
            for mode in ("RGB", "L", "P") if kind in ("png", "gif", "tiff", "bmp") else ("RGB",):
                buffer = io.BytesIO()
                try:
                    picture = smooth if number % 2 or kind == "webp" else noise
                    picture.convert(mode).save(buffer, kind, **options)
                except (KeyError, OSError):  # a library that this Pillow was built without
                    continue
                files[f"{kind}-{number}-{mode}"] = buffer.getvalue()
    return files


def mend_png(data: bytes) -> bytes:
    """Make the checksums of the chunks of a PNG right again, so that what is in them is read."""
    out, place = bytearray(data[:8]), 8
    while place + 12 <= len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        body = data[place + 4 : place + 8 + length]
        out += data[place : place + 4] + body + struct.pack(">I", zlib.crc32(body))
        place += 12 + length
    return bytes(out)


def make_case(number: int, seed: int, files: dict[str, bytes]) -> tuple[str, bytes]:
    """Return the name and the bytes of a case."""
    rng = np.random.default_rng((seed, number))
    name = pick(rng, sorted(files))
    data = files[name]
    for _ in range(int(pick(rng, (1, 1, 2, 4)))):
        data = damage_bytes(data, rng) if rng.random() < 0.8 else _damage_head(data, rng)
    if rng.random() < 0.05:
        other = files[pick(rng, sorted(files))]
        data = data[: len(data) // 2] + other[len(other) // 2 :]
    if name.startswith("png") and rng.random() < 0.7:
        data = mend_png(data)
    return name, data


def _damage_head(data: bytes, rng: np.random.Generator) -> bytes:
    """Write an unlikely number over one of the first, where sizes and kinds are told."""
    place = int(rng.integers(max(min(len(data), 200), 1)))
    number = pick(
        rng, (b"\xff\xff", b"\0\0", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\0\1\0\0")
    )
    return data[:place] + number + data[place + len(number) :]


def read(path: Path) -> str:
    """Read an image in the ways of a fit; return how that ended."""
    images = read_images([path])
    images.fingerprint()
    is_bad = bool(images.find_bad())
    try:
        picture = images.open(0)
    except BadImageError as error:
        if str(path) not in str(error):
            raise AssertionError(f"an error that does not name its file: {error}") from error
        return "refused"
    if is_bad:
        raise AssertionError("a header that is bad, and an image that is not")
    if picture.mode != "RGB" or np.asarray(picture).shape != (picture.height, picture.width, 3):
        raise AssertionError(f"a picture of mode {picture.mode}")
    return "read"


def main() -> int:
    """Run the cases that the arguments ask for."""
    arguments = make_parser(__doc__.splitlines()[0], 10_000).parse_args()
    warnings.simplefilter("ignore")
    if arguments.worker:
        files = make_files()
        with work_in_temporary("pnp_gcd_fuzz-") as room:
            for name, data in files.items():  # what a first image imports is no case's doing
                (Path(room) / name).write_bytes(data)
                outcome = read(Path(room) / name)
                assert outcome == ("refused" if name == "eps" else "read"), name

            def prepare(number: int, folder: Path) -> None:
                (folder / "image").write_bytes(make_case(number, arguments.seed, files)[1])

            run_worker(
                lambda number, folder: read(folder / "image"),
                prepare,
                first=arguments.worker[0],
                last=arguments.worker[1],
                folder=Path(room),
                memory=_MEMORY,
            )
        return 0
    command = [sys.executable, __file__, "--seed", str(arguments.seed)]
    result = run_cases(
        command, arguments.cases, start=arguments.start, n_jobs=arguments.jobs, limit=arguments.limit
    )
    return tell(result)


if __name__ == "__main__":
    sys.exit(main())
