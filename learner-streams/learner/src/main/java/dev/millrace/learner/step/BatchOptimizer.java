package dev.millrace.learner.step;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.CriticConfig;
import dev.millrace.corrections.algorithm.RoutingReplay;
import dev.millrace.corrections.diagnostics.GradientPower;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.kl.KlResult;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveInput;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.corrections.objective.UpdateFacts;
import dev.millrace.corrections.objective.ValueLoss;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.LengthGuard;
import dev.millrace.corrections.stage.StageFailedException;
import dev.millrace.corrections.weights.None;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.DeviceValues;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.TensorSet;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.weights.AdapterBases;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Trains on a batch: {@code epochs × minibatches} AdamW steps on
 * {@code loss = Σ_s c_s Σ_t w_t ℓ(log π(y_t), A) − β Σ_s c_s Σ_t H_t + κ KL}. c are the aggregation's coefficients and
 * w the importance weights. With a critic, its coefficient times {@link ValueLoss} is added. The learning rate is the
 * schedule's times the factor of the controls.
 *
 * <p>Used by one thread, except {@link #cancel()}. Weights and optimiser are changed in place; after an exception they
 * are inconsistent and must be discarded.
 */
public final class BatchOptimizer implements AutoCloseable {
    private static final Map<String, String> OBJECTIVE_NAMES = Map.of(
            ObjectiveResult.APPROX_KL, StepMetric.APPROX_KL_PROXIMAL.key(),
            ObjectiveResult.CLIPPED_FRACTION, StepMetric.CLIP_FRACTION.key(),
            ObjectiveResult.LOWER_CLIPPED_FRACTION, StepMetric.CLIP_FRACTION_LOWER.key());

    private final DecoderShape shape;
    private final StepConfig config;
    private final Algorithm algorithm;
    private final CriticConfig.@Nullable ValueHead critic;
    private final Optional<LoraStart> lora;
    private final List<TensorSpec> trained;
    private final GradientShards shards;
    private final Gradients gradients;
    private final ReferenceLogProbs references;
    private final StepStart starts;
    private final LengthGuard lengthGuard;

    /**
     * Compiles the graphs.
     *
     * @param algorithm the run's algorithm, for the decisions of a step at its starting version
     */
    public BatchOptimizer(Engine engine, DecoderShape shape, StepConfig config, Algorithm algorithm) {
        this(engine, shape, Optional.empty(), config, algorithm);
    }

    /**
     * Compiles the graphs, of an adapter if configured.
     *
     * @param lora initial adapter; empty to train the weights themselves
     */
    public BatchOptimizer(
            Engine engine, DecoderShape shape, Optional<LoraStart> lora, StepConfig config, Algorithm algorithm) {
        this(
                engine,
                shape,
                lora,
                config,
                algorithm,
                Math.min(config.shards(), Runtime.getRuntime().availableProcessors()));
    }

    /** @param threads for the shards; their number does not change the bits */
    BatchOptimizer(
            Engine engine,
            DecoderShape shape,
            Optional<LoraStart> lora,
            StepConfig config,
            Algorithm algorithm,
            int threads) {
        if (lora.isPresent() && StepStart.readsNorms(algorithm)) {
            throw new IllegalArgumentException(
                    "adapters are trained and the advantage is opob, whose norms are those of the gradient"
                            + " by all weights; choose another algorithm.advantage.kind, or learner.lora.rank=0");
        }
        if (algorithm.routingReplay() != RoutingReplay.NONE
                && !shape.traits().experts().present()) {
            throw new IllegalArgumentException("algorithm.routing_replay is "
                    + algorithm.routingReplay().name().toLowerCase(Locale.ROOT)
                    + ", and the model has no experts; choose routing_replay=none");
        }
        if (shape.traits().experts().present() && StepStart.readsNorms(algorithm)) {
            throw new IllegalArgumentException(
                    "the advantage is opob, which needs per-sequence gradient norms, not supported for a mixture of"
                            + " experts; choose"
                            + " another algorithm.advantage.kind");
        }
        if (algorithm.critic() instanceof CriticConfig.ValueHead) {
            if (lora.isPresent()) {
                throw new IllegalArgumentException(
                        "adapters are trained, and algorithm.critic is value_head, which an adapter does not contain; choose"
                                + " algorithm.critic=off, or learner.lora.rank=0");
            }
            if (!shape.valueHead()) {
                throw new IllegalArgumentException(
                        "algorithm.critic is value_head, and the policy has no value head, since its run began without one;"
                                + " choose algorithm.critic=off and another algorithm.advantage");
            }
        }
        this.shape = shape;
        this.config = config;
        this.algorithm = algorithm;
        this.critic = algorithm.critic() instanceof CriticConfig.ValueHead head ? head : null;
        this.lora = lora;
        this.trained = lora.map(start -> start.shape().tensors(shape)).orElseGet(shape::tensors);
        this.shards = new GradientShards(engine, shape, lora.map(LoraStart::shape), config, threads);
        this.gradients = new Gradients(trained);
        this.references = new ReferenceLogProbs(algorithm.kl(), shards, gradients);
        this.starts = new StepStart(algorithm, references, shards);
        this.lengthGuard = new LengthGuard(algorithm.lengthGuard());
    }

    /** An optimiser before its first step. */
    public AdamW newOptimizer() {
        return new AdamW(config.optimizer().adamW(), trained);
    }

    /**
     * Returns the weights to train; adds an initial adapter, which changes no output, if one is configured and missing.
     *
     * @param weights shared with the result
     * @throws IllegalArgumentException if they have another adapter than the configured one
     */
    public Weights trainable(Weights weights) {
        Optional<LoraShape> has = weights.adapter().map(LoraAdapter::shape);
        Optional<LoraShape> wanted = lora.map(LoraStart::shape);
        if (has.isPresent() && !has.equals(wanted)) {
            throw new IllegalArgumentException("the weights have an adapter of " + has.get() + ", and "
                    + wanted.map(low -> "one of " + low + " is trained").orElse("the weights themselves are trained"));
        }
        return has.isEmpty() && lora.isPresent()
                ? weights.with(LoraAdapter.initial(
                        lora.get().shape(), AdapterBases.of(weights), lora.get().seed()))
                : weights;
    }

    /** Shape of the trained adapter; empty if the weights themselves are trained. */
    public Optional<LoraShape> adapters() {
        return lora.map(LoraStart::shape);
    }

    /**
     * Version whose weights must be passed to {@link #useReference} before the first batch; empty if none.
     */
    public OptionalLong referenceVersion() {
        return references.version();
    }

    /** Sets the reference policy. Keeps the weights, which must not change afterwards. */
    public void useReference(Weights weights) {
        references.keep(weights);
    }

    /**
     * Trains on a batch. A batch without a trained token, or on which a stage fails, is starved and changes nothing, not even
     * the optimiser's step count.
     *
     * @param version  version of the weights; staleness counts from it
     * @throws NonFiniteStepException if loss, gradient or weights are not finite
     * @throws InconsistentBatchException if a member does not fit the model, is newer than the version, or lacks the
     *     reference's log-probs
     * @throws java.util.concurrent.CancellationException after {@link #cancel()}
     */
    public StepReport train(
            TrainingBatch batch, long version, ControlState controls, Weights weights, AdamW optimizer) {
        StepMetricsTally means = new StepMetricsTally();
        StepMembers members = laidOut(batch, version);
        StepStart.Started start;
        try {
            start = starts.start(members, version, weights, controls, means);
        } catch (NonFiniteMemberException e) {
            throw nonFinite(members, e.member(), e);
        } catch (StageFailedException e) {
            return undecided(members, controls, means, e);
        }
        ControlState remembered = start.controls();
        double rate = 0;
        try {
            int[] trained = start.decision().trained();
            if (trained.length > 0) {
                LengthGuard.Outcome guard = lengthGuard.see(members.meanTokens(), remembered);
                guard.seen().ifPresent(seen -> {
                    means.once(StepMetric.LENGTH_GUARD_TOKENS, seen.tokens());
                    seen.tokensBefore().ifPresent(before -> means.once(StepMetric.LENGTH_GUARD_TOKENS_BEFORE, before));
                    means.once(StepMetric.LENGTH_GUARD_REMEMBERED, seen.remembered());
                    means.once(StepMetric.LENGTH_GUARD_SCALE, guard.scale());
                });
                remembered = guard.state();
                explainedVariance(start).ifPresent(share -> means.once(StepMetric.EXPLAINED_VARIANCE, share));
                // the ESS scales the step (vcpo.Ess)
                double scale = start.decision().decided().stepScale() * guard.scale();
                if (algorithm.routingReplay() == RoutingReplay.LEARNER) {
                    members.replay(shards.route(weights, members, trained, means));
                }
                for (int epoch = 0; epoch < algorithm.epochs(); epoch++) {
                    for (int[] part : minibatches(trained)) {
                        Minibatch minibatch = new Minibatch(members, start, part);
                        remembered = differentiate(
                                batch,
                                minibatch,
                                start,
                                weights,
                                optimizer.state().steps(),
                                remembered,
                                means);
                        rate = update(batch, scale, weights, optimizer, means);
                    }
                }
                requireFinite(batch, weights, optimizer.state());
            }
        } catch (NonFiniteMemberException e) {
            throw nonFinite(members, e.member(), e);
        }
        return report(members, start, version, rate, remembered, means);
    }

    private static OptionalDouble explainedVariance(StepStart.Started start) {
        float[] returns = start.decision().decided().returns().orElse(null);
        return start.values() == null || returns == null
                ? OptionalDouble.empty()
                : ValueLoss.explainedVariance(start.decision().left(), start.values(), returns);
    }

    /** @throws InconsistentBatchException if this model cannot take a sequence, or a token is newer than the version */
    private StepMembers laidOut(TrainingBatch batch, long version) {
        for (TrainingBatch.Member member : batch.members()) {
            for (VersionSpan span : member.trajectory().getVersionSpans()) {
                if (span.getVersion() > version) {
                    throw new InconsistentBatchException(
                            "batch " + batch.batch().getBatchId() + ", rollout "
                                    + member.entry().getRolloutId() + ": its tokens from " + span.getStart()
                                    + " on are of version " + span.getVersion()
                                    + ", newer than version " + version + ", from which the step starts");
                }
            }
        }
        try {
            StepMembers members = new StepMembers(batch);
            members.sequences().requireFits(shape);
            return members;
        } catch (IllegalArgumentException e) {
            throw new InconsistentBatchException(batch.batch().getBatchId(), e);
        }
    }

    private static StepReport undecided(
            StepMembers members, ControlState controls, StepMetricsTally means, StageFailedException why) {
        return new StepReport(
                0,
                Collections.nCopies(members.count(), new StepEntry(0, why.stage())),
                StepFigures.untrained(members),
                List.of(),
                controls,
                means.metrics(),
                Optional.of(String.valueOf(why.getMessage())));
    }

    /** Stretches of the members whose lengths differ by at most one; fewer than asked for if there are too few members. */
    private List<int[]> minibatches(int[] members) {
        int count = Math.min(algorithm.minibatches(), members.length);
        return IntStream.range(0, count)
                .mapToObj(i -> Arrays.copyOfRange(members, cut(members, i, count), cut(members, i + 1, count)))
                .toList();
    }

    private static int cut(int[] members, int i, int count) {
        return Math.toIntExact((long) members.length * i / count);
    }

    private double update(TrainingBatch batch, double scale, Weights weights, AdamW optimizer, StepMetricsTally means) {
        clip(batch, means);
        long begun = System.nanoTime();
        double rate = config.optimizer().rateAt(optimizer.state().steps()) * scale;
        optimizer.step(weights, gradients, rate);
        means.addSeconds(StepMetric.SECONDS_OPTIMIZER, begun);
        return rate;
    }

    private static NonFiniteStepException nonFinite(StepMembers members, int member, RuntimeException e) {
        return new NonFiniteStepException(
                members.batch().batch().getBatchId(),
                "rollout " + members.rolloutId(member) + ": " + e.getMessage(),
                e);
    }

    /** Overwrites the gradients; returns the new state of the controls. */
    private ControlState differentiate(
            TrainingBatch batch,
            Minibatch minibatch,
            StepStart.Started start,
            Weights weights,
            long optimizerSteps,
            ControlState controls,
            StepMetricsTally means) {
        means.beginUpdate();
        try {
            Coefficients of = coefficients(batch, minibatch, start, weights, optimizerSteps, controls, means);
            long begun = System.nanoTime();
            TokenScores scores = shards.differentiate(weights, minibatch.sequences(), of.coefficients(), gradients);
            means.addSeconds(StepMetric.SECONDS_GRADIENT, begun);
            ObjectiveResult result = algorithm.needsCurrentLogProbs()
                    ? of.result()
                    : algorithm
                            .objective()
                            .evaluate(minibatch.input(algorithm.objective(), scores.logProbs()), of.facts());
            reportLoss(batch, minibatch, start, of, scores, result, means);
            return algorithm.objective().remembered(controls, result);
        } catch (NonFiniteLogProbException e) {
            throw new NonFiniteStepException(
                    batch.batch().getBatchId(),
                    "rollout " + minibatch.rolloutId(e.sequence()) + ": " + e.getMessage(),
                    e);
        }
    }

    /** Records the parts of an update's loss: means over trained tokens, with log-probs before the update. */
    private void reportLoss(
            TrainingBatch batch,
            Minibatch minibatch,
            StepStart.Started start,
            Coefficients of,
            TokenScores scores,
            ObjectiveResult result,
            StepMetricsTally means) {
        TokenBatch layout = minibatch.layout();
        float[] behavior = minibatch.behavior();
        double entropy = 0;
        double aggregatedEntropy = 0;
        double k1 = 0; // the mean of behavior minus current
        double k2 = 0; // half the mean square of their difference
        double k3 = 0; // the mean of r − 1 − log r with r = current/behavior, which is never negative
        for (int s = 0; s < layout.sequenceCount(); s++) {
            for (int t = layout.start(s); t < layout.end(s); t++) {
                if (layout.isTrained(t)) {
                    double logRatio = (double) scores.logProbs()[t] - behavior[t];
                    entropy += scores.entropies()[t];
                    aggregatedEntropy += of.aggregation()[s] * scores.entropies()[t];
                    k1 -= logRatio;
                    k2 += logRatio * logRatio / 2;
                    k3 += Math.expm1(logRatio) - logRatio;
                }
            }
        }
        double tokens = layout.trainedTokens();
        KlResult kl = of.kl();
        double loss = result.loss()
                - of.entropyCoefficient() * aggregatedEntropy
                + (kl == null ? 0 : start.klCoefficient() * kl.value())
                + (of.value() == null || critic == null
                        ? 0
                        : critic.coefficient() * of.value().loss());
        means.add(StepMetric.LOSS, loss);
        means.add(StepMetric.POLICY_LOSS, result.loss());
        means.add(StepMetric.ENTROPY, entropy / tokens);
        means.add(StepMetric.ENTROPY_COEFFICIENT, of.entropyCoefficient());
        means.add(StepMetric.APPROX_KL_BEHAVIOR, k1 / tokens);
        means.add(StepMetric.APPROX_KL2_BEHAVIOR, k2 / tokens);
        means.add(StepMetric.APPROX_KL3_BEHAVIOR, k3 / tokens);
        if (kl != null) {
            means.add(StepMetric.KL_LOSS, kl.value());
        }
        if (of.value() != null) {
            means.add(StepMetric.VALUE_LOSS, of.value().loss());
            if (critic != null && critic.clip() > 0) {
                means.add(StepMetric.VALUE_CLIP_FRACTION, of.value().clippedFraction());
            }
        }
        means.addActedOn(layout, result.actedOn());
        result.metrics()
                .forEach((name, value) -> means.addOfObjective(OBJECTIVE_NAMES.getOrDefault(name, name), value));
        if (!Double.isFinite(loss)) {
            throw new NonFiniteStepException(batch.batch().getBatchId(), "the loss is " + loss, null);
        }
        if (algorithm.objective().weightsCompare().isPresent() && !(algorithm.weights() instanceof None)) {
            means.add(StepMetric.GRADIENT_POWER, minibatch.power(scores));
            means.add(StepMetric.GRADIENT_POWER_UNWEIGHTED, minibatch.powerUnweighted(scores));
        }
    }

    private void clip(TrainingBatch batch, StepMetricsTally means) {
        double norm = gradients.l2Norm();
        if (!Double.isFinite(norm)) {
            throw new NonFiniteStepException(batch.batch().getBatchId(), firstNonFinite(gradients, norm), null);
        }
        double bound = config.optimizer().maxGradNorm();
        boolean clipped = bound > 0 && norm > bound;
        if (clipped) {
            gradients.scale((float) (bound / norm));
        }
        means.add(StepMetric.GRAD_NORM, norm);
        means.add(StepMetric.GRAD_CLIPPED, clipped ? 1 : 0);
    }

    /**
     * Returns the gradient of the loss over all members at once, without minibatches, clipping or learning rate. Changes no
     * state. Costs two backward passes, the second one sequence by sequence.
     *
     * @param optimizerSteps optimiser steps taken before; an objective may depend on it
     * @throws NonFiniteStepException if a log-prob is not finite
     */
    public BatchGradient gradient(
            TrainingBatch batch, long version, ControlState controls, Weights weights, long optimizerSteps) {
        StepMetricsTally means = new StepMetricsTally();
        StepMembers members = new StepMembers(batch);
        Gradients sum = new Gradients(trained);
        try {
            StepStart.Started start = starts.start(members, version, weights, controls, means);
            StepDecision decision = start.decision();
            double[] norms = new double[0];
            if (decision.trained().length > 0) {
                means.beginUpdate();
                Minibatch whole = new Minibatch(members, start, decision.trained());
                Coefficients of = coefficients(batch, whole, start, weights, optimizerSteps, start.controls(), means);
                shards.differentiate(weights, whole.sequences(), of.coefficients(), sum);
                norms = shards.sequenceNorms(weights, whole.sequences(), of.coefficients());
            }
            return new BatchGradient(
                    sum,
                    norms,
                    decision.left().trainedTokens(),
                    decision.decided().essRatio(),
                    decision.decided().stepScale());
        } catch (NonFiniteMemberException e) {
            throw nonFinite(members, e.member(), e);
        } catch (NonFiniteLogProbException e) {
            throw new NonFiniteStepException(batch.batch().getBatchId(), String.valueOf(e.getMessage()), e);
        }
    }

    /**
     * Log-probs of every response token of a batch, packed member after member.
     *
     * @throws NonFiniteStepException if one is not finite
     */
    public float[] logProbs(TrainingBatch batch, Weights weights) {
        StepMembers members = new StepMembers(batch);
        try {
            return members.count() == 0
                    ? new float[0]
                    : shards.score(
                                    weights,
                                    members.select(
                                            IntStream.range(0, members.count()).toArray()))
                            .logProbs();
        } catch (NonFiniteMemberException e) {
            throw nonFinite(members, e.member(), e);
        }
    }

    /**
     * Sets whether the weights differ from the recorded version of the same number, as in a replay. Every member is then
     * scored again, since recorded log-probs do not apply.
     */
    public void departFromRecord(boolean departed) {
        starts.departFromRecord(departed);
    }

    /** Sets a listener that the training thread calls after each part of a step. */
    public void onProgress(Runnable listener) {
        shards.onProgress(listener);
    }

    /** Aborts the current batch and every later one; from any thread. */
    public void cancel() {
        shards.cancel();
    }

    @Override
    public void close() {
        shards.close();
    }

    /**
     * Returns the report of a completed step: the recorded decisions and those in force. Values that were not computed
     * are absent.
     */
    private StepReport report(
            StepMembers members,
            StepStart.Started start,
            long version,
            double rate,
            ControlState controls,
            StepMetricsTally means) {
        if (members.count() > 0) {
            means.once(StepMetric.RESPONSE_TOKENS_MEAN, members.meanTokens());
            means.once(StepMetric.RESPONSE_TOKENS_MAX, members.maxTokens());
        }
        if (!Double.isNaN(algorithm.objective().clipRatioHigh())) {
            means.once(StepMetric.CLIP_RATIO_HIGH, algorithm.objective().clipRatioHigh());
        }
        LearnerBatch batch = members.batch().batch();
        means.onceIfKnown(StepMetric.RECORDED_ESS_RATIO, batch.getEssRatio());
        means.onceIfKnown(StepMetric.RECORDED_ESS_RATIO_TRUNCATED, batch.getEssRatioTruncated());
        means.onceIfKnown(StepMetric.RECORDED_SECOND_MOMENT, batch.getSecondMoment());
        means.once(StepMetric.RECORDED_STEP_SCALE, batch.getStepScale());
        means.once(StepMetric.RECORDED_TOKENS_TRAINED, batch.getTrainedTokens());
        StepDecision decision = start.decision();
        Decision decided = decision.decided();
        means.once(StepMetric.STEP_SCALE, decided.stepScale());
        List<StepEntry> entries = IntStream.range(0, members.count())
                .mapToObj(s -> new StepEntry(decided.left().trainedTokens(s), decided.maskedBy()[s]))
                .toList();
        List<StageReport> stages = new ArrayList<>(decision.stages());
        if (!algorithm.objective().linear()) { // one that is linear has nothing that it could act with
            means.objectiveReport().ifPresent(stages::add);
        }
        return new StepReport(
                rate,
                entries,
                StepFigures.of(members, decision, version),
                stages,
                controls,
                means.metrics(),
                Optional.empty());
    }

    /**
     * Loss of an update with the coefficients of its gradient.
     *
     * @param result of the objective; at stand-in log-probs if the loss is linear in them
     * @param kl     divergence from the reference in the loss; null without one
     * @param value  loss of the critic; null without one
     */
    private record Coefficients(
            UpdateFacts facts,
            ObjectiveResult result,
            @Nullable KlResult kl,
            GradientShards.TokenCoefficients coefficients,
            double[] aggregation,
            double entropyCoefficient,
            @Nullable ValueLoss value) {}

    /**
     * Outputs of the weights before an update.
     *
     * @param logProbs stand-ins if the update does not need them
     * @param values null without a critic
     */
    private record Current(float[] logProbs, float @Nullable [] values) {}

    /** Coefficients of an update from these weights; runs a forward pass if needed. */
    private Coefficients coefficients(
            TrainingBatch batch,
            Minibatch minibatch,
            StepStart.Started start,
            Weights weights,
            long optimizerSteps,
            ControlState controls,
            StepMetricsTally means) {
        TokenBatch layout = minibatch.layout();
        Objective objective = algorithm.objective();
        UpdateFacts facts = minibatch.facts(algorithm.aggregation(), optimizerSteps, controls);
        Current current = current(minibatch, weights, means);
        ObjectiveResult result = objective.evaluate(minibatch.input(objective, current.logProbs()), facts);
        KlResult kl = klInLoss(minibatch, current.logProbs(), facts);
        float[] coefficients = kl == null
                ? result.gradient()
                : kl.addedTo(result, start.klCoefficient()).gradient();
        double entropyCoefficient = algorithm.entropy().coefficient(batch.meanReward());
        double[] aggregation = facts.coefficients(layout);
        ValueLoss value = valueLoss(minibatch, current, aggregation);
        return new Coefficients(
                facts,
                result,
                kl,
                new GradientShards.TokenCoefficients(
                        coefficients,
                        entropyCoefficients(layout, aggregation, entropyCoefficient),
                        valueCoefficients(layout, value)),
                aggregation,
                entropyCoefficient,
                value);
    }

    /** Reuses the outputs at step start for the first update. */
    private Current current(Minibatch minibatch, Weights weights, StepMetricsTally means) {
        boolean isFirst = means.updates() == 1;
        // for an objective linear in the log-probs any finite ones give the coefficients, and the real ones come out of
        // the backward pass
        float[] logProbs =
                !algorithm.needsCurrentLogProbs() ? minibatch.proximal() : isFirst ? minibatch.startLogProbs() : null;
        float[] values = isFirst ? minibatch.startValues() : null;
        if (logProbs != null && (critic == null || values != null)) {
            return new Current(logProbs, values);
        }
        long begun = System.nanoTime();
        TokenScores scored = shards.score(weights, minibatch.sequences());
        means.addForward(begun);
        return new Current(scored.logProbs(), scored.values());
    }

    private @Nullable ValueLoss valueLoss(Minibatch minibatch, Current current, double[] aggregation) {
        return critic == null
                ? null
                : ValueLoss.of(
                        minibatch.layout(),
                        Objects.requireNonNull(current.values(), "a policy with a critic has values"),
                        Objects.requireNonNull(minibatch.oldValues(), "gae has read them"),
                        Objects.requireNonNull(minibatch.returns(), "gae has left them"),
                        aggregation,
                        critic.clip());
    }

    private float[] valueCoefficients(TokenBatch layout, @Nullable ValueLoss value) {
        float[] coefficients = new float[layout.tokenCount()];
        for (int t = 0; value != null && critic != null && t < coefficients.length; t++) {
            coefficients[t] = (float) (critic.coefficient() * value.gradient()[t]);
        }
        return coefficients;
    }

    private @Nullable KlResult klInLoss(Minibatch minibatch, float[] current, UpdateFacts facts) {
        if (!(algorithm.kl() instanceof KlConfig.InLoss loss)) {
            return null;
        }
        return loss.plan()
                .evaluate(
                        algorithm.aggregation(),
                        minibatch.layout(),
                        current,
                        Objects.requireNonNull(minibatch.reference()),
                        minibatch.behavior(),
                        facts.whole());
    }

    private static float[] entropyCoefficients(TokenBatch layout, double[] aggregation, double bonus) {
        float[] coefficients = new float[layout.tokenCount()];
        for (int s = 0; s < layout.sequenceCount(); s++) {
            for (int t = layout.start(s); t < layout.end(s); t++) {
                coefficients[t] = layout.isTrained(t) ? (float) (-bonus * aggregation[s]) : 0f;
            }
        }
        return coefficients;
    }

    /** Names the first non-finite element of a gradient whose norm is not finite. */
    private static String firstNonFinite(Gradients gradients, double norm) {
        for (TensorSpec spec : gradients.specs()) {
            FloatBuffer gradient = gradients.tensor(spec.name());
            for (int i = 0; i < gradient.limit(); i++) {
                if (!Float.isFinite(gradient.get(i))) {
                    return "the gradient of " + spec.name() + " is " + gradient.get(i) + " at element " + i;
                }
            }
        }
        return "the norm of the gradient is " + norm + ", although every element is finite";
    }

    /** Refuses a NaN or infinite result. Checks moments too: an infinite second moment freezes its weight unnoticed. */
    private static void requireFinite(TrainingBatch batch, Weights weights, AdamW.State optimizer) {
        if (weights.adapter().isPresent()) {
            requireFinite(batch, weights.trained().tensors(), "");
        }
        requireFinite(batch, weights.tensors(), "");
        requireFinite(batch, optimizer.first(), "the first moment of ");
        requireFinite(batch, optimizer.second(), "the second moment of ");
    }

    private static void requireFinite(TrainingBatch batch, TensorSet tensors, String what) {
        if (tensors.newer().map(DeviceValues::isFinite).orElse(false)) {
            return;
        }
        for (TensorSpec spec : tensors.specs()) {
            FloatBuffer tensor = tensors.values(spec.name());
            while (tensor.hasRemaining()) {
                float value = tensor.get();
                if (!Float.isFinite(value)) {
                    throw new NonFiniteStepException(
                            batch.batch().getBatchId(),
                            "the step made " + what + spec.name() + " " + value + " at element "
                                    + (tensor.position() - 1),
                            null);
                }
            }
        }
    }

    /**
     * Input of one optimiser step: the response tokens of some members, packed one after the other, and one element per
     * token of every vector.
     *
     * <p>Packed position p is the same token in {@link #sequences()}, whose scored tokens are the responses, and in
     * {@link #layout()}. The returned arrays are shared and must not be written.
     */
    static final class Minibatch {
        private final StepMembers members;
        private final StepStart.Started start;
        private final Shard sequences;
        private final TokenBatch layout;
        private final float[] advantages;
        private final float[] weights;
        private final float[] behavior;
        private final float[] old;
        private final float[] proximal;

        /** @param indices of members with a trained token, ascending; at least one */
        Minibatch(StepMembers members, StepStart.Started start, int[] indices) {
            this.members = members;
            this.start = start;
            this.sequences = members.select(indices);
            this.layout = layout(start.decision().left(), indices);
            this.advantages = sequences.pick(start.decision().decided().perToken());
            this.weights = sequences.pick(start.decision().decided().weights());
            this.behavior = sequences.pick(members.behavior());
            this.old = sequences.pick(start.decision().old());
            this.proximal = sequences.pick(start.decision().proximal());
        }

        private static TokenBatch layout(TokenBatch whole, int[] indices) {
            int[] offsets = new int[indices.length + 1];
            for (int s = 0; s < indices.length; s++) {
                offsets[s + 1] = offsets[s] + whole.length(indices[s]);
            }
            byte[] mask = new byte[offsets[indices.length]];
            int[] groups = new int[indices.length];
            for (int s = 0; s < indices.length; s++) {
                groups[s] = whole.group(indices[s]);
                whole.copyMask(whole.start(indices[s]), mask, offsets[s], whole.length(indices[s]));
            }
            return new TokenBatch(offsets, mask, groups);
        }

        /** The objective's input for log-probs of the policy being differentiated. */
        ObjectiveInput input(Objective objective, float[] current) {
            ObjectiveInput input = ObjectiveInput.of(layout, current, advantages)
                    .withBehavior(behavior)
                    .withProximal(
                            switch (objective.anchor()) {
                                case PROXIMAL -> proximal;
                                case OLD -> old;
                                case BEHAVIOR -> behavior;
                            });
            return objective.weightsCompare().isPresent() ? input.withWeights(weights) : input;
        }

        /** Noise of the gradient, under the weights in force. */
        double power(TokenScores scores) {
            return GradientPower.of(layout, scores.logProbs(), scores.sumSquaredProbs(), advantages, weights);
        }

        /** The same with every weight 1. */
        double powerUnweighted(TokenScores scores) {
            float[] ones = new float[weights.length];
            Arrays.fill(ones, 1f);
            return GradientPower.of(layout, scores.logProbs(), scores.sumSquaredProbs(), advantages, ones);
        }

        UpdateFacts facts(LossAggregation aggregation, long optimizerSteps, ControlState controls) {
            StepDecision decision = start.decision();
            // each minibatch gets its share of the tokens that the second-moment mask took
            long before = Math.round((double) decision.tokensBeforeMomentMask()
                    * layout.trainedTokens()
                    / decision.left().trainedTokens());
            GlobalBatch whole = decision.whole(layout);
            return new UpdateFacts(
                    aggregation, whole, Math.max(Math.round(whole.tokens()), before), optimizerSteps, controls);
        }

        /** Log-probs at step start; null unless all were computed. */
        float @Nullable [] startLogProbs() {
            CurrentLogProbs current = start.current();
            return current != null && current.all() ? sequences.pick(current.values()) : null;
        }

        /** Values at step start; null unless computed. */
        float @Nullable [] startValues() {
            return start.current() == null ? null : oldValues();
        }

        /** Values that the clip is centred on; null without a critic. */
        float @Nullable [] oldValues() {
            float[] values = start.values();
            return values == null ? null : sequences.pick(values);
        }

        /** Targets of the values; null without a critic. */
        float @Nullable [] returns() {
            return start.decision().decided().returns().map(sequences::pick).orElse(null);
        }

        /** Log-probs of the reference; null without a divergence from it. */
        float @Nullable [] reference() {
            float[] reference = start.reference();
            return reference == null ? null : sequences.pick(reference);
        }

        /** The batch's index of this minibatch's i-th member. */
        int member(int i) {
            return sequences.member(i);
        }

        String rolloutId(int i) {
            return members.rolloutId(member(i));
        }

        Shard sequences() {
            return sequences;
        }

        TokenBatch layout() {
            return layout;
        }

        float[] behavior() {
            return behavior;
        }

        float[] proximal() {
            return proximal;
        }
    }
}
