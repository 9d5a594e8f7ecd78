package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.SoftMaximum;
import dev.millrace.corrections.control.ControlState;
import dev.millrace.corrections.kl.CoefficientConfig;
import dev.millrace.corrections.kl.InRewardPenalty;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.stages.CorrectionConfig;
import dev.millrace.stages.StalenessDamping;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * What a step does before its first update: log-probs of the starting weights and of the reference as far as they are needed,
 * the corrections, the penalty in the reward, and the advantages.
 *
 * <p>Nothing here changes weights or optimiser. Used by one thread.
 */
final class StepStart {
    static final String KL_COEFFICIENT = "kl.coefficient";

    private final StepConfig config;
    private final CorrectionConfig corrections;
    private final StepCorrections decisions;
    private final StalenessDamping damping;
    private final ReferenceLogProbs references;
    private final OptimalBaseline optimalBaseline;
    private final GradientShards shards;
    private final InRewardPenalty penalty = new InRewardPenalty();
    /** Whether the weights are others than the run's of that version, whose log-probs trajectories carry. */
    private boolean departed;

    StepStart(StepConfig config, CorrectionConfig corrections, ReferenceLogProbs references, GradientShards shards) {
        config.proximal().requireFits(corrections.missingOldLogProbs());
        this.config = config;
        this.corrections = corrections;
        this.decisions = new StepCorrections(corrections);
        this.damping = new StalenessDamping(corrections.staleness());
        this.references = references;
        this.optimalBaseline = new OptimalBaseline(corrections.rolloutCorrection(), shards);
        this.shards = shards;
    }

    /**
     * Where a step starts.
     *
     * @param decision      what is trained on
     * @param current       log-probs of the starting weights; null if none were needed
     * @param reference     packed log-probs of the reference; null without a divergence from it
     * @param klCoefficient how much the divergence counts; 0 without one
     * @param controls      what is remembered after this batch
     */
    record Started(
            StepDecision decision,
            @Nullable CurrentLogProbs current,
            float @Nullable [] reference,
            double klCoefficient,
            ControlState controls) {}

    /** Says whether the weights are others than the run's of that version. */
    void departFromRecord(boolean isDeparted) {
        departed = isDeparted;
    }

    /** @throws NonFiniteMemberException naming the member of the batch at which the weights give no number */
    Started start(StepMembers members, long version, Weights weights, ControlState controls, StepMetricsTally means) {
        if (members.count() == 0) {
            return new Started(decisions.recorded(members, version), null, null, 0, controls);
        }
        CurrentLogProbs current = current(members, version, weights, means);
        float[] reference = references.of(members, means);
        float[] old = config.proximal() == ProximalSource.BEHAVIOR ? members.behavior() : members.old();
        float[] proximal = proximal(members, current, version, means);
        CoefficientConfig coefficient = coefficient();
        double klCoefficient =
                coefficient == null ? 0 : controls.get(KL_COEFFICIENT).orElse(coefficient.initial());
        double[] rewards = config.kl() instanceof KlConfig.InReward
                ? penalised(members, proximal, reference, klCoefficient, means)
                : members.rewards();
        StepDecision decision = config.proximal() == ProximalSource.RECORDED
                ? decisions.recorded(members, version)
                : decisions.decide(members, old, proximal, rewards, version);
        decision = damped(
                decision, members, config.proximal() == ProximalSource.RECORDED ? recordedVersion(members) : version);
        decision = decision.withAdvantages(advantages(members, decision, rewards, weights, means));
        ControlState after = controls;
        if (coefficient != null && decision.left().trainedTokens() > 0) {
            double measured = penalty.measure(decision.left(), proximal, required(reference));
            means.once(StepMetric.KL_MEASURED, measured);
            means.once(StepMetric.KL_COEFFICIENT, klCoefficient);
            after = controls.with(
                    KL_COEFFICIENT,
                    coefficient
                            .controller(klCoefficient)
                            .updated(measured, decision.trained().length)
                            .coefficient());
        }
        return new Started(decision, current, reference, klCoefficient, after);
    }

    /** That at which the batch expected its step to start. */
    private static long recordedVersion(StepMembers members) {
        LearnerBatch batch = members.batch().batch();
        return batch.getExpectedVersion() < 0 ? batch.getAssembledVersion() : batch.getExpectedVersion();
    }

    private static float[] required(float @Nullable [] reference) {
        return Objects.requireNonNull(reference, "where a divergence counts, the reference is scored first");
    }

    private StepDecision damped(StepDecision decision, StepMembers members, long version) {
        float[] weights = decision.weights().clone();
        return damping.apply(members.versions(), decision.left(), version, weights)
                .map(report -> decision.withWeights(weights, report))
                .orElse(decision);
    }

    private @Nullable CoefficientConfig coefficient() {
        if (config.kl() instanceof KlConfig.InLoss loss) {
            return loss.coefficient();
        }
        return config.kl() instanceof KlConfig.InReward reward ? reward.coefficient() : null;
    }

    /** A member that was scored under this very version has its log-probs already, unless an update needs all of them. */
    private @Nullable CurrentLogProbs current(
            StepMembers members, long version, Weights weights, StepMetricsTally means) {
        boolean everyone = config.needsCurrentLogProbs() || config.proximal() == ProximalSource.INTERPOLATED;
        if (config.proximal() == ProximalSource.RECORDED || config.proximal() == ProximalSource.BEHAVIOR) {
            return null;
        }
        long[] scoredUnder = members.proximalVersions();
        int[] trainable = members.trainable().toArray();
        int[] wanted = IntStream.of(trainable)
                .filter(s -> everyone || departed || scoredUnder[s] != version)
                .toArray();
        float[] values = members.proximal().clone();
        shards.score(weights, members, wanted, values, means);
        means.once(StepMetric.PROXIMAL_SEQUENCES_RECOMPUTED, wanted.length);
        return new CurrentLogProbs(values, wanted.length == trainable.length);
    }

    private float[] proximal(
            StepMembers members, @Nullable CurrentLogProbs known, long version, StepMetricsTally means) {
        return switch (config.proximal()) {
            case RECORDED -> members.proximal();
            case RECOMPUTED -> {
                float[] current = scored(known);
                yield decisions.recovered(members, current, current, version, means);
            }
            case INTERPOLATED -> StepCorrections.interpolated(members, scored(known), version);
            case BEHAVIOR -> members.behavior();
        };
    }

    private static float[] scored(@Nullable CurrentLogProbs known) {
        return Objects.requireNonNull(known, "this proximal policy is scored first")
                .values();
    }

    private double[] penalised(
            StepMembers members,
            float[] proximal,
            float @Nullable [] reference,
            double coefficient,
            StepMetricsTally means) {
        TokenBatch own = members.own();
        double[] perToken =
                penalty.penalise(own, new double[own.tokenCount()], proximal, required(reference), coefficient);
        double[] rewards = members.rewards();
        double sum = 0;
        for (int s = 0; s < rewards.length; s++) {
            double penalised = rewards[s];
            for (int t = own.start(s); t < own.end(s); t++) {
                penalised += perToken[t];
            }
            sum += rewards[s] - penalised;
            rewards[s] = penalised;
        }
        means.once(StepMetric.KL_PENALTY_MEAN, rewards.length == 0 ? 0 : sum / rewards.length);
        return rewards;
    }

    private double[] advantages(
            StepMembers members, StepDecision decision, double[] rewards, Weights weights, StepMetricsTally means) {
        if (config.baseline() instanceof BaselineConfig.Opob opob) {
            return optimalBaseline.advantages(opob, members, decision, rewards, weights, means);
        }
        if (config.baseline() instanceof BaselineConfig.SoftMaximum soft) {
            return new SoftMaximum(soft.beta()).perSequence(members.own(), rewards);
        }
        return config.kl() instanceof KlConfig.InReward && config.proximal() == ProximalSource.RECORDED
                ? corrections.advantage().estimator().perSequence(members.own(), rewards)
                : decision.advantages();
    }
}
