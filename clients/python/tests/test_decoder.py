"""The decoder in torch beside that in NumPy, whose gradient is compared with differences."""

import sys
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import numpy_decoder

from millrace.errors import Refused

try:
    import torch

    from millrace.torch import Decoder
except ImportError:
    torch = None


def shape(**more):
    return {**dict(vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=4,
                   intermediate_size=12, max_position_embeddings=32, rope_theta=100.0, rms_norm_eps=1e-6, tie_word_embeddings=False,
                   attention_bias=False), **more}


@unittest.skipIf(torch is None, "torch is not installed")
class DecoderTest(unittest.TestCase):
    def test_should_have_the_tensors_of_a_version(self):
        for variant in (shape(), shape(tie_word_embeddings=True, attention_bias=True)):
            found = {name: list(p.shape) for name, p in Decoder(variant).state_dict().items()}
            self.assertEqual(found, dict(numpy_decoder.tensors(variant)))

    def test_should_compute_the_logits_and_the_gradient_of_the_decoder_in_numpy(self):
        random = np.random.default_rng(4)
        for variant in (shape(), shape(tie_word_embeddings=True, attention_bias=True, num_key_value_heads=1)):
            weights = {name: random.normal(size=dims).astype(np.float32) * np.float32(0.5) for name, dims in numpy_decoder.tensors(variant)}
            tokens = random.integers(0, 11, (3, 6))
            ours, twin = Decoder(variant).load(weights), numpy_decoder.Decoder(variant).load(weights)
            np.testing.assert_allclose(ours(tokens).logits.detach().numpy(), twin(tokens).logits, atol=2e-5)

            rows, targets = np.array([0, 7, 16]), np.array([1, 2, 3])
            coefficients = np.array([0.5, -1.0, 2.0], np.float32)
            _, grads = twin.gradient(weights, tokens, rows, targets, np.ones(3, np.float32), coefficients)
            log_probs = ours(tokens).logits.log_softmax(-1).reshape(-1, 11)[torch.from_numpy(rows), torch.from_numpy(targets)]
            (log_probs * torch.from_numpy(coefficients)).sum().backward()
            for name, p in ours.named_parameters():
                np.testing.assert_allclose(p.grad.numpy(), grads[name], atol=2e-4, err_msg=name)

    def test_should_refuse_a_shape_that_it_does_not_know(self):
        with self.assertRaisesRegex(Refused, "the policy has rope_scaling, which this decoder does not know; use transformers' model"):
            Decoder(shape(rope_scaling={"type": "yarn"}))


if __name__ == "__main__":
    unittest.main()
