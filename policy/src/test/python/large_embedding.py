"""Writes a Hugging Face directory whose embedding and head have more numbers than one tensor of Millrace's may: Qwen2.5-7B's shape with fewer layers,
random bfloat16.

    python3 large_embedding.py DIR [--layers 1] [--tied]
"""

import argparse
import json
import os

import numpy as np

VOCABULARY, WIDTH, HEADS, KEY_HEADS, HEAD, INNER = 152_064, 3_584, 28, 4, 128, 18_944


def tensors(layers, tied):
    yield "model.embed_tokens.weight", (VOCABULARY, WIDTH)
    for layer in range(layers):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (WIDTH,)
        for name, rows in (("q", HEADS * HEAD), ("k", KEY_HEADS * HEAD), ("v", KEY_HEADS * HEAD)):
            yield f"{at}self_attn.{name}_proj.weight", (rows, WIDTH)
            yield f"{at}self_attn.{name}_proj.bias", (rows,)
        yield at + "self_attn.o_proj.weight", (WIDTH, HEADS * HEAD)
        yield at + "post_attention_layernorm.weight", (WIDTH,)
        yield at + "mlp.gate_proj.weight", (INNER, WIDTH)
        yield at + "mlp.up_proj.weight", (INNER, WIDTH)
        yield at + "mlp.down_proj.weight", (WIDTH, INNER)
    yield "model.norm.weight", (WIDTH,)
    if not tied:
        yield "lm_head.weight", (VOCABULARY, WIDTH)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--tied", action="store_true")
    asked = parser.parse_args()
    os.makedirs(asked.directory)
    with open(os.path.join(asked.directory, "config.json"), "w") as file:
        json.dump(dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_act="silu", vocab_size=VOCABULARY, hidden_size=WIDTH,
                       num_hidden_layers=asked.layers, num_attention_heads=HEADS, num_key_value_heads=KEY_HEADS, intermediate_size=INNER,
                       max_position_embeddings=32_768, rope_theta=1e6, rms_norm_eps=1e-6, tie_word_embeddings=asked.tied,
                       use_sliding_window=False, torch_dtype="bfloat16"), file)
    header, end = {}, 0
    for name, dims in tensors(asked.layers, asked.tied):
        begin, end = end, end + 2 * int(np.prod(dims, dtype=np.int64))
        header[name] = dict(dtype="BF16", shape=dims, data_offsets=[begin, end])
    text = json.dumps(header).encode()
    random = np.random.default_rng(1)
    with open(os.path.join(asked.directory, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, dims in tensors(asked.layers, asked.tied):
            left = int(np.prod(dims, dtype=np.int64))
            while left > 0:
                count = min(left, 1 << 22)
                values = np.ones(count, "<f4") if name.endswith("norm.weight") else 0.02 * random.standard_normal(count, "<f4")
                file.write((values.view("<u4") >> 16).astype("<u2").tobytes())
                left -= count


main()
