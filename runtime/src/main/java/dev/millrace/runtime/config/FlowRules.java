package dev.millrace.runtime.config;

import dev.millrace.corrections.advantage.BatchMean;
import dev.millrace.corrections.advantage.Distillation;
import dev.millrace.corrections.advantage.FailureDistillation;
import dev.millrace.corrections.advantage.Gae;
import dev.millrace.corrections.advantage.ReinforcePlusPlus;
import dev.millrace.corrections.advantage.Remax;
import dev.millrace.corrections.advantage.RlZvp;
import dev.millrace.corrections.advantage.TrackedBaseline;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.kl.ReferenceConfig;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.generator.staleness.StalenessControllerConfig;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.batch.GroupsConfig.ZeroVariance;
import dev.millrace.weights.WeightsConfig;
import java.util.Locale;

/**
 * Refuses settings of different roles that contradict each other in how many rollouts are released, assembled, trained
 * on or kept.
 */
final class FlowRules {
    private FlowRules() {}

    /** @throws ConfigException naming both keys, both values and a way out */
    static void require(
            StalenessControllerConfig admission, TopologyConfig topology, Algorithm algorithm, WeightsConfig weights) {
        if (admission.batchSequences() != topology.batch().sequences()) {
            throw new ConfigException("admission.batch_sequences is " + admission.batchSequences()
                    + " and topology.batch.sequences is " + topology.batch().sequences()
                    + "; both are the batch size, so give both the same value");
        }
        if (admission.groupSize() > topology.ingress().maxGroupSize()) {
            throw new ConfigException("admission.group_size is " + admission.groupSize()
                    + " and topology.ingress.max_group_size is "
                    + topology.ingress().maxGroupSize() + "; every rollout would be refused, so raise the latter");
        }
        if (topology.groups().minSize() > admission.groupSize()) {
            throw new ConfigException(
                    "topology.groups.min_size is " + topology.groups().minSize() + " and admission.group_size is "
                            + admission.groupSize() + "; no group could ever be trained on, so lower the former");
        }
        if (algorithm.staleness().maxVersions() < admission.eta()) {
            throw new ConfigException(
                    "admission.eta is " + admission.eta() + " and algorithm.staleness.max_versions is "
                            + algorithm.staleness().maxVersions()
                            + "; prompts would be released for rollouts that are then masked as stale, so raise the latter or lower eta");
        }
        if (weights.keepVersions() > 0
                && weights.keepVersions() < algorithm.staleness().maxVersions() + 2) {
            throw new ConfigException("weights.keep_versions is " + weights.keepVersions()
                    + " and algorithm.staleness.max_versions is "
                    + algorithm.staleness().maxVersions()
                    + "; versions that rollouts of a batch may name would be removed, so raise"
                    + " the former to at least "
                    + (algorithm.staleness().maxVersions() + 2) + ", or 0 to keep all");
        }
        if (needsRecordedReference(algorithm.kl()) && !topology.join().reference()) {
            throw new ConfigException(
                    "algorithm.kl takes the reference's log-probs from the trajectories (reference.kind=recorded) and"
                            + " topology.join.reference is false, so no trajectory has them; set the latter to true and scorer.reference to a policy,"
                            + " or let the learner compute them: algorithm.kl.reference.kind=version");
        }
    }

    /**
     * Refuses group sizes that the advantage cannot handle, or that it never sees.
     *
     * @throws ConfigException naming both keys, both values and a way out
     */
    static void requireGroups(StalenessControllerConfig admission, TopologyConfig topology, Algorithm algorithm) {
        int least = algorithm.advantage().leastGroup();
        String needs = "algorithm.advantage.kind is " + algorithm.advantage().name()
                + ", which needs groups of at least " + least + " samples";
        if (least > admission.groupSize()) {
            throw new ConfigException(needs + ", and admission.group_size is " + admission.groupSize()
                    + "; every batch would fail, so lower algorithm.advantage.k or raise the latter");
        }
        if (least > topology.groups().minSize()) {
            throw new ConfigException(needs + ", and topology.groups.min_size is "
                    + topology.groups().minSize()
                    + "; a batch with an incomplete group would fail, so lower algorithm.advantage.k or raise the"
                    + " latter");
        }
        if (topology.groups().minSize() < 2 && comparesSiblings(algorithm.advantage())) {
            throw new ConfigException("topology.groups.min_size is "
                    + topology.groups().minSize() + " and algorithm.advantage.kind is "
                    + algorithm.advantage().name()
                    + ", which compares a sample with its siblings; set the former to at least 2, or the latter to one that needs"
                    + " none, such as value_tracker or batch_mean");
        }
        if (admission.groupSize() == 1 && topology.groups().zeroVariance() != ZeroVariance.KEEP) {
            throw new ConfigException("admission.group_size is 1, so a group has one reward, and"
                    + " topology.groups.zero_variance="
                    + topology.groups().zeroVariance().name().toLowerCase(Locale.ROOT)
                    + " removes groups whose rewards are all equal; set the latter to keep, or raise the former");
        }
        if (learnsFromEqualRewards(algorithm.advantage()) && topology.groups().zeroVariance() != ZeroVariance.KEEP) {
            throw new ConfigException("algorithm.advantage.kind is "
                    + algorithm.advantage().name() + ", which learns from groups with equal rewards, and"
                    + " topology.groups.zero_variance="
                    + topology.groups().zeroVariance().name().toLowerCase(Locale.ROOT)
                    + " removes them; set topology.groups.zero_variance=keep, or algorithm.advantage.kind=grpo");
        }
    }

    private static boolean comparesSiblings(AdvantageEstimator advantage) {
        return !(advantage instanceof TrackedBaseline
                || advantage instanceof BatchMean
                || advantage instanceof Gae
                || advantage instanceof Remax
                || advantage instanceof ReinforcePlusPlus);
    }

    private static boolean learnsFromEqualRewards(AdvantageEstimator advantage) {
        return advantage instanceof RlZvp
                || advantage instanceof TrackedBaseline
                || advantage instanceof Distillation
                || advantage instanceof FailureDistillation;
    }

    private static boolean needsRecordedReference(KlConfig kl) {
        return kl.against().filter(ReferenceConfig.Recorded.class::isInstance).isPresent();
    }
}
