package dev.millrace.log.run;

import dev.millrace.log.LogConnection;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compares, when a process starts and twice a minute after that, the cluster and topics that the run's claim recorded with those that
 * are there. A topic that is deleted stops its readers without a word, and one that was made again gives them an empty log: each is an
 * alarm, before anything fails by it. A claim that the log has lost is written again.
 *
 * <p>{@link #run()} blocks; {@link #stop()} may be called from any thread.
 */
public final class PlaceWatch {
    private static final Logger LOG = LoggerFactory.getLogger(PlaceWatch.class);
    private static final String DELETED = "topic-deleted";
    private static final String REPLACED = "topic-replaced";
    private static final String OTHER = "other-cluster";
    private static final long PERIOD_SECONDS = 30;
    private static final long LIMIT_MS = 10_000;

    private final LogConnection connection;
    private @Nullable ClaimedRun known;

    private final CountDownLatch stopping = new CountDownLatch(1);

    /** Connects when it runs. */
    public PlaceWatch(LogConnection connection) {
        this.connection = connection;
    }

    /** Looks until it is stopped. */
    public void run() {
        try {
            do {
                look();
            } while (!stopping.await(PERIOD_SECONDS, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Once; what cannot be found out now is left as it was. */
    void look() {
        TopicsConfig config = TopicsConfig.defaults().withTimeoutMs(LIMIT_MS);
        try (TopicAdministration administration = new TopicAdministration(connection.clientProperties(), config)) {
            RunClaims claims = new RunClaims(
                    connection.clientProperties(), connection.topics(), connection.registry(), config.timeoutMs());
            Optional<ClaimedRun> claim = claims.found();
            restore(claims, claim);
            if (claim.isEmpty() || claim.get().run().epoch() != connection.run().epoch()) {
                return;
            }
            known = claim.get();
            LogPlace recorded = claim.get().place();
            compareCluster(recorded, administration.clusterId());
            Map<String, String> there = administration.ids(
                    administration.existing(recorded.topicIds().keySet()));
            recorded.topicIds().forEach((topic, id) -> compareTopic(topic, id, there.get(topic)));
        } catch (RuntimeException e) { // Kafka is away, which the roles say
            LOG.debug("cluster and topics could not be compared with the run's claim", e);
        }
    }

    /** Without its claim a run continues, and nobody could roll it back or join it. */
    private void restore(RunClaims claims, Optional<ClaimedRun> there) {
        ClaimedRun last = known;
        boolean isLost =
                there.isEmpty() || there.get().run().epoch() < connection.run().epoch();
        if (last != null && isLost && claims.restore(last)) {
            LOG.warn(
                    "{} lost the claim of run {}; rewrote it",
                    connection.topics().run(),
                    connection.run().runId());
        }
    }

    private void compareCluster(LogPlace recorded, String there) {
        String address = String.valueOf(connection.clientProperties().get("bootstrap.servers"));
        if (recorded.clusterId().isEmpty() || recorded.clusterId().equals(there)) {
            connection.alarms().lower(OTHER, address);
        } else {
            connection
                    .alarms()
                    .raise(
                            OTHER,
                            address,
                            "the cluster is " + there + ", and run "
                                    + connection.run().runId() + " was claimed on " + recorded.clusterId()
                                    + ": the address belongs to another cluster, or the topics were copied",
                            connection.command("repair"));
        }
    }

    private void compareTopic(String topic, String recorded, @Nullable String there) {
        if (there == null) {
            connection
                    .alarms()
                    .raise(DELETED, topic, "it was deleted with all of its records", connection.command("repair"));
            return;
        }
        connection.alarms().lower(DELETED, topic);
        if (recorded.equals(there)) {
            connection.alarms().lower(REPLACED, topic);
        } else {
            connection
                    .alarms()
                    .raise(
                            REPLACED,
                            topic,
                            "it was deleted and recreated; its records are lost",
                            connection.command("repair"));
        }
    }

    /** Ends {@link #run()}. */
    public void stop() {
        stopping.countDown();
    }
}
