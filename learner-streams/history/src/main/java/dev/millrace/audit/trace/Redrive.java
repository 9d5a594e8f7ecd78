package dev.millrace.audit.trace;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.log.scan.ClusterScan;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.log.transaction.FencedWriterException;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;

/**
 * Puts dead letters back on their topics. One transaction writes the unchanged record and a mark on the dead-letter
 * topic.
 *
 * <p>Transactions hold up to {@value #PER_TRANSACTION} letters or {@value #BYTES_PER_TRANSACTION} bytes. After a kill,
 * another call continues. Owned by one thread.
 */
public final class Redrive {
    private static final int PER_TRANSACTION = 500;
    private static final long BYTES_PER_TRANSACTION = 16 << 20;
    private static final int TRANSACTION_TIMEOUT_MS = 30_000;

    private final LogConnection connection;
    private final Duration patience;
    private final AvroRecordDeserializer<PromptRequest> prompts;
    private final AvroRecordDeserializer<Trajectory> trajectories;

    /** @param patience longest wait without records; longer than the run's transaction timeout */
    public Redrive(LogConnection connection, Duration patience) {
        this.connection = connection;
        this.patience = patience;
        this.prompts = AvroSerde.of(PromptRequest.class, connection.registry()).deserializer();
        this.trajectories =
                AvroSerde.of(Trajectory.class, connection.registry()).deserializer();
    }

    /** @param redriven letters, also if only planned */
    public record Done(List<DeadLetter> redriven, Map<DeadLetter, String> refused) {}

    /** Writes nothing. */
    public Done plan(DeadLetterFilter choice) {
        Work work = new Work(Optional.empty());
        work.run(choice);
        return work.done();
    }

    /**
     * @throws IllegalStateException if another process redrives at the same time
     * @throws KafkaException if a transaction fails; earlier ones are committed
     */
    public Done put(DeadLetterFilter choice) {
        try (TransactionalWriter writer = TransactionalWriter.of(
                connection,
                connection.scoped("dead-letters"),
                TRANSACTION_TIMEOUT_MS,
                Map.of(
                        ProducerConfig.CLIENT_ID_CONFIG,
                        "dead-letters",
                        ProducerConfig.MAX_BLOCK_MS_CONFIG,
                        patience.toMillis()))) {
            Work work = new Work(Optional.of(writer));
            try {
                writer.fenceOthers(); // from here on no other process redrives, and no open mark can still be committed
                work.run(choice);
            } catch (FencedWriterException e) {
                throw new IllegalStateException(
                        "another process has started to redrive dead letters of this run; "
                                + work.done().redriven().size() + " were redriven before that",
                        e);
            }
            return work.done();
        }
    }

    private final class Work {
        private final Optional<TransactionalWriter> writer;
        private final List<DeadLetter> redriven = new ArrayList<>();
        private final Map<DeadLetter, String> refused = new LinkedHashMap<>();

        private final Map<DeadLetter, ConsumerRecord<byte[], byte[]>> waiting = new LinkedHashMap<>();
        private long waitingBytes;

        Work(Optional<TransactionalWriter> writer) {
            this.writer = writer;
        }

        Done done() {
            return new Done(List.copyOf(redriven), new LinkedHashMap<>(refused));
        }

        void run(DeadLetterFilter choice) {
            String topic = connection.topics().deadLetters();
            try (ClusterScan scan = connection.scan(patience)) {
                ConsistentCut cut =
                        scan.cutBehindOpenTransactions(List.of(topic)); // a mark may follow an open transaction
                RedriveCheck check = new RedriveCheck(connection.run(), connection.topics(), scan.partitionCounts());
                DeadLetterTopic.eachOf(
                        choice,
                        topic,
                        scan,
                        cut,
                        opened -> take(
                                opened.letter(), opened.record(), check.refusal(opened.letter(), opened.newOffset())));
            }
            flush();
        }

        private void take(DeadLetter letter, ConsumerRecord<byte[], byte[]> record, Optional<String> refusal) {
            if (refusal.isPresent()) {
                refused.put(letter, refusal.get());
                return;
            }
            waiting.put(letter, record);
            waitingBytes += Math.max(0, record.serializedValueSize());
            if (waiting.size() >= PER_TRANSACTION || waitingBytes >= BYTES_PER_TRANSACTION) {
                flush();
            }
        }

        private void flush() {
            if (!waiting.isEmpty()) {
                writer.ifPresent(out -> out.write(this::send));
                redriven.addAll(waiting.keySet());
                waiting.clear();
                waitingBytes = 0;
            }
        }

        private void send(Producer<byte[], byte[]> out) {
            Map<DeadLetter, Future<RecordMetadata>> sent =
                    new TreeMap<>(Comparator.comparingInt(DeadLetter::partition).thenComparingLong(DeadLetter::offset));
            waiting.forEach((letter, record) -> sent.put(
                    letter,
                    out.send(new ProducerRecord<>(
                            letter.sourceTopic(),
                            letter.sourcePartition(),
                            letter.sourceTimestampMs() < 0 ? null : letter.sourceTimestampMs(),
                            record.key(),
                            record.value(),
                            RedriveMark.headers(record.headers(), letter.partition(), letter.offset())))));
            out.flush();
            sent.forEach((letter, future) -> {
                ConsumerRecord<byte[], byte[]> record = Objects.requireNonNull(waiting.get(letter));
                out.send(new RedriveMark(
                                letter.partition(),
                                letter.offset(),
                                new LogCoordinates(
                                        letter.sourceTopic(), letter.sourcePartition(), letter.sourceOffset()),
                                offset(future),
                                samples(letter, record),
                                rolloutPlace(letter, record),
                                new RedriveMark.Subject(letter.rolloutId(), letter.runId(), letter.epoch()))
                        .record(connection.topics().deadLetters(), record.key()));
            });
        }

        private long offset(Future<RecordMetadata> sent) {
            try {
                return sent.get().offset();
            } catch (ExecutionException e) {
                throw e.getCause() instanceof KafkaException known ? known : new KafkaException(e.getCause());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new KafkaException("interrupted while redriving dead letters", e);
            }
        }
    }

    /** Samples that admission counted as lost; see {@link RedriveMark#samples()}. */
    private long samples(DeadLetter letter, ConsumerRecord<byte[], byte[]> record) {
        if (letter.sourceTopic().equals(connection.topics().rollouts())) {
            return letter.runId().isEmpty() || letter.rolloutId().isEmpty() ? 0 : 1;
        }
        if (letter.sourceTopic().equals(connection.topics().prompts())) {
            return TopicScan.readable(prompts, record)
                    .filter(prompt -> connection.run().owns(prompt.getRunId(), prompt.getEpoch()))
                    .map(PromptRequest::getSamples)
                    .orElse(0);
        }
        return 0;
    }

    private String rolloutPlace(DeadLetter letter, ConsumerRecord<byte[], byte[]> record) {
        if (!letter.sourceTopic().equals(connection.topics().trajectories())) {
            return "";
        }
        return TopicScan.readable(trajectories, record)
                .map(Trajectory::getRolloutSource)
                .map(source -> RedriveMark.place(source.getPartition(), source.getOffset()))
                .orElse("");
    }

    /** Decides whether a letter can be redriven. Pure. */
    static final class RedriveCheck {
        private final RunIdentity run;
        private final RunTopics topics;
        private final Map<String, Integer> partitions;

        /** @param partitions per existing topic of the run */
        RedriveCheck(RunIdentity run, RunTopics topics, Map<String, Integer> partitions) {
            this.run = run;
            this.topics = topics;
            this.partitions = Map.copyOf(partitions);
        }

        /**
         * Why not; empty if it can.
         *
         * @param newOffset -1 if it was not redriven
         */
        Optional<String> refusal(DeadLetter letter, long newOffset) {
            if (newOffset >= 0) {
                return Optional.of("it was already redriven to " + letter.sourceTopic() + "-" + letter.sourcePartition()
                        + "@" + newOffset);
            }
            if (letter.sourceTopic().equals(topics.batches())) {
                return Optional.of("the learner is past this batch; roll the run back to a new epoch instead");
            }
            if (letter.sourceTopic().equals(topics.policyVersions())) {
                return Optional.of("only the learner publishes versions; restart it to publish this one again");
            }
            if (!accepts().contains(letter.sourceTopic())) {
                return Optional.of(
                        "it came from " + letter.sourceTopic() + ", which is not a topic that takes redriven records");
            }
            Integer count = partitions.get(letter.sourceTopic());
            if (count == null || letter.sourcePartition() >= count) {
                return Optional.of("its source " + letter.sourceTopic() + "-" + letter.sourcePartition()
                        + " no longer exists" + (count == null ? "" : "; the topic has " + count + " partitions"));
            }
            if (letter.reason().equals(RefusalReason.WRONG_RUN.code())
                    || !letter.runId().isEmpty() && !letter.runId().equals(run.runId())) {
                return Optional.of("it is of run '" + letter.runId() + "'; this is run '" + run.runId()
                        + "', which would refuse it again");
            }
            if (letter.epoch() < 0
                    ? letter.reason().equals(RefusalReason.WRONG_EPOCH.code())
                    : letter.epoch() != run.epoch()) {
                return Optional.of(
                        "it is of another epoch than " + run.epoch() + ", the run's epoch; it would be refused again");
            }
            if (letter.reason().equals(RefusalReason.TOO_LARGE.code())
                    && letter.sourceTopic().equals(topics.rollouts())) {
                return Optional.of("the join would drop it as a duplicate; have its group sampled again");
            }
            return Optional.empty();
        }

        private Set<String> accepts() {
            return Set.of(
                    topics.prompts(),
                    topics.rollouts(),
                    topics.scores(),
                    topics.rewards(),
                    topics.referenceScores(),
                    topics.teacherScores(),
                    topics.trajectories());
        }
    }
}
