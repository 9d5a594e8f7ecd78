package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.CriticConfig;
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
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.StalenessDamping;
import dev.millrace.corrections.staleness.StalenessLimit;
import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.stages.BaselineMemory;
import dev.millrace.stages.MemberLogProbs;
import dev.millrace.stages.StageReports;
import dev.millrace.stages.TrajectoryNotes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Decides a batch again at step start: scores it under the starting weights and the reference as far as needed, and applies the
 * algorithm's stages, the KL penalty in the reward included.
 *
 * <p>Does not change weights or optimiser. Used by one thread.
 */
final class StepStart {
    static final String KL_COEFFICIENT = "kl.coefficient";

    private final Algorithm algorithm;
    private final Set<StageInput> inputs;
    /** Inputs that a forward pass replaces; not a partner's values. */
    private final Set<StageInput> scored;

    private final boolean readsNorms;
    private final ReferenceLogProbs references;
    private final GradientShards shards;
    private final InRewardPenalty penalty;
    /** Whether the weights differ from the recorded version, so that recorded log-probs do not apply. */
    private boolean departed;

    StepStart(Algorithm algorithm, ReferenceLogProbs references, GradientShards shards) {
        this.algorithm = algorithm;
        this.inputs = algorithm.inputs();
        this.scored = EnumSet.copyOf(inputs);
        if (algorithm.critic() instanceof CriticConfig.Off) {
            scored.remove(StageInput.VALUES);
        }
        this.readsNorms = readsNorms(algorithm);
        this.references = references;
        this.shards = shards;
        this.penalty = algorithm.kl() instanceof KlConfig.InReward inReward
                ? inReward.penalty(algorithm.weights().cap())
                : new InRewardPenalty(KlDivergence.REVERSE);
    }

    /**
     * State at step start.
     *
     * @param current       log-probs of the starting weights; null if not needed
     * @param reference     packed log-probs of the reference; null without a divergence from it
     * @param values        of the policy's own critic, packed, before the first update; null without one
     * @param klCoefficient coefficient of the divergence; 0 without one
     * @param controls      state of the controls after this batch
     */
    record Started(
            StepDecision decision,
            @Nullable CurrentLogProbs current,
            float @Nullable [] reference,
            float @Nullable [] values,
            double klCoefficient,
            ControlState controls) {}

    /** See {@link BatchOptimizer#departFromRecord}. */
    void departFromRecord(boolean isDeparted) {
        departed = isDeparted;
    }

    /** @throws NonFiniteMemberException naming the member with a non-finite output */
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
                ? recorded(members, facts, version)
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
        boolean hasCritic = algorithm.critic() instanceof CriticConfig.ValueHead && facts.has(StageInput.VALUES);
        return new Started(
                decision, current, reference, hasCritic ? facts.vector(StageInput.VALUES) : null, klCoefficient, after);
    }

    /** Whether the advantage reads each sequence's gradient norm, over all weights. */
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
        if (inputs.contains(StageInput.BASELINES)) {
            BaselineMemory.addRecorded(facts, members.entries());
        }
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
     * Computes advantages from gradient norms. Norms cover the trained tokens, which do not depend on them.
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

    /** Scores the members; reuses scores under this version unless an update needs all members. */
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
                CurrentMoments.areRead(scored) ? CurrentMoments.recorded(members, scored, wanted) : null;
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
            case INTERPOLATED -> interpolated(members, scored(known), version);
            case DECOUPLED ->
                algorithm.missingOldLogProbs() == MissingOldLogProbs.INTERPOLATE
                        ? interpolatedWhereOldIsMissing(members, scored(known), version, means)
                        : scored(known);
        };
    }

    private static float[] scored(@Nullable CurrentLogProbs known) {
        return Objects.requireNonNull(known, "this proximal policy is scored first")
                .values();
    }

    /** A-3PO's proximal log-probs of a batch, between behavior and these current ones by each token's age. */
    private static float[] interpolated(StepMembers members, float[] current, long version) {
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
        float[] logProbs = new float[current.length];
        ProximalApproximation.LOGLINEAR.compute(
                members.own(), members.behavior(), current, versions, Math.toIntExact(version), logProbs);
        return logProbs;
    }

    /** The current log-probs, interpolated for the members without old ones; counts these. */
    private static float[] interpolatedWhereOldIsMissing(
            StepMembers members, float[] current, long version, StepMetricsTally means) {
        float[] logProbs = interpolated(members, current, version);
        float[] recovered = current.clone();
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

    /**
     * The decision of mode {@code recorded}: masks, advantages and step scale of the batch. Importance weights are the batch's if
     * recorded, else computed from recorded log-probs. Masks tokens that have exceeded the staleness limit since.
     *
     * @param facts with the recorded log-probs
     * @param version at step start
     */
    private StepDecision recorded(StepMembers members, StageFacts facts, long version) {
        LearnerBatch batch = members.batch().batch();
        LateStaleness late = LateStaleness.of(members, algorithm.staleness().maxVersions(), version);
        Decision weighed = StageBatch.decide(
                facts.toBuilder()
                        .versions(expectedVersion(batch), members.versions())
                        .build(),
                weighing());
        @Nullable String[] maskedBy = late.maskedBy();
        if (maskedBy == null) {
            maskedBy = new String[members.count()];
            for (int s = 0; s < maskedBy.length; s++) {
                maskedBy[s] = members.entry(s).getMaskedBy();
            }
        }
        List<StageReport> reports = new ArrayList<>(late.stages(batch.getStages()));
        List<StageOutcome> weighing =
                weighed.outcomes().subList(1, weighed.outcomes().size()); // who is left out stands
        for (StageReport report : StageReports.of(weighing)) {
            reports.removeIf(before -> before.getStage().equals(report.getStage()));
            reports.add(report);
        }
        return new StepDecision(
                new Decision(
                        late.left(),
                        members.rewards(),
                        members.recordedAdvantages(),
                        members.recordedTokenAdvantages(),
                        Optional.empty(),
                        members.recordedWeights().orElse(weighed.weights()),
                        maskedBy,
                        weighed.outcomes(),
                        present(batch.getEssRatio()),
                        present(batch.getEssRatioTruncated()),
                        present(batch.getSecondMoment()),
                        batch.getStepScale()),
                members.old(),
                members.proximal(),
                List.copyOf(reports));
    }

    /** That at which the batch expected its step to start, from which its own stages counted. */
    private static long expectedVersion(LearnerBatch batch) {
        return batch.getExpectedVersion() < 0 ? batch.getAssembledVersion() : batch.getExpectedVersion();
    }

    private List<Stage> weighing() {
        List<Stage> stages =
                new ArrayList<>(List.of(algorithm.missingOldLogProbs().stage()));
        algorithm
                .objective()
                .weightsCompare()
                .map(algorithm.weights()::comparing)
                .ifPresent(stages::add);
        if (algorithm.staleness().halfLifeVersions() > 0) {
            stages.add(new StalenessDamping(algorithm.staleness().halfLifeVersions()));
        }
        return stages;
    }

    private static OptionalDouble present(@Nullable Double figure) {
        return figure == null ? OptionalDouble.empty() : OptionalDouble.of(figure);
    }

    /**
     * Masks tokens that exceed the staleness limit at step start. There are none if the step starts at the expected version.
     *
     * @param left the layout under the batch's masks, without these tokens
     * @param report of the stage; null without such tokens
     * @param maskedBy per member, the stage that masked its last token, or null; null without such tokens
     */
    record LateStaleness(
            TokenBatch left,
            @Nullable StageReport report,
            @Nullable String @Nullable [] maskedBy) {
        /** Name of the stage in reports. */
        static final String STAGE = "staleness_at_step";

        static LateStaleness of(StepMembers members, long maxVersions, long version) {
            TokenBatch recorded = members.own().withMask(members.recordedMask());
            byte[] mask = new byte[recorded.tokenCount()];
            new StalenessLimit(maxVersions).maskTokens(members.versions(), version, mask);
            long masked = 0;
            for (int t = 0; t < mask.length; t++) {
                masked += mask[t] == 0 && recorded.isTrained(t) ? 1 : 0;
                mask[t] = mask[t] == 1 && recorded.isTrained(t) ? (byte) 1 : 0;
            }
            if (masked == 0) {
                return new LateStaleness(recorded, null, null);
            }
            TokenBatch left = recorded.withMask(mask);
            String[] maskedBy = new String[members.count()];
            long seen = 0;
            long lost = 0;
            for (int s = 0; s < maskedBy.length; s++) {
                BatchEntry entry = members.batch().members().get(s).entry();
                boolean wasTrained = recorded.trainedTokens(s) > 0;
                seen += wasTrained ? 1 : 0;
                if (left.trainedTokens(s) == 0) {
                    maskedBy[s] = wasTrained ? STAGE : entry.getMaskedBy();
                    lost += wasTrained ? 1 : 0;
                }
            }
            return new LateStaleness(
                    left,
                    new StageReport(
                            STAGE,
                            (long) recorded.trainedTokens(),
                            masked,
                            seen,
                            lost,
                            Map.of("max_versions", (double) maxVersions, "current_version", (double) version)),
                    maskedBy);
        }

        List<StageReport> stages(List<StageReport> recorded) {
            if (report == null) {
                return recorded;
            }
            List<StageReport> all = new ArrayList<>(recorded);
            all.add(report);
            return all;
        }
    }
}
