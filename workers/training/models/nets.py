"""Networks of the models. Each begins as the identity of its task, so that training starts from what is certain."""

from collections.abc import Callable
from itertools import pairwise
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional


def zeroed(layer: nn.Linear) -> nn.Linear:
    """The layer, saying nothing until it has learned."""
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class Beside(nn.Module):
    """A linear map of the whole context, and beside it a network that learns what the map misses.

    (b, channels, context) → (b, horizon).
    """

    def __init__(self, channels: int, context: int, horizon: int, network: nn.Module | None, width: int) -> None:
        super().__init__()
        self.straight = zeroed(nn.Linear(channels * context, horizon))
        self.network = network
        self.head = zeroed(nn.Linear(width, horizon)) if network is not None else None

    def forward(self, context: Tensor) -> Tensor:
        straight: Tensor = self.straight(context.flatten(1))
        if self.network is None or self.head is None:
            return straight
        return straight + self.head(self.network(context))  # type: ignore[no-any-return]


class Convolutions(nn.Module):
    """Causal convolutions, each looking twice as far back as the one before. (b, channels, t) → (b, width)."""

    def __init__(self, channels: int, context: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.widen = nn.Conv1d(channels, width, 1)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 3, dilation=2**i) for i in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, context: Tensor) -> Tensor:
        state: Tensor = self.widen(context)
        for i, layer in enumerate(self.layers):
            state = state + self.dropout(functional.gelu(layer(functional.pad(state, (2 ** (i + 1), 0)))))
        return state[..., -1]


class Attention(nn.Module):
    """A transformer over patches of the context. (b, channels, t) → (b, width)."""

    def __init__(self, channels: int, context: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.patch = max(1, min(16, context // 4))
        self.padding = -context % self.patch
        count = (context + self.padding) // self.patch
        self.embed = nn.Linear(channels * self.patch, width)
        self.place = nn.Parameter(torch.zeros(count, width))
        heads = next(h for h in (4, 2, 1) if width % h == 0)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, context: Tensor) -> Tensor:
        padded = functional.pad(context, (self.padding, 0))
        patches = padded.reshape(*padded.shape[:2], -1, self.patch).transpose(1, 2).flatten(2)
        state: Tensor = self.layers(self.embed(patches) + self.place)
        return state.mean(1)


class Perceptron(nn.Module):
    """Layers of `width` units. (b, …) → (b, width)."""

    def __init__(self, inputs: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [inputs] + [width] * layers
        steps = ((nn.Linear(a, b), nn.GELU(), nn.Dropout(dropout)) for a, b in pairwise(sizes))
        self.layers = nn.Sequential(*(one for step in steps for one in step))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(inputs.flatten(1))  # type: ignore[no-any-return]


KINDS: Final[dict[str, Callable[[int, int, int, int, float], nn.Module] | None]] = {
    "linear": None,
    "mlp": lambda channels, context, width, layers, dropout: Perceptron(channels * context, width, layers, dropout),
    "tcn": Convolutions,
    "transformer": Attention,
}


def forecasting(
    kind: str, channels: int, context: int, horizon: int, width: int, layers: int, dropout: float
) -> nn.Module:
    """The network of a kind of forecaster."""
    make = KINDS[kind]
    return Beside(channels, context, horizon, make and make(channels, context, width, layers, dropout), width)
