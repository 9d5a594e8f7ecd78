"""The decoder in torch against the one in NumPy, whose gradient is compared with differences."""

import sys
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import numpy_decoder

from millrace_rl.batch import Padded
from millrace_rl.errors import Refused
from millrace_rl.tensors import joined

try:
    import torch

    import train
    from millrace_rl.torch import Decoder
except ImportError:
    torch = None


def shape(**more):
    return {**dict(vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=4,
                   intermediate_size=12, max_position_embeddings=32, rope_theta=100.0, rms_norm_eps=1e-6, tie_word_embeddings=False,
                   attention_bias=False), **more}


class RangesOfRowsTest(unittest.TestCase):
    def test_should_join_the_ranges_of_rows_in_which_a_version_has_a_matrix(self):
        random = np.random.default_rng(5)
        weights = {name: random.normal(size=dims).astype(np.float32) for name, dims in numpy_decoder.tensors(shape())}
        head = weights["lm_head.weight"]  # 11 rows: as eleven tensors, whose numbers have two digits
        cut = {name: array for name, array in weights.items() if name != "lm_head.weight"}
        cut.update({f"lm_head.weight[{row:02}]": head[row:row + 1] for row in reversed(range(11))})
        tokens = random.integers(0, 11, (2, 5))

        whole, decoder = numpy_decoder.Decoder(shape()).load(weights), numpy_decoder.Decoder(shape()).load(cut)
        self.assertIs(whole.weights["lm_head.weight"], head)
        np.testing.assert_array_equal(decoder(tokens).logits, whole(tokens).logits)
        _, grads = decoder.gradient(joined(cut), tokens, np.array([0, 8]), np.array([1, 2]), np.ones(2, np.float32), np.ones(2, np.float32))
        self.assertEqual({name: g.shape for name, g in grads.items()}, {name: w.shape for name, w in weights.items()})


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

    def test_should_deal_the_rollouts_of_a_batch_to_all_ranks(self):
        rows = np.arange(1, 6, dtype=np.float32)[:, None] * np.ones((1, 4), np.float32)
        batch = Padded(*[rows] * 8, old_log_probs=None, temperature=rows[:, :1])
        for ranks, dealt in ((1, [[1, 2, 3, 4, 5]]), (2, [[1, 3, 5], [2, 4]]), (7, [[1], [2], [3], [4], [5], [1], [1]])):
            with mock.patch.object(train, "RANKS", ranks):
                shards = list(train.shards(batch))
            self.assertEqual([shard.temperature[:, 0].tolist() for shard in shards], dealt)
            self.assertEqual(sum(shard.mask.sum() for shard in shards), batch.mask.sum(), "trains on each token once")
            self.assertIsNone(shards[0].old_log_probs)


if __name__ == "__main__":
    unittest.main()
