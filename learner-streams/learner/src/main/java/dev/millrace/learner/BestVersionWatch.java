package dev.millrace.learner;

import dev.millrace.log.Alarms;
import dev.millrace.log.LogConnection;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionStretch;
import dev.millrace.weights.VersionUnavailableException;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;

/**
 * Raises an alarm before Kafka's size limit on the weights topic removes the best version on held-out prompts, and
 * after it has.
 *
 * <p>{@link VersionRetention.RetainedVersions} keeps that version and everything after it; the topic's {@code retention.bytes} ignores
 * this. Kafka removes a segment only once as many bytes as the limit lie after it. So it removes nothing before the
 * bytes written since the version's anchor reach the limit. {@value #AT_RISK} is raised from three quarters of the
 * limit on. The watch uses the cluster's limit, which may differ from the run's configuration. Used by one thread.
 */
final class BestVersionWatch {
    static final String AT_RISK = "best-version-at-risk";
    static final String LOST = "best-version-lost";
    private static final double ATTENTION = 0.75;

    private final LogConnection connection;
    private final Alarms alarms;
    private final Admin admin;
    private final PolicyFeed feed;
    private final long limitMs;

    /** @param limitMs longest wait for the cluster's answer */
    BestVersionWatch(LogConnection connection, Admin admin, PolicyFeed feed, long limitMs) {
        this.connection = connection;
        this.alarms = connection.alarms();
        this.admin = admin;
        this.feed = feed;
        this.limitMs = limitMs;
    }

    /**
     * Checks once. Lowers the alarm of a version that is no longer the best.
     *
     * @param best the best so far; empty where none was evaluated
     */
    void look(Optional<VersionEvaluation> best) throws TimeoutException, InterruptedException {
        String subject = best.map(of -> "version " + of.getVersion()).orElse("");
        alarms.active().stream()
                .filter(alarm -> alarm.name().equals(AT_RISK) || alarm.name().equals(LOST))
                .filter(alarm -> !alarm.subject().equals(subject))
                .forEach(alarm -> alarms.lower(alarm.name(), alarm.subject()));
        if (best.isPresent()) {
            look(best.get(), subject);
        }
    }

    private void look(VersionEvaluation best, String subject) throws TimeoutException, InterruptedException {
        String export = connection.command("model export") + " --version " + best.getVersion() + " --to DIR";
        VersionStretch stretch;
        try {
            Optional<VersionStretch> onLog = feed.stretch(best.getVersion());
            if (onLog.isEmpty()) {
                return; // in a store, from which nobody but the learner removes anything
            }
            stretch = onLog.get();
        } catch (VersionUnavailableException e) {
            alarms.raise(
                    AT_RISK,
                    subject,
                    said(best) + " is too old to check whether its weights are kept: " + e.getMessage(),
                    export + " takes it out");
            return;
        }
        if (!stretch.isKept()) {
            alarms.lower(AT_RISK, subject);
            alarms.raise(
                    LOST,
                    subject,
                    said(best) + " is no longer kept: its weights were on " + stretch.topic() + " from offset "
                            + stretch.neededFrom() + ", and the topic now begins at " + stretch.logBegins()
                            + ", by its own retention (retention.bytes, topics.weights_retention_bytes);"
                            + " its evaluation stays",
                    "it cannot be recovered; " + withoutLimit(stretch.topic()) + " keeps the next best");
            return;
        }
        OptionalLong bound = bound(stretch.topic());
        if (bound.isPresent() && stretch.bytesSince() >= ATTENTION * bound.getAsLong()) {
            alarms.raise(
                    AT_RISK,
                    subject,
                    said(best)
                            + String.format(
                                    Locale.ROOT,
                                    " is about to be deleted: %,d bytes of weights were written since its"
                                            + " anchor, and Kafka keeps %,d on %s (retention.bytes)",
                                    stretch.bytesSince(),
                                    bound.getAsLong(),
                                    stretch.topic()),
                    withoutLimit(stretch.topic()) + ", or " + export);
        } else {
            alarms.lower(AT_RISK, subject);
        }
    }

    private static String said(VersionEvaluation best) {
        return String.format(
                Locale.ROOT,
                "version %d, the best on held-out prompts (reward %.3f),",
                best.getVersion(),
                best.getRewardMean());
    }

    private static String withoutLimit(String topic) {
        return "kafka-configs.sh --alter --entity-type topics --entity-name " + topic
                + " --add-config retention.bytes=-1, with the cluster's address,";
    }

    private OptionalLong bound(String topic) throws TimeoutException, InterruptedException {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try {
            Config found = Objects.requireNonNull(
                    admin.describeConfigs(List.of(resource))
                            .all()
                            .get(limitMs, TimeUnit.MILLISECONDS)
                            .get(resource),
                    topic);
            long bytes =
                    Long.parseLong(found.get(TopicConfig.RETENTION_BYTES_CONFIG).value());
            return bytes < 0 ? OptionalLong.empty() : OptionalLong.of(bytes);
        } catch (ExecutionException e) {
            throw new IllegalStateException(
                    "cannot read how much of " + topic
                            + " the cluster keeps, so whether the best version stays is unknown: " + e.getCause(),
                    e);
        }
    }
}
