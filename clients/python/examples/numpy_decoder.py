"""A Llama/Qwen2 decoder in numpy: log-probs of given tokens, and the gradient of a weighted sum of them.

Shapes: B sequences padded on the right to length L, hidden size D, H query heads and K key heads of size E, V tokens.
Weights are a dict of float32 arrays under their safetensors names; a linear layer is [out, in]. A version may have its largest matrices
in ranges of their rows, `name[0]` and so on: `load` joins them; `gradient` takes joined ones.

    python3 numpy_decoder.py     # compares the gradient with differences, in double precision
"""

from types import SimpleNamespace

import numpy as np

from millrace_rl.tensors import joined


class Decoder:
    def __init__(self, shape):
        """shape: the dict that a manifest's `shape` holds, keys as in Hugging Face's config.json."""
        self.layers = shape["num_hidden_layers"]
        self.heads = shape["num_attention_heads"]
        self.key_heads = shape["num_key_value_heads"]
        self.head_size = shape["head_dim"]
        self.theta = shape["rope_theta"]
        self.eps = shape["rms_norm_eps"]
        self.head = "model.embed_tokens.weight" if shape["tie_word_embeddings"] else "lm_head.weight"
        self.bias = shape["attention_bias"]
        self.weights = None

    def load(self, weights):
        """Takes the weights of a version; where all its matrices are whole, without a copy."""
        self.weights = joined(weights)
        return self

    def __call__(self, tokens):
        """As a transformers model is called: `.logits` [B, L, V] of tokens [B, L]."""
        logits = self._hidden(self.weights, tokens, {})[0] @ self.weights[self.head].T
        return SimpleNamespace(logits=logits.reshape(*tokens.shape, -1))

    def gradient(self, weights, tokens, rows, targets, temperature, coefficients):
        """log-probs [R], and the gradient of sum(coefficients * log-probs) by every weight.

        tokens       [B, L] ids
        rows         [R] for each wanted token the flat index in [B, L] of the token before it
        targets      [R] the wanted tokens
        temperature  [R]
        coefficients [R], or a function from the log-probs to them: any loss is one
        """
        grads = {}
        hidden, back = self._hidden(weights, tokens, grads)
        wanted = hidden[rows]
        logits = wanted @ weights[self.head].T / temperature[:, None]
        logits -= logits.max(axis=1, keepdims=True)
        log_all = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        log_probs = log_all[np.arange(len(rows)), targets]
        coefficients = coefficients(log_probs) if callable(coefficients) else coefficients
        # d log p_y / d logit_v = [v = y] - p_v
        d_logits = -np.exp(log_all) * coefficients[:, None]
        d_logits[np.arange(len(rows)), targets] += coefficients
        d_logits /= temperature[:, None]
        add(grads, self.head, d_logits.T @ wanted)
        d_hidden = np.zeros_like(hidden)
        np.add.at(d_hidden, rows, d_logits @ weights[self.head])
        back(d_hidden)
        return log_probs, grads

    def _hidden(self, weights, tokens, grads):
        """Output of the last norm, [B*L, D], and the function that takes its gradient back through everything."""
        batch, length = tokens.shape
        flat = tokens.reshape(-1)
        embedding = weights["model.embed_tokens.weight"]
        x = embedding[flat]
        angles = np.arange(length)[:, None] * self.theta ** (-2.0 * np.arange(self.head_size // 2) / self.head_size)
        cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
        steps = []

        def step(function, *args):
            out, back = function(*args)
            steps.append(back)
            return out

        for layer in range(self.layers):
            name = "model.layers.%d." % layer
            x = step(self._attention, weights, grads, x, name, batch, length, cos, sin)
            x = step(self._feed_forward, weights, grads, x, name)
        x = step(self._norm, weights, grads, x, "model.norm.weight")

        def back(d):
            for undo in reversed(steps):
                d = undo(d)
            d_embedding = np.zeros_like(embedding)
            np.add.at(d_embedding, flat, d)
            add(grads, "model.embed_tokens.weight", d_embedding)

        return x, back

    def _norm(self, weights, grads, x, name):
        w = weights[name]
        r = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + x.dtype.type(self.eps))

        def back(d):
            add(grads, name, (d * x * r).sum(axis=0))
            dw = d * w
            return r * dw - x * r ** 3 * (dw * x).mean(axis=1, keepdims=True)

        return x * r * w, back

    @staticmethod
    def _linear(weights, grads, x, name):
        w = weights[name + ".weight"]
        b = weights.get(name + ".bias")

        def back(d):
            add(grads, name + ".weight", d.T @ x)
            if b is not None:
                add(grads, name + ".bias", d.sum(axis=0))
            return d @ w

        return x @ w.T + (0 if b is None else b), back

    def _attention(self, weights, grads, x, name, batch, length, cos, sin):
        heads, key_heads, size = self.heads, self.key_heads, self.head_size
        group = heads // key_heads
        h, back_norm = self._norm(weights, grads, x, name + "input_layernorm.weight")
        q, back_q = self._linear(weights, grads, h, name + "self_attn.q_proj")
        k, back_k = self._linear(weights, grads, h, name + "self_attn.k_proj")
        v, back_v = self._linear(weights, grads, h, name + "self_attn.v_proj")

        def split(y, n):  # [B*L, n*E] to [B, n, L, E]
            return y.reshape(batch, length, n, size).transpose(0, 2, 1, 3)

        def join(y):
            return y.transpose(0, 2, 1, 3).reshape(batch * length, -1)

        q4 = rotate(split(q, heads), cos, sin)
        k4 = np.repeat(rotate(split(k, key_heads), cos, sin), group, axis=1)
        v4 = np.repeat(split(v, key_heads), group, axis=1)
        scale = q.dtype.type(1 / np.sqrt(size))
        scores = q4 @ k4.transpose(0, 1, 3, 2) * scale
        scores[..., np.triu(np.ones((length, length), bool), 1)] = -np.inf
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p = scores / scores.sum(axis=-1, keepdims=True)
        out, back_out = self._linear(weights, grads, join(p @ v4), name + "self_attn.o_proj")

        def per_key_head(d):
            return d.reshape(batch, key_heads, group, length, size).sum(axis=2)

        def back(d):
            d4 = split(back_out(d), heads)
            d_p = d4 @ v4.transpose(0, 1, 3, 2)
            d_scores = p * (d_p - (d_p * p).sum(axis=-1, keepdims=True)) * scale
            d_h = back_q(join(rotate(d_scores @ k4, cos, -sin)))
            d_h = d_h + back_k(join(rotate(per_key_head(d_scores.transpose(0, 1, 3, 2) @ q4), cos, -sin)))
            d_h = d_h + back_v(join(per_key_head(p.transpose(0, 1, 3, 2) @ d4)))
            return d + back_norm(d_h)

        return x + out, back

    def _feed_forward(self, weights, grads, x, name):
        h, back_norm = self._norm(weights, grads, x, name + "post_attention_layernorm.weight")
        gate, back_gate = self._linear(weights, grads, h, name + "mlp.gate_proj")
        up, back_up = self._linear(weights, grads, h, name + "mlp.up_proj")
        sigmoid = 1 / (1 + np.exp(-gate))
        silu = gate * sigmoid
        out, back_down = self._linear(weights, grads, silu * up, name + "mlp.down_proj")

        def back(d):
            d_product = back_down(d)
            d_gate = d_product * up * sigmoid * (1 + gate * (1 - sigmoid))
            return d + back_norm(back_gate(d_gate) + back_up(d_product * silu))

        return x + out, back


def rotate(x, cos, sin):
    """Rotary positions: dimension i turns with dimension i + E/2; with -sin it turns back."""
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def add(grads, name, value):
    grads[name] = grads[name] + value if name in grads else value


def tensors(shape):
    """Names and axis lengths of every tensor, in the order of the manifests."""
    d, e, f = shape["hidden_size"], shape["head_dim"], shape["intermediate_size"]
    q, k = shape["num_attention_heads"] * e, shape["num_key_value_heads"] * e
    found = [("model.embed_tokens.weight", [shape["vocab_size"], d])]
    for layer in range(shape["num_hidden_layers"]):
        name = "model.layers.%d." % layer
        found.append((name + "input_layernorm.weight", [d]))
        for projection, width in (("q", q), ("k", k), ("v", k)):
            found.append((name + "self_attn.%s_proj.weight" % projection, [width, d]))
            if shape["attention_bias"]:
                found.append((name + "self_attn.%s_proj.bias" % projection, [width]))
        found += [(name + "self_attn.o_proj.weight", [d, q]), (name + "post_attention_layernorm.weight", [d]),
                  (name + "mlp.gate_proj.weight", [f, d]), (name + "mlp.up_proj.weight", [f, d]),
                  (name + "mlp.down_proj.weight", [d, f])]
    found.append(("model.norm.weight", [d]))
    if not shape["tie_word_embeddings"]:
        found.append(("lm_head.weight", [shape["vocab_size"], d]))
    return found


def check():
    """Every tensor's gradient against central differences, in double precision."""
    random = np.random.default_rng(1)
    for tied, bias, key_heads in ((False, False, 2), (True, True, 1)):
        shape = dict(vocab_size=9, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=key_heads,
                     head_dim=4, intermediate_size=6, rope_theta=100.0, rms_norm_eps=1e-6, tie_word_embeddings=tied,
                     attention_bias=bias)
        weights = {name: random.normal(size=dims) * 0.5 for name, dims in tensors(shape)}
        decoder = Decoder(shape)
        tokens = random.integers(0, 9, (3, 5))
        rows, targets = np.array([0, 2, 3, 7, 13]), np.array([1, 5, 0, 8, 2])
        temperature, coefficients = np.array([1, 1, 0.7, 1.3, 1.0]), random.normal(size=5)

        def value():
            return decoder.gradient(weights, tokens, rows, targets, temperature, coefficients)[0] @ coefficients

        grads = decoder.gradient(weights, tokens, rows, targets, temperature, coefficients)[1]
        for name, w in weights.items():
            for at in random.choice(w.size, min(w.size, 6), replace=False):
                old = w.flat[at]
                w.flat[at] = old + 1e-5
                above = value()
                w.flat[at] = old - 1e-5
                below = value()
                w.flat[at] = old
                difference = (above - below) / 2e-5
                assert abs(difference - grads[name].flat[at]) < 1e-6 * max(1, abs(difference)), (name, at, difference)
    print("the gradient of every tensor agrees with differences")


if __name__ == "__main__":
    check()
