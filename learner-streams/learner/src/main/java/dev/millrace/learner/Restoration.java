package dev.millrace.learner;

import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionSize;
import dev.millrace.weights.WeightsConfig;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings training to where it stands on the log: the newest checkpoint, and what was learnt since. Where the log has lost what that
 * takes, an alarm names the way out, and it is tried again. Used by the learner's thread.
 */
final class Restoration {
    private static final Logger LOG = LoggerFactory.getLogger(Restoration.class);
    private static final Duration AGAIN = Duration.ofSeconds(10);
    private static final List<String> LOST_VERSIONS = List.of("version-lost", LearnAgain.DIFFERS, "chain-lost");

    private final LogConnection connection;
    private final LearnerConfig config;
    private final WeightsConfig weightsConfig;
    private final InitialPolicy initial;
    private final BatchOptimizer optimizer;
    private final LearnerMeters meters;
    private final StopSignal stop;
    private final Clock clock;

    Restoration(
            LogConnection connection,
            LearnerConfig config,
            WeightsConfig weightsConfig,
            InitialPolicy initial,
            BatchOptimizer optimizer,
            LearnerMeters meters,
            StopSignal stop,
            Clock clock) {
        this.connection = connection;
        this.config = config;
        this.weightsConfig = weightsConfig;
        this.initial = initial;
        this.optimizer = optimizer;
        this.meters = meters;
        this.stop = stop;
        this.clock = clock;
    }

    /** Where training stands on the log; empty only if the learner was stopped. */
    Optional<TrainingState> restored(PolicyFeed feed, VersionCommitter committer) {
        String topic = connection.topics().policyVersions();
        while (!stop.isStopped()) {
            long begun = System.nanoTime();
            try {
                CheckpointRestore.Restored found = begun(feed, committer);
                TrainingState state = found.state();
                PolicyVersion checkpoint = state.newest();
                keepReference(found.newest());
                new LearnAgain(connection, config, optimizer, meters, readLimit(), stop::isStopped)
                        .upTo(found.newest(), state, feed, stop::wakes);
                if (stop.isStopped()) {
                    return Optional.empty();
                }
                committer.continueFrom(state.newest(), state.weights(), checkpoint);
                scheduleCheckpoints(committer);
                LOST_VERSIONS.forEach(alarm -> connection.alarms().lower(alarm, topic));
                return Optional.of(state);
            } catch (LostVersionsException e) {
                connection
                        .alarms()
                        .raise(
                                e.alarm(),
                                topic,
                                String.valueOf(e.getMessage()),
                                e.remedy().orElseGet(() -> connection.command("repair")));
                // what took long is not tried at once again, and where other weights came out, never
                long again = System.nanoTime() + Math.max(AGAIN.toNanos(), System.nanoTime() - begun);
                do {
                    meters.progress();
                    stop.await(AGAIN);
                } while (!stop.isStopped() && (e.alarm().equals(LearnAgain.DIFFERS) || System.nanoTime() < again));
            }
        }
        return Optional.empty();
    }

    /**
     * The newest checkpoint; publishes the initial weights as version 0 if the run has no version yet.
     *
     * @throws LostVersionsException if the log has lost the newest version, or all of them
     */
    CheckpointRestore.Restored begun(PolicyFeed feed, VersionCommitter committer) {
        return new CheckpointRestore(connection, weightsConfig, initial, clock).find(feed, committer, optimizer);
    }

    private void keepReference(PolicyVersion newest) {
        OptionalLong version = optimizer.referenceVersion();
        if (version.isPresent()) {
            optimizer.useReference(
                    new ReferencePolicy(connection, weightsConfig).weights(version.getAsLong(), newest.getVersion()));
        }
    }

    /** What is learnt again must still be there, and half of the time that it is kept leaves as much for a learner that is away. */
    private void scheduleCheckpoints(VersionCommitter committer) {
        int every = weightsConfig.checkpointEvery(VersionSize.of(initial.shape(), optimizer.adapters()));
        if (every > 1) {
            Duration kept = BatchesRetention.of(connection, readLimit());
            committer.checkpointWithin(kept.toMillis() / 2, config.maxSteps() > 0 ? config.maxSteps() : Long.MAX_VALUE);
            LOG.info("the optimiser's state goes to the log with every {}th version (weights.checkpoint_every)", every);
        }
    }

    private Duration readLimit() {
        return connection.limit(weightsConfig.readTimeoutMs());
    }
}
