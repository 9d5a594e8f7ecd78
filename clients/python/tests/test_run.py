"""What can be decided without a broker: settings, the chain of versions, rollouts, batches, tables."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

from millrace_rl import batch_log as batches
from millrace_rl.rows import SingleRows
from millrace_rl.errors import Malformed, Missing, NoSuchRun, Refused
from millrace_rl.generator import completed
from millrace_rl.log import murmur2, partition_of
from millrace_rl.run import Run
from millrace_rl.settings import ClientSettings, properties
from millrace_rl.table import Table
from millrace_rl.versions import Chain, Identity

IDENTITY = Identity("millrace.r.", "r", 0, "policy")


class WaitTest(unittest.TestCase):
    def asked(self, wait_s, missing, claimed=0):
        """Number of look-ups of a run that is missing for some calls, and then has only its claim topic for some calls."""
        answers = [NoSuchRun("not yet")] * missing + [({}, IDENTITY)] * (claimed + 1)
        topics = [{"millrace.r.run": 1}] * (missing + claimed) + [{"millrace.r.run": 1, "millrace.r.policy-versions": 1}]
        with mock.patch("millrace_rl.run.Kafka") as kafka, mock.patch("millrace_rl.run.Schemas"), mock.patch("millrace_rl.run.time.sleep"), \
                mock.patch.object(Run, "_found", side_effect=answers) as found:
            kafka.return_value.topics.side_effect = topics
            try:
                Run("kafka:9092", "r", wait_s=wait_s)
            except NoSuchRun:
                return -found.call_count
            return found.call_count

    def test_should_wait_for_a_run_only_where_it_is_asked_to(self):
        self.assertEqual(self.asked(60, 2), 3)
        self.assertEqual(self.asked(0, 2), -1)

    def test_should_wait_for_the_topics_of_a_run_that_is_just_claimed(self):
        self.assertEqual(self.asked(60, 1, claimed=2), 4)
        self.assertEqual(self.asked(0, 0, claimed=1), 1)


class SettingsTest(unittest.TestCase):
    def file(self, text):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = Path(directory.name) / "client.properties"
        path.write_text(text)
        return path

    def test_should_read_the_file_that_javas_clients_read(self):
        path = self.file("# of the cluster\n\nbootstrap.servers = kafka:9093\nsecurity.protocol: SASL_SSL\nsasl.mechanism=PLAIN\n"
                         "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n"
                         "    username=\"me\" password=\"a=b\\\\\"c\";\nconsumer.fetch.max.bytes=1000\n")
        settings = ClientSettings("", path)
        self.assertEqual(settings.bootstrap, "kafka:9093")
        of = settings.of("consumer.")
        self.assertEqual((of["security.protocol"], of["sasl.mechanism"], of["sasl.username"], of["sasl.password"], of["fetch.max.bytes"]),
                         ("SASL_SSL", "PLAIN", "me", "a=b\"c", "1000"))
        self.assertNotIn("fetch.max.bytes", settings.of("producer."))
        self.assertNotIn("sasl.jaas.config", of)

    def test_should_put_what_is_for_one_kind_over_what_is_for_all_and_that_over_our_own(self):
        settings = ClientSettings("a:1", {"linger.ms": 7, "producer.linger.ms": 9})
        self.assertEqual(settings.of("producer.", {"linger.ms": 2})["linger.ms"], 9)
        self.assertEqual(settings.of("consumer.", {"linger.ms": 2})["linger.ms"], 7)

    def test_should_follow_references_to_secrets(self):
        os.environ["MILLRACE_TEST_SECRET"] = "s3cret"
        secrets = self.file("kafka=0ther")
        settings = ClientSettings("a:1", {"sasl.password": "${env:MILLRACE_TEST_SECRET}", "ssl.key.password": f"${{file:{secrets}:kafka}}"})
        self.assertEqual((settings.of("consumer.")["sasl.password"], settings.of("consumer.")["ssl.key.password"]), ("s3cret", "0ther"))

    def test_should_say_which_reference_leads_nowhere(self):
        for text, why in (("${env:NOBODY_HAS_THIS}", "there is no environment variable NOBODY_HAS_THIS"), ("${x}", "no reference to a secret"),
                          (f"${{file:{self.file('a=1')}:b}}", "has no key b"), ("${file:/nowhere:b}", "cannot be read")):
            with self.assertRaisesRegex(Refused, why):
                ClientSettings("a:1", {"sasl.password": text})

    def test_should_refuse_stores_that_librdkafka_cannot_read(self):
        with self.assertRaisesRegex(Refused, "reads certificates as PEM only; make one with 'keytool -exportcert"):
            ClientSettings("a:1", {"ssl.truststore.location": "/etc/trust.jks"})
        pem = ClientSettings("a:1", {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/etc/trust"})
        self.assertEqual(pem.of("consumer.")["ssl.ca.location"], "/etc/trust")

    def test_should_name_the_line_that_is_no_setting(self):
        with self.assertRaisesRegex(Refused, r"line 2 of .* is no setting; it must be of the form key=value"):
            properties(self.file("a=1\nnothing\n"))

    def test_should_ask_for_the_cluster(self):
        with self.assertRaisesRegex(Refused, "nothing says where the cluster is"):
            ClientSettings("")


class PartitionTest(unittest.TestCase):
    def test_should_hash_as_javas_clients_do(self):
        # of Kafka's own tests of murmur2
        known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536,
                 b"a-little-bit-longer-string": -1486304829, b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, b"abc": 479470107}
        for key, value in known.items():
            self.assertEqual(murmur2(key), value & 0xFFFFFFFF)
        self.assertEqual(partition_of("policy", 1), 0)


def manifest(version, sha, base=None, base_sha=None, parent=None, optimizer=None, parent_epoch=None):
    return dict(version=version, parent_version=version - 1 if parent is None else parent, parent_epoch=parent_epoch, optimizer=optimizer,
                weights=dict(sha256=sha, base_version=base, base_sha256=base_sha))


class ChainTest(unittest.TestCase):
    def chain(self, *manifests, identity=IDENTITY):
        chain = Chain(identity)
        for each in manifests:
            chain.add(each)
        return chain

    def test_should_take_the_first_of_each_version_and_pass_over_another(self):
        chain = self.chain(manifest(0, "a"), manifest(1, "b"), manifest(1, "x"), manifest(3, "y"), manifest(2, "c", 1, "b"))
        self.assertEqual([m["weights"]["sha256"] for m in chain.by_version.values()], ["a", "b", "c", "y"])

    def test_should_pass_over_a_delta_against_other_weights(self):
        chain = self.chain(manifest(0, "a"), manifest(1, "b", 0, "other"))
        self.assertEqual(chain.newest["version"], 0)

    def test_should_wait_for_one_that_compaction_has_left_behind_its_successors(self):
        chain = self.chain(manifest(0, "a"), manifest(2, "c"), manifest(1, "b"))
        self.assertEqual(chain.newest["version"], 2)

    def test_should_pass_over_a_made_up_version_far_ahead_and_take_an_exact_successor(self):
        chain = self.chain(manifest(0, "a"), manifest(1000000, "z"))
        self.assertEqual(chain.newest["version"], 0)
        chain.add(manifest(1, "of nothing"))
        self.assertEqual(chain.newest["version"], 1)

    def test_should_take_the_copy_that_has_the_state(self):
        chain = self.chain(manifest(0, "a"), manifest(0, "a", optimizer="there"))
        self.assertEqual(chain.newest["optimizer"], "there")

    def test_should_begin_a_later_epoch_with_the_version_that_its_claim_names(self):
        later = Identity("millrace.r.", "r", 1, "policy", dict(epoch=0, version=5, weights_sha256="f"))
        chain = self.chain(manifest(5, "x", parent_epoch=0), manifest(5, "f", parent_epoch=0), manifest(6, "g"), identity=later)
        self.assertEqual([m["weights"]["sha256"] for m in chain.by_version.values()], ["f", "g"])


def rollout(**more):
    return {**dict(group_id="g", sample_index=1, group_size=2, ordinal=3, environment="inc", tokenizer_hash="h", prompt_tokens=[1, 2],
                   response_tokens=[4, 5, 6], behavior_log_probs=[-0.5, -0.25, 0.0], reward=0.5, admitted_version=7,
                   sampling=dict(temperature=1.0, top_k=0, top_p=1.0, max_tokens=8, seed=1),
                   version_spans=[dict(version=7, start=0, end=3)]), **more}


class RolloutTest(unittest.TestCase):
    def test_should_fill_in_what_follows_from_the_rest(self):
        whole = completed(rollout(), IDENTITY, 16, 99)
        self.assertEqual((whole["rollout_id"], whole["run_id"], whole["log_prob_distribution"], whole["finish_reason"], whole["finished_at_ms"]),
                         ("g/1", "r", "RAW", "STOP", 99))
        self.assertEqual(whole["mask"], b"\1\1\1")
        self.assertEqual(whole["turns"], [dict(speaker="POLICY", start=0, end=3, details=None)])
        hot = dict(temperature=0.7, top_k=0, top_p=1.0, max_tokens=3, seed=1)
        whole = completed(rollout(sampling=hot), IDENTITY, 16, 99)
        self.assertEqual((whole["log_prob_distribution"], whole["finish_reason"]), ("TEMPERED", "LENGTH"))

    def test_should_name_what_does_not_hold(self):
        truncated = dict(temperature=1.0, top_k=5, top_p=1.0, max_tokens=8, seed=1)
        for more, why in (
            (dict(response_tokens=[]), "response_tokens must hold a token"),
            (dict(response_tokens=[4, 16, 6]), r"response_tokens\[1\] is 16, and a token id is at least 0 and below 16"),
            (dict(behavior_log_probs=[-0.5]), "behavior_log_probs must have one value for each response token: 1 values, 3 tokens"),
            (dict(behavior_log_probs=[-0.5, np.nan, 0]), r"behavior_log_probs\[1\] is nan, and the natural log"),
            (dict(behavior_log_probs=[-0.5, 0.3, 0]), r"behavior_log_probs\[1\] is 0.3"),
            (dict(mask=[1, 2, 1]), "mask must be 0 or 1"),
            (dict(reward=float("nan")), "reward must be a finite number: nan"),
            (dict(reward_components=dict(a=float("inf"))), "reward_components.a must be finite: inf"),
            (dict(version_spans=[dict(version=7, start=0, end=2)]), "version_spans must cover the 3 response tokens, and they end at 2"),
            (dict(turns=[dict(speaker="POLICY", start=1, end=3)]), "turns must be in order and cover the response: one begins at 1"),
            (dict(sampling=truncated), "tempered_log_probs are needed"),
            (dict(sampling=dict(truncated, top_k=0, max_tokens=2)), "there are 3 response tokens, and sampling.max_tokens is 2"),
            (dict(run_id="other"), "the rollout is of run other epoch 0, and this run is r epoch 0"),
        ):
            with self.subTest(why), self.assertRaisesRegex(Refused, why):
                completed(rollout(**more), IDENTITY, 16, 99)

    def test_should_not_look_at_log_probs_of_tokens_that_are_never_trained_on(self):
        completed(rollout(mask=[1, 0, 1], behavior_log_probs=[-0.5, np.nan, 0]), IDENTITY, 16, 99)


def i4(*values):
    return np.array(values, "<i4").tobytes()


def f4(*values):
    return np.array(values, "<f4").tobytes()


def batch(**more):
    entry = dict(rollout_id="g/0", group_id="g", partition=0, offset=5, reward=1.0, advantage=0.5, mask=None, credit=None, weights=f4(1, 0, 2))
    other = dict(entry, rollout_id="g/1", offset=6, reward=0.0, advantage=-0.5, mask=b"\0", weights=f4(0))
    return {**dict(run_id="r", epoch=0, policy_id="policy", batch_id=4, expected_version=8, step_scale=0.5, trained_tokens=2,
                   ess_ratio=0.9, entries=[entry, other]), **more}


def trajectories():
    one = dict(run_id="r", epoch=0, policy_id="policy", rollout_id="g/0", prompt_tokens=i4(1, 2), response_tokens=i4(7, 8, 9), mask=b"\1\0\1",
               temperature=1.0, version_spans=[dict(version=6, start=0, end=1), dict(version=7, start=1, end=3)],
               behavior_log_probs=f4(-1, 0, -3), old_log_probs=f4(-1, 0, -2), proximal_log_probs=f4(-1, 0, -2.5), proximal_version=7,
               reference_log_probs=None, teacher_log_probs=None, proximal_entropies=None, kept_tokens=None)
    two = dict(one, rollout_id="g/1", prompt_tokens=i4(3), response_tokens=i4(4), mask=b"\1", temperature=0.5,
               version_spans=[dict(version=7, start=0, end=1)], behavior_log_probs=f4(-4), old_log_probs=f4(-4), proximal_log_probs=f4(-4))
    return [one, two]


def _packed(record, of, offset):
    return batches._packed({**record, "entries": SingleRows(record["entries"])}, SingleRows(of), offset)


class BatchTest(unittest.TestCase):
    def test_should_pack_sequences_one_behind_the_other(self):
        packed = _packed(batch(), trajectories(), 11)
        self.assertEqual(packed.tokens.tolist(), [1, 2, 7, 8, 9, 3, 4])
        self.assertEqual((packed.offsets.tolist(), packed.response_offsets.tolist()), ([0, 5, 7], [0, 3, 4]))
        self.assertEqual(packed.mask.tolist(), [1, 0, 1, 0])
        self.assertEqual(packed.weights.tolist(), [1, 0, 2, 0])
        self.assertEqual(packed.advantages.tolist(), [0.5, 0.5, 0.5, -0.5])
        self.assertEqual(packed.behavior_log_probs.tolist(), [-1, 0, -3, -4])
        self.assertEqual(packed.versions.tolist(), [6, 7, 7, 7])
        self.assertEqual(packed.staleness(8).tolist(), [2, 1])
        self.assertIsNone(packed.reference_log_probs)
        self.assertTrue(packed.tokens.flags.writeable)

    def test_should_lay_padded_columns_beside_the_token_that_is_predicted(self):
        padded = _packed(batch(), trajectories(), 11).padded()
        self.assertEqual(padded.input_ids.tolist(), [[1, 2, 7, 8, 9], [3, 4, 0, 0, 0]])
        self.assertEqual(padded.attention_mask.tolist(), [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
        self.assertEqual(padded.targets.tolist(), [[2, 7, 8, 9], [4, 0, 0, 0]])
        self.assertEqual(padded.mask.tolist(), [[0, 1, 0, 1], [0, 0, 0, 0]])
        self.assertEqual(padded.weights.tolist(), [[0, 1, 0, 2], [0, 0, 0, 0]])
        self.assertEqual(padded.behavior_log_probs.tolist(), [[0, -1, 0, -3], [-4, 0, 0, 0]])
        self.assertEqual(padded.temperature.tolist(), [[1.0], [0.5]])

    def test_should_put_advantages_of_tokens_in_the_place_of_that_of_the_sequence(self):
        with_credit = batch()
        with_credit["entries"][0]["credit"] = dict(token_level_advantages=f4(1, 0, -1))
        self.assertEqual(_packed(with_credit, trajectories(), 11).advantages.tolist(), [1, 0, -1, -0.5])

    def test_should_say_that_weights_are_not_recorded(self):
        without = batch()
        without["entries"][1]["weights"] = None
        packed = _packed(without, trajectories(), 11)
        with self.assertRaisesRegex(Missing, "batch 4 has no importance weights; run the topology with topology.batch.record_weights=true"):
            packed.weights
        self.assertIsNone(packed.padded().weights)

    def test_should_refuse_a_batch_that_does_not_fit_its_trajectories(self):
        def spoilt(change):
            one, two = batch(), trajectories()
            change(one, two)
            return one, two

        for change, why in (
            (lambda b, t: t[0].update(rollout_id="g/9"), "rollout g/0 at partition 0 offset 5: references rollout g/9 of run r"),
            (lambda b, t: t[0].update(behavior_log_probs=f4(1)), "has 3 response tokens and 1 values of behavior log probs"),
            (lambda b, t: b["entries"][0].update(mask=b"\1\1\1"), "trains on response token 1, which the trajectory's own mask leaves out"),
            (lambda b, t: b.update(trained_tokens=3), "declares 3 trained tokens, its entries have 2"),
            (lambda b, t: b["entries"][0].update(advantage=float("nan")), "not finite"),
            (lambda b, t: t[1].update(version_spans=[]), "version spans do not cover"),
        ):
            with self.subTest(why), self.assertRaisesRegex(Malformed, why):
                _packed(*spoilt(change), 11)

    def test_should_pack_an_empty_batch(self):
        empty = _packed(batch(entries=[], trained_tokens=0), [], 11)
        self.assertEqual((len(empty), empty.tokens.tolist(), empty.padded().input_ids.shape), (0, [], (0, 1)))


class TableTest(unittest.TestCase):
    def test_should_make_columns_of_numbers_and_objects(self):
        table = Table([dict(n=1, x=0.5, ok=True, inner=dict(a="p"), reward_components=dict(z=1.0), maybe=None, v=np.array([1, 2])),
                       dict(n=2, x=None, ok=False, inner=dict(a="q"), reward_components={}, maybe=3, v=np.array([3]))])
        self.assertEqual((table.rows, table["n"].dtype, table["ok"].dtype), (2, np.int64, np.bool_))
        self.assertEqual((table["x"][0], np.isnan(table["x"][1]), table["inner.a"].tolist()), (0.5, True, ["p", "q"]))
        self.assertEqual((table["maybe"].tolist(), table["reward_components"][0], table["v"][0].tolist()), ([None, 3], {"z": 1.0}, [1, 2]))

    def test_should_have_no_columns_without_records(self):
        self.assertEqual((Table([]).rows, list(Table([]))), (0, []))


if __name__ == "__main__":
    unittest.main()
