package dev.millrace.stages;

import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.filter.BatchDivergenceFilter;
import dev.millrace.corrections.filter.BinaryKlMask;
import dev.millrace.corrections.filter.DivergenceFilterMask;
import dev.millrace.corrections.filter.DoubleSidedMask;
import dev.millrace.corrections.filter.ForcedTokenMask;
import dev.millrace.corrections.filter.ProbabilityDifferenceMask;
import dev.millrace.corrections.filter.RandomRejection;
import dev.millrace.corrections.filter.ZeroAdvantageMask;
import dev.millrace.corrections.length.LengthTrap;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.staleness.SequenceMask;
import dev.millrace.corrections.staleness.StaleSequenceMask;
import dev.millrace.corrections.trm.ExactTrustRegionMask;
import dev.millrace.corrections.trm.SampledTrustRegionMask;
import java.util.List;

/** What takes tokens out of the update. */
final class MaskKinds {
    private MaskKinds() {}

    static List<Kind> all() {
        return List.of(
                kind("m2po", M2po.defaults(), "the fewest tokens that keep the second moment of the ratio in bounds"),
                kind(
                        "sequence_mask",
                        SequenceMask.defaults(),
                        "sequences of negative advantage from which the policy has drifted"),
                kind(
                        "stale_sequences",
                        StaleSequenceMask.defaults(),
                        "whole sequences with a token of too old a version"),
                kind(
                        "trust_region",
                        ExactTrustRegionMask.defaults(),
                        "sequences with a token whose stored distributions are too far apart"),
                kind(
                        "sampled_trust_region",
                        SampledTrustRegionMask.defaults(),
                        "sequences with a token whose ratio, or a mean divergence, is too large"),
                kind("forced_token", ForcedTokenMask.defaults(), "tokens that were forced on the sampler"),
                kind(
                        "divergence_filter",
                        DivergenceFilterMask.defaults(),
                        "tokens or sequences outside bounds of a divergence, as AReaL counts it"),
                kind("ipo", ProbabilityDifferenceMask.defaults(), "tokens whose probability has changed too much"),
                kind("dis", DoubleSidedMask.defaults(), "tokens whose ratio lies outside both sides of a range"),
                kind(
                        "binary_kl",
                        BinaryKlMask.defaults(),
                        "sequences whose mean divergence of the sampled token is too large"),
                kind("zero_advantage", ZeroAdvantageMask.defaults(), "groups without an advantage"),
                kind(
                        "batch_divergence",
                        BatchDivergenceFilter.defaults(),
                        "the whole batch if the policy has left it behind"),
                kind(
                        "random_rejection",
                        RandomRejection.defaults(),
                        "a share at random, the control that a rejection must beat"),
                kind(
                        "length_trap",
                        LengthTrap.defaults(),
                        "nothing; reports whether long answers were rejected for being long"));
    }

    private static Kind kind(String name, Record defaults, String meaning) {
        return Kind.of(MaskStage.class, name, defaults, meaning);
    }
}
