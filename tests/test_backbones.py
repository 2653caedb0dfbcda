"""Networks are cut where nothing is lost, and take weights from every kind of file."""

import argparse
import copy
import pickle

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from pnp_gcd import backbones
from pnp_gcd.backbones import choose_device, load_backbone
from pnp_gcd.cutting import FirstTokenBlock
from pnp_gcd.exceptions import BackboneError
from pnp_gcd.weights import load_weights, read_weights

SIZE = 64


def make(name="test_vit", **options):
    return load_backbone(name, **{"weights": None, "image_size": SIZE, "device": "cpu"} | options)


def whole(name="test_vit", seed=0, size=SIZE, **options):
    """The network of ``make``, in one piece."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return backbones._create(name, size, False).eval()


def pictures(n_pictures=3, seed=1):
    return torch.rand(n_pictures, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(seed))


def randomise(model, seed=5):
    """Change every weight, norms and scales too, so that no layer is the identity by its start."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.add_(0.1 * torch.randn(tensor.shape, generator=generator))
    return model


# --- the cut -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "test_vit", "test_vit2", "test_vit3", "test_resnet", "test_convnext", "test_efficientnet",
        "test_byobnet", "test_maxvit", "test_nfnet",
    ],
)  # fmt: skip
@pytest.mark.parametrize("n_blocks", [0, 1, 2])
def test_trunk_and_tail_together_are_the_network(name, n_blocks):
    size = 160 if name == "test_maxvit" else SIZE
    backbone = make(name, n_trainable_blocks=n_blocks, image_size=size)
    pixels = torch.rand(3, 3, size, size, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found = backbone.tail(backbone.trunk(pixels))
        expected = whole(name, size=size)(pixels)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["test_vit", "test_resnet"])
def test_only_the_last_blocks_can_learn(name):
    backbone = make(name)
    assert not any(p.requires_grad for p in backbone.trunk.parameters())
    learning = {n for n, p in backbone.tail.named_parameters() if p.requires_grad}
    assert learning
    assert all(n.startswith("steps.0.") for n in learning)


def test_trunk_and_tail_share_no_weight_and_waste_none():
    backbone = make("test_vit")
    parts = [sum(p.numel() for p in part.parameters()) for part in (backbone.trunk, backbone.tail)]
    assert sum(parts) == sum(p.numel() for p in whole().parameters())


def test_without_blocks_to_train_the_trunk_gives_the_features():
    backbone = make(n_trainable_blocks=0)
    assert backbone.activate(pictures()).dtype == torch.float32
    torch.testing.assert_close(backbone.activate(pictures()), whole()(pictures()).detach())


def test_the_last_block_is_shortened_only_where_one_token_is_pooled():
    assert isinstance(make("test_vit").tail.steps[0], FirstTokenBlock)  # pools by the class token
    assert not isinstance(make("test_vit2").tail.steps[0], FirstTokenBlock)  # by the mean
    assert not isinstance(make("test_vit3").tail.steps[0], FirstTokenBlock)  # by attention


def test_the_short_block_gives_the_block_s_first_token_and_its_gradients():
    block = randomise(timm.create_model("test_vit", pretrained=False).blocks[-1])
    short = FirstTokenBlock(copy.deepcopy(block))
    tokens = torch.randn(4, 9, 64, generator=torch.Generator().manual_seed(0))
    first = [tokens.clone().requires_grad_(), tokens.clone().requires_grad_()]
    full, cut = block(first[0])[:, :1], short(first[1])
    torch.testing.assert_close(cut, full, rtol=1e-4, atol=1e-5)
    full.square().sum().backward()
    cut.square().sum().backward()
    torch.testing.assert_close(first[1].grad, first[0].grad, rtol=1e-3, atol=1e-4)
    for (name, one), two in zip(block.named_parameters(), short.block.parameters(), strict=True):
        if name == "attn.qkv.bias":  # the bias of the keys shifts all scores alike: no gradient but rounding
            one, two = ([p.grad[:64], p.grad[128:]] for p in (one, two))
        else:
            one, two = [one.grad], [two.grad]
        torch.testing.assert_close(two, one, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["vit_small_patch16_dinov3", "vit_small_patch14_reg4_dinov2", "regnety_002"])
def test_networks_of_other_families_are_cut_too(name):
    size = 56 if "patch14" in name else SIZE
    backbone = make(name, image_size=size)
    assert backbone.tail(backbone.activate(torch.rand(1, 3, size, size))).shape[0] == 1


def test_a_network_that_passes_more_than_activations_is_refused():
    with pytest.raises(BackboneError, match="n_trainable_blocks=0"):
        make("cait_xxs24_224", image_size=None)


def test_more_blocks_than_there_are_is_an_error():
    with pytest.raises(BackboneError, match=r"n_trainable_blocks=99 .* at most 6"):
        make(n_trainable_blocks=99)


def test_activations_beyond_half_precision_stay_finite():
    backbone = make()
    backbone.trunk = nn.Identity()
    out = backbone.activate(torch.tensor([1e9, -1e9, 1.0]))
    assert torch.isfinite(out).all()


def test_a_backbone_survives_pickling():
    backbone = make()
    again = pickle.loads(pickle.dumps(backbone))
    torch.testing.assert_close(again.activate(pictures()), backbone.activate(pictures()))


def test_the_evaluation_view_is_the_network_s_own():
    picture = Image.fromarray(np.random.default_rng(0).integers(256, size=(90, 120, 3), dtype=np.uint8))
    model = whole()
    config = timm.data.resolve_model_data_config(model) | {"input_size": (3, SIZE, SIZE)}
    expected = timm.data.create_transform(**config, is_training=False)(picture)
    torch.testing.assert_close(make().crop(picture), expected)


def test_drawn_views_are_normalised_like_the_evaluation_view():
    backbone = make()
    flat = np.full((1, SIZE, SIZE, 3), 77, np.uint8)
    torch.testing.assert_close(backbone.normalise(flat)[0], backbone.crop(Image.fromarray(flat[0])))


def test_random_weights_follow_the_seed_and_leave_the_global_state():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    first, again, other = (make(seed=seed).activate(pictures()) for seed in (0, 0, 1))
    torch.testing.assert_close(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), before)


# --- names, sizes, devices ---------------------------------------------------------------------------------


def test_a_misspelt_name_gets_a_suggestion():
    with pytest.raises(BackboneError, match="resnet50"):
        make("resnet5O")


def test_a_size_that_patches_do_not_fill_gets_the_next_ones():
    with pytest.raises(BackboneError, match="Pass 64 or 80"):
        make(image_size=70)


def test_convolutional_networks_take_any_size():
    assert make("test_resnet", image_size=70).size == 70


def test_the_network_s_own_size_is_the_default():
    assert make(image_size=None).size == 160


def test_a_download_that_fails_says_what_else_to_pass(monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr(timm, "create_model", fail)
    with pytest.raises(BackboneError, match="no route to host.*backbone_weights="):
        make(weights="auto")


def test_devices_have_names():
    assert choose_device("cpu").type == "cpu"
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(ValueError, match="device='abacus'"):
        choose_device("abacus")


# --- weights -----------------------------------------------------------------------------------------------


@pytest.fixture
def trained():
    return randomise(whole())


def features(path, **options):
    backbone = make(weights=path, **options)
    return backbone.tail(backbone.trunk(pictures()))


WRAPPINGS = {
    "state dict": lambda state: state,
    "state_dict": lambda state: {"state_dict": state, "epoch": 3},
    "model": lambda state: {"model": state},
    "module.": lambda state: {f"module.{name}": value for name, value in state.items()},
    "DINO's training": lambda state: {
        "student": {f"module.backbone.{name}": torch.zeros_like(value) for name, value in state.items()},
        "teacher": {f"backbone.{name}": value for name, value in state.items()}
        | {"head.mlp.0.weight": torch.zeros(3, 3), "head.last_layer.weight": torch.zeros(3, 3)},
        "args": argparse.Namespace(arch="vit_small", lr=0.1),
        "epoch": 100,
    },
    "mask_token": lambda state: state | {"mask_token": torch.zeros(1, 64)},
    "a classifier": lambda state: state | {"head.weight": torch.zeros(10, 64), "head.bias": torch.zeros(10)},
    "half precision": lambda state: {name: value.half() for name, value in state.items()},
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_weights_are_found_in_files_of_every_kind(wrapping, trained, tmp_path):
    path = tmp_path / "weights.pth"
    torch.save(WRAPPINGS[wrapping](trained.state_dict()), path)
    tolerance = 2e-2 if wrapping == "half precision" else 1e-4
    torch.testing.assert_close(features(path), trained(pictures()), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("prefix", ["", "module.", "backbone."])
def test_safetensors_are_read(prefix, trained, tmp_path):
    path = tmp_path / "weights.safetensors"
    save_file({prefix + name: value for name, value in trained.state_dict().items()}, path)
    torch.testing.assert_close(features(str(path)), trained(pictures()), rtol=1e-4, atol=1e-5)


def test_positions_of_another_image_size_are_resampled(tmp_path):
    larger = randomise(whole(size=96))
    path = tmp_path / "weights.pth"
    torch.save(larger.state_dict(), path)
    model = whole()
    load_weights(model, path)
    assert model.pos_embed.shape == (1, 17, 64)
    torch.testing.assert_close(model.pos_embed[:, 0], larger.pos_embed[:, 0])  # the class token's is not
    assert float((model.pos_embed.mean(1) - larger.pos_embed.mean(1)).detach().abs().max()) < 0.1


def test_the_class_token_s_position_is_added_where_registers_have_none(tmp_path):
    model = timm.create_model("vit_small_patch14_reg4_dinov2", pretrained=False, num_classes=0, img_size=56)
    state = randomise(model).state_dict()
    published = dict(state)
    shift = torch.ones(1, 1, 384)
    published["register_tokens"] = published.pop("reg_token")
    published["cls_token"] = state["cls_token"] - shift
    published["pos_embed"] = torch.cat([shift, state["pos_embed"]], dim=1)
    torch.save(published, tmp_path / "published.pth")
    again = timm.create_model("vit_small_patch14_reg4_dinov2", pretrained=False, num_classes=0, img_size=56)
    load_weights(again, tmp_path / "published.pth")
    for name, value in again.state_dict().items():
        torch.testing.assert_close(value, state[name], rtol=1e-5, atol=1e-5)


def test_keys_that_do_not_fit_are_named(trained, tmp_path):
    state = trained.state_dict()
    del state["blocks.0.attn.qkv.weight"]
    state["blocks.9.extra"] = torch.zeros(1)
    state["norm.weight"] = torch.zeros(7)
    torch.save(state, tmp_path / "weights.pth")
    with pytest.raises(BackboneError) as caught:
        make(weights=tmp_path / "weights.pth")
    for part in (
        "missing: blocks.0.attn.qkv.weight",
        "blocks.9.extra",
        "norm.weight (7,) for (64,)",
        "test_vit",
    ):
        assert part in str(caught.value)


def test_weights_of_another_architecture_are_refused(tmp_path):
    torch.save(whole("test_resnet").state_dict(), tmp_path / "weights.pth")
    with pytest.raises(BackboneError, match="does not fit"):
        make(weights=tmp_path / "weights.pth")


class Evil:
    def __reduce__(self):
        import os

        return os.system, ("echo executed > executed.txt",)


def test_a_file_that_would_execute_code_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"model": Evil()}, "evil.pth")
    with pytest.raises(BackboneError, match="evil.pth"):
        read_weights("evil.pth")
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(BackboneError, match="plain.pkl"):
        read_weights("plain.pkl")
    assert not (tmp_path / "executed.txt").exists()


@pytest.mark.parametrize("name", ["a.pth", "a.safetensors"])
def test_damaged_and_missing_files_are_named(name, tmp_path):
    path = tmp_path / name
    with pytest.raises(BackboneError, match="is not a file"):
        make(weights=path)
    path.touch()
    with pytest.raises(BackboneError, match="cannot be read"):
        make(weights=path)
    path.write_bytes(b"damaged")
    with pytest.raises(BackboneError, match="cannot be read"):
        make(weights=path)


def test_a_file_without_tensors_says_what_to_save(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "a.pth")
    with pytest.raises(BackboneError, match="state_dict"):
        make(weights=tmp_path / "a.pth")
