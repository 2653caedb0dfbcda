"""Images in every container come out as the same RGB pictures; what is none is named."""

import io
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from PIL import Image

from pnp_gcd.augmentations import Augmentation
from pnp_gcd.exceptions import BadImageError
from pnp_gcd.images import join_images, list_bad, read_images


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(256, size=(4, 6, 8, 3), dtype=np.uint8)


@pytest.fixture
def paths(pixels, tmp_path):
    found = []
    for place, image in enumerate(pixels):
        found.append(tmp_path / f"{place}.png")
        Image.fromarray(image).save(found[-1])
    return found


def opened(images):
    return np.stack([np.asarray(images.open(i)) for i in range(len(images))])


class ImageDataset(torch.utils.data.Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, place):
        return self.items[place]


# --- containers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "contain",
    [
        lambda p: p,
        lambda p: np.moveaxis(p, 3, 1),
        lambda p: p.astype(np.float64) / 255,
        lambda p: (p / 255).astype(np.float32),
        lambda p: torch.from_numpy(p),
        lambda p: torch.from_numpy(np.moveaxis(p, 3, 1).copy()).float() / 255,
        list,
        lambda p: [Image.fromarray(image) for image in p],
        lambda p: [torch.from_numpy(image) for image in p],
        lambda p: ImageDataset([Image.fromarray(image) for image in p]),
        lambda p: ImageDataset([(torch.from_numpy(image), 7) for image in p]),
        lambda p: np.asfortranarray(p),
        lambda p: p[:, ::-1][:, ::-1],
    ],
    ids=[
        "uint8", "channels first", "float64", "float32", "tensor", "float tensor", "list of arrays", "PIL",
        "list of tensors", "Dataset", "Dataset with labels", "Fortran", "strided",
    ],
)  # fmt: skip
def test_every_container_gives_the_same_pictures(pixels, contain):
    np.testing.assert_array_equal(opened(read_images(contain(pixels))), pixels)


@pytest.mark.parametrize(
    "contain",
    [
        list,
        lambda p: [str(path) for path in p],
        lambda p: np.array([str(path) for path in p]),
        lambda p: np.array(p, dtype=object),
        lambda p: np.array([str(path) for path in p])[:, None],
        lambda p: pd.Series([str(path) for path in p], index=[7, 3, 9, 1]),
        lambda p: pd.DataFrame({"path": [str(path) for path in p]}),
        lambda p: pl.Series([str(path) for path in p]),
        tuple,
    ],
    ids=["Path", "str", "array", "objects", "one column", "pandas", "frame", "polars", "tuple"],
)
def test_paths_come_in_every_kind_of_column(pixels, paths, contain):
    images = read_images(contain(paths))
    np.testing.assert_array_equal(opened(images), pixels)
    assert images.name(2) == str(paths[2])


def test_grey_images_become_rgb(pixels):
    grey = pixels[..., 0]
    np.testing.assert_array_equal(opened(read_images(grey)), np.repeat(grey[..., None], 3, axis=3))


def test_channels_last_wins_where_both_readings_fit():
    pixels = np.arange(2 * 3 * 4 * 3, dtype=np.uint8).reshape(2, 3, 4, 3)
    assert read_images(pixels).open(0).size == (4, 3)


def test_images_of_several_sizes_may_come_together():
    images = read_images([np.zeros((4, 5, 3), np.uint8), np.zeros((7, 2, 3), np.uint8)])
    assert [images.open(i).size for i in range(2)] == [(5, 4), (2, 7)]


def test_joined_and_taken_images_keep_their_order(pixels, paths):
    images = join_images([read_images(pixels), read_images(paths, "X_unlabelled")])
    np.testing.assert_array_equal(opened(images), np.concatenate([pixels, pixels]))
    np.testing.assert_array_equal(opened(images.take(np.array([5, 0]))), pixels[[1, 0]])
    assert images.name(1) == "image 1 of X"


def test_the_fingerprint_knows_pixels_and_order(pixels):
    first = read_images(pixels).fingerprint()
    assert first == read_images(pixels.copy()).fingerprint()
    assert first != read_images(pixels[::-1]).fingerprint()
    assert first != read_images(pixels ^ 1).fingerprint()


def test_the_fingerprint_of_files_knows_when_one_is_written_anew(pixels, paths):
    before = read_images(paths).fingerprint()
    Image.fromarray(pixels[0] ^ 255).resize((9, 9)).save(paths[1])
    assert read_images(paths).fingerprint() != before


# --- pictures of every mode --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "CMYK", "YCbCr", "LA"])
def test_pictures_of_other_modes_are_converted(mode, tmp_path):
    picture = Image.new("RGB", (5, 4), (200, 30, 60)).convert(mode)
    path = tmp_path / ("a.jpg" if mode in ("CMYK", "YCbCr") else "a.png")
    picture.save(path)
    assert read_images([path]).open(0).mode == "RGB"


def test_sixteen_bits_are_scaled_not_clipped(tmp_path):
    values = np.array([[0, 256, 32768, 65535]], dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / "deep.png")
    assert np.asarray(read_images([tmp_path / "deep.png"]).open(0))[0, :, 0].tolist() == [0, 1, 128, 255]


def test_a_picture_is_turned_as_its_camera_says(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (8, 4)).save(tmp_path / "turned.jpg", exif=exif)
    assert read_images([tmp_path / "turned.jpg"]).open(0).size == (4, 8)


# --- what is no image --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((3, 8)), "shape"),
        (np.zeros((3, 8, 8, 4), np.uint8), "shape"),
        (np.zeros((3, 8, 8, 1), np.uint8), "shape"),
        (np.zeros((2, 3, 8, 8, 3), np.uint8), "shape"),
        (np.zeros((3, 8, 8, 3), np.int64), "int64"),
        (np.full((3, 8, 8, 3), 2.0), "from 2 to 2"),
        (np.full((3, 8, 8, 3), -0.1), "0 to 1"),
        (np.full((3, 8, 8, 3), np.nan), "nan"),
        (np.zeros((0, 8, 8, 3), np.uint8), "no pixel"),
        ([], "no image"),
    ],
)
def test_arrays_that_are_no_images_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        read_images(X, "X")


@pytest.mark.parametrize(
    "X", ["one.jpg", Path("one.jpg"), 3, None, Image.new("RGB", (3, 3)), {0: "a.jpg"}, {"a.jpg"}]
)
def test_one_thing_is_no_sequence_of_images(X):
    with pytest.raises(TypeError, match="X"):
        read_images(X)


@pytest.mark.parametrize("item", [None, float("nan"), 3, b"bytes", {"path": "a.jpg"}])
def test_an_item_that_is_no_image_is_named(item):
    with pytest.raises(BadImageError, match="image 1 of X"):
        read_images([np.zeros((4, 4, 3), np.uint8), item]).open(1)


def bomb():
    """A PNG that says it has 30,000 × 30,000 pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


def truncated():
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(256, size=(64, 64, 3), dtype=np.uint8)).save(
        buffer, "JPEG"
    )
    return buffer.getvalue()[:1500]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"no image", "cannot be read"), (b"", "cannot be read"), (truncated(), "damaged"), (bomb(), "pixels")],
    ids=["text", "empty", "truncated", "bomb"],
)
def test_a_file_that_cannot_be_read_is_named(content, message, tmp_path):
    path = tmp_path / "broken.jpg"
    path.write_bytes(content)
    with pytest.raises(BadImageError, match=message) as caught:
        read_images([path]).open(0)
    assert str(path) in str(caught.value)


class Raises(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, place):
        raise RuntimeError("no such item")


def test_a_dataset_that_raises_names_the_place():
    with pytest.raises(BadImageError, match="image 1 of X.*no such item"):
        read_images(Raises()).open(1)


@pytest.mark.parametrize("content", [b"P6\n9999999999 x 255\n", b"P5 -3 4 255 "])
def test_headers_that_confuse_the_reader_are_bad_images(content, tmp_path):
    (tmp_path / "odd.ppm").write_bytes(content)
    with pytest.raises(BadImageError, match=r"odd.ppm"):
        read_images([tmp_path / "odd.ppm"]).open(0)


@pytest.mark.parametrize("path", ["", "a" * 5000])
def test_names_that_are_no_paths_are_bad_images(path):
    with pytest.raises(BadImageError, match="does not exist"):
        read_images([path]).open(0)


def test_one_unread_picture_may_stand_in_a_list_twice(paths):
    images = read_images([Image.open(paths[0])] * 8)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda i: np.asarray(images.open(i)), range(8)))
    assert all(np.array_equal(found[0], other) for other in found)


def test_the_fingerprint_knows_shapes_and_dtypes():
    flat = np.zeros((2, 4, 8, 3), np.uint8)
    fingerprints = {read_images(x).fingerprint() for x in (flat, flat.reshape(2, 8, 4, 3), flat / 255)}
    assert len(fingerprints) == 3
    assert read_images([flat[0], None]).fingerprint()  # a bad one is told when it is read


def test_missing_files_and_folders_are_told_apart(tmp_path):
    images = read_images([tmp_path / "gone.jpg", tmp_path])
    with pytest.raises(BadImageError, match="does not exist"):
        images.open(0)
    with pytest.raises(BadImageError, match="folder"):
        images.open(1)


def test_headers_tell_most_bad_files_without_reading_pixels(paths, tmp_path):
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "bomb.png").write_bytes(bomb())
    images = read_images([paths[0], tmp_path / "text.png", tmp_path / "gone.png", tmp_path / "bomb.png"])
    assert list(images.find_bad()) == [1, 2, 3]


def test_a_long_list_of_bad_images_is_cut_short():
    text = list_bad({i: BadImageError(f"image {i}") for i in range(40)})
    assert text.count("\n") == 5
    assert "35 more" in text


def test_reading_arrays_of_pixels_imports_no_torch():
    program = (
        "import sys, numpy as np; from pnp_gcd.images import read_images; "
        "read_images(np.zeros((1, 4, 4, 3), np.uint8)).open(0); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --- views of a picture ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["standard", "strong"])
@pytest.mark.parametrize("size", [(40, 30), (500, 3), (3, 500), (1, 1)])
def test_a_view_has_its_size_whatever_the_picture(kind, size):
    picture = Image.new("RGB", size, (10, 200, 90))
    for seed in range(20):
        view = Augmentation(16, kind).draw(picture, np.random.default_rng(seed))
        assert view.shape == (16, 16, 3)
        assert view.dtype == np.uint8


def test_views_depend_on_the_generator_alone():
    picture = Image.fromarray(np.random.default_rng(0).integers(256, size=(30, 40, 3), dtype=np.uint8))
    first, again, other = (Augmentation(16).draw(picture, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_view_leaves_the_picture_alone():
    picture = Image.fromarray(np.random.default_rng(0).integers(256, size=(30, 40, 3), dtype=np.uint8))
    before = np.asarray(picture).copy()
    Augmentation(16, "strong").draw(picture, np.random.default_rng(0))
    np.testing.assert_array_equal(np.asarray(picture), before)


def test_crops_are_mirrored_half_of_the_times():
    left = np.zeros((32, 32, 3), np.uint8)
    left[:, :16] = 255
    views = [Augmentation(8).draw(Image.fromarray(left), np.random.default_rng(s)) for s in range(300)]
    is_mirrored = [view[:, 7].mean() > view[:, 0].mean() for view in views]
    assert 0.35 < np.mean(is_mirrored) < 0.65
