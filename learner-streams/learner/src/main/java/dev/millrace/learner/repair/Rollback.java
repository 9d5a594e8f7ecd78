package dev.millrace.learner.repair;

import dev.millrace.learner.VersionCommitter;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.log.transaction.Incarnation;
import dev.millrace.schemas.EpochParent;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;
import java.time.Clock;
import java.util.Optional;

/**
 * Takes a run back to one of its versions, from which a new epoch continues. Nothing is deleted or overwritten.
 *
 * <p>Writers of the old epoch are fenced before the new one begins, and their open transactions are aborted. Rollouts
 * in flight become history: they are never trained on, counted or refused. May be applied to a live run, whose roles
 * then end with an error, and may be repeated after an interruption at any moment. Used once.
 */
public final class Rollback {
    private final RunLog log;
    private final TopicsConfig topics;
    private final WeightsConfig weights;
    private final Clock clock;
    private final VersionCommitter.Producers producers;

    /**
     * Result of a rollback.
     *
     * @param parentEpoch that it was in before
     * @param newestBefore the newest version of the parent epoch; -1 if it had none
     * @param first the manifest that the epoch begins with
     * @param isCompletion whether the epoch had been begun before and only its first version was missing
     */
    public record Done(int epoch, int parentEpoch, long newestBefore, PolicyVersion first, boolean isCompletion) {}

    /** @param log of the run in its current epoch, with permission to write schemas; the caller closes it */
    public Rollback(RunLog log, TopicsConfig topics, WeightsConfig weights, Clock clock) {
        this(log, topics, weights, clock, VersionCommitter.Producers.kafka());
    }

    Rollback(
            RunLog log, TopicsConfig topics, WeightsConfig weights, Clock clock, VersionCommitter.Producers producers) {
        this.log = log;
        this.topics = topics;
        this.weights = weights;
        this.clock = clock;
        this.producers = producers;
    }

    /**
     * Checks whether the run's epoch was begun but lacks its first version.
     *
     * @return the version that it was begun from; empty if the epoch is complete
     */
    public static Optional<Ancestor> unfinished(LogConnection connection, WeightsConfig weights) {
        if (connection.lineage().parent().isEmpty()) {
            return Optional.empty();
        }
        try (PolicyFeed feed = new PolicyFeed(connection, weights)) {
            return feed.newestCommitted().isPresent()
                    ? Optional.empty()
                    : connection.lineage().parent();
        }
    }

    /**
     * Does it.
     *
     * @param version to go on from; must be there with its weights and the optimiser's state
     * @param why kept with the epoch; may be empty
     * @throws VersionUnavailableException if the version cannot be gone on from
     * @throws RollbackException if another rollback was begun and not completed
     */
    public Done to(long version, String why) {
        LogConnection now = log.connection();
        Optional<Ancestor> begun = unfinished(now, weights);
        if (begun.isPresent()) {
            if (begun.get().version() != version) {
                throw new RollbackException("epoch " + now.run().epoch() + " was started from version "
                        + begun.get().version() + " of epoch " + begun.get().epoch()
                        + " and has no first version yet; complete it with --to-version "
                        + begun.get().version() + ", and go back to version " + version + " after it");
            }
            FirstVersion first = FirstVersion.parentOf(now, weights);
            return new Done(now.run().epoch(), begun.get().epoch(), version, publish(first, now), true);
        }
        PolicyVersion wanted;
        long newest;
        try (PolicyFeed feed = new PolicyFeed(now, weights)) {
            newest = feed.newestCommitted().map(PolicyVersion::getVersion).orElse(-1L);
            wanted = feed.manifest(version);
        }
        FirstVersion first = FirstVersion.read(now, weights, wanted.getEpoch(), version);
        EpochParent parent =
                new EpochParent(wanted.getEpoch(), version, wanted.getWeights().getSha256(), why);
        LogConnection next = log.beginEpoch(parent, topics, clock).connection();
        return new Done(next.run().epoch(), now.run().epoch(), newest, publish(first, next), false);
    }

    private PolicyVersion publish(FirstVersion first, LogConnection connection) {
        try (VersionCommitter committer = new VersionCommitter(connection, weights, new Incarnation(), producers)) {
            return first.publish(committer, clock.millis());
        }
    }
}
