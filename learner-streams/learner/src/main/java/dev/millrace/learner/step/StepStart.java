package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.kl.CoefficientConfig;
import dev.millrace.corrections.kl.InRewardPenalty;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.kl.KlDivergence;
import dev.millrace.corrections.kl.KlInReward;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.corrections.ratio.ProximalApproximation;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.policy.weights.Weights;
import dev.millrace.stages.MemberLogProbs;
import dev.millrace.stages.StageReports;
import dev.millrace.stages.TrajectoryNotes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
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

    private final Algorithm algorithm;
    private final Set<StageInput> inputs;
    private final boolean readsNorms;
    private final ReferenceLogProbs references;
    private final GradientShards shards;
    private final InRewardPenalty penalty;
    /** Whether the weights are others than the run's of that version, whose log-probs trajectories carry. */
    private boolean departed;

    StepStart(Algorithm algorithm, ReferenceLogProbs references, GradientShards shards) {
        this.algorithm = algorithm;
        this.inputs = algorithm.inputs();
        this.readsNorms = readsNorms(algorithm);
        this.references = references;
        this.shards = shards;
        this.penalty = algorithm.kl() instanceof KlConfig.InReward inReward
                ? inReward.penalty(algorithm.weights().cap())
                : new InRewardPenalty(KlDivergence.REVERSE);
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
        CurrentLogProbs current = current(members, version, weights, means);
        boolean againstLearner = algorithm.kl().againstLearner();
        float[] reference = againstLearner && current != null ? current.values() : references.of(members, means);
        float[] old = algorithm.mode() == Mode.BYPASS ? members.behavior() : members.old();
        float[] proximal = proximal(members, current, version, means);
        CoefficientConfig coefficient = coefficient();
        double klCoefficient =
                coefficient == null ? 0 : controls.get(KL_COEFFICIENT).orElse(coefficient.initial());
        StageFacts facts = facts(members, old, proximal, reference, current, version);
        StepDecision decision = algorithm.mode() == Mode.RECORDED
                ? new RecordedDecision(algorithm).of(members, facts, version)
                : decided(decide(facts, klCoefficient, means), old, proximal);
        if (readsNorms && decision.left().trainedTokens() > 0) {
            decision = heldAgainstNorms(decision, facts, members, weights, means);
        }
        if (algorithm.kl() instanceof KlConfig.Centred centred
                && decision.left().trainedTokens() > 0) {
            decision = decision.penalised(centred.stage(klCoefficient), members.behavior(), required(reference));
        }
        ControlState after = controls;
        if (coefficient != null && decision.left().trainedTokens() > 0) {
            float[] measuredPolicy = againstLearner ? members.behavior() : proximal;
            double measured = penalty.measure(decision.left(), measuredPolicy, members.behavior(), required(reference));
            means.once(StepMetric.KL_MEASURED, measured);
            means.once(StepMetric.KL_REFERENCE_LOG_PROB, meanOfTrained(decision.left(), required(reference)));
            means.once(StepMetric.KL_COEFFICIENT, klCoefficient);
            after = controls.with(
                    KL_COEFFICIENT, coefficient.updated(klCoefficient, measured, decision.trained().length));
        }
        return new Started(decision, current, reference, klCoefficient, after);
    }

    /** Whether the advantage asks for the norm of every sequence's own gradient, which is one by all weights. */
    static boolean readsNorms(Algorithm algorithm) {
        return algorithm.advantage().optionalInputs().contains(StageInput.GRADIENT_NORMS);
    }

    private static double meanOfTrained(TokenBatch layout, float[] logProbs) {
        double sum = 0;
        for (int s = 0; s < layout.sequenceCount(); s++) {
            for (int t = layout.start(s); t < layout.end(s); t++) {
                sum += layout.isTrained(t) ? logProbs[t] : 0;
            }
        }
        return sum / layout.trainedTokens();
    }

    private StageFacts facts(
            StepMembers members,
            float[] old,
            float[] proximal,
            float @Nullable [] reference,
            @Nullable CurrentLogProbs current,
            long version) {
        StageFacts.Builder facts = StageFacts.of(members.own(), members.rewards());
        if (algorithm.mode() == Mode.BYPASS) { // nothing is known to compare behavior with
            facts.vector(StageInput.BEHAVIOR, members.behavior());
            if (algorithm.kl() instanceof KlConfig.InReward) { // which here takes behavior for the policy
                facts.vector(StageInput.PROXIMAL, proximal);
            }
        } else {
            new MemberLogProbs(members.behavior(), old, proximal).addTo(facts);
        }
        TrajectoryNotes.addTo(facts, members.own(), members.notes(inputs));
        if (reference != null) {
            facts.vector(StageInput.REFERENCE, reference);
        }
        if (current != null && current.moments() != null) { // as the step starts, in the place of what was recorded
            current.moments().addTo(facts);
        }
        return facts.withoutOld(members.withoutOld())
                .versions(version, members.versions())
                .agesMs(members.agesMs())
                .build();
    }

    /** The algorithm's stages, after the penalty in the reward if there is one. */
    private Decision decide(StageFacts facts, double klCoefficient, StepMetricsTally means) {
        if (!(algorithm.kl() instanceof KlConfig.InReward)) {
            return algorithm.decide(facts);
        }
        List<Stage> stages = new ArrayList<>(List.of(new KlInReward(klCoefficient, penalty)));
        stages.addAll(algorithm.stages(facts));
        Decision decision = StageBatch.decide(facts, stages);
        means.once(
                StepMetric.KL_PENALTY_MEAN, decision.outcomes().get(0).values().getOrDefault("mean_penalty", 0.0));
        return decision;
    }

    private static StepDecision decided(Decision decided, float[] old, float[] proximal) {
        return new StepDecision(decided, old, proximal, StageReports.of(decided.outcomes()));
    }

    /**
     * What an advantage that reads gradient norms makes of a decision: the norms are of what is trained on, and what that is does
     * not depend on them.
     */
    private StepDecision heldAgainstNorms(
            StepDecision decision, StageFacts facts, StepMembers members, Weights weights, StepMetricsTally means) {
        double[] norms = new double[members.count()];
        int[] trained = decision.trained();
        shards.gradientNorms(weights, members, trained, decision.left(), norms, means);
        StageFacts known = facts.under(decision.left()).toBuilder()
                .rewards(decision.decided().rewards())
                .gradientNorms(norms)
                .build();
        return decision.withAdvantages(StageBatch.decide(known, List.of(algorithm.advantage())));
    }

    private static float[] required(float @Nullable [] reference) {
        return Objects.requireNonNull(reference, "where a divergence counts, the reference is scored first");
    }

    private @Nullable CoefficientConfig coefficient() {
        return algorithm.kl().howMuch().orElse(null);
    }

    /** A member that was scored under this very version has its log-probs already, unless an update needs all of them. */
    private @Nullable CurrentLogProbs current(
            StepMembers members, long version, Weights weights, StepMetricsTally means) {
        boolean everyone = algorithm.needsCurrentLogProbs() || algorithm.mode() == Mode.INTERPOLATED;
        if (members.count() == 0 || algorithm.mode() == Mode.RECORDED || algorithm.mode() == Mode.BYPASS) {
            return null;
        }
        long[] scoredUnder = members.proximalVersions();
        int[] trainable = members.trainable().toArray();
        int[] wanted = IntStream.of(trainable)
                .filter(s -> everyone || departed || scoredUnder[s] != version)
                .toArray();
        float[] values = members.proximal().clone();
        CurrentMoments moments =
                CurrentMoments.areRead(inputs) ? CurrentMoments.recorded(members, inputs, wanted) : null;
        shards.score(weights, members, wanted, values, moments, means);
        means.once(StepMetric.PROXIMAL_SEQUENCES_RECOMPUTED, wanted.length);
        return new CurrentLogProbs(values, wanted.length == trainable.length, moments);
    }

    private float[] proximal(
            StepMembers members, @Nullable CurrentLogProbs known, long version, StepMetricsTally means) {
        if (members.count() == 0) {
            return members.proximal();
        }
        return switch (algorithm.mode()) {
            case RECORDED -> members.proximal();
            case BYPASS -> members.behavior();
            case INTERPOLATED -> new InterpolatedPolicy(members, scored(known), version).everywhere();
            case DECOUPLED ->
                algorithm.missingOldLogProbs() == MissingOldLogProbs.INTERPOLATE
                        ? new InterpolatedPolicy(members, scored(known), version)
                                .whereOldIsMissing(members, scored(known), means)
                        : scored(known);
        };
    }

    private static float[] scored(@Nullable CurrentLogProbs known) {
        return Objects.requireNonNull(known, "this proximal policy is scored first")
                .values();
    }

    /** A-3PO's proximal log-probs of a batch, between behavior and current by each token's age. */
    static final class InterpolatedPolicy {
        private final float[] logProbs;

        /**
         * @param current log-probs of the step's starting weights
         * @param version which version those are
         */
        InterpolatedPolicy(StepMembers members, float[] current, long version) {
            int[] versions = new int[current.length];
            Arrays.fill(versions, ProximalApproximation.NOT_SAMPLED);
            BatchVersions sampledBy = members.versions();
            for (int s = 0; s < members.count(); s++) {
                for (VersionSpan span : sampledBy.spans(s)) {
                    Arrays.fill(
                            versions,
                            members.own().start(s) + span.start(),
                            members.own().start(s) + span.end(),
                            Math.toIntExact(span.version()));
                }
            }
            this.logProbs = new float[current.length];
            ProximalApproximation.LOGLINEAR.compute(
                    members.own(), members.behavior(), current, versions, Math.toIntExact(version), logProbs);
        }

        /** Of all members; shared. */
        float[] everywhere() {
            return logProbs;
        }

        /** Those of the members without old log-probs in the place of others; counted. */
        float[] whereOldIsMissing(StepMembers members, float[] others, StepMetricsTally means) {
            float[] recovered = others.clone();
            int sequences = 0;
            for (int s = 0; s < members.count(); s++) {
                if (members.withoutOld()[s]) {
                    int start = members.own().start(s);
                    System.arraycopy(
                            logProbs, start, recovered, start, members.own().length(s));
                    sequences++;
                }
            }
            means.once(StepMetric.PROXIMAL_SEQUENCES_INTERPOLATED, sequences);
            return recovered;
        }
    }
}
