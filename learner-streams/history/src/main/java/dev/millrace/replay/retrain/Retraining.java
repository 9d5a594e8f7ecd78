package dev.millrace.replay.retrain;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.corrections.stage.StageFailedException;
import dev.millrace.corrections.vcpo.EffectiveSampleSize;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.NonFiniteStepException;
import dev.millrace.learner.step.StepMetric;
import dev.millrace.learner.step.StepMetrics;
import dev.millrace.learner.step.StepReport;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.NonFiniteScoreException;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.OtherRewards;
import dev.millrace.replay.RebuiltMemory;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.retrain.FreshRollouts.FreshRolloutOptions;
import dev.millrace.replay.retrain.RecordedSteps.RecordedStep;
import dev.millrace.replay.retrain.StepGradients.Directions;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.VersionUnavailableException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Re-trains on recorded batches from a version on, under several variants. Variants use the recorded rollouts or their
 * own ({@link FreshRollouts}).
 *
 * <p>The first variant is the run's own; while its hashes are the recorded ones, distances are measured from it.
 * Recorded log-probs are used only while a variant's weights equal the recorded version's; otherwise they are
 * recomputed. Repetitions are equal bit for bit on the same kind of machine.
 *
 * <p>Memory: one learner per variant, and one batch. {@link #replay} may be called once.
 */
public final class Retraining {
    private final RecordedRun run;
    private final RecordedVersions versions;
    private final Engine engine;
    private final List<Variant> variants;
    private final Optional<FreshRolloutOptions> live;
    private final Optional<PolicyEvaluation> trials;
    private final int evaluateEvery;
    private final AtomicLong passed = new AtomicLong();
    private final List<Optional<VariantTraining>> learners = new ArrayList<>();
    private @Nullable Weights recordedAtHand;
    private long recordedVersion;
    private Optional<OtherRewards> others = Optional.empty();

    /**
     * @param variants the run's own first
     * @param live empty for the recorded rollouts
     * @param trials empty without the task
     * @param evaluateEvery steps, at least 1
     */
    public Retraining(
            RecordedRun run,
            RecordedVersions versions,
            Engine engine,
            List<Variant> variants,
            Optional<FreshRolloutOptions> live,
            Optional<PolicyEvaluation> trials,
            int evaluateEvery) {
        if (evaluateEvery < 1) {
            throw new IllegalArgumentException("evaluate-every must be at least 1: " + evaluateEvery);
        }
        this.run = run;
        this.versions = versions;
        this.engine = engine;
        this.variants = List.copyOf(variants);
        this.live = live;
        this.trials = trials;
        this.evaluateEvery = evaluateEvery;
    }

    /** Rewards of variants with other rewards; call before the replay. */
    public Retraining rewardedBy(OtherRewards rewards) {
        others = Optional.of(rewards);
        return this;
    }

    public long passed() {
        return passed.get();
    }

    /**
     * @throws VersionUnavailableException if the first version's weights or optimizer state are deleted
     * @throws dev.millrace.replay.archive.ArchiveException if a batch or trajectory is deleted
     */
    public void replay(VersionInterval range, RetrainListener listener) {
        if (others.isEmpty() && variants.stream().anyMatch(Variant::isRewarded)) {
            throw new IllegalStateException("no other rewards were given for the variant");
        }
        RecordedSteps steps = new RecordedSteps(run, versions);
        steps.requireAll(range);
        Weights first = versions.load(range.from(), none -> null);
        AdamW.State state = new StateOfVersion(engine, versions, steps, variants.get(0)).of(range.from());
        try {
            for (int c = 0; c < variants.size(); c++) {
                boolean isRecorded =
                        variants.get(c).algorithm().equals(variants.get(0).algorithm());
                VariantTraining learning =
                        new VariantTraining(variants.get(c), isRecorded, first, state, versions.manifest(range.from()));
                learners.add(Optional.of(learning));
                OptionalLong reference = learning.optimizer.referenceVersion();
                if (reference.isPresent()) {
                    learning.optimizer.useReference(versions.load(reference.getAsLong(), none -> null));
                }
            }
            evaluate(range.from(), listener);
            steps.forEach(range, every -> true, step -> {
                take(step, listener);
                long done = step.from() + 1 - range.from();
                if (done % evaluateEvery == 0 || step.from() + 1 == range.to()) {
                    evaluate(step.from() + 1, listener);
                }
                passed.set(done);
            });
        } finally {
            learners.forEach(learning -> learning.ifPresent(VariantTraining::close));
        }
    }

    private void take(RecordedStep step, RetrainListener listener) {
        if (trials.isPresent()) {
            ExternalPartners.requireEnvironmentsReward(step.batch(), "try no policies (--evaluation-prompts 0)");
        }
        String recordedSha256 = versions.manifest(step.from()).getWeights().getSha256();
        Optional<float[]> recorded = isAsRecorded(0, recordedSha256)
                ? Optional.of(learners.get(0).get().logProbs(step.batch()))
                : Optional.empty();
        List<Optional<VariantStep>> taken = new ArrayList<>();
        for (int c = 0; c < variants.size(); c++) {
            boolean starts = isAsRecorded(c, recordedSha256);
            Optional<float[]> same = starts ? recorded : Optional.empty();
            taken.add(guarded(c, step.from(), listener, learning -> {
                float[] own = same.orElseGet(() -> learning.logProbs(step.batch()));
                return learning.take(step, starts, own, recorded.orElse(own));
            }));
        }
        Optional<Weights> made = recordedWeights(
                step, taken.get(0).filter(VariantStep::isAsRecorded).isPresent());
        for (int c = 0; c < taken.size(); c++) {
            int variant = c;
            taken.set(
                    c,
                    taken.get(c)
                            .map(one -> measured(
                                    one,
                                    recorded.isPresent(),
                                    made.map(weights -> Directions.between(
                                                            weights.parameters(),
                                                            learners.get(variant)
                                                                    .get()
                                                                    .weights
                                                                    .parameters())
                                                    .l2Norm())
                                            .orElse(Double.NaN))));
        }
        listener.step(new RetrainedStep(
                step.from() + 1,
                step.batch().batch().getBatchId(),
                step.batch().meanReward(),
                step.batch().batch().getStalenessMean(),
                step.batch().members().size(),
                taken));
    }

    private static VariantStep measured(VariantStep step, boolean isRecordedKnown, double distance) {
        VariantStep.Estimates known = step.estimates();
        return new VariantStep(
                step.isAsRecorded(),
                step.weightsSha256(),
                step.update(),
                step.batchReward(),
                step.rolloutsAsRecorded(),
                isRecordedKnown ? known : new VariantStep.Estimates(Double.NaN, known.reward(), known.ess()),
                distance);
    }

    /** The first variant's if equal, else the log's if kept. */
    private Optional<Weights> recordedWeights(RecordedStep step, boolean firstIsRecorded) {
        if (firstIsRecorded) {
            return Optional.of(learners.get(0).get().weights);
        }
        try {
            long before = recordedVersion;
            Weights known = recordedAtHand;
            Weights loaded = versions.load(step.from() + 1, version -> version == before ? known : null);
            recordedAtHand = loaded;
            recordedVersion = step.from() + 1;
            return Optional.of(loaded);
        } catch (VersionUnavailableException e) {
            return Optional.empty();
        }
    }

    private boolean isAsRecorded(int variant, String sha256) {
        return learners.get(variant)
                .filter(learning -> learning.sha256.equals(sha256))
                .isPresent();
    }

    private void evaluate(long version, RetrainListener listener) {
        if (trials.isEmpty()) {
            return;
        }
        List<OptionalDouble> rewards = new ArrayList<>();
        for (int c = 0; c < variants.size(); c++) {
            int same = sameBefore(c);
            if (same >= 0) {
                rewards.add(rewards.get(same));
                continue;
            }
            Optional<Double> reward =
                    guarded(c, version, listener, learning -> trials.get().meanReward(learning.weights, version));
            rewards.add(reward.isPresent() ? OptionalDouble.of(reward.get()) : OptionalDouble.empty());
        }
        listener.evaluated(version, rewards);
    }

    /** An earlier variant with equal weights; -1 if there is none. */
    private int sameBefore(int variant) {
        for (int c = 0; c < variant && learners.get(variant).isPresent(); c++) {
            if (isAsRecorded(c, learners.get(variant).get().sha256)) {
                return c;
            }
        }
        return -1;
    }

    /** Runs a variant's action; a non-finite result ends it. */
    private <T> Optional<T> guarded(
            int variant, long version, RetrainListener listener, Function<VariantTraining, T> work) {
        if (learners.get(variant).isEmpty()) {
            return Optional.empty();
        }
        VariantTraining learning = learners.get(variant).get();
        try {
            return Optional.of(work.apply(learning));
        } catch (NonFiniteStepException
                | NonFiniteScoreException
                | NonFiniteLogProbException
                | StageFailedException
                | InconsistentBatchException e) {
            learners.set(variant, Optional.empty());
            learning.close();
            listener.ended(variant, version, String.valueOf(e.getMessage()));
            return Optional.empty();
        }
    }

    /**
     * Optimizer state after a version's step. Loads the newest published one before it, and re-learns the rest by the
     * run's own settings.
     */
    static final class StateOfVersion {
        private final Engine engine;
        private final RecordedVersions versions;
        private final RecordedSteps steps;
        private final Variant own;

        /** @param own the run's settings */
        StateOfVersion(Engine engine, RecordedVersions versions, RecordedSteps steps, Variant own) {
            this.engine = engine;
            this.versions = versions;
            this.steps = steps;
            this.own = own;
        }

        /**
         * In buffers owned by the caller.
         *
         * @throws dev.millrace.weights.VersionUnavailableException if needed data is deleted
         * @throws ArchiveException if a batch is missing, or other weights result than recorded
         */
        AdamW.State of(long version) {
            PolicyVersion checkpoint = Checkpoints.atOrBefore(versions::manifest, version);
            long from = checkpoint.getVersion();
            AdamW.State state = versions.loadOptimizer(from);
            if (from == version) {
                return state;
            }
            VersionInterval before = VersionInterval.of(from, version, versions);
            steps.requireAll(before);
            try (BatchOptimizer optimizer =
                    new BatchOptimizer(engine, versions.shape(), own.lora(), own.step(), own.algorithm())) {
                OptionalLong reference = optimizer.referenceVersion();
                if (reference.isPresent()) {
                    optimizer.useReference(versions.load(reference.getAsLong(), none -> null));
                }
                AdamW adamW = optimizer.newOptimizer();
                adamW.restore(state);
                Weights weights = optimizer.trainable(versions.load(from, none -> null));
                ControlState[] controls = {new ControlState(checkpoint.getControls())};
                steps.forEach(before, every -> true, step -> {
                    StepReport report = optimizer.train(step.batch(), step.from(), controls[0], weights, adamW);
                    controls[0] = report.controls();
                    requireRecorded(step, VersionHash.of(weights), from, version);
                });
                return adamW.state();
            }
        }

        private static void requireRecorded(RecordedStep step, String found, long checkpoint, long wanted) {
            String recorded = step.made().getWeights().getSha256();
            if (!recorded.equals(found)) {
                throw new ArchiveException("the optimiser's state of version " + wanted
                        + " must be retrained from version " + checkpoint + ", and here the step on batch "
                        + step.batch().batch().getBatchId() + " makes the weights " + found + " in place of " + recorded
                        + ": another processor type, release or settings; start with --from-version "
                        + checkpoint);
            }
        }
    }

    /** Weights, optimizer and controls of one variant. Used by one thread; after a failed step only close it. */
    private final class VariantTraining implements AutoCloseable {
        private final BatchOptimizer optimizer;
        private final AdamW adamW;
        private final Weights weights;
        /** Empty if the recorded decisions apply. */
        private final Optional<RecomputedBatch> decisions;
        /** Empty for the recorded rollouts. */
        private final Optional<FreshRollouts.OfCourse> rollouts;
        /** Empty for recorded or environment rewards. */
        private final Optional<OtherRewards> rewards;

        private ControlState controls;
        private String sha256;

        /**
         * @param isRecorded has the run's corrections
         * @param weights copied
         * @param state copied
         */
        VariantTraining(Variant variant, boolean isRecorded, Weights weights, AdamW.State state, PolicyVersion from) {
            this.optimizer =
                    new BatchOptimizer(engine, versions.shape(), variant.lora(), variant.step(), variant.algorithm());
            this.adamW = optimizer.newOptimizer();
            adamW.restore(state);
            this.weights = optimizer.trainable(weights.copy());
            this.rewards = others.filter(any -> variant.isRewarded());
            this.decisions = isRecorded && live.isEmpty() && rewards.isEmpty()
                    ? Optional.empty()
                    : Optional.of(new RecomputedBatch(
                            variant.algorithm(),
                            RebuiltMemory.of(
                                    variant.algorithm(),
                                    variants.get(0).algorithm(),
                                    live.isEmpty() && rewards.isEmpty())));
            this.rollouts = live.map(of -> of.sampling().variant(weights, of.draws()));
            this.controls = new ControlState(from.getControls());
            this.sha256 = VersionHash.of(weights);
        }

        float[] logProbs(TrainingBatch batch) {
            return optimizer.logProbs(batch, weights);
        }

        /**
         * @param startsAsRecorded its weights equal the run's of that version
         * @param own log-probs of its policy
         * @param recorded log-probs of the run's policy of the same version
         * @throws InconsistentBatchException if a stage cannot decide the batch
         */
        VariantStep take(RecordedStep step, boolean startsAsRecorded, float[] own, float[] recorded) {
            TrainingBatch batch = batch(step.batch());
            // estimated reward of this policy on the recorded rollouts
            VariantStep.Estimates judged =
                    judge(rewards.isPresent() && rollouts.isEmpty() ? batch : step.batch(), own, recorded);
            optimizer.departFromRecord(!startsAsRecorded && rollouts.isEmpty());
            StepReport report = optimizer.train(batch, step.from(), controls, weights, adamW);
            report.failure().ifPresent(why -> {
                throw new InconsistentBatchException(why);
            });
            controls = report.controls();
            sha256 = VersionHash.of(weights);
            rollouts.ifPresent(of -> of.made(weights));
            StepMetrics metrics = report.metrics();
            return new VariantStep(
                    sha256.equals(step.made().getWeights().getSha256()),
                    sha256,
                    new VariantStep.Update(
                            metrics.orNaN(StepMetric.LOSS),
                            metrics.orNaN(StepMetric.GRAD_NORM),
                            // the objective's own if it clips
                            metrics.byName().getOrDefault(StepMetric.CLIP_FRACTION.key(), Double.NaN),
                            report.figures().essRatio(),
                            report.figures().secondMoment(),
                            report.learningRate(),
                            report.tokensTrained()),
                    batch.meanReward(),
                    asRecorded(step.batch(), batch),
                    judged,
                    Double.NaN);
        }

        private TrainingBatch batch(TrainingBatch recorded) {
            if (decisions.isEmpty()) {
                return recorded;
            }
            List<Trajectory> trajectories = rollouts.isPresent()
                    ? rollouts.get().trajectories(recorded)
                    : recorded.members().stream().map(Member::trajectory).toList();
            return decisions
                    .get()
                    .of(recorded, rewards.isPresent() ? rewards.get().of(trajectories) : trajectories);
        }

        /** Members with recorded rollouts, rewards and log-probs, bit for bit. */
        private static int asRecorded(TrainingBatch recorded, TrainingBatch learnt) {
            return (int) IntStream.range(0, recorded.members().size())
                    .filter(s -> {
                        Trajectory one = recorded.members().get(s).trajectory();
                        Trajectory other = learnt.members().get(s).trajectory();
                        return one.getResponseTokens().equals(other.getResponseTokens())
                                && one.getReward() == other.getReward()
                                && one.getBehaviorLogProbs().equals(other.getBehaviorLogProbs())
                                && Objects.equals(one.getOldLogProbs(), other.getOldLogProbs())
                                && one.getProximalLogProbs().equals(other.getProximalLogProbs());
                    })
                    .count();
        }

        /** Its policy's figures of a batch before the step. */
        private static VariantStep.Estimates judge(TrainingBatch batch, float[] own, float[] recorded) {
            int members = batch.members().size();
            double[] logWeights = new double[members];
            double kl = 0;
            long tokens = 0;
            int packed = 0;
            for (int s = 0; s < members; s++) {
                var trajectory = batch.members().get(s).trajectory();
                for (int t = 0; t < PackedMask.length(trajectory.getMask()); t++, packed++) {
                    if (PackedMask.get(trajectory.getMask(), t) == 1) {
                        double logRatio = LogRatio.bounded((double) own[packed] - recorded[packed]);
                        kl += logRatio * logRatio / 2;
                        logWeights[s] += (double) own[packed] - PackedFloats.get(trajectory.getBehaviorLogProbs(), t);
                        tokens++;
                    }
                }
            }
            if (tokens == 0) {
                return new VariantStep.Estimates(Double.NaN, Double.NaN, Double.NaN);
            }
            double largest =
                    Arrays.stream(logWeights).max().orElseThrow(); // a common factor does not change the estimate
            double sum = 0;
            double rewards = 0;
            for (int s = 0; s < members; s++) {
                double weight = Math.exp(logWeights[s] - largest);
                sum += weight;
                rewards += weight * batch.members().get(s).entry().getReward();
            }
            return new VariantStep.Estimates(
                    kl / tokens,
                    rewards / sum,
                    EffectiveSampleSize.ofRaw(logWeights).ratio());
        }

        @Override
        public void close() {
            optimizer.close();
        }
    }

    /** Receives results in order on the replaying thread. */
    public interface RetrainListener {

        void step(RetrainedStep step);

        /** @param rewards per variant; empty for one that ended */
        void evaluated(long version, List<OptionalDouble> rewards);

        /**
         * A variant ended because of non-finite numbers.
         *
         * @param version reached
         */
        void ended(int variant, long version, String why);
    }
}
