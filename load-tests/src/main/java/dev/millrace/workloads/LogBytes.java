package dev.millrace.workloads;

import dev.millrace.workloads.topology.LoadException;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.LogDirDescription;

/** How many bytes of each topic lie on the brokers' disks, compressed as they are, each replica counted. */
public final class LogBytes {
    private LogBytes() {}

    /** By topic. */
    public static Map<String, Long> byTopic(Map<String, Object> client) throws InterruptedException {
        try (Admin admin = Admin.create(client)) {
            var brokers = admin.describeCluster().nodes().get().stream()
                    .map(node -> node.id())
                    .toList();
            Map<String, Long> bytes = new TreeMap<>();
            for (Map<String, LogDirDescription> directories :
                    admin.describeLogDirs(brokers).allDescriptions().get().values()) {
                for (LogDirDescription directory : directories.values()) {
                    directory
                            .replicaInfos()
                            .forEach((partition, replica) -> bytes.merge(partition.topic(), replica.size(), Long::sum));
                }
            }
            return bytes;
        } catch (ExecutionException e) {
            throw new LoadException(
                    "the brokers do not say what is on their disks: "
                            + Objects.requireNonNullElse(e.getCause(), e).getMessage(),
                    Objects.requireNonNullElse(e.getCause(), e));
        }
    }
}
