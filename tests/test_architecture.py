"""The drawing in docs/architecture.md, read off the imports."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pnp_gcd

PACKAGE = Path(pnp_gcd.__file__).parent
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py"))

# docs/architecture.md: a module imports from its own floor or from those below.
FLOORS = {
    "cellar": {"exceptions", "_compat", "_progress", "_threads", "_warn"},
    "ground": {
        "geometry",
        "neighbours",
        "cells",
        "products",
        "rounded",
        "projection",
        "clustering",
        "matching",
        "merging",
        "balancing",
        "parting",
        "sizing",
        "grouping",
        "refinement",
        "hiding",
        "sampling",
        "counting",
        "calibration",
        "probing",
        "labelling",
        "metrics",
        "schedules",
        "inputs",
        "spooling",
        "labels",
        "text_features",
        "plain_values",
        "atomic_files",
        "model_files",
        "checkpoint_files",
        "workflows",
        "images",
        "augmentations",
        "workers",
        "distributed",
    },
    "floor 1": {
        "weights",
        "cutting",
        "backbones",
        "activations",
        "encoders",
        "prober",
        "objectives",
        "views",
        "encoding",
        "optimisers",
        "settings",
        "rows",
        "image_rows",
    },
    "floor 2": {"training", "trainer", "checkpoints", "diagnosis", "image_mode", "packing"},
    "roof": {"parameters", "persistence", "curation", "keeping", "fitted", "discoverer", "embedder", "cli"},
    "door": {"__init__", "__main__"},
}
ASIDE = {"datasets", "presets"}
# Folders beside the floors: their modules, dotted.
FOLDERS = {
    folder: sorted(
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for path in (PACKAGE / folder).rglob("[a-z]*.py")
    )
    for folder in ("datasets", "benchmark", "plotting", "report", "commands")
}
# The commands themselves; the other modules of their folder are what they share.
COMMANDS = {
    f"commands.{name}" for name in ("demo", "discover", "predict", "report", "rename", "merge", "confirm")
}
# Beside the estimator, on the roof: knows rows and labels, any estimator, and nothing of the method.
MODEL_SELECTION = sorted(path.stem for path in (PACKAGE / "model_selection").glob("[a-z]*.py"))
LEVEL = {module: level for level, modules in enumerate(FLOORS.values()) for module in modules}

DOORS = {
    "torch": {
        "encoders",
        "prober",
        "objectives",
        "views",
        "encoding",
        "optimisers",
        "training",
        "trainer",
        "neighbours",
        "cells",
        "products",
        "rounded",
        "_threads",
        "weights",
        "cutting",
        "backbones",
        "activations",
        "rows",
        "image_rows",
        "image_mode",
        "packing",
        "workers",
        "distributed",
    },
    "timm": {"backbones", "weights"},
    "PIL": {"images", "augmentations"},
    "infomap": {"clustering"},
    "faiss": {"neighbours"},
    "safetensors": {"weights", "model_files", "checkpoint_files"},
    "sentence_transformers": {"text_features"},
    "pandas": set(),
    "pyarrow": set(),
}


def imports_of(module, *, at_top_only=False):
    """Return the dotted names that a module imports; not those for type checkers only."""
    tree = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text())
    names = set()

    def visit(node, inside):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        if not (inside and at_top_only):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = ("pnp_gcd." if node.level else "") + (node.module or "")
                base = base.rstrip(".")
                names.update(f"{base}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, False)
    return names


def siblings_of(module):
    found = {name.split(".")[1] for name in imports_of(module) if name.startswith("pnp_gcd.")}
    return found & set(MODULES)


def test_every_module_has_a_floor():
    assert set(MODULES) <= set(LEVEL) | ASIDE


@pytest.mark.parametrize("module", [m for m in MODULES if m in LEVEL])
def test_no_module_imports_from_a_floor_above(module):
    above = {other for other in siblings_of(module) if LEVEL.get(other, 0) > LEVEL[module]}
    assert not above


@pytest.mark.parametrize("module", MODEL_SELECTION)
def test_model_selection_knows_labels_and_metrics_and_not_the_method(module):
    found = {name.split(".")[1] for name in imports_of(f"model_selection.{module}") if "pnp_gcd." in name}
    assert found <= {"_compat", "inputs", "labels", "metrics", "workflows", "model_selection"}


@pytest.mark.parametrize("module", FOLDERS["datasets"])
def test_datasets_know_no_method(module):
    found = {name.split(".")[1] for name in imports_of(module) if name.startswith("pnp_gcd.")}
    assert found <= {"datasets", "labels"}
    assert not {name.split(".")[0] for name in imports_of(module)} & set(DOORS)


@pytest.mark.parametrize("module", FOLDERS["benchmark"])
def test_the_benchmark_takes_third_parties_by_their_doors(module):
    used = {name.split(".")[0] for name in imports_of(module)}
    assert not used & {"timm", "infomap", "faiss", "PIL"}
    assert "torch" not in {name.split(".")[0] for name in imports_of(module, at_top_only=True)}


@pytest.mark.parametrize("module", FOLDERS["report"])
def test_the_report_asks_a_model_and_knows_no_method(module):
    found = {name.split(".")[1] for name in imports_of(module) if name.startswith("pnp_gcd.")}
    assert found <= {
        "atomic_files",
        "exceptions",
        "images",
        "labels",
        "matching",
        "metrics",
        "projection",
        "report",
    }
    used = {name.split(".")[0] for name in imports_of(module)}
    assert not used & {*DOORS, "pandas", "polars", "matplotlib"}


@pytest.mark.parametrize("module", FOLDERS["plotting"])
def test_displays_look_at_models_from_outside(module):
    found = {name.split(".")[1] for name in imports_of(module) if name.startswith("pnp_gcd.")}
    assert found <= {"labels", "metrics", "projection", "plotting"}
    assert not {name.split(".")[0] for name in imports_of(module)} & set(DOORS)


@pytest.mark.parametrize(
    "module",
    [
        *MODULES,
        *(f"model_selection.{m}" for m in MODEL_SELECTION),
        *(m for ms in FOLDERS.values() for m in ms),
    ],
)
def test_matplotlib_comes_in_by_the_canvas_when_something_is_drawn(module):
    at_top = {name.split(".")[0] for name in imports_of(module, at_top_only=True)}
    used = {name.split(".")[0] for name in imports_of(module)}
    assert "matplotlib" not in at_top
    assert "matplotlib" not in used or module == "plotting.canvas"


@pytest.mark.parametrize("module", FOLDERS["commands"])
def test_commands_take_third_parties_by_their_doors(module):
    doors = {"pandas": "commands.pages", "pyarrow": "commands.tables"}
    used = {name.split(".")[0] for name in imports_of(module)}
    assert not used & (set(DOORS) - set(doors))
    assert not {party for party, door in doors.items() if party in used and module != door}
    at_top = {name.split(".")[0] for name in imports_of(module, at_top_only=True)}
    assert at_top.isdisjoint({*doors, "sklearn"})


@pytest.mark.parametrize("module", [m for m in FOLDERS["commands"] if m not in COMMANDS])
def test_what_commands_share_knows_no_command(module):
    found = {".".join(name.split(".")[1:3]) for name in imports_of(module) if "pnp_gcd.commands." in name}
    assert not found & COMMANDS


@pytest.mark.parametrize(
    "module",
    [
        *(m for m in MODULES if m != "cli"),
        *(m for folder in ("datasets", "benchmark", "plotting", "report") for m in FOLDERS[folder]),
    ],
)
def test_nothing_but_the_command_line_imports_the_commands(module):
    found = {
        ".".join(name.split(".")[1:3]) for name in imports_of(module) if name.startswith("pnp_gcd.commands")
    }
    has_arguments = module in ("benchmark.command", "benchmark.analyse_command")
    allowed = {"commands.arguments"} if has_arguments else set()
    assert found <= allowed


@pytest.mark.parametrize(
    "module",
    [
        *(m for m in MODULES if m != "cli"),
        *(m for folder in ("datasets", "plotting", "report", "commands") for m in FOLDERS[folder]),
    ],
)
def test_nothing_but_the_command_line_imports_the_benchmark(module):
    assert not {name for name in imports_of(module) if name.startswith("pnp_gcd.benchmark")}


@pytest.mark.parametrize(
    "module", [m for m in FOLDERS["benchmark"] if "peers" in m or m == "benchmark.methods"]
)
def test_methods_of_the_benchmark_know_no_data_and_no_scores(module):
    names = {".".join(name.split(".")[:3]) for name in imports_of(module) if name.startswith("pnp_gcd.")}
    assert names.isdisjoint({"pnp_gcd.benchmark.scoring", "pnp_gcd.benchmark.one_run"})
    assert not {name for name in names if name.startswith("pnp_gcd.datasets")}


def test_no_two_modules_import_each_other():
    edges = {module: siblings_of(module) for module in MODULES}

    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for other in edges[todo.pop()] - seen:
                seen.add(other)
                todo.append(other)
        return seen

    assert not [module for module in MODULES if module in reach(module)]


@pytest.mark.parametrize("module", [*MODULES, *(f"model_selection.{module}" for module in MODEL_SELECTION)])
def test_third_parties_come_in_by_their_own_door(module):
    used = {name.split(".")[0] for name in imports_of(module)}
    assert not {party for party, doors in DOORS.items() if party in used and module not in doors}


@pytest.mark.parametrize("module", sorted((FLOORS["cellar"] | FLOORS["ground"]) & set(MODULES)))
def test_the_ground_imports_heavy_parties_only_inside_functions(module):
    at_top = {name.split(".")[0] for name in imports_of(module, at_top_only=True)}
    assert at_top.isdisjoint({"torch", "timm", "faiss", "infomap", "pandas", "polars", "matplotlib", "PIL"})


@pytest.mark.parametrize(
    "module", [m for m in MODULES if m != "_compat"] + [f"model_selection.{m}" for m in MODEL_SELECTION]
)
def test_private_names_of_scikit_learn_come_in_by_compat(module):
    private = re.compile(r"sklearn\.(.*\.)?_[a-z]")
    assert not {name for name in imports_of(module) if private.match(name)}


def test_the_loop_knows_no_scikit_learn():
    assert not {name for name in imports_of("training") if name.startswith("sklearn")}


def test_the_drawing_names_every_module():
    path = PACKAGE.parent / "docs" / "architecture.md"
    if not path.exists():
        pytest.skip("an installed package has no docs")
    drawn = set(re.findall(r"[a-z_]+", path.read_text()))
    inside = {module.split(".")[-1] for modules in FOLDERS.values() for module in modules}
    assert {*MODULES, *MODEL_SELECTION, *inside} - {"__main__", "__init__"} <= drawn


# --- what an import costs ----------------------------------------------------------------------------------


def loaded_by(statement):
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


@pytest.fixture(scope="module")
def loaded_by_package():
    return loaded_by("import pnp_gcd")


@pytest.mark.parametrize("name", ["torch", "timm", "faiss", "infomap"])
def test_importing_the_package_loads_no_heavy_party(loaded_by_package, name):
    assert name not in loaded_by_package


def test_importing_the_package_loads_no_more_than_the_base_of_scikit_learn(loaded_by_package):
    base = loaded_by(
        "import sklearn.base, sklearn.utils.validation, sklearn.utils.multiclass\n"
        "import sklearn.utils._param_validation\n"
        "try:\n    import sklearn.callback\nexcept ImportError:\n    pass"
    )
    more = loaded_by_package - base
    assert not {".".join(name.split(".")[:2]) for name in more if name.startswith("sklearn.")}
    assert not {name for name in more if name in ("pandas", "polars", "matplotlib", "scipy.stats", "joblib")}
