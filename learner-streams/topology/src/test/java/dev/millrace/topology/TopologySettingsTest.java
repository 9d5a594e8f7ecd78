package dev.millrace.topology;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.AlgorithmBuilder;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.ratio.ComparedPolicies;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.corrections.weights.Token;
import dev.millrace.topology.join.JoinConfig;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

class TopologySettingsTest {
    private static final int MAX_VALUE_BYTES = 1_000_000;

    private static CanonicalSettings settings(TopologyConfig config) {
        return TopologySettings.of(config, Algorithm.defaults(), MAX_VALUE_BYTES);
    }

    private static CanonicalSettings settings(UnaryOperator<AlgorithmBuilder> changes) {
        return TopologySettings.of(
                TopologyConfig.defaults(), Algorithm.defaults().with(changes), MAX_VALUE_BYTES);
    }

    /**
     * Archives out there have this fingerprint. If this fails because a key was added, give the key a neutral value in
     * {@link TopologySettings#FORMS}; if one was renamed, removed or is spelled otherwise, add a change of form there. Never
     * change what is expected here without one of the two.
     */
    @Test
    void shouldWriteTheDefaultsAsEverBefore() {
        CanonicalSettings defaults = settings(TopologyConfig.defaults());
        assertThat(defaults.text()).isEqualTo("""
                millrace settings, form 1
                algorithm.advantage.divide_by_std = false
                algorithm.advantage.kind = grpo
                algorithm.ess.base_ratio = 1
                algorithm.ess.rule = sqrt
                algorithm.ess.weights = raw
                algorithm.masks[0].harmful_only = true
                algorithm.masks[0].kind = m2po
                algorithm.masks[0].threshold = 0.04
                algorithm.missing_old_log_probs = recompute
                algorithm.mode = decoupled
                algorithm.rejection.compare = anchor
                algorithm.rejection.rollout_rs = ""
                algorithm.rejection.rollout_rs_threshold = ""
                algorithm.rewards = []
                algorithm.staleness.half_life_versions = 0
                algorithm.staleness.max_age_ms = 0
                algorithm.staleness.max_versions = 8
                algorithm.weights.batch_normalize = false
                algorithm.weights.compare = anchor
                algorithm.weights.kind = token
                algorithm.weights.threshold = "2"
                topology.batch.max_outstanding = 0
                topology.batch.order = completion
                topology.batch.record_weights = false
                topology.batch.sequences = 256
                topology.batch.tokens = 0
                topology.groups.closed_retention_ms = 3600000
                topology.groups.deadline_ms = 120000
                topology.groups.max_gap_ms = 10000
                topology.groups.min_size = 4
                topology.groups.zero_variance = keep
                topology.ingress.max_group_size = 4096
                topology.ingress.max_reward = 1000000
                topology.ingress.tokenizer_hash = ""
                topology.ingress.vocabulary_size = 0
                topology.join.dedupe_groups = 100000
                topology.join.dedupe_retention_ms = 3600000
                topology.join.max_gap_ms = 10000
                topology.join.orphan_after_ms = 60000
                topology.join.reference = false
                topology.join.reward = false
                topology.join.teacher = false
                topology.join.unscored_after_ms = 600000
                topology.max_value_bytes = 1000000
                """);
        assertThat(defaults.fingerprint().sha256())
                .isEqualTo("f75ef0eb0a17b401f1c804af5edba61af1472ae3ffb03e61a256bf30a9124d2e");
    }

    @Test
    void shouldNotDependOnHowItIsRunAndHowMuchMemoryItTakes() {
        TopologyConfig config = TopologyConfig.defaults();
        JoinConfig join = config.join();
        TopologyConfig otherwise = new TopologyConfig(
                config.ingress(),
                new JoinConfig(
                        join.reward(),
                        join.reference(),
                        join.teacher(),
                        join.unscoredAfterMs(),
                        join.orphanAfterMs(),
                        join.maxGapMs(),
                        17,
                        join.dedupeRetentionMs(),
                        join.dedupeGroups()),
                config.groups(),
                config.batch(),
                config.runtime());
        assertThat(settings(otherwise)).isEqualTo(settings(config));
    }

    @Test
    void shouldSayTheSameOfAPresetAndOfWhatItStandsFor() {
        CanonicalSettings preset = TopologySettings.of(
                TopologyConfig.defaults(), Algorithm.variant("decoupled_k3_rs_token_tis"), MAX_VALUE_BYTES);
        UnaryOperator<AlgorithmBuilder> bare = a -> a.masks().ess(new Ess(Ess.Rule.NONE, Ess.Weights.RAW, 1));
        assertThat(settings(a -> bare.apply(a)
                        .weights(new Token("2", false))
                        .rejection(new Rejection("seq_mean_k3", " 0.010 ", ComparedPolicies.ANCHOR))))
                .isEqualTo(preset);
        assertThat(settings(a -> bare.apply(a).weights(new Token("0.5_5", false))))
                .isEqualTo(TopologySettings.of(
                        TopologyConfig.defaults(), Algorithm.variant("decoupled_token_icepop"), MAX_VALUE_BYTES))
                .isNotEqualTo(preset);
    }

    @Test
    void shouldNotDependOnWhatOnlyAnUpdateReads() {
        assertThat(settings(
                        a -> a.objective(DecoupledPpo.defaults()).minibatches(4).epochs(2)))
                .isEqualTo(settings(TopologyConfig.defaults()));
        assertThat(settings(a -> a.objective(PpoClip.defaults())))
                .as("around the old policy weights compare something else")
                .isNotEqualTo(settings(TopologyConfig.defaults()));
    }

    @Test
    void shouldDependOnTheLargestValueThatTheLogTakes() {
        CanonicalSettings here = settings(TopologyConfig.defaults());
        CanonicalSettings there = TopologySettings.of(TopologyConfig.defaults(), Algorithm.defaults(), 5);
        assertThat(TopologySettings.FORMS.differences(there, here))
                .containsExactly(new SettingDifference("topology.max_value_bytes", "5", "1000000"));
    }
}
