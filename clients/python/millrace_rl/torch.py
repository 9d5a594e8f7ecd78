"""A Llama or Qwen2 decoder in torch, by a manifest's shape. transformers' models of that shape work as well."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict

import torch
from torch import nn
from torch.nn import functional as F

from millrace_rl.errors import Refused
from millrace_rl.tensors import joined

_KNOWN = {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size",
          "max_position_embeddings", "rope_theta", "rms_norm_eps", "tie_word_embeddings", "attention_bias",
          "max_tensor_elements"}


class _Norm(nn.Module):
    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight
        return out


class _Attention(nn.Module):
    def __init__(self, shape: Dict[str, Any]):
        super().__init__()
        self.heads, self.kv_heads, self.size = shape["num_attention_heads"], shape["num_key_value_heads"], shape["head_dim"]
        width, bias = shape["hidden_size"], shape["attention_bias"]
        self.q_proj = nn.Linear(width, self.heads * self.size, bias)
        self.k_proj = nn.Linear(width, self.kv_heads * self.size, bias)
        self.v_proj = nn.Linear(width, self.kv_heads * self.size, bias)
        self.o_proj = nn.Linear(self.heads * self.size, width, False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape

        def split(y: torch.Tensor, heads: int) -> torch.Tensor:  # to [batch, heads, length, size]
            parted: torch.Tensor = y.view(batch, length, heads, self.size).transpose(1, 2)
            return parted

        def rotate(y: torch.Tensor) -> torch.Tensor:  # dimension i turns with dimension i + size / 2
            a, b = y.chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

        q, k, v = split(self.q_proj(x), self.heads), split(self.k_proj(x), self.kv_heads), split(self.v_proj(x), self.kv_heads)
        k, v = (y.repeat_interleave(self.heads // self.kv_heads, 1) for y in (rotate(k), v))
        scores = rotate(q) @ k.transpose(-1, -2) * self.size ** -0.5
        out = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        projected: torch.Tensor = self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))
        return projected


class _FeedForward(nn.Module):
    def __init__(self, shape: Dict[str, Any]):
        super().__init__()
        width, inner = shape["hidden_size"], shape["intermediate_size"]
        self.gate_proj, self.up_proj = nn.Linear(width, inner, False), nn.Linear(width, inner, False)
        self.down_proj = nn.Linear(inner, width, False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class _Layer(nn.Module):
    def __init__(self, shape: Dict[str, Any]):
        super().__init__()
        self.input_layernorm = _Norm(shape["hidden_size"], shape["rms_norm_eps"])
        self.self_attn = _Attention(shape)
        self.post_attention_layernorm = _Norm(shape["hidden_size"], shape["rms_norm_eps"])
        self.mlp = _FeedForward(shape)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, hidden)
        out: torch.Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class Decoder(nn.Module):
    """The policy, called like a transformers model: ``decoder(input_ids).logits``. Its state dict has a version's names, with split
    matrices joined.

    Sequences are padded on the right, which causal attention ignores.

    :param shape: of a manifest, ``run.shape``
    :raises Refused: if the shape has an unsupported feature, such as scaled rotary positions
    """

    def __init__(self, shape: Dict[str, Any]):
        super().__init__()
        strange = set(shape) - _KNOWN
        if strange:
            raise Refused(f"the policy has {', '.join(sorted(strange))}, which this decoder does not know; use transformers' model of that "
                          "shape in its place")
        self.model: Any = nn.Module()
        self.model.embed_tokens = nn.Embedding(shape["vocab_size"], shape["hidden_size"])
        self.model.layers = nn.ModuleList(_Layer(shape) for _ in range(shape["num_hidden_layers"]))
        self.model.norm = _Norm(shape["hidden_size"], shape["rms_norm_eps"])
        if not shape["tie_word_embeddings"]:
            self.lm_head: Any = nn.Linear(shape["hidden_size"], shape["vocab_size"], False)
        half = shape["head_dim"] // 2
        self._frequencies = shape["rope_theta"] ** (-torch.arange(half, dtype=torch.float64) / half)

    def load(self, weights: Dict[str, Any]) -> "Decoder":
        """Takes the weights of a version, as :meth:`millrace_rl.Run.weights` gives them."""
        self.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in joined(weights).items()})
        return self

    def forward(self, input_ids: Any) -> Any:
        input_ids = torch.as_tensor(input_ids)
        x = self.model.embed_tokens(input_ids)
        length = input_ids.shape[1]
        angles = torch.arange(length, dtype=torch.float64)[:, None] * self._frequencies
        cos, sin = angles.cos().to(x), angles.sin().to(x)
        hidden = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        for layer in self.model.layers:
            x = layer(x, cos, sin, hidden)
        x = self.model.norm(x)
        head = self.lm_head.weight if hasattr(self, "lm_head") else self.model.embed_tokens.weight
        return SimpleNamespace(logits=x @ head.T)
