package dev.millrace.topology;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.stages.ComparedPolicies;
import dev.millrace.stages.CorrectionConfig;
import dev.millrace.stages.RolloutCorrectionOptions;
import dev.millrace.topology.join.JoinConfig;
import dev.millrace.topology.settings.CanonicalSettings;
import dev.millrace.topology.settings.SettingDifference;
import org.junit.jupiter.api.Test;

class TopologySettingsTest {
    private static final int MAX_VALUE_BYTES = 1_000_000;

    private static CanonicalSettings settings(TopologyConfig config) {
        return TopologySettings.of(config, MAX_VALUE_BYTES);
    }

    private static CanonicalSettings settings(String preset, String is, String isBound, String rs, String rsBound) {
        CorrectionConfig defaults = CorrectionConfig.defaults();
        TopologyConfig all = TopologyConfig.defaults();
        return settings(new TopologyConfig(
                all.ingress(),
                all.join(),
                new CorrectionConfig(
                        new RolloutCorrectionOptions(preset, ComparedPolicies.ANCHOR, is, isBound, rs, rsBound),
                        defaults.advantage(),
                        defaults.staleness(),
                        defaults.sequenceMask(),
                        defaults.m2po(),
                        defaults.ess(),
                        defaults.missingOldLogProbs()),
                all.groups(),
                all.batch(),
                all.runtime()));
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
                topology.batch.max_outstanding = 0
                topology.batch.order = completion
                topology.batch.sequences = 256
                topology.batch.tokens = 0
                topology.corrections.advantage.divide_by_std = false
                topology.corrections.ess.base_ratio = 1
                topology.corrections.ess.rule = sqrt
                topology.corrections.ess.weights = raw
                topology.corrections.m2po.enabled = true
                topology.corrections.m2po.harmful_only = true
                topology.corrections.m2po.threshold = 0.04
                topology.corrections.missing_old_log_probs = recompute
                topology.corrections.rollout_correction.compare = anchor
                topology.corrections.rollout_correction.rollout_is = "token"
                topology.corrections.rollout_correction.rollout_is_threshold = "2"
                topology.corrections.rollout_correction.rollout_rs = ""
                topology.corrections.rollout_correction.rollout_rs_threshold = ""
                topology.corrections.sequence_mask.enabled = false
                topology.corrections.sequence_mask.threshold = 0.1
                topology.corrections.staleness.half_life_versions = 0
                topology.corrections.staleness.max_age_ms = 0
                topology.corrections.staleness.max_versions = 8
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
                topology.join.record_weights = false
                topology.join.reference = false
                topology.join.reward = false
                topology.join.teacher = false
                topology.join.unscored_after_ms = 600000
                topology.max_value_bytes = 1000000
                """);
        assertThat(defaults.fingerprint().sha256())
                .isEqualTo("d828a0e63ac736fb608691d0e375582bfdec7b66efa18957c32ee25bf3cc6e71");
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
                        join.dedupeGroups(),
                        join.recordWeights()),
                config.corrections(),
                config.groups(),
                config.batch(),
                config.runtime());
        assertThat(settings(otherwise)).isEqualTo(settings(config));
    }

    @Test
    void shouldSayTheSameOfAPresetAndOfWhatItStandsFor() {
        CanonicalSettings preset = settings("decoupled_k3_rs_token_tis", "token", "2.0", "", "");
        assertThat(settings("", "token", "2", "seq_mean_k3", " 0.010 ")).isEqualTo(preset);
        assertThat(settings("decoupled_token_icepop", "token", "2.0", "", ""))
                .isEqualTo(settings("", "token", "0.5_5", "", ""));
        assertThat(settings("disabled", "token", "2.0", "", ""))
                .isEqualTo(settings("", "", "", "", ""))
                .isNotEqualTo(preset);
    }

    @Test
    void shouldDependOnTheLargestValueThatTheLogTakes() {
        CanonicalSettings here = settings(TopologyConfig.defaults());
        CanonicalSettings there = TopologySettings.of(TopologyConfig.defaults(), 5);
        assertThat(TopologySettings.FORMS.differences(there, here))
                .containsExactly(new SettingDifference("topology.max_value_bytes", "5", "1000000"));
    }
}
