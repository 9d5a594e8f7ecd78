package dev.millrace.learner.batch;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.rollout.RefusedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** The alarms about batches: records that are gone before they were read, or that nobody of this run wrote. */
final class BatchAlarms {
    private static final String TAIL_LOST = "log-tail-lost";
    private static final String REMOVED = "records-removed";
    private static final String FOREIGN = "foreign-batch";

    private final LogConnection connection;
    private final TopicPartition partition;
    private final String trainingLog;

    /**
     * @param partition of the batches
     * @param trainingLog the partition of the steps
     */
    BatchAlarms(LogConnection connection, TopicPartition partition, TopicPartition trainingLog) {
        this.connection = connection;
        this.partition = partition;
        this.trainingLog = trainingLog.toString();
    }

    /** @param lost what the training log does not have, as a sentence */
    void stepsLost(String lost) {
        connection.alarms().raise(TAIL_LOST, trainingLog, lost, connection.command("repair"));
    }

    /** The batches end before an offset up to which they were read. */
    void tailLost(long end, long readBefore, long due) {
        connection
                .alarms()
                .raise(
                        TAIL_LOST,
                        partition.toString(),
                        partition + " ends at offset " + end + ", but was read up to offset " + readBefore
                                + ": its last " + (readBefore - end) + " offsets are lost; batch " + due + " is due",
                        "it ends by itself with that batch; if it does not come, " + connection.command("repair"));
    }

    /** The batches begin behind an offset up to which they were read. */
    void removed(long begin, long readBefore, long due) {
        connection
                .alarms()
                .raise(
                        REMOVED,
                        partition.toString(),
                        partition + " begins at offset " + begin + ", and was read up to offset " + readBefore
                                + ": retention (topics.record_retention_ms) took what lay between before it was read;"
                                + " batch " + due + " is due",
                        "it ends by itself with that batch; if it does not come, " + connection.command("repair"));
    }

    /** Somebody else writes batches. */
    void foreign(ConsumerRecord<byte[], byte[]> record, RefusedException why) {
        connection
                .alarms()
                .raise(
                        FOREIGN,
                        partition.toString(),
                        "the record at " + partition + "@" + record.offset() + " is no batch of this run's: "
                                + why.refusal().message()
                                + "; somebody else than the run's topology writes to this topic",
                        "stop whoever that is; the record goes to "
                                + connection.topics().deadLetters() + ", and nothing of the run is lost");
    }

    /** A batch was trained on, so what was lost was not waited for in vain. */
    void trained() {
        connection.alarms().lower(TAIL_LOST, partition.toString());
        connection.alarms().lower(REMOVED, partition.toString());
        connection.alarms().lower(TAIL_LOST, trainingLog);
    }
}
