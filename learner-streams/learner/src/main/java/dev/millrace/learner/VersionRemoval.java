package dev.millrace.learner;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionObject;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.store.ObjectStore;
import java.io.IOException;
import java.net.URI;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Removes the weights and optimiser states of versions that nobody needs, and objects that no version names.
 *
 * <p>On topics that is everything before the first chunk of the oldest version needed, or, for weights, of the anchor that
 * its chain begins at; in an object store, the objects of those versions. What a killed learner had put and not committed
 * is removed once its version was made by another attempt. Manifests stay, for ever: they are small, and a replay needs
 * the history of versions even where it needs no weights.
 *
 * <p>Everything follows from what is committed, and to remove what is removed changes nothing, so it can be cut short at
 * any moment. Used by one thread.
 */
final class VersionRemoval {
    private static final Logger LOG = LoggerFactory.getLogger(VersionRemoval.class);

    private final LogConnection connection;
    private final Admin admin;
    private final PolicyFeed feed;
    private final List<ObjectStore> stores;
    private final long limitMs;
    private long removedBefore;

    VersionRemoval(LogConnection connection, Admin admin, PolicyFeed feed, List<ObjectStore> stores, long limitMs) {
        this.connection = connection;
        this.admin = admin;
        this.feed = feed;
        this.stores = stores;
        this.limitMs = limitMs;
    }

    /**
     * Removes what lies before the oldest version needed.
     *
     * @param newest newest version that is committed, as the feed knows it
     * @return the oldest version whose weights are still there
     */
    long remove(RetainedVersions needed, long newest) throws TimeoutException, InterruptedException {
        PolicyVersion oldest; // training can go on from each version that is kept, if from the checkpoint before it
        PolicyVersion anchor;
        try {
            oldest = Checkpoints.atOrBefore(feed::manifest, needed.oldest());
            anchor = feed.manifest(anchorOf(oldest));
        } catch (VersionUnavailableException e) {
            LOG.debug("nothing is removed before version {}: {}", needed.oldest(), e.getMessage());
            return removedBefore; // published by somebody who has forgotten, or long gone
        }
        if (anchor.getVersion() > removedBefore) {
            deleteRecords(anchor.getWeights(), oldest.getOptimizer());
            LOG.info(
                    "removed the weights before version {}{}: {}",
                    anchor.getVersion(),
                    anchor.getVersion() < oldest.getVersion() ? ", the anchor of version " + oldest.getVersion() : "",
                    needed.reason());
        }
        for (ObjectStore store : stores) {
            deleteObjects(store, anchor.getVersion(), oldest.getVersion(), newest);
        }
        removedBefore = Math.max(removedBefore, anchor.getVersion());
        return removedBefore;
    }

    private static long anchorOf(PolicyVersion version) {
        Long anchor = version.getWeights().getAnchorVersion();
        return anchor == null ? version.getVersion() : anchor;
    }

    private void deleteRecords(TensorLocation weights, TensorLocation optimizer)
            throws TimeoutException, InterruptedException {
        Map<TopicPartition, RecordsToDelete> before =
                new TreeMap<>((a, b) -> a.topic().equals(b.topic())
                        ? Integer.compare(a.partition(), b.partition())
                        : a.topic().compareTo(b.topic()));
        for (TensorLocation location : new TensorLocation[] {weights, optimizer}) {
            if (location != null && location.getUri() == null) {
                before.put(
                        new TopicPartition(location.getTopic(), location.getPartition()),
                        RecordsToDelete.beforeOffset(location.getFirstOffset()));
            }
        }
        try {
            admin.deleteRecords(before).all().get(limitMs, TimeUnit.MILLISECONDS);
        } catch (ExecutionException e) {
            Throwable cause = Objects.requireNonNullElse(e.getCause(), e);
            throw new IllegalStateException(
                    "chunks of old versions cannot be removed from " + before.keySet() + ": " + cause.getMessage(),
                    cause);
        }
    }

    private void deleteObjects(ObjectStore from, long oldestWeights, long oldestOptimizer, long newest) {
        try {
            Set<String> named = new HashSet<>();
            for (long version = oldestWeights; version <= newest; version++) {
                PolicyVersion manifest = feed.manifest(version);
                named.add(manifest.getWeights().getUri());
                named.add(
                        manifest.getOptimizer() == null
                                ? null
                                : manifest.getOptimizer().getUri());
            }
            for (URI uri : from.list(VersionObject.prefix(connection.run()))) {
                Optional<VersionObject> object = VersionObject.parse(from.nameOf(uri));
                if (object.isPresent() && object.get().version() <= newest) {
                    boolean old = object.get().version()
                            < (object.get().part() == VersionObject.Part.WEIGHTS ? oldestWeights : oldestOptimizer);
                    if (old || !named.contains(uri.toString())) {
                        from.delete(uri);
                        LOG.debug("removed {}: {}", uri, old ? "no longer needed" : "no version names it");
                    }
                }
            }
        } catch (VersionUnavailableException e) {
            LOG.warn("no object of {} is removed, for it is not known which are named: {}", from, e.getMessage());
        } catch (IOException e) {
            throw new IllegalStateException("objects of old versions cannot be removed from " + from + ": " + e, e);
        }
    }
}
