package dev.millrace.learner;

import dev.millrace.learner.batch.ConsumedBatches;
import dev.millrace.learner.repair.FirstVersion;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.log.LogConnection;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.ShapeText;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;
import java.time.Clock;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where a learner begins: at the newest committed version that has its optimiser's state, from which it learns again what came after it, or,
 * if there is none, at the
 * initial weights, which it publishes as version 0, or in a later epoch at the version that the epoch was begun from.
 */
final class CheckpointRestore {
    private static final Logger LOG = LoggerFactory.getLogger(CheckpointRestore.class);

    private final LogConnection connection;
    private final WeightsConfig config;
    private final InitialPolicy initial;
    private final Clock clock;

    CheckpointRestore(LogConnection connection, WeightsConfig config, InitialPolicy initial, Clock clock) {
        this.connection = connection;
        this.config = config;
        this.initial = initial;
        this.clock = clock;
    }

    /**
     * @param feed made after the committer
     * @param committer has fenced every older learner, so that the newest version seen here stays the newest
     * @param steps by which training goes on
     * @throws LostVersionsException if the log has lost the newest version, or all of them
     */
    Restored find(PolicyFeed feed, VersionCommitter committer, BatchOptimizer steps) {
        Optional<PolicyVersion> newest = feed.newestCommitted();
        if (newest.isPresent()) {
            return new Restored(resumed(feed, newest.get(), steps), newest.get());
        }
        TrainingState begun =
                connection.lineage().parent().isPresent() ? ofEpoch(committer, steps) : fresh(committer, steps);
        return new Restored(begun, begun.newest());
    }

    /**
     * @param state at the newest checkpoint
     * @param newest version that is committed
     */
    record Restored(TrainingState state, PolicyVersion newest) {}

    private TrainingState resumed(PolicyFeed feed, PolicyVersion newest, BatchOptimizer steps) {
        requireSamePolicy(newest, steps);
        AdamW optimizer = steps.newOptimizer();
        PolicyVersion checkpoint;
        Weights weights;
        try {
            checkpoint = Checkpoints.atOrBefore(feed::manifest, newest.getVersion());
            weights = steps.trainable(feed.load(checkpoint.getVersion()));
            if (checkpoint.getOptimizerSteps() > 0) { // before the first it is as a new one
                optimizer.adopt(feed.loadOptimizer(checkpoint.getVersion()));
            }
        } catch (VersionUnavailableException | CorruptVersionException e) {
            throw new LostVersionsException(
                    "version-lost",
                    "training cannot go on from version " + newest.getVersion() + ", the newest: " + e.getMessage());
        }
        LOG.info(
                "goes on from version {} ({}), made by batch {}",
                newest.getVersion(),
                newest.getWeights().getSha256(),
                newest.getBatchId());
        return new TrainingState(weights, optimizer, checkpoint);
    }

    /** The epoch was begun, and whoever began it did not come to publish its first version. */
    private TrainingState ofEpoch(VersionCommitter committer, BatchOptimizer steps) {
        FirstVersion first;
        try {
            first = FirstVersion.parentOf(connection, config);
        } catch (VersionUnavailableException | CorruptVersionException e) {
            throw new LostVersionsException("version-lost", String.valueOf(e.getMessage()));
        }
        requireSamePolicy(first.manifest(), steps);
        PolicyVersion manifest = first.publish(committer, clock.millis());
        AdamW optimizer = steps.newOptimizer();
        optimizer.adopt(first.optimizer());
        LOG.info(
                "begins epoch {} with version {} of epoch {} ({})",
                manifest.getEpoch(),
                manifest.getVersion(),
                manifest.getParentEpoch(),
                manifest.getWeights().getSha256());
        return new TrainingState(steps.trainable(first.weights()), optimizer, manifest);
    }

    private TrainingState fresh(VersionCommitter committer, BatchOptimizer steps) {
        requireNothingLearnt();
        AdamW optimizer = steps.newOptimizer();
        Weights weights = initial.weights().as(config.dtype());
        VersionFacts facts = new VersionFacts(0, -1, initial.tokenizerHash(), 0, 0, clock.millis());
        PolicyVersion manifest = committer.commitInitial(facts, weights, optimizer.state());
        LOG.info(
                "published the initial weights as version 0 ({})",
                manifest.getWeights().getSha256());
        return new TrainingState(steps.trainable(weights), optimizer, manifest);
    }

    private static String described(Optional<LoraShape> adapter) {
        return adapter.map(low ->
                        "an adapter of rank " + low.rank() + ", alpha " + low.alpha() + " to " + low.targetModules())
                .orElse("the policy's own weights");
    }

    /** A run whose versions are gone must not begin once more with the initial weights, as if nothing had been learnt. */
    private void requireNothingLearnt() {
        ConsumedBatches.lastStep(connection, connection.limit(config.readTimeoutMs()))
                .ifPresent(step -> {
                    throw new LostVersionsException(
                            "chain-lost",
                            connection.topics().policyVersions() + " has no version of this epoch, but "
                                    + connection.topics().trainingLog() + " says that batch " + step.getBatchId()
                                    + " made version " + step.getVersion() + ": the versions were lost or deleted");
                });
    }

    private void requireSamePolicy(PolicyVersion newest, BatchOptimizer steps) {
        DecoderShape published = PolicyFeed.shapeOf(newest);
        if (!published.equals(initial.shape())) {
            throw new IllegalArgumentException("the run's version " + newest.getVersion() + " is of the shape "
                    + newest.getShape() + ", this learner is configured for " + ShapeText.of(initial.shape())
                    + "; give it the run's shape, or start another run");
        }
        Dtype dtype = PolicyFeed.dtypeOf(newest);
        if (dtype != config.dtype()) {
            throw new IllegalArgumentException("the run's version " + newest.getVersion() + " is of " + dtype
                    + ", and weights.dtype is " + config.dtype() + " here; give it the run's, or start another run");
        }
        Optional<LoraShape> adapter = PolicyFeed.adapterOf(newest);
        if (newest.getOptimizerSteps() > 0 && !adapter.equals(steps.adapters())) {
            throw new IllegalArgumentException("the run's version " + newest.getVersion() + " is "
                    + described(adapter) + ", and learner.lora asks for " + described(steps.adapters())
                    + "; give it the run's rank, alpha and target_modules, or start another run");
        }
        if (!newest.getTokenizerHash().equals(initial.tokenizerHash())) {
            throw new IllegalArgumentException("the run's version " + newest.getVersion() + " has the vocabulary "
                    + newest.getTokenizerHash() + ", this learner is configured for " + initial.tokenizerHash()
                    + "; give it the run's tokenizer, or start another run");
        }
    }
}
