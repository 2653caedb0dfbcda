"""Published data sets, read from miniature copies of their layouts; data of one's own."""

import json
import pickle
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pnp_gcd import presets
from pnp_gcd.datasets import DATASETS, DiscoveryDataset, load_dataset, make_discovery_split, photographs
from pnp_gcd.datasets.layouts import Sizes, read_facts
from pnp_gcd.datasets.pickles import read_pickle

SSB = read_facts("ssb_classes.json")


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def names_of(paths):
    return [str(path).rsplit("/", 1)[1] for path in paths]


# --- CIFAR -------------------------------------------------------------------------------------------------


def make_pixels(n_rows, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size=(n_rows, 3072), dtype=np.uint8)


def dump(path, content, protocol=2):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(content, protocol=protocol))


def make_cifar10(root, *, n_batches=5, protocol=2):
    folder = root / "cifar-10-batches-py"
    dump(folder / "batches.meta", {"label_names": [f"thing {i}" for i in range(10)], "num_vis": 3072})
    for number in range(1, n_batches + 1):
        content = {"data": make_pixels(2, number), "labels": [number, number + 1], "filenames": ["a", "b"]}
        dump(folder / f"data_batch_{number}", content, protocol)
    dump(folder / "test_batch", {"data": make_pixels(1), "labels": [9]}, protocol)
    return folder


def make_cifar100(root):
    folder = root / "cifar-100-python"
    dump(folder / "meta", {"fine_label_names": [f"thing {i}" for i in range(100)]})
    dump(folder / "train", {"data": make_pixels(3), "fine_labels": [0, 79, 80], "coarse_labels": [5, 6, 7]})
    dump(folder / "test", {"data": make_pixels(1), "fine_labels": [99]})
    return folder


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_cifar10_is_read_in_the_order_of_its_batches(tmp_path, protocol):
    data = load_dataset("cifar10", make_cifar10(tmp_path, protocol=protocol), partial=True)
    assert data.X.shape == (10, 32, 32, 3)
    assert data.X.dtype == np.uint8
    assert data.y.tolist()[:4] == ["thing 1", "thing 2", "thing 2", "thing 3"]
    assert data.known_classes.tolist() == [f"thing {i}" for i in range(5)]
    assert data.y_test.tolist() == ["thing 9"]
    assert (data.name, data.kind, data.preset) == ("cifar10", "images", "cifar10")


def test_cifar_pixels_are_red_then_green_then_blue_planes(tmp_path):
    data = load_dataset("cifar10", make_cifar10(tmp_path), partial=True)
    flat = make_pixels(2, seed=1)[1]
    assert data.X[1, 3, 7].tolist() == [flat[3 * 32 + 7], flat[1024 + 3 * 32 + 7], flat[2048 + 3 * 32 + 7]]


def test_cifar_is_found_in_its_parent_too(tmp_path):
    make_cifar10(tmp_path)
    assert len(load_dataset("cifar10", tmp_path, partial=True).X) == 10


def test_cifar100_has_fine_labels_and_80_known_classes(tmp_path):
    make_cifar100(tmp_path)
    data = load_dataset("cifar100", tmp_path, partial=True)
    assert data.y.tolist() == ["thing 0", "thing 79", "thing 80"]
    assert len(data.known_classes) == 80
    assert data.split().known_classes.tolist() == ["thing 0", "thing 79"]


@pytest.mark.parametrize(("name", "n_label_bytes"), [("cifar10", 1), ("cifar100", 2)])
def test_the_binary_version_gives_the_same_rows(tmp_path, name, n_label_bytes):
    n_classes = 10 if name == "cifar10" else 100
    files = {"cifar10": "cifar-10-batches-bin", "cifar100": "cifar-100-binary"}
    folder = tmp_path / files[name]
    names_file = "batches.meta.txt" if name == "cifar10" else "fine_label_names.txt"
    write(folder / names_file, "".join(f"thing {i}\n" for i in range(n_classes)) + "\n")
    pixels = make_pixels(2)
    labels = np.full((2, n_label_bytes), 3, dtype=np.uint8)
    labels[:, -1] = [7, 8]  # the fine one is last
    rows = np.hstack([labels, pixels]).tobytes()
    (folder / ("data_batch_1.bin" if name == "cifar10" else "train.bin")).write_bytes(rows)
    (folder / ("test_batch.bin" if name == "cifar10" else "test.bin")).write_bytes(rows)
    data = load_dataset(name, tmp_path, partial=True)
    assert data.y.tolist() == ["thing 7", "thing 8"]
    np.testing.assert_array_equal(data.X, pixels.reshape(2, 3, 32, 32).transpose(0, 2, 3, 1))


def test_a_copy_of_cifar_with_few_rows_or_without_a_batch_is_refused(tmp_path):
    folder = make_cifar10(tmp_path)
    with pytest.raises(ValueError, match=r"10 training and 1 test rows of CIFAR-10, but 10, 50000 and 10000"):
        load_dataset("cifar10", folder)
    (folder / "data_batch_3").unlink()
    with pytest.raises(FileNotFoundError, match=r"data_batch_3' is missing.*partial=True"):
        load_dataset("cifar10", folder)
    assert len(load_dataset("cifar10", folder, partial=True).X) == 8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"labels": [1]}, r"no entry 'data'"),
        ([1, 2], r"no entry 'labels'"),
        ({"data": make_pixels(2), "labels": [1]}, r"pixels of the shape \(2, 3072\) .* and 1 labels"),
        ({"data": make_pixels(1), "labels": [10]}, r"labels from 10 to 10, but 10 classes have names"),
        ({"data": make_pixels(1).astype(float), "labels": [1]}, r"type float64"),
    ],
)
def test_a_batch_that_is_none_is_named(tmp_path, content, message):
    folder = make_cifar10(tmp_path)
    dump(folder / "data_batch_2", content)
    with pytest.raises(ValueError, match=rf"data_batch_2' has .*{message}|data_batch_2' has {message}"):
        load_dataset("cifar10", folder, partial=True)


def test_a_binary_file_cut_short_is_named(tmp_path):
    folder = tmp_path / "cifar-100-binary"
    write(folder / "fine_label_names.txt", "a\nb\n")
    (folder / "train.bin").write_bytes(b"x" * 3000)
    with pytest.raises(ValueError, match=r"train\.bin' has 3000 bytes, no multiple of 3074"):
        load_dataset("cifar100", folder, partial=True)


# --- pickles -----------------------------------------------------------------------------------------------


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_pickle_that_would_execute_code_is_refused_and_not_executed(tmp_path, protocol):
    folder = make_cifar10(tmp_path)
    dump(folder / "data_batch_1", {"data": Harmful(str(tmp_path / "done")), "labels": [1]}, protocol)
    with pytest.raises(ValueError, match=r"it names .*open.*nothing of it was executed"):
        load_dataset("cifar10", folder, partial=True)
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cos\nsystem\n(S'touch done'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.testing._private.utils\nrunstring\n(S'x'\ntR.",
        b"cpnp_gcd.datasets.pickles\nread_pickle\n(S'x'\ntR.",
        b"(ios\nsystem\n.",
    ],
)
def test_names_that_plain_data_has_no_need_of_are_refused(tmp_path, program):
    (tmp_path / "x.pkl").write_bytes(program)
    with pytest.raises(ValueError, match=r"it names "):
        read_pickle(tmp_path / "x.pkl")


@pytest.mark.parametrize(
    "content",
    [np.array([None, "a"]), np.array(["a", "b"]), {"x": np.zeros(2, "O")}, {1, 2}, 1j, np.dtype("u1")],
)
def test_what_is_no_plain_data_is_refused(tmp_path, content):
    dump(tmp_path / "x.pkl", content, protocol=4)
    with pytest.raises(ValueError, match=r"is no pickle of plain data"):
        read_pickle(tmp_path / "x.pkl")


@pytest.mark.parametrize("damage", [b"", b"hello", b"\x80\x04"])
def test_a_damaged_pickle_is_named(tmp_path, damage):
    (tmp_path / "x.pkl").write_bytes(damage)
    with pytest.raises(ValueError, match=r"x\.pkl' is no pickle of plain data"):
        read_pickle(tmp_path / "x.pkl")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_plain_data_comes_back(tmp_path, protocol):
    array = np.arange(6, dtype=">i4").reshape(2, 3)
    dump(tmp_path / "x.pkl", {"a": [1, 2.5, None, True, "é"], "n": np.int64(7), "x": array}, protocol)
    content = read_pickle(tmp_path / "x.pkl")
    assert content["a"] == [1, 2.5, None, True, "é"]
    assert content["n"] == 7
    np.testing.assert_array_equal(content["x"], array)


# --- lists beside photographs ------------------------------------------------------------------------------


def make_cub(root):
    folder = root / "CUB_200_2011"
    images = [("001.Gull", "a"), ("001.Gull", "b"), ("002.Tern", "a"), ("002.Tern", "b"), ("006.Wren", "a")]
    for label, name in images:
        touch(folder / "images" / label / f"{name}.jpg")
    rows = [(number, f"{label}/{name}.jpg", int(label[:3])) for number, (label, name) in enumerate(images, 1)]
    write(folder / "images.txt", "".join(f"{number} {path}\n" for number, path, _ in rows))
    write(folder / "image_class_labels.txt", "".join(f"{number} {label}\n" for number, _, label in rows))
    write(folder / "train_test_split.txt", "1 1\n2 0\n3 1\n4 1\n5 1\n")
    return folder


def make_cars(root):
    from scipy.io import savemat

    for folder in ("cars_train", "cars_test"):
        for name in ("1", "2"):
            touch(root / folder / f"{name}.jpg")
    (root / "devkit").mkdir()
    titles = np.array([f"Car {i}" for i in range(1, 5)], dtype=object)
    savemat(root / "devkit" / "cars_meta.mat", {"class_names": titles})
    kind = [("bbox_x1", "O"), ("class", "O"), ("fname", "O")]
    train = np.array([(1, 4, "1.jpg"), (1, 2, "2.jpg")], dtype=kind)
    test = np.array([(1, 1, "1.jpg"), (1, 3, "2.jpg")], dtype=kind)
    savemat(root / "devkit" / "cars_train_annos.mat", {"annotations": train})
    savemat(root / "devkit" / "cars_test_annos_withlabels.mat", {"annotations": test})
    return root


def make_aircraft(root):
    data = root / "fgvc-aircraft-2013b" / "data"
    for number in ("007", "008", "009"):
        touch(data / "images" / f"{number}.jpg")
    write(data / "variants.txt", "707-320\n727-200\nF-16A/B\nBAE 146-200\n")
    write(data / "images_variant_trainval.txt", "007 F-16A/B\n008 BAE 146-200\n")
    write(data / "images_variant_test.txt", "009 707-320\n")
    return root / "fgvc-aircraft-2013b"


def make_pets(root, *, counts=((2, 1), (1, 1))):
    (root / "images").mkdir()
    lists = {"trainval": "", "test": "#Image CLASS-ID SPECIES BREED ID\n"}
    for label, (n_train, n_test) in enumerate(counts, start=1):
        for number in range(n_train + n_test):
            stem = f"{'Great_' if label % 2 else 'small_'}pet{label:02d}_{number}"
            lists["trainval" if number < n_train else "test"] += f"{stem} {label} 1 1\n"
            (root / "images" / f"{stem}.jpg").touch()
    for name, text in lists.items():
        write(root / "annotations" / f"{name}.txt", text)
    return root


def test_cub_follows_its_three_lists(tmp_path):
    data = load_dataset("cub200", make_cub(tmp_path), partial=True)
    assert data.y.tolist() == ["001.Gull", "002.Tern", "002.Tern", "006.Wren"]
    assert names_of(data.X) == ["a.jpg", "a.jpg", "b.jpg", "a.jpg"]
    assert data.y_test.tolist() == ["001.Gull"]
    assert data.X_test[0].endswith("001.Gull/b.jpg")
    assert data.classes.tolist() == ["001.Gull", "002.Tern", "006.Wren"]
    assert data.known_classes.tolist() == ["001.Gull", "006.Wren"]  # the benchmark's 0 and 5, not 1


def test_cars_follow_their_devkit(tmp_path):
    data = load_dataset("stanford_cars", make_cars(tmp_path), partial=True)
    assert data.y.tolist() == ["Car 4", "Car 2"]
    assert data.X[0] == str(tmp_path / "cars_train" / "1.jpg")
    assert data.y_test.tolist() == ["Car 1", "Car 3"]
    assert data.X_test[1] == str(tmp_path / "cars_test" / "2.jpg")
    assert data.known_classes.tolist() == ["Car 1", "Car 2", "Car 3"]


def test_labels_of_test_cars_may_be_beside_the_devkit_or_missing(tmp_path):
    root = make_cars(tmp_path)
    name = "cars_test_annos_withlabels.mat"
    (root / "devkit" / name).rename(root / name)
    assert len(load_dataset("stanford_cars", root, partial=True).X_test) == 2
    (root / name).unlink()
    with pytest.raises(FileNotFoundError, match=r"cars_test_annos_withlabels\.mat' is missing"):
        load_dataset("stanford_cars", root)
    assert len(load_dataset("stanford_cars", root, partial=True).X_test) == 0


def test_aircraft_are_sorted_by_variant_and_trainval_is_fitted(tmp_path):
    data = load_dataset("fgvc_aircraft", make_aircraft(tmp_path), partial=True)
    assert data.classes.tolist() == ["707-320", "727-200", "BAE 146-200", "F-16A/B"]
    assert data.y.tolist() == ["F-16A/B", "BAE 146-200"]
    assert names_of(data.X) == ["007.jpg", "008.jpg"]
    assert data.y_test.tolist() == ["707-320"]


def test_pets_are_in_the_order_of_their_numbers(tmp_path):
    data = load_dataset("oxford_pets", make_pets(tmp_path), partial=True)
    assert data.classes.tolist() == ["Great_pet01", "small_pet02"]
    assert data.y.tolist() == ["Great_pet01", "Great_pet01", "small_pet02"]
    assert data.y_test.tolist() == ["Great_pet01", "small_pet02"]
    assert data.preset is None


def test_a_whole_copy_needs_no_word_of_being_partial(tmp_path, monkeypatch):
    monkeypatch.setitem(photographs._SIZES, "oxford_pets", Sizes(25, 50, 25))  # thousands of files take long
    data = load_dataset("oxford_pets", make_pets(tmp_path, counts=[(2, 1)] * 25))
    assert (len(data.X), len(data.X_test), len(data.classes)) == (50, 25, 25)
    assert data.known_classes.tolist() == data.classes[:19].tolist()
    (tmp_path / "images" / "Great_pet01_1.jpg").unlink()
    with pytest.raises(FileNotFoundError, match=r"Great_pet01_1\.jpg' is missing, and 0 more of 50"):
        load_dataset("oxford_pets", tmp_path)
    assert len(load_dataset("oxford_pets", tmp_path, partial=True).X) == 49


MAKERS = {
    "cub200": (make_cub, r"CUB-200-2011, but 200, 5994 and 5794"),
    "stanford_cars": (make_cars, r"Stanford Cars, but 196, 8144 and 8041"),
    "fgvc_aircraft": (make_aircraft, r"FGVC-Aircraft, but 100, 6667 and 3333"),
    "oxford_pets": (make_pets, r"Oxford-IIIT Pets, but 37, 3680 and 3669"),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_copy_that_is_not_whole_is_refused(tmp_path, name):
    make, message = MAKERS[name]
    with pytest.raises(ValueError, match=message):
        load_dataset(name, make(tmp_path))


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("cub200", "train_test_split.txt"),
        ("cub200", "images"),
        ("stanford_cars", "devkit"),
        ("fgvc_aircraft", "data/variants.txt"),
        ("oxford_pets", "annotations/test.txt"),
    ],
)
def test_a_missing_part_is_named_and_the_layout_drawn(tmp_path, name, gone):
    path = MAKERS[name][0](tmp_path) / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"{gone}' is missing.*Expected:\n  ") as caught:
        load_dataset(name, tmp_path, partial=True)
    assert path.name.split(".")[0] in str(caught.value).split("Expected:")[1]


@pytest.mark.parametrize(
    ("name", "file", "text", "message"),
    [
        ("cub200", "images.txt", "1\n", r"images\.txt' has '1' in line 1"),
        ("cub200", "images.txt", "1 001.Gull/a.jpg\n", r"lists of 1, 5 and 5 images"),
        ("cub200", "image_class_labels.txt", "1 1\n2 2\n3 2\n4 2\n5 6\n", r"class 2 for both"),
        ("cub200", "image_class_labels.txt", "1 x\n2 1\n3 2\n4 2\n5 6\n", r"has the class 'x'"),
        ("fgvc_aircraft", "data/images_variant_test.txt", "009 Zeppelin\n", r"the variant 'Zeppelin'"),
        ("fgvc_aircraft", "data/images_variant_test.txt", "009 Ü\n", None),
        ("oxford_pets", "annotations/test.txt", "Great_pet01_2 one 1 1\n", r"has the class 'one'"),
        ("oxford_pets", "annotations/test.txt", "Great_pet01_2\n", r"has 'Great_pet01_2' in line 1"),
        ("stanford_cars", "devkit/cars_meta.mat", "no matrix", r"no 'class_names' to read"),
        ("stanford_cars", "devkit/cars_train_annos.mat", "", r"no 'annotations' to read"),
    ],
)
def test_lists_that_cannot_be_read_are_named(tmp_path, name, file, text, message):
    path = MAKERS[name][0](tmp_path) / file
    path.write_bytes(text.encode("latin1"))
    with pytest.raises(ValueError, match=message or r"is no text"):
        load_dataset(name, tmp_path, partial=True)


def test_a_car_of_a_class_without_a_name_is_an_error(tmp_path):
    from scipy.io import savemat

    root = make_cars(tmp_path)
    train = np.array([(9, "1.jpg"), (9, "2.jpg")], dtype=[("class", "O"), ("fname", "O")])
    savemat(root / "devkit" / "cars_train_annos.mat", {"annotations": train})
    with pytest.raises(ValueError, match=r"has class 9, but cars_meta\.mat names 4"):
        load_dataset("stanford_cars", root, partial=True)
    savemat(root / "devkit" / "cars_train_annos.mat", {"annotations": np.arange(3)})
    with pytest.raises(ValueError, match=r"no fields 'class' and 'fname'"):
        load_dataset("stanford_cars", root, partial=True)


# --- a folder for each class -------------------------------------------------------------------------------


def make_imagenet(root, classes, *, n_train=2, n_val=1):
    for label in classes:
        for part, n_images in (("train", n_train), ("val", n_val)):
            (root / part / label).mkdir(parents=True)
            for number in range(n_images):
                (root / part / label / f"{number:04d}.JPEG").touch()
    return root


def test_imagenet100_is_the_sample_of_the_protocol():
    timm = Path(find_spec("timm").origin).parent  # its list alone: an import takes seconds
    wordnet = (timm / "data" / "_info" / "imagenet_synsets.txt").read_text().split()
    assert wordnet == sorted(wordnet)
    drawn = np.sort(np.random.RandomState(0).choice(1000, size=100, replace=False))
    assert read_facts("imagenet100_classes.json")["classes"] == [wordnet[code] for code in drawn]


def test_imagenet100_takes_its_classes_of_all_that_are_there(tmp_path):
    classes = read_facts("imagenet100_classes.json")["classes"]
    make_imagenet(tmp_path / "ILSVRC" / "Data" / "CLS-LOC", [*classes, "n00000001"])
    data = load_dataset("imagenet100", tmp_path, partial=True)
    assert data.classes.tolist() == classes
    assert data.known_classes.tolist() == classes[:50]
    assert data.y.tolist() == sorted(classes * 2)
    assert len(data.X_test) == 100


def test_imagenet_classes_may_be_a_list_or_a_file(tmp_path):
    root = make_imagenet(tmp_path / "imagenet", ["n01", "n02", "n03", "n04", "n05"])
    data = load_dataset("imagenet100", root, classes=["n05", "n02", "n03"], partial=True)
    assert data.classes.tolist() == ["n02", "n03", "n05"]
    assert data.known_classes.tolist() == ["n02"]
    write(tmp_path / "some.txt", "n05\nn02\nn03\n")
    same = load_dataset("imagenet100", root, classes=tmp_path / "some.txt", partial=True)
    assert same.X.tolist() == data.X.tolist()


def test_a_partial_imagenet_is_refused(tmp_path):
    root = make_imagenet(tmp_path, ["n01", "n02"], n_train=732, n_val=50)
    assert len(load_dataset("imagenet100", root, classes=["n01", "n02"]).X) == 1464
    with pytest.raises(FileNotFoundError, match=r"has no folder 'n03', and 0 more of 3"):
        load_dataset("imagenet100", root, classes=["n01", "n02", "n03"])
    (root / "val" / "n02" / "0007.JPEG").unlink()
    with pytest.raises(ValueError, match=r"n02' has 49 images, but ImageNet's classes have 50"):
        load_dataset("imagenet100", root, classes=["n01", "n02"])
    (root / "train" / "n01" / "0007.JPEG").unlink()
    with pytest.raises(ValueError, match=r"n01' has 731 images, but ImageNet's classes have 732 to 1300"):
        load_dataset("imagenet100", root, classes=["n01", "n02"])
    shutil.rmtree(root / "train" / "n01")
    (root / "train" / "n01").mkdir()  # as an archive that was not unpacked
    with pytest.raises(ValueError, match=r"n01' has 0 images"):
        load_dataset("imagenet100", root, classes=["n01", "n02"])


@pytest.mark.parametrize(
    ("classes", "message"), [([], r"classes has 0 names"), (["n01", "n01"], r"2 names, 1 of them different")]
)
def test_imagenet_classes_differ(tmp_path, classes, message):
    make_imagenet(tmp_path, ["n01"])
    with pytest.raises(ValueError, match=message):
        load_dataset("imagenet100", tmp_path, classes=classes)


def make_herbarium(root, n_classes=683):
    for part in ("small-train", "small-validation"):
        for number in range(n_classes):
            (root / part / str(number)).mkdir(parents=True)
            (root / part / str(number) / f"{number}.jpg").touch()
    return root


@pytest.fixture(scope="module")
def herbarium(tmp_path_factory):
    return make_herbarium(tmp_path_factory.mktemp("plants") / "herbarium_19")


@pytest.mark.parametrize("kind", ["json", "pickle of ints", "pickle of an array", "pickle of NumPy ints"])
def test_positions_in_a_split_file_count_folders_sorted_as_text(tmp_path, herbarium, kind):
    positions = [2, 0, 3]  # of 0, 1, 10, 100, …
    if kind == "json":
        path = tmp_path / "split.json"
        path.write_text(json.dumps({"known": positions}))
    else:
        path = tmp_path / "split.pkl"
        array = np.array(positions)
        old = {"pickle of ints": positions, "pickle of an array": array}.get(kind, list(array))
        path.write_bytes(pickle.dumps({"Old": old, "New": [1]}))
    data = load_dataset("herbarium19", herbarium.parent, split_file=path, partial=True)
    assert data.known_classes.tolist() == ["0", "10", "100"]
    assert data.preset == "herbarium19"
    assert len(data.X_test) == 683


def test_a_split_file_may_name_folders(tmp_path, herbarium):
    path = tmp_path / "split.json"
    path.write_text('{"known": ["10", "682"]}')
    data = load_dataset("herbarium19", herbarium, split_file=path, partial=True)
    assert data.known_classes.tolist() == ["10", "682"]


def test_herbarium_asks_for_its_split_and_draws_if_told_so(herbarium):
    with pytest.raises(ValueError, match=r"split_file=None.*herbarium_19_class_splits\.pkl.*draw_known=True"):
        load_dataset("herbarium19", herbarium, partial=True)
    data = load_dataset("herbarium19", herbarium, draw_known=True, partial=True)
    assert data.known_classes is None
    with pytest.raises(ValueError, match=r"683, 34225 and 2679 are published"):
        load_dataset("herbarium19", herbarium, draw_known=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"is no JSON"),
        ('{"new": [1]}', r"no list under 'known' or 'Old'"),
        ('{"known": "12"}', r"no list under 'known' or 'Old'"),
        ('{"known": []}', r"no list under 'known' or 'Old'"),
        ("[1, 2]", r"no list under 'known' or 'Old'"),
        ('{"known": [683]}', r"has positions, such as 683, .* from 0 to 682"),
        ('{"known": [-1]}', r"has positions, such as -1,"),
        ('{"known": [1, "2"]}', r"has positions, such as '2',"),
        ('{"known": [1, 1]}', r"2 known classes, 1 of them different"),
        ('{"known": ["rose"]}', r"1 are not there, such as 'rose'"),
    ],
)
def test_a_split_file_that_is_none_is_named(tmp_path, herbarium, monkeypatch, text, message):
    monkeypatch.setattr("pnp_gcd.datasets.class_folders._HERBARIUM_SIZES", Sizes(683, 683, 683))
    path = tmp_path / "split.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_dataset("herbarium19", herbarium, split_file=path)


def test_positions_mean_nothing_where_folders_are_missing(tmp_path):
    root = make_herbarium(tmp_path / "few", n_classes=4)
    path = tmp_path / "split.json"
    path.write_text('{"known": [1]}')
    with pytest.raises(ValueError, match=r"has positions for 4 folders; .* among all 683"):
        load_dataset("herbarium19", root, split_file=path, partial=True)
    path.write_text('{"known": ["1", "600"]}')
    assert load_dataset("herbarium19", root, split_file=path, partial=True).known_classes.tolist() == ["1"]


def test_a_harmful_split_file_is_refused(tmp_path, herbarium):
    path = tmp_path / "split.pkl"
    path.write_bytes(pickle.dumps({"Old": [Harmful(str(tmp_path / "done"))]}))
    with pytest.raises(ValueError, match=r"nothing of it was executed"):
        load_dataset("herbarium19", herbarium, split_file=path, partial=True)
    assert not (tmp_path / "done").exists()


# --- texts -------------------------------------------------------------------------------------------------

TEXTS = {"banking77": (77, 13_083), "clinc150": (150, 22_500), "stackoverflow": (20, 20_000)}


def make_texts(root, n_classes, n_rows, *, n_dev=0):
    lines = [f"question {number}\tintent {number % n_classes:03d}\n" for number in range(n_rows)]
    cut = n_rows // 2
    parts = {"train": lines[n_dev:cut], "dev": lines[:n_dev], "test": lines[cut:]}
    for name, rows in parts.items():
        if rows:
            write(root / f"{name}.tsv", "text\tlabel\n" + "".join(rows))
    return root


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_whole_by_rows_and_classes_of_all_files(tmp_path, name):
    n_classes, n_rows = TEXTS[name]
    data = load_dataset(name, make_texts(tmp_path, n_classes, n_rows, n_dev=1000))
    assert (data.kind, data.known_classes, data.preset) == ("texts", None, None)
    assert len(data.X) == n_rows // 2 - 1000
    assert data.X[0] == "question 1000"
    assert len(data.classes) == n_classes
    joined = load_dataset(name, tmp_path, join_dev=True)
    assert len(joined.X) == n_rows // 2
    assert joined.X_test.tolist() == data.X_test.tolist()
    (tmp_path / "dev.tsv").unlink()
    with pytest.raises(ValueError, match=rf"{n_rows - 1000} rows of {n_classes} classes .* {n_rows} of"):
        load_dataset(name, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"join_dev=True needs"):
        load_dataset(name, tmp_path, join_dev=True, partial=True)


def test_quotes_and_requests_out_of_scope(tmp_path):
    write(tmp_path / "clinc" / "train.tsv", 'text\tlabel\n"a ""b"", c"\tx\nit\'s\ty\nhm\toos\n')
    write(tmp_path / "clinc" / "test.tsv", "label\ttext\ny\tso\n")
    data = load_dataset("clinc150", tmp_path, partial=True)
    assert data.X.tolist() == ['a "b", c', "it's"]
    assert data.X_test.tolist() == ["so"]


def test_quotes_that_are_no_quotes_of_csv_belong_to_the_text(tmp_path):
    write(tmp_path / "train.tsv", 'text\tlabel\n"Bad" parameter in Java\tjava\nsay "hi\tbash\n')
    write(tmp_path / "test.tsv", 'text\tlabel\n"quoted, whole"\tjava\n')
    loaded = load_dataset("stackoverflow", tmp_path, partial=True)
    assert loaded.X.tolist() == ['"Bad" parameter in Java', 'say "hi']
    assert loaded.X_test.tolist() == ["quoted, whole"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text\tlabel\na\n", r"train\.tsv' has 1 cells in line 2"),
        ("question\tlabel\na\tb\n", r"text='text' is no column"),
        ("text\tlabel\n", r"has 0 rows"),
    ],
)
def test_tables_of_texts_that_cannot_be_read_are_named(tmp_path, text, message):
    write(tmp_path / "train.tsv", text)
    write(tmp_path / "test.tsv", "text\tlabel\na\tb\n")
    with pytest.raises(ValueError, match=message):
        load_dataset("banking77", tmp_path, partial=True)


# --- one's own ---------------------------------------------------------------------------------------------


def test_arrays_keep_labels_and_raise_half_precision(tmp_path):
    X, y = np.eye(4, dtype=np.float16), np.array([3, 3, 5, 5], dtype=np.int16)
    np.savez(tmp_path / "my.points.npz", X=X, y=y, X_test=X[:1], y_test=[5])
    data = load_dataset("arrays", tmp_path / "my.points.npz")
    assert (data.name, data.kind) == ("my.points", "features")
    assert data.X.dtype == data.X_test.dtype == np.float32
    assert data.classes.tolist() == [3, 5]
    assert data.split().y_unseen.tolist() == [5]


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        (np.zeros((2, 8, 8, 3), dtype=np.uint8), "images"),
        (np.array(["how", "why"]), "texts"),
        (np.zeros((2, 3, 4)), "features"),
        (np.zeros((2, 3), dtype=int), "features"),
    ],
)
def test_arrays_say_what_a_row_is(tmp_path, X, kind):
    np.savez(tmp_path / "x.npz", X=X, y=[0, 1])
    assert load_dataset("arrays", tmp_path / "x.npz").kind == kind


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.eye(2)}, r"has no array y, but \['X'\]"),
        ({"X": np.eye(2), "y": [0]}, r"X of the shape \(2, 2\) and y of \(1,\)"),
        ({"X": np.eye(2), "y": [0, 1], "X_test": np.eye(2)}, r"only one of X_test and y_test"),
        (
            {"X": np.eye(2), "y": [0, 1], "X_test": np.eye(3), "y_test": [0, 1, 1]},
            r"\(2,\) in X and of \(3,\)",
        ),
        ({"X": np.zeros(2), "y": [0, 1]}, r"X of the shape \(2,\) and type float64"),
        ({"X": np.eye(2), "y": np.array([None, "a"])}, r"cannot be read as \.npz"),
    ],
)
def test_arrays_that_do_not_fit_are_named(tmp_path, arrays, message):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_dataset("arrays", tmp_path / "x.npz")


def test_files_that_are_no_arrays_are_named(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(2))
    with pytest.raises(ValueError, match=r"it is a single array"):
        load_dataset("arrays", tmp_path / "x.npy")
    (tmp_path / "x.npz").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(ValueError, match=r"cannot be read as \.npz"):
        load_dataset("arrays", tmp_path / "x.npz")
    with pytest.raises(FileNotFoundError, match=r"gone\.npz' is no file"):
        load_dataset("arrays", tmp_path / "gone.npz")


@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_table_of_embeddings_leaves_out_what_is_no_number(tmp_path, separator):
    text = "id;who;x;kind;y\n1;ann;0.5;b;-1e3\n2;bob;1;a;2\n\n".replace(";", separator)
    path = tmp_path / ("points.csv" if separator == "," else "points.tsv")
    path.write_text("\ufeff" + text, encoding="utf-8")
    data = load_dataset("csv", path, label="kind", ignore=["id"])
    assert data.X.tolist() == [[0.5, -1000.0], [1.0, 2.0]]
    assert data.y.tolist() == ["b", "a"]
    assert (data.name, data.kind) == ("points", "features")


def test_a_table_of_texts(tmp_path):
    (tmp_path / "q.csv").write_text('text,label\n"why, then?",a\n"two\nlines",b\n')
    data = load_dataset("csv", tmp_path / "q.csv", text="text")
    assert data.X.tolist() == ["why, then?", "two\nlines"]
    assert data.kind == "texts"


def test_long_texts_are_not_padded(tmp_path, monkeypatch):
    monkeypatch.setattr("pnp_gcd.datasets.tables._PADDING_LIMIT", 100)
    (tmp_path / "q.csv").write_text(f"text,label\n{'x' * 20},a\ny,b\n")
    data = load_dataset("csv", tmp_path / "q.csv", text="text")
    assert data.X.dtype == object
    assert data.X.tolist() == ["x" * 20, "y"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x,label\n1,a\n", {"label": "kind"}, r"label='kind' is no column .* but \['x', 'label'\]"),
        ("x,label\n1,a\n", {"text": "t"}, r"text='t' is no column"),
        ("x,label\n1,a\n", {"ignore": ["z"]}, r"ignore='z' is no column"),
        ("x,label\n1,a\n,b\n", {}, r"has '' in line 3 of column 'x', no finite number"),
        ("x,label\n1,a\nnan,b\n", {}, r"has 'nan' in line 3"),
        ("who,label\nann,a\n", {}, r"no column of numbers beside 'label'"),
        ("x,label\n1,a,7\n", {}, r"has 3 cells in line 2, but 2 names"),
        ("x,x\n1,a\n", {}, r"names that differ"),
        ("", {}, r"is empty\. Write names of columns"),
    ],
)
def test_tables_that_cannot_be_read_are_named(tmp_path, text, options, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_dataset("csv", tmp_path / "t.csv", **options)


def test_a_table_is_utf8_and_ends_in_csv_or_tsv(tmp_path):
    (tmp_path / "t.csv").write_bytes("x,label\n1,\xe9\n".encode("latin1"))
    with pytest.raises(ValueError, match=r"is no UTF-8: .* Save it so"):
        load_dataset("csv", tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"must end in \.csv or \.tsv"):
        load_dataset("csv", tmp_path / "t.xlsx")
    with pytest.raises(FileNotFoundError, match=r"gone\.csv' is no file"):
        load_dataset("csv", tmp_path / "gone.csv")


def test_a_folder_of_images_is_sorted_and_hidden_files_are_passed_over(tmp_path):
    for name in ("dog/b.png", "dog/a.JPG", "dog/deep/c.jpg", "cat/1.webp", "cat/.2.jpg", "cat/notes.txt"):
        touch(tmp_path / "photos.v2" / name)
    touch(tmp_path / "photos.v2" / ".git" / "1.jpg")
    touch(tmp_path / "later" / "owl" / "1.jpg")
    data = load_dataset("folder", tmp_path / "photos.v2", test=tmp_path / "later")
    assert names_of(data.X) == ["1.webp", "a.JPG", "b.png", "c.jpg"]
    assert data.y.tolist() == ["cat", "dog", "dog", "dog"]
    assert data.classes.tolist() == ["cat", "dog", "owl"]
    assert data.name == "photos.v2"


def test_a_folder_without_images_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"root=.*gone' is no folder"):
        load_dataset("folder", tmp_path / "gone")
    with pytest.raises(ValueError, match=r"has no image in sub-folders"):
        load_dataset("folder", tmp_path)
    touch(tmp_path / "cat" / "1.jpg")
    (tmp_path / "dog").mkdir()
    with pytest.raises(ValueError, match=r"has no image in \['dog'\]"):
        load_dataset("folder", tmp_path)
    (tmp_path / "dog").rmdir()
    with pytest.raises(FileNotFoundError, match=r"test=.*gone' is no folder"):
        load_dataset("folder", tmp_path, test=tmp_path / "gone")


# --- by name -----------------------------------------------------------------------------------------------


def test_every_data_set_of_the_paper_has_a_loader():
    assert set(presets.PAPER_DATASETS) <= set(DATASETS)


@pytest.mark.parametrize("name", sorted(set(DATASETS) - {"digits"}))
def test_a_wrong_place_is_an_error_that_names_it(tmp_path, name):
    options = {"draw_known": True} if name == "herbarium19" else {}
    place = tmp_path / "gone.csv"
    with pytest.raises(FileNotFoundError, match=r"gone\.csv"):
        load_dataset(name, place, **options)
    with pytest.raises(ValueError, match=rf"root=None says not where '{name}' is"):
        load_dataset(name)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("cub",), {}, r"name='cub' is no data set\. Pass one of digits, cifar10"),
        (("digits", "here"), {}, r"root='here' is not read"),
        (("digits",), {"partial": True}, r"partial=True is no option of 'digits', which takes none"),
        (("cub200", "here"), {"seed": 1}, r"seed=1 is no option of 'cub200', which takes partial"),
        (("csv", "here"), {"path": 1}, r"path=1 is no option of 'csv'"),
    ],
)
def test_wrong_names_and_options_are_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(*arguments, **options)


# --- facts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n_classes"), [("cub200", 200), ("stanford_cars", 196), ("fgvc_aircraft", 100)]
)
def test_the_benchmark_knows_half_of_the_classes_and_names_each_once(name, n_classes):
    novel = [code for codes in SSB[name]["novel"].values() for code in codes]
    assert len(SSB[name]["known"]) == n_classes // 2
    assert sorted(SSB[name]["known"] + novel) == list(range(n_classes))


def fill(n_rows, n_classes):
    """Return sizes of classes, as equal as can be, that sum to n_rows."""
    return np.diff(np.arange(n_classes + 1) * n_rows // n_classes)


def known_first(n_known, known_rows, n_novel, novel_rows):
    return range(n_known), np.concatenate([fill(known_rows, n_known), fill(novel_rows, n_novel)])


# CUB: six classes have 29 training images, all others 30. FGVC-Aircraft: 66 or 67 each, here in both extremes
# of how that falls on known classes. Stanford Cars: the total is published, class sizes here are as equal as
# can be. Herbarium 19 and ImageNet-100: how many rows are of known classes is not published; here twice |D_l|
# of the table, so that these two try no more than the arithmetic of odd class sizes.
CUB_SIZES = np.where(np.isin(np.arange(200), [106, 125, 134, 140, 189, 195]), 29, 30)
AIRCRAFT_KNOWN = SSB["fgvc_aircraft"]["known"]
AIRCRAFT_FEW, AIRCRAFT_MANY = np.full(100, 67), np.full(100, 67)
AIRCRAFT_FEW[AIRCRAFT_KNOWN[:33]] = 66
AIRCRAFT_MANY[np.setdiff1d(np.arange(100), AIRCRAFT_KNOWN)[:33]] = 66
TABLE = {
    "cifar10": (range(5), np.full(10, 5000), 12.5, 37.5),
    "cifar100": (range(80), np.full(100, 500), 20.0, 30.0),
    "imagenet100": (*known_first(50, 63_800, 50, 63_400), 31.9, 95.3),
    "herbarium19": (*known_first(341, 17_800, 342, 34_225 - 17_800), 8.9, 25.4),
    "cub200": (SSB["cub200"]["known"], CUB_SIZES, 1.5, 4.5),
    "stanford_cars": (SSB["stanford_cars"]["known"], fill(8144, 196), 2.0, 6.1),
    "fgvc_aircraft": (AIRCRAFT_KNOWN, AIRCRAFT_FEW, 1.7, 5.0),
    "fgvc_aircraft, other extreme": (AIRCRAFT_KNOWN, AIRCRAFT_MANY, 1.7, 5.0),
}
N_KNOWN = {"cifar10": 5, "cifar100": 80, "imagenet100": 50, "herbarium19": 341, "cub200": 100}
N_KNOWN |= {"stanford_cars": 98, "fgvc_aircraft": 50, "fgvc_aircraft, other extreme": 50}


@pytest.mark.parametrize("name", TABLE)
def test_splits_have_the_sizes_of_the_papers_table(name):
    known, sizes, thousands_labelled, thousands_unlabelled = TABLE[name]
    y = np.repeat(np.arange(len(sizes)), sizes)
    split = make_discovery_split(y, known=list(known))
    assert len(split.known_classes) == N_KNOWN[name]
    assert len(np.unique(y[split.unlabelled])) == len(sizes)
    assert abs(len(split.labelled) / 1000 - thousands_labelled) <= 0.05
    assert abs(len(split.unlabelled) / 1000 - thousands_unlabelled) <= 0.05


def test_the_sizes_above_sum_to_the_published_totals():
    assert CUB_SIZES.sum() == 5994
    assert AIRCRAFT_FEW.sum() == AIRCRAFT_MANY.sum() == 6667
    assert len(TABLE["herbarium19"][1]) == 683


def test_a_data_set_splits_by_its_protocol_whatever_the_seed():
    y = np.repeat([f"{code:03d}" for code in range(200)], CUB_SIZES)
    classes = np.unique(y)
    dataset = DiscoveryDataset(
        "cub200", "images", y, y, y[:5], y[:5], classes, known_classes=classes[SSB["cub200"]["known"]]
    )
    splits = [dataset.split(seed) for seed in (0, 1)]
    assert splits[0].known_classes.tolist() == splits[1].known_classes.tolist()
    assert len(splits[0].X_labelled) == len(splits[1].X_labelled) == 1497
