"""A saved model of images: its backbone by name or with its weights, and its trained tail."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from test_image_mode import make_pictures, small
from test_persistence import assert_same_model, rewrite

from pnp_gcd import PNPDiscoverer
from pnp_gcd.backbones import load_backbone
from pnp_gcd.exceptions import BadImageWarning, ModelFileError


@pytest.fixture(scope="module")
def pictures():
    X, y = make_pictures(n_each=8)
    has_label = (y < 3) & (np.arange(len(y)) % 2 == 0)
    return X, (X[has_label], y[has_label], X[~has_label])


def write_weights(path, seed=7):
    """Write a file of weights as of timm's network, and return its path."""
    import timm

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        save_file(timm.create_model("test_vit", num_classes=0, img_size=32).state_dict(), path)
    return path


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return write_weights(tmp_path_factory.mktemp("weights") / "vit.safetensors")


@pytest.fixture(scope="module")
def fitted(pictures, weights):
    return small(max_iter=1, backbone_weights=weights).fit(*pictures[1])


@pytest.fixture
def saved(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_refers_to_its_backbone_and_keeps_its_trained_tail(fitted, pictures, saved):
    loaded = PNPDiscoverer.load(saved)
    assert_same_model(loaded, fitted, pictures[0])
    original = loaded._image_mode.backbone.tail.state_dict()
    trained = loaded.encoder_.tail.state_dict()
    assert not all(torch.equal(trained[name], tensor) for name, tensor in original.items())
    assert not (saved / "backbone.safetensors").exists()


def test_a_model_with_its_backbone_needs_no_file_of_weights(pictures, tmp_path):
    weights = write_weights(tmp_path / "vit.safetensors")
    model = small(max_iter=1, backbone_weights=str(weights)).fit(*pictures[1])
    model.save(tmp_path / "model", include_backbone=True)
    weights.unlink()
    loaded = PNPDiscoverer.load(tmp_path / "model")
    assert_same_model(loaded, model, pictures[0])
    for part in ("trunk", "tail"):
        found, expected = (getattr(m._image_mode.backbone, part).state_dict() for m in (loaded, model))
        assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    loaded.save(tmp_path / "again", include_backbone=True)
    for name in ("model.json", "arrays.safetensors", "backbone.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()


@pytest.mark.parametrize("n_trainable_blocks", [0, 2])
def test_random_weights_are_drawn_again_and_compared(pictures, tmp_path, n_trainable_blocks):
    model = small(max_iter=1, n_trainable_blocks=n_trainable_blocks, n_cached_views=0).fit(*pictures[1])
    model.save(tmp_path / "model")
    assert_same_model(PNPDiscoverer.load(tmp_path / "model"), model, pictures[0])


def test_a_convolutional_network_comes_back_with_its_statistics(pictures, tmp_path):
    model = small(max_iter=1, backbone="test_resnet", n_cached_views=1).fit(*pictures[1])
    for include_backbone in (False, True):
        model.save(tmp_path / "model", include_backbone=include_backbone, overwrite=True)
        assert_same_model(PNPDiscoverer.load(tmp_path / "model"), model, pictures[0])


def test_weights_that_have_changed_since_are_noticed(pictures, tmp_path):
    weights = write_weights(tmp_path / "vit.safetensors")
    small(max_iter=1, backbone_weights=weights).fit(*pictures[1]).save(tmp_path / "model")
    tensors = load_file(weights)
    tensors["patch_embed.proj.bias"][0] += 1e-6
    save_file(tensors, weights)
    with pytest.raises(ModelFileError, match=r"are not those that the model was fitted with \(in .*vit"):
        PNPDiscoverer.load(tmp_path / "model")
    weights.unlink()
    with pytest.raises(
        ModelFileError, match=r"vit\.safetensors\", which is not there.*include_backbone=True"
    ):
        PNPDiscoverer.load(tmp_path / "model")
    weights.write_bytes(b"damaged")
    with pytest.raises(ModelFileError, match="cannot be made: backbone_weights="):
        PNPDiscoverer.load(tmp_path / "model")


def test_a_relative_path_of_weights_is_found_from_another_folder(pictures, tmp_path, monkeypatch):
    write_weights(tmp_path / "vit.safetensors")
    monkeypatch.chdir(tmp_path)
    model = small(max_iter=1, backbone_weights=Path("vit.safetensors")).fit(*pictures[1])
    model.save("model")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert_same_model(PNPDiscoverer.load(tmp_path / "model"), model, pictures[0])


def test_skipped_images_keep_their_missing_label(pictures, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"no image")
    from PIL import Image

    X, (X_labelled, y, _) = pictures
    for place, pixels in enumerate(X):
        Image.fromarray(pixels).save(tmp_path / f"{place}.png")
    pool = [str(tmp_path / name) for name in ("bad.png", *(f"{place}.png" for place in range(len(X))))]
    model = small(max_iter=1, on_bad_image="skip")
    with pytest.warns(BadImageWarning):
        model.fit(X_labelled, np.array(["a", "b", "c"])[y], pool)
    assert model.unlabelled_labels_[0] == "-1"
    model.save(tmp_path / "model")
    assert_same_model(PNPDiscoverer.load(tmp_path / "model"), model, X)
    model.rename_classes({str(model.classes_[0]): "a longer name than all"})
    assert model.unlabelled_labels_[0] == "-1"
    with pytest.warns(BadImageWarning):
        assert model.confirm(pool)[0] == "-1"


FORGED = {
    "another network": (["backbone", "name"], "test_vit2", "does not fit backbone"),
    "an unknown network": (["backbone", "name"], "no_such_net", "cannot be made: backbone='no_such_net'"),
    "a huge picture": (["backbone", "image_size"], 10**6, "image_size=1000000 must be a whole number"),
    "a picture that does not fit": (["backbone", "image_size"], 33, "cannot be made"),
    "another cut": (["backbone", "n_trainable_blocks"], 2, "not those|another network"),
    "too many blocks": (["backbone", "n_trainable_blocks"], 99, "cannot be made"),
    "a name that is none": (["backbone", "name"], 3, "names and paths"),
    "a path that is none": (["weights_file"], 3, "names and paths"),
    "views without end": (["n_views"], 10**9, "n_views=1000000000 must be"),
    "no batch": (["batch_size"], 0, "batch_size=0 must be"),
    "another augmentation": (["settings", "augmentation"], "none", "augmentation='none' must be one of"),
    "something more": (["backbone", "run"], "x", "TypeError"),
    "another digest": (["digest"], "0" * 64, "are not those that the model was fitted with"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_backbone_is_refused_by_name(saved, kind):
    path, value, told = FORGED[kind]

    def change(document, arrays):
        place = document["content"]["images"]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    rewrite(saved, change)
    with pytest.raises(ModelFileError, match=told):
        PNPDiscoverer.load(saved)


@pytest.mark.parametrize("name", ["encoder.centre", "encoder.adapter.expand.weight"])
def test_an_encoder_that_does_not_fit_is_refused(saved, name):
    rewrite(saved, lambda document, arrays: arrays.update({name: arrays[name][:-1]}))
    with pytest.raises(ModelFileError, match="is needed"):
        PNPDiscoverer.load(saved)


def test_a_model_of_a_device_that_is_not_here_answers_on_another(fitted, pictures, tmp_path):
    model = pickle.loads(pickle.dumps(fitted)).set_params(device="abacus")
    model.save(tmp_path / "model")
    loaded = PNPDiscoverer.load(tmp_path / "model")
    with pytest.raises(ValueError, match="device='abacus' cannot be used"):
        loaded.predict(pictures[0])
    answers = loaded.set_params(device="cpu").predict_proba(pictures[0])
    assert answers.tobytes() == fitted.predict_proba(pictures[0]).tobytes()


def test_columns_of_a_model_of_images_are_refused(saved):
    rewrite(saved, lambda document, arrays: document["content"].update(n_features_in=3))
    with pytest.raises(ModelFileError, match="images have no columns"):
        PNPDiscoverer.load(saved)


def test_the_document_names_network_and_digest(saved, fitted):
    facts = json.loads((saved / "model.json").read_text())["content"]["images"]
    assert facts["backbone"]["name"] == "test_vit"
    assert len(facts["digest"]) == 64


def test_a_backbone_knows_what_it_was_asked_for():
    request = load_backbone("test_vit", weights=None, image_size=np.int64(32), device="cpu", seed=3).request
    assert (request.name, request.weights, request.image_size, request.seed) == ("test_vit", None, 32, 3)
    assert type(request.image_size) is int


NETWORKS = (
    "test_vit2", "test_vit3", "test_convnext", "test_efficientnet", "test_byobnet", "test_mambaout",
    "vit_tiny_patch16_224", "beit_base_patch16_224", "swin_tiny_patch4_window7_224",
    "eva02_tiny_patch14_224",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_many_networks_come_back_with_their_weights(pictures, tmp_path, name):
    import timm

    if name not in timm.list_models():
        pytest.skip(f"this timm has no {name}")
    X, (X_labelled, y, pool) = pictures
    model = small(backbone=name, image_size=None, max_iter=1, n_cached_views=0).fit(X_labelled, y, pool)
    with torch.no_grad():  # as trained weights are: unlike those that are drawn at the start
        for parameter in model._image_mode.backbone.trunk.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    model.save(tmp_path / "model", include_backbone=True)
    assert_same_model(PNPDiscoverer.load(tmp_path / "model"), model, X[:4])
