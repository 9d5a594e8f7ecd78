package dev.millrace.runtime.pipeline;

import dev.millrace.log.ClientKind;
import dev.millrace.log.run.CheckedRights;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.Right;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.log.run.TopicSettings;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.run.RunTopics;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tries the roles' cluster operations once, on a temporary topic, transactional id and group under the run's prefix.
 */
final class ClusterTrial {
    private static final Logger LOG = LoggerFactory.getLogger(ClusterTrial.class);

    /** A record's own overhead in a batch, with room to spare. */
    private static final int OVERHEAD_BYTES = 1024;

    private static final int SMALL_BYTES = 100;
    private static final String LEFT_MS = Long.toString(TimeUnit.HOURS.toMillis(1));
    private static final long SPARE_BYTES = 1L << 20;
    /** Beyond this, records of two machines may appear out of order. */
    private static final double FAR_SECONDS = 10;

    private final Map<String, Object> client;
    private final String name;
    private final TopicsConfig config;
    private final RunTopics topics;
    private final List<RoleRights> roles;
    private final List<Right> rights;
    private final List<PreflightCheck> checks = new ArrayList<>();

    /**
     * @param roles that use the account; a topic is made and written for the creator only
     * @param word unique to the trial
     */
    ClusterTrial(
            Map<String, Object> client,
            RunTopics topics,
            TopicsConfig config,
            List<RoleRights> roles,
            List<Right> rights,
            String word) {
        this.client = client;
        this.topics = topics;
        this.name = RoleRights.ofPreflight(topics) + word;
        this.config = config;
        this.roles = roles;
        this.rights = rights;
    }

    /** The checks; the first is whether the cluster answers. */
    List<PreflightCheck> run() {
        boolean creates = roles.contains(RoleRights.CREATOR);
        try (TopicAdministration administration = new TopicAdministration(client, config)) {
            administration.requireReachable();
            checks.add(PreflightCheck.ok("cluster", "it answers, as " + administration.clusterId()));
            boolean isMade = creates && made(administration);
            try {
                checks.add(rights(administration));
                if (isMade) {
                    written();
                }
            } finally {
                if (isMade) {
                    remove();
                }
            }
            if (creates && !isMade) {
                skip("topics", "transactions", "record size", "clock", "reading");
            }
        } catch (LogSetupException e) {
            if (!checks.isEmpty()) {
                throw e;
            }
            checks.add(PreflightCheck.failed("cluster", String.valueOf(e.getMessage())));
            skip("cluster", "rights");
            if (creates) {
                skip("cluster", "topics", "transactions", "record size", "clock", "reading");
            }
        }
        return checks;
    }

    private boolean made(TopicAdministration administration) {
        try {
            administration.prepare(List.of(new TopicSettings(
                    name,
                    1,
                    Map.of(
                            TopicConfig.MESSAGE_TIMESTAMP_TYPE_CONFIG,
                            "LogAppendTime",
                            TopicConfig.RETENTION_MS_CONFIG,
                            LEFT_MS, // if it may not be removed, retention soon empties it
                            TopicConfig.MAX_MESSAGE_BYTES_CONFIG,
                            Integer.toString(config.maxRecordBytes())))));
            checks.add(PreflightCheck.ok("topics", "created one under " + name));
            return true;
        } catch (LogSetupException e) {
            checks.add(PreflightCheck.failed("topics", String.valueOf(e.getMessage())));
            return false;
        }
    }

    private PreflightCheck rights(TopicAdministration administration) {
        String who = roles.stream().map(RoleRights::lowerCase).collect(Collectors.joining(", "));
        try {
            CheckedRights tried = administration.tried(topics, rights);
            String granted = "the account has " + tried.granted().size() + " rights of " + who;
            return tried.refusal(who, String.valueOf(client.get("bootstrap.servers")))
                    .map(sentence -> PreflightCheck.failed("rights", sentence))
                    .orElseGet(() -> tried.untried().isEmpty()
                            ? PreflightCheck.ok("rights", granted)
                            : PreflightCheck.doubt(
                                    "rights",
                                    granted + "; " + tried.untried().size()
                                            + " are for topics that do not exist yet; a role that lacks one fails"
                                            + " at its start: " + names(tried.untried())));
        } catch (LogSetupException e) {
            return PreflightCheck.failed("rights", String.valueOf(e.getMessage()));
        }
    }

    private static String names(List<Right> rights) {
        return Right.merged(rights).stream().map(Right::toString).collect(Collectors.joining(", "));
    }

    private void skip(String after, String... subjects) {
        for (String subject : subjects) {
            checks.add(PreflightCheck.skipped(subject, after));
        }
    }

    private void written() {
        Map<String, Object> settings = ClientKind.PRODUCER.settings(
                client,
                Map.of(
                        "transactional.id",
                        name,
                        "max.request.size",
                        config.maxRecordBytes(),
                        "buffer.memory",
                        Math.max(32L << 20, config.maxRecordBytes() + SPARE_BYTES),
                        "max.block.ms",
                        config.timeoutMs(),
                        "delivery.timeout.ms",
                        Math.toIntExact(config.timeoutMs()),
                        "request.timeout.ms",
                        Math.toIntExact(config.timeoutMs() / 2)));
        TopicPartition partition = new TopicPartition(name, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer();
                KafkaProducer<byte[], byte[]> producer =
                        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            double clock = clockBehind(producer);
            producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(1)), consumer.groupMetadata());
            producer.commitTransaction();
            checks.add(PreflightCheck.ok("transactions", "a record and an offset of a group were committed together"));
            size(producer);
            checks.add(clock(clock));
            checks.add(reading(consumer, partition));
        } catch (KafkaException | ExecutionException | TimeoutException e) {
            checks.add(PreflightCheck.failed("transactions", refusal(e)));
            skip("transactions", "record size", "clock", "reading");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new LogSetupException("interrupted while a record was written to " + name, e);
        }
    }

    /** Seconds that this machine's clock is behind the broker's, within half a record's round trip. */
    private double clockBehind(KafkaProducer<byte[], byte[]> producer)
            throws ExecutionException, TimeoutException, InterruptedException {
        answered(producer.send(
                new ProducerRecord<>(name, new byte[SMALL_BYTES]))); // connections are made with the first
        long before = System.currentTimeMillis();
        RecordMetadata written = answered(producer.send(new ProducerRecord<>(name, new byte[SMALL_BYTES])));
        long after = System.currentTimeMillis();
        return (written.timestamp() - (before + after) / 2.0) / 1000;
    }

    private static PreflightCheck clock(double behind) {
        String sentence = String.format(
                Locale.ROOT,
                "this machine's is %.1f s %s the broker's",
                Math.abs(behind),
                behind < 0 ? "ahead of" : "behind");
        return Math.abs(behind) <= FAR_SECONDS
                ? PreflightCheck.ok("clock", sentence)
                : PreflightCheck.doubt("clock", sentence + "; times on the log will disagree, so correct one of them");
    }

    private void size(KafkaProducer<byte[], byte[]> producer) throws InterruptedException {
        byte[] largest = new byte[config.maxRecordBytes() - OVERHEAD_BYTES];
        try {
            producer.beginTransaction();
            answered(producer.send(new ProducerRecord<>(name, largest)));
            producer.commitTransaction();
            checks.add(PreflightCheck.ok(
                    "record size",
                    String.format(
                            Locale.ROOT, "one of %,d bytes (topics.max_record_bytes) was taken", largest.length)));
        } catch (KafkaException | ExecutionException | TimeoutException e) {
            checks.add(PreflightCheck.failed("record size", refusal(e)));
            abort(producer);
        }
    }

    /** The failure is already reported; the broker aborts a transaction that cannot be aborted here. */
    private static void abort(KafkaProducer<byte[], byte[]> producer) {
        try {
            producer.abortTransaction();
        } catch (KafkaException e) {
            LOG.debug("the transaction of the trial could not be aborted", e);
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        return new KafkaConsumer<>(
                ClientKind.CONSUMER.settings(
                        client,
                        Map.of(
                                "group.id",
                                name,
                                "isolation.level",
                                "read_committed",
                                "enable.auto.commit",
                                false,
                                "default.api.timeout.ms",
                                Math.toIntExact(config.timeoutMs()))),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
    }

    private PreflightCheck reading(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
        try {
            consumer.assign(Set.of(partition));
            consumer.seekToBeginning(Set.of(partition));
            OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
            if (committed == null || committed.offset() != 1) {
                return PreflightCheck.failed(
                        "reading", "the group's offset was committed and is missing: " + committed);
            }
            long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
            int read = 0;
            while (read < 2 && System.nanoTime() < until) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    read += record.value().length == SMALL_BYTES ? 1 : 0;
                }
            }
            return read == 2
                    ? PreflightCheck.ok("reading", "the committed records and the group's offset were read")
                    : PreflightCheck.failed(
                            "reading",
                            "2 records were committed, and within topics.timeout_ms=" + config.timeoutMs() + " " + read
                                    + " could be read");
        } catch (KafkaException e) {
            return PreflightCheck.failed("reading", refusal(e));
        }
    }

    private void remove() {
        try (Admin admin = Admin.create(ClientKind.ADMIN.settings(client, new HashMap<>()))) {
            answered(admin.deleteTopics(Set.of(name)).all());
            checks.add(PreflightCheck.ok("clean-up", "the topic was removed again"));
            try {
                answered(admin.deleteConsumerGroups(Set.of(name)).all());
            } catch (ExecutionException | TimeoutException e) {
                // the broker removes a group without members after offsets.retention.minutes
            }
        } catch (KafkaException | ExecutionException | TimeoutException e) {
            checks.add(PreflightCheck.doubt(
                    "clean-up",
                    "left behind: the topic " + name + ", with records of " + config.maxRecordBytes()
                            + " bytes at most, and the group "
                            + name + ", which expires by itself. The topic could not be removed: " + refusal(e)
                            + "; an account that may remove it runs: kafka-topics.sh --bootstrap-server "
                            + client.get("bootstrap.servers")
                            + " --delete --topic " + name));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private <T> T answered(Future<T> future) throws ExecutionException, TimeoutException, InterruptedException {
        return future.get(config.timeoutMs(), TimeUnit.MILLISECONDS);
    }

    private String refusal(Exception e) {
        Throwable cause = e instanceof ExecutionException ? Objects.requireNonNullElse(e.getCause(), e) : e;
        String message = cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage();
        if (cause instanceof RecordTooLargeException) {
            return message + " (raise the cluster's limit, or lower topics.max_record_bytes=" + config.maxRecordBytes()
                    + ")";
        }
        if (cause instanceof AuthorizationException) {
            return message + " (millrace acls prints the rights of each role)";
        }
        if (cause instanceof TimeoutException || cause instanceof org.apache.kafka.common.errors.TimeoutException) {
            return "no answer within topics.timeout_ms=" + config.timeoutMs() + ": " + message;
        }
        return message;
    }
}
