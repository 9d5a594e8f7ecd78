package dev.millrace.topology;

import dev.millrace.log.LogConnection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.common.config.ConfigResource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds out which rebalance protocol an instance is to use, and tells the broker what its streams group is to be like:
 * in that protocol session, heartbeat and standby replicas are settings of the group, kept by the broker.
 */
final class GroupSetup {
    private static final Logger LOG = LoggerFactory.getLogger(GroupSetup.class);
    private static final String FEATURE = "streams.version";

    private final RuntimeConfig config;
    private final LogConnection connection;

    GroupSetup(RuntimeConfig config, LogConnection connection) {
        this.config = config;
        this.connection = connection;
    }

    /**
     * True if the broker's streams groups are to be used; the group is then set up.
     *
     * @throws TopologyException if they are demanded and cannot be had, or the broker does not answer
     */
    boolean usesStreamsGroup() {
        if (config.rebalanceProtocol() == RebalanceProtocol.CLASSIC) {
            return false;
        }
        Optional<String> unsupportedReason = unsupportedReason();
        if (unsupportedReason.isEmpty()) {
            LOG.info(
                    "the topology shares its partitions by the broker's streams group {}",
                    connection.group("topology"));
            return true;
        }
        if (config.rebalanceProtocol() == RebalanceProtocol.STREAMS) {
            throw new TopologyException("rebalance_protocol is streams, and " + unsupportedReason.get()
                    + "; set rebalance_protocol=classic or auto");
        }
        LOG.info("the topology shares its partitions by the classic protocol, since {}", unsupportedReason.get());
        return false;
    }

    /** Why there can be no streams group; empty if there is one now, as configured. */
    private Optional<String> unsupportedReason() {
        if (!config.instanceId().isEmpty()) {
            return Optional.of(
                    "instance_id is '" + config.instanceId() + "' and a streams group has no static members");
        }
        try (Admin admin = Admin.create(connection.admin())) {
            FinalizedVersionRange streams = within(admin.describeFeatures().featureMetadata())
                    .finalizedFeatures()
                    .get(FEATURE);
            if (streams == null || streams.maxVersionLevel() < 1) {
                return Optional.of("the broker has no streams groups (feature " + FEATURE + " is "
                        + (streams == null ? "not there" : streams.maxVersionLevel()) + ")");
            }
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, connection.group("topology"));
            within(admin.incrementalAlterConfigs(Map.of(
                            group,
                            List.of(
                                    set("streams.session.timeout.ms", config.sessionTimeoutMs()),
                                    set("streams.heartbeat.interval.ms", config.sessionTimeoutMs() / 4),
                                    set("streams.num.standby.replicas", config.standbyReplicas()))))
                    .all());
            return Optional.empty();
        } catch (ExecutionException e) {
            return Optional.of("the broker does not grant its streams group session_timeout_ms "
                    + config.sessionTimeoutMs() + " or standby_replicas " + config.standbyReplicas() + ": "
                    + Objects.requireNonNullElse(e.getCause(), e).getMessage());
        }
    }

    private <T> T within(org.apache.kafka.common.KafkaFuture<T> answer) throws ExecutionException {
        try {
            return answer.get(limitMs(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new TopologyException(
                    "the broker did not say within start_timeout_ms " + limitMs()
                            + " whether it has streams groups; is it out of reach?",
                    e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new TopologyException("the topology was interrupted", e);
        }
    }

    private long limitMs() {
        return connection.limit(config.startTimeoutMs()).toMillis();
    }

    private static AlterConfigOp set(String name, int value) {
        return new AlterConfigOp(new ConfigEntry(name, Integer.toString(value)), AlterConfigOp.OpType.SET);
    }
}
