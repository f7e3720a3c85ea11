"""What a network is, apart from its weights: one frozen dataclass that a checkpoint can store as JSON."""

import math
from dataclasses import dataclass, fields

EMBEDDINGS = ("binary", "onehot", "none")
FEATURES = ("mass", "error", "gap")
ATTENTIONS = ("assign", "erase_samples", "update", "erase_centers")  # A1 to A4, in the order of Eq. 4
PROJECTIONS = ("query", "key", "value")
PROJECTION_NAMES = tuple(f"{attention}.{part}" for attention in ATTENTIONS for part in PROJECTIONS)
#: Where a scalar network has a weight for each feature of a center.
FEATURE_WEIGHTS = ("assign.bias", "update.gain", "erase_centers.bias", "erase_centers.gain")


@dataclass(frozen=True)
class LloydConfig:
    """Shape and attention maps of a :class:`LloydTransformer`.

    The defaults are those of every learned network of the paper: one layer, softmax in all four attentions.
    The network that computes Lloyd's iterations exactly is described by :func:`exact_config`.

    Raises
    ------
    ValueError
        If a field has a value that no network can have.
    """

    n_features: int  # d, coordinates of a sample
    n_clusters: int  # k
    embedding: str = "binary"  # code of a center: "binary" (BN), "onehot" (OH) or "none" (NA), Def. 2.1
    n_layers: int = 1  # layers, which all share one set of projections
    assign_map: str = "softmax"  # A1: "softmax", "argmax" (first maximiser) or "hardmax" (all maximisers)
    erase_map: str = "softmax"  # A2 and A4: "softmax", "hardmax" or "identity" (each token sees itself only)
    update_map: str = "softmax"  # A3: "softmax" or "hardmax"
    inverse_temperature: float = 1.0  # gamma of Eq. 3, for softmax; the other maps are its limit at infinity
    keep_bias: float | None = None  # eta: hardmax update's keys include the centers, with scores less by eta
    projection: str = (
        "dense"  # "dense": e x e matrices; "scalar": s P_D + t P_E, for any d and k (both are 0)
    )
    features: tuple[str, ...] = ()  # of centers, for scalar projections: "mass", "error", "gap"

    def __post_init__(self) -> None:
        """Refuse what no network can be."""
        object.__setattr__(self, "features", tuple(self.features))  # JSON has lists
        _check_choice("projection", self.projection, ("dense", "scalar"))
        if self.projection == "scalar":
            self._check_scalar()
            return
        if self.features:
            raise ValueError(f"`features` should be empty with projection='dense', got {self.features!r}")
        for name in ("n_features", "n_clusters", "n_layers"):
            _check_positive_int(name, getattr(self, name))
        _check_choice("embedding", self.embedding, EMBEDDINGS)
        _check_choice("assign_map", self.assign_map, ("softmax", "argmax", "hardmax"))
        _check_choice("erase_map", self.erase_map, ("softmax", "hardmax", "identity"))
        _check_choice("update_map", self.update_map, ("softmax", "hardmax"))
        if not (_is_real(self.inverse_temperature) and 0 < self.inverse_temperature < math.inf):
            raise ValueError(
                f"`inverse_temperature` should be a positive finite number, got {self.inverse_temperature!r}"
            )
        if self.keep_bias is not None:
            self._check_keep_bias(self.keep_bias)

    def _check_keep_bias(self, keep_bias: float) -> None:
        # Between 0 (a member's score) and 1 (the least squared distance of two different codes).
        if not (_is_real(keep_bias) and 0 < keep_bias < 1):
            raise ValueError(f"`keep_bias` should be None or a number between 0 and 1, got {keep_bias!r}")
        if self.update_map != "hardmax":
            raise ValueError(
                f"`keep_bias` should be None with update_map={self.update_map!r}, got {keep_bias!r}"
            )

    def _check_scalar(self) -> None:
        """Refuse what is not one layer of softmax attentions, with one-hot codes, for any problem."""
        fixed = LloydConfig(1, 1, embedding="onehot")
        for name in ("n_features", "n_clusters"):
            if getattr(self, name) != 0:
                raise ValueError(
                    f"`{name}` should be 0, for any number, with projection='scalar', "
                    f"got {getattr(self, name)!r}"
                )
        for field in fields(self):
            value, only = getattr(self, field.name), getattr(fixed, field.name)
            if field.name not in ("n_features", "n_clusters", "projection", "features") and value != only:
                raise ValueError(f"`{field.name}` should be {only!r} with projection='scalar', got {value!r}")
        for name in self.features:
            _check_choice("features", name, FEATURES)

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight by its name: "assign.query" and so on."""
        if self.projection == "dense":
            return dict.fromkeys(PROJECTION_NAMES, (self.token_width, self.token_width))
        shapes: dict[str, tuple[int, ...]] = {
            name: (2,) for name in PROJECTION_NAMES if not name.startswith("erase_samples")
        }
        return shapes | dict.fromkeys(FEATURE_WEIGHTS, (len(self.features),))

    @property
    def code_width(self) -> int:
        """Width of a center's code: ceil(log2 k) for "binary", k for "onehot", 0 for "none"."""
        if self.embedding == "binary":
            return (self.n_clusters - 1).bit_length()
        return self.n_clusters if self.embedding == "onehot" else 0

    @property
    def token_width(self) -> int:
        """Width e of a token, the paper's d_emb: coordinates, then code."""
        return self.n_features + self.code_width


def _is_real(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_positive_int(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"`{name}` should be an int >= 1, got {value!r}")


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"`{name}` should be one of {', '.join(map(repr, choices))}, got {value!r}")
