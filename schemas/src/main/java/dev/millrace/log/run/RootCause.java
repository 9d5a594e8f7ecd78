package dev.millrace.log.run;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.run.RunTopics;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Why a role cannot continue, if its own error does not tell: another cluster answers, a topic was deleted or recreated, or the
 * log lost its tail. To a client each looks like another failure, such as being fenced.
 *
 * <p>What the run's claim recorded of its cluster and topics is compared with what is there now, and what the roles have committed
 * with where the log ends.
 */
public final class RootCause {
    private static final Logger LOG = LoggerFactory.getLogger(RootCause.class);
    private static final long LIMIT_MS = 10_000;

    private final LogConnection connection;
    private final TopicAdministration administration;

    private RootCause(LogConnection connection, TopicAdministration administration) {
        this.connection = connection;
        this.administration = administration;
    }

    /**
     * Looks for it. To be asked before a failure is put down to anything else; takes some seconds at most.
     *
     * @return one sentence with the way out; empty if cluster, topics and ends are as they should be, or it cannot be found out now
     */
    public static Optional<String> of(LogConnection connection) {
        TopicsConfig config = TopicsConfig.defaults().withTimeoutMs(LIMIT_MS);
        try (TopicAdministration administration = new TopicAdministration(connection.clientProperties(), config)) {
            return new RootCause(connection, administration)
                    .find(config)
                    .map(cause -> cause + "; " + connection.command("repair") + " lists the losses and the repairs");
        } catch (RuntimeException e) { // the caller already has a failure to report
            LOG.debug("cluster and topics could not be compared with the run's claim", e);
            return Optional.empty();
        }
    }

    private Optional<String> find(TopicsConfig config) {
        String claimTopic = connection.topics().run();
        if (administration.existing(List.of(claimTopic)).isEmpty()) {
            return Optional.of(
                    "there is no topic " + claimTopic + " with the run's claim any more: it was deleted, or another"
                            + " cluster answers at "
                            + connection.clientProperties().get("bootstrap.servers"));
        }
        Optional<ClaimedRun> claim = new RunClaims(
                        connection.clientProperties(), connection.topics(), connection.registry(), config.timeoutMs())
                .found();
        if (claim.isEmpty()) {
            return Optional.empty();
        }
        LogPlace place = claim.get().place();
        return otherCluster(place).or(() -> otherTopics(place)).or(() -> lostTail(place));
    }

    private Optional<String> otherCluster(LogPlace place) {
        String there = administration.clusterId();
        return place.clusterId().isEmpty() || place.clusterId().equals(there)
                ? Optional.empty()
                : Optional.of("the cluster at "
                        + connection.clientProperties().get("bootstrap.servers") + " is " + there + ", and run "
                        + connection.run().runId() + " is on " + place.clusterId()
                        + ": its topics were copied to another cluster, or the address belongs to another cluster");
    }

    private Optional<String> otherTopics(LogPlace place) {
        Map<String, String> there =
                administration.ids(administration.existing(place.topicIds().keySet()));
        List<String> deleted = new ArrayList<>();
        List<String> remade = new ArrayList<>();
        for (String topic : new TreeSet<>(place.topicIds().keySet())) {
            String id = there.get(topic);
            if (id == null) {
                deleted.add(topic);
            } else if (!id.equals(place.topicIds().get(topic))) {
                remade.add(topic);
            }
        }
        if (!deleted.isEmpty()) {
            return Optional.of("topics of run " + connection.run().runId() + " were deleted: " + deleted);
        }
        return remade.isEmpty()
                ? Optional.empty()
                : Optional.of("topics of run " + connection.run().runId()
                        + " were deleted and recreated, and their records are lost: " + remade);
    }

    private Optional<String> lostTail(LogPlace place) {
        Map<String, Long> ends =
                administration.ends(administration.existing(place.topicIds().keySet()));
        for (String role : RunTopics.CONSUMERS) {
            for (Map.Entry<String, Long> committed :
                    administration.committed(connection.group(role)).entrySet()) {
                long end = Objects.requireNonNullElse(ends.get(committed.getKey()), Long.MAX_VALUE);
                if (committed.getValue() > end) {
                    return Optional.of(committed.getKey() + " ends at offset " + end + ", and the " + role
                            + " had read it up to offset " + committed.getValue() + ": its last "
                            + (committed.getValue() - end)
                            + " offsets are lost, as after a power loss or an unclean leader election");
                }
            }
        }
        return Optional.empty();
    }
}
