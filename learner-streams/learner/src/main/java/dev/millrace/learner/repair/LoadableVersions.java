package dev.millrace.learner.repair;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.LongConsumer;

/**
 * Which versions of the policy a run can go on from. The newest is read whole, and where it cannot be, older ones until one can.
 *
 * @param tip the newest manifest of the epoch; empty without one
 * @param good newest version that can be gone on from; empty if none was found
 * @param unreadable why the newest version cannot be gone on from; empty if it can
 */
record LoadableVersions(Optional<PolicyVersion> tip, OptionalLong good, String unreadable) {
    /** Where there are no versions at all. */
    static final LoadableVersions NONE = new LoadableVersions(Optional.empty(), OptionalLong.empty(), "");

    /** Older versions that are tried where the newest cannot be read. */
    private static final int MOST_TRIED = 32;

    /** @param onForeign told the offset of each record that does not extend the run's chain, on another thread */
    static LoadableVersions read(LogConnection connection, WeightsConfig weights, LongConsumer onForeign) {
        Optional<PolicyVersion> tip;
        OptionalLong good = OptionalLong.empty();
        String whyNot = "";
        try (PolicyFeed feed = new PolicyFeed(connection, weights, onForeign)) {
            tip = feed.newestCommitted();
            long newest = tip.map(PolicyVersion::getVersion)
                    .orElseGet(() ->
                            connection.lineage().parent().map(Ancestor::version).orElse(-1L));
            if (tip.isPresent()) {
                whyNot = whyNotLoaded(feed, tip.get());
            }
            long version = newest;
            for (int tried = 0; version >= 0 && tried < MOST_TRIED && good.isEmpty(); tried++) {
                try {
                    int epoch;
                    if (tip.isPresent()) {
                        PolicyVersion checkpoint = Checkpoints.atOrBefore(feed::manifest, version);
                        version = checkpoint.getVersion();
                        epoch = checkpoint.getEpoch();
                    } else {
                        epoch = connection.lineage().parent().orElseThrow().epoch();
                    }
                    FirstVersion.read(connection, weights, epoch, version);
                    good = OptionalLong.of(version);
                } catch (VersionUnavailableException | CorruptVersionException e) {
                    whyNot = whyNot.isEmpty() ? String.valueOf(e.getMessage()) : whyNot;
                }
                version--;
            }
        }
        String unreadable = tip.isPresent() && !whyNot.isEmpty()
                ? "version " + tip.get().getVersion() + ", the newest, cannot be read: " + whyNot
                : "";
        return new LoadableVersions(tip, good, unreadable);
    }

    /** Why the weights of a version between checkpoints cannot be had; empty if they can, and of a checkpoint, which is read anyway. */
    private static String whyNotLoaded(PolicyFeed feed, PolicyVersion version) {
        if (!Checkpoints.is(version)) {
            try {
                feed.load(version.getVersion());
            } catch (VersionUnavailableException | CorruptVersionException e) {
                return String.valueOf(e.getMessage());
            }
        }
        return "";
    }
}
