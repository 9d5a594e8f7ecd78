package dev.millrace.replay.retrain;

import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.algorithm.CriticConfig;
import dev.millrace.corrections.algorithm.EntropyConfig;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.objective.Reinforce;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.corrections.stage.LengthGuardConfig;
import dev.millrace.corrections.stage.StageFailedException;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.corrections.weights.None;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.learner.step.BatchGradient;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.NonFiniteStepException;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Parameters;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.OtherRewards;
import dev.millrace.replay.RebuiltMemory;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.retrain.GradientStep.ReferenceGradient;
import dev.millrace.replay.retrain.RecordedSteps.RecordedStep;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Trajectory;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/**
 * Alternative gradients of recorded steps at their start weights, compared with the recorded update and the on-policy
 * gradient of fresh groups.
 *
 * <p>Steps are independent: each starts from recorded weights. Costs two gradients per variant, and two of the fresh
 * groups. {@link #replay} may be called once.
 */
public final class StepGradients {
    private final RecordedRun run;
    private final RecordedVersions versions;
    private final Engine engine;
    private final List<Variant> variants;
    private final Optional<PolicyEvaluation> trials;
    private final AtomicLong passed = new AtomicLong();
    private @Nullable Weights atHand;
    private long versionAtHand = -1;
    private Optional<OtherRewards> others = Optional.empty();

    /**
     * @param variants the run's own first
     * @param trials empty without the task
     */
    public StepGradients(
            RecordedRun run,
            RecordedVersions versions,
            Engine engine,
            List<Variant> variants,
            Optional<PolicyEvaluation> trials) {
        this.run = run;
        this.versions = versions;
        this.engine = engine;
        this.variants = List.copyOf(variants);
        this.trials = trials;
    }

    public StepGradients rewardedBy(OtherRewards rewards) {
        others = Optional.of(rewards);
        return this;
    }

    public long passed() {
        return passed.get();
    }

    /**
     * @param wanted by start version
     * @throws dev.millrace.weights.VersionUnavailableException if a step's weights are deleted
     * @throws dev.millrace.replay.archive.ArchiveException if a batch or trajectory is deleted
     */
    public void replay(VersionInterval range, LongPredicate wanted, Consumer<GradientStep> taker) {
        List<BatchOptimizer> optimizers = new ArrayList<>();
        try {
            for (Variant variant : variants) {
                BatchOptimizer optimizer = new BatchOptimizer(
                        engine, versions.shape(), variant.lora(), variant.step(), variant.algorithm());
                optimizers.add(optimizer);
                OptionalLong reference = optimizer.referenceVersion();
                if (reference.isPresent()) {
                    optimizer.useReference(versions.load(reference.getAsLong(), none -> null));
                }
            }
            BatchOptimizer onPolicy = onPolicy(variants.get(0));
            optimizers.add(onPolicy);
            List<Optional<RecomputedBatch>> decisions = variants.stream()
                    .map(variant -> variant.algorithm().equals(variants.get(0).algorithm()) && !variant.isRewarded()
                            ? Optional.<RecomputedBatch>empty()
                            : Optional.of(new RecomputedBatch(
                                    variant.algorithm(),
                                    RebuiltMemory.of(
                                            variant.algorithm(), variants.get(0).algorithm(), !variant.isRewarded()))))
                    .toList();
            new RecordedSteps(run, versions).forEach(range, wanted, step -> {
                taker.accept(gradients(step, optimizers, decisions, onPolicy));
                passed.incrementAndGet();
            });
        } finally {
            optimizers.forEach(BatchOptimizer::close);
        }
    }

    /** The plain policy gradient, without entropy, divergence or weights. */
    private BatchOptimizer onPolicy(Variant own) {
        return new BatchOptimizer(
                engine,
                versions.shape(),
                own.lora(),
                own.step(),
                own.algorithm()
                        .with(a -> a.mode(Mode.RECORDED)
                                .missingOldLogProbs(MissingOldLogProbs.MASK)
                                .rewards()
                                .advantage(Grpo.defaults())
                                .weights(new None())
                                .rejection(Rejection.defaults())
                                .masks()
                                .objective(new Reinforce())
                                .lossAggMode(own.algorithm().aggregation())
                                .kl(new KlConfig.Off())
                                .entropy(new EntropyConfig(0, EntropyConfig.Rule.CONSTANT))
                                .critic(new CriticConfig.Off())
                                .ess(new Ess(Ess.Rule.NONE, Ess.Weights.RAW, 1.0))
                                .lengthGuard(new LengthGuardConfig.Off())
                                .minibatches(1)
                                .epochs(1)));
    }

    private GradientStep gradients(
            RecordedStep step,
            List<BatchOptimizer> optimizers,
            List<Optional<RecomputedBatch>> decisions,
            BatchOptimizer onPolicy) {
        Weights weights = onPolicy.trainable(weights(step.from()));
        Gradients update =
                Directions.between(weights.trained(), weights(step.from() + 1).trained());
        PolicyVersion from = versions.manifest(step.from());
        if (trials.isPresent()) {
            ExternalPartners.requireEnvironmentsReward(
                    step.batch(), "leave the on-policy gradient out (--reference-groups 0)");
        }
        Optional<BatchGradient> reference = trials.map(task -> onPolicy.gradient(
                task.onPolicy(weights, step.from()),
                step.from(),
                ControlState.initial(),
                weights,
                from.getOptimizerSteps()));
        List<Optional<VariantGradient>> found = new ArrayList<>();
        for (int c = 0; c < variants.size(); c++) {
            List<Trajectory> seen = rewarded(variants.get(c), step.batch());
            try {
                TrainingBatch batch = decisions
                        .get(c)
                        .map(anew -> anew.of(step.batch(), seen))
                        .orElse(step.batch());
                found.add(Optional.of(figures(
                        optimizers
                                .get(c)
                                .gradient(
                                        batch,
                                        step.from(),
                                        new ControlState(from.getControls()),
                                        weights,
                                        from.getOptimizerSteps()),
                        update,
                        reference)));
            } catch (NonFiniteStepException | StageFailedException e) {
                found.add(Optional.empty());
            }
        }
        return new GradientStep(
                step.from(),
                step.batch().batch().getBatchId(),
                step.batch().meanReward(),
                update.l2Norm(),
                reference.map(of -> new ReferenceGradient(
                        of.sequenceNorms().length, of.sum().l2Norm(), of.signal(), of.noise(), of.isSomething())),
                found);
    }

    private List<Trajectory> rewarded(Variant variant, TrainingBatch batch) {
        List<Trajectory> recorded =
                batch.members().stream().map(Member::trajectory).toList();
        return variant.isRewarded() ? others.orElseThrow().of(recorded) : recorded;
    }

    private Weights weights(long version) {
        if (version != versionAtHand) {
            Weights known = atHand;
            long knownVersion = versionAtHand;
            atHand = versions.load(version, wanted -> wanted == knownVersion ? known : null);
            versionAtHand = version;
        }
        return Objects.requireNonNull(atHand, "loaded under this version");
    }

    static VariantGradient figures(BatchGradient of, Gradients update, Optional<BatchGradient> reference) {
        Gradients descent = new Gradients(of.sum().specs());
        descent.add(of.sum());
        descent.scale(-1f);
        double norm = of.sum().l2Norm();
        double cosine = Double.NaN;
        double alignment = Double.NaN;
        double progress = Double.NaN;
        if (reference.isPresent()) {
            cosine = Directions.cosine(of.sum(), reference.get().sum());
            double signal = reference.get().signal();
            if (reference.get().isSomething() && norm > 0) {
                double product = Directions.dot(of.sum(), reference.get().sum());
                alignment = product / signal;
                progress = Math.signum(product) * product * product / (signal * norm * norm);
            }
        }
        return new VariantGradient(
                norm,
                Directions.cosine(descent, update),
                cosine,
                new VariantGradient.Sga(of.signal(), of.noise(), alignment, progress),
                of.tokensTrained(),
                of.essRatio().orElse(Double.NaN),
                of.stepScale());
    }

    /** Distances and angles over all parameters, summed in double. */
    static final class Directions {
        private Directions() {}

        /** {@code to − from} */
        static Gradients between(Parameters from, Parameters to) {
            Gradients difference = new Gradients(from.specs());
            for (TensorSpec spec : difference.specs()) {
                FloatBuffer into = difference.tensor(spec.name());
                FloatBuffer a = from.tensor(spec.name());
                FloatBuffer b = to.tensor(spec.name());
                for (int i = 0; i < into.limit(); i++) {
                    into.put(i, b.get(i) - a.get(i));
                }
            }
            return difference;
        }

        static double dot(Gradients a, Gradients b) {
            double sum = 0;
            for (TensorSpec spec : a.specs()) {
                FloatBuffer x = a.tensor(spec.name());
                FloatBuffer y = b.tensor(spec.name());
                for (int i = 0; i < x.limit(); i++) {
                    sum += (double) x.get(i) * y.get(i);
                }
            }
            return sum;
        }

        /** NaN if one has length 0. */
        static double cosine(Gradients a, Gradients b) {
            double lengths = a.l2Norm() * b.l2Norm();
            return lengths > 0 ? dot(a, b) / lengths : Double.NaN;
        }
    }
}
