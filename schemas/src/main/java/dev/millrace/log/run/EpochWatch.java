package dev.millrace.log.run;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.schemas.EpochParent;
import dev.millrace.schemas.RunClaim;
import dev.millrace.schemas.run.ClaimKey;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;

/**
 * Follows a run's claim, passes on a request to stop, and notices when the run has moved to another epoch, which fences
 * this one's processes.
 *
 * <p>{@link #run()} blocks; everything else may be called from any thread.
 */
public final class EpochWatch {
    private final RunIdentity run;
    private final String topic;
    private final Deserializer<RunClaim> claims;
    private final LogReader log;
    private final Runnable stopAsked;
    /** Offset from which on a request to stop is for this process. */
    private long begin;

    private volatile @Nullable String sentence;

    /**
     * Connects when it runs.
     *
     * @param stopAsked called at each request to stop
     */
    public EpochWatch(LogConnection connection, Runnable stopAsked) {
        this.stopAsked = stopAsked;
        this.run = connection.run();
        this.topic = connection.topics().run();
        this.claims = AvroSerde.of(RunClaim.class, connection.registry()).deserializer();
        this.log = LogReader.following(connection.as("epoch"));
    }

    /** Follows until it is stopped or the run has gone on. */
    public void run() {
        try (log) {
            List<TopicPartition> partitions = log.fromBeginning(topic);
            begin = Objects.requireNonNull(log.consumer().endOffsets(partitions).get(partitions.get(0)));
            log.followAtLeisure(this::look, () -> {
                if (sentence != null) {
                    log.stop();
                }
            });
        } catch (WakeupException e) {
            // stopped before it followed; nothing else wakes it
        }
    }

    private void look(ConsumerRecord<byte[], byte[]> record) {
        if (record.key() == null || record.value() == null) {
            return;
        }
        String key = new String(record.key(), StandardCharsets.UTF_8);
        if (!key.equals(ClaimKey.VALID) && !key.equals(ClaimKey.STOP)) {
            return;
        }
        try {
            RunClaim claim = claims.deserialize(topic, record.value());
            if (key.equals(ClaimKey.STOP)) {
                if (record.offset() >= begin && claim.getRunId().equals(run.runId())) {
                    stopAsked.run();
                }
            } else if (claim.getRunId().equals(run.runId()) && claim.getEpoch() > run.epoch()) {
                sentence = sentence(claim);
            }
        } catch (MalformedRecordException e) {
            // no claim
        }
    }

    private String sentence(RunClaim claim) {
        EpochParent parent = claim.getParent();
        return "run " + run.runId() + " has moved to epoch " + claim.getEpoch()
                + (parent == null
                        ? ""
                        : ", from version " + parent.getVersion() + " of epoch " + parent.getEpoch()
                                + (parent.getWhy().isEmpty() ? "" : " (" + parent.getWhy() + ")"))
                + "; no record of epoch " + run.epoch()
                + " is read any more. Restart the same command: it continues in the new epoch";
    }

    /** What to tell a person if the run has gone on. */
    public Optional<String> sentence() {
        return Optional.ofNullable(sentence);
    }

    /** Ends {@link #run()}. */
    public void stop() {
        log.stop();
    }
}
