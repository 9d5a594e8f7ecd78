package dev.millrace.log.run;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.config.TopicConfig;

/**
 * What a topic of a cluster lacks of what a run expects.
 *
 * @param setting Kafka's name of the setting, {@code partitions}, {@code replicas}, or {@code topic} where the topic is missing
 * @param found as the cluster has it; empty where the topic is missing
 * @param expected the bound, such as {@code at least 2}
 * @param wayOut a clause with the command that mends it
 */
public record TopicDifference(String topic, String setting, String found, String expected, String wayOut) {
    /** What a run depends on. Of numbers more is as good, and -1 is without end. */
    static final List<String> SETTINGS = List.of(
            TopicConfig.CLEANUP_POLICY_CONFIG,
            TopicConfig.RETENTION_MS_CONFIG,
            TopicConfig.RETENTION_BYTES_CONFIG,
            TopicConfig.MAX_MESSAGE_BYTES_CONFIG,
            TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG);

    static TopicDifference missing(TopicSettings topic) {
        return new TopicDifference(
                topic.name(),
                "topic",
                "",
                topic.partitions() + " partitions",
                "millrace topics create, with the options that name the run, creates it");
    }

    /** Without a full stop. */
    public String sentence() {
        String what = setting.equals("topic")
                ? " is missing"
                : SETTINGS.contains(setting)
                        ? " has " + setting + "=" + found + ", expected " + expected
                        : " has " + found + " " + setting + ", expected " + expected;
        return "topic " + topic + what + "; " + wayOut;
    }

    /**
     * Compares topics with what a run expects.
     *
     * @param replicationFactor copies of each partition; -1 expects nothing
     */
    record Check(String bootstrapServers, int replicationFactor) {
        /** In a fixed order. */
        List<TopicDifference> of(TopicSettings topic, TopicDescription shape, Config existing) {
            List<TopicDifference> differences = new ArrayList<>();
            int partitions = shape.partitions().size();
            if (partitions != topic.partitions()) {
                differences.add(new TopicDifference(
                        topic.name(),
                        "partitions",
                        String.valueOf(partitions),
                        String.valueOf(topic.partitions()),
                        "before the run has records, "
                                + (partitions < topic.partitions()
                                        ? topics("--alter", topic.name()) + " --partitions " + topic.partitions()
                                        : topics("--delete", topic.name()) + ", and create it again")));
            }
            int copies = shape.partitions().stream()
                    .mapToInt(p -> p.replicas().size())
                    .min()
                    .orElseThrow();
            if (copies < replicationFactor) {
                differences.add(new TopicDifference(
                        topic.name(),
                        "replicas",
                        String.valueOf(copies),
                        "at least " + replicationFactor,
                        "reassign its partitions with kafka-reassign-partitions"));
            }
            topic.configuration().forEach((key, needed) -> {
                String found = existing.get(key).value();
                if (SETTINGS.contains(key) && !fits(key, needed, found)) {
                    boolean isText = key.equals(TopicConfig.CLEANUP_POLICY_CONFIG);
                    differences.add(new TopicDifference(
                            topic.name(),
                            key,
                            found,
                            (isText ? "" : "at least ") + needed,
                            altered(topic, key, needed)));
                }
            });
            String key = TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG;
            String inSync = existing.get(key).value();
            if (Integer.parseInt(inSync) > copies) {
                differences.add(new TopicDifference(
                        topic.name(),
                        key,
                        inSync,
                        "at most " + copies + ", its replicas, or nothing can be written",
                        altered(topic, key, String.valueOf(copies))));
            }
            return differences;
        }

        /** Whether a value does as well as the one that a run would have made the topic with. */
        private static boolean fits(String key, String needed, String found) {
            return found.equals(needed)
                    || !key.equals(TopicConfig.CLEANUP_POLICY_CONFIG) && asBound(found) >= asBound(needed);
        }

        private static long asBound(String value) {
            long number = Long.parseLong(value);
            return number == -1 ? Long.MAX_VALUE : number;
        }

        private String altered(TopicSettings topic, String key, String value) {
            return "kafka-configs --bootstrap-server " + bootstrapServers
                    + " --alter --entity-type topics --entity-name " + topic.name() + " --add-config " + key + "="
                    + value;
        }

        private String topics(String action, String topic) {
            return "kafka-topics --bootstrap-server " + bootstrapServers + " " + action + " --topic " + topic;
        }
    }
}
