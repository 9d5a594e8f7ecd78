package dev.millrace.log.transaction;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.TopicPartition;

/**
 * Who owns a transactional id, as a committed offset and its metadata in a group of its own. The offset is the owner's term, one
 * more with each; the metadata is the term and who it is. Clients that can commit no metadata, such as older ones of Python, claim
 * an id by the offset alone.
 *
 * <p>A producer that is fenced cannot tell a newer owner from a broker that gave an open transaction up after its time. This can:
 * it is written in a transaction under the id, so nobody can write it who has been fenced, and it is read after the last such
 * transaction has ended.
 */
final class OwnerRecord {
    private static final String SUFFIX = ".owner";
    private static final OffsetAndMetadata NOBODY = new OffsetAndMetadata(0);

    private final String transactionalId;
    private final TopicPartition partition;
    private final Function<String, Consumer<byte[], byte[]>> members;

    OwnerRecord(LogConnection connection, String transactionalId) {
        this(
                transactionalId,
                connection.topics().run(),
                group -> new LogReader(connection, Map.of("group.id", group, "client.id", group)).consumer());
    }

    /**
     * @param topic one that exists; only its name counts
     * @param members makes a consumer that speaks for a group
     */
    OwnerRecord(String transactionalId, String topic, Function<String, Consumer<byte[], byte[]>> members) {
        this.transactionalId = transactionalId;
        this.partition = new TopicPartition(topic, 0);
        this.members = members;
    }

    /** Takes the id over: from here on everybody older finds this one here. */
    void claim(Incarnation owner, Producer<byte[], byte[]> out) {
        try (Consumer<byte[], byte[]> member = members.apply(transactionalId + SUFFIX)) {
            long term = Math.max(owner.term(), term(recorded(member))) + 1;
            out.beginTransaction();
            out.sendOffsetsToTransaction(
                    Map.of(partition, new OffsetAndMetadata(term, owner.text(term))), member.groupMetadata());
            out.commitTransaction();
            owner.owns(term);
        }
    }

    /**
     * Whether the id is this one's that has claimed it.
     *
     * @return false if nobody newer has it, but the log has lost the record, or its end with it: it is to be claimed again
     * @throws TakenOverException if somebody else has claimed the id since
     */
    boolean isStillOf(Incarnation owner) {
        try (Consumer<byte[], byte[]> member = members.apply(transactionalId + SUFFIX)) {
            OffsetAndMetadata now = recorded(member);
            if (now.metadata().equals(owner.text(owner.term()))) {
                return true;
            }
            if (term(now) >= owner.term()) {
                throw new TakenOverException(transactionalId, owner, now.metadata());
            }
            return false;
        }
    }

    private OffsetAndMetadata recorded(Consumer<byte[], byte[]> member) {
        OffsetAndMetadata now = member.committed(Set.of(partition)).get(partition);
        return now == null ? NOBODY : now;
    }

    private static long term(OffsetAndMetadata recorded) {
        int end = recorded.metadata().indexOf(' ');
        try {
            return end < 0
                    ? recorded.offset()
                    : Long.parseLong(recorded.metadata().substring(0, end));
        } catch (NumberFormatException e) {
            return recorded.offset();
        }
    }
}
