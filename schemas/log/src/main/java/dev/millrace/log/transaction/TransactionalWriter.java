package dev.millrace.log.transaction;

import dev.millrace.log.LogConnection;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes transactions one after the other, under one transactional id.
 *
 * <p>What becomes of one that is not committed is decided here:
 *
 * <ul>
 *   <li>Somebody else has taken over: {@link FencedWriterException}; the writer is of no further use.
 *   <li>It was aborted: the exception that was the reason, and the next one can begin. That the group has given partitions
 *       away whose offsets were to go along, Kafka's CommitFailedException, is such a reason.
 *   <li>It could not be aborted either, since the coordinator is lost: before its commit the reason, at its commit {@link
 *       UncertainCommitException}. {@link #fenceOthers()} closes the producer and makes another, which ends what was left open;
 *       after that the log says what was committed.
 * </ul>
 *
 * <p>Used by one thread, save {@link #close()}.
 */
public final class TransactionalWriter implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(TransactionalWriter.class);
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);

    private final Supplier<Producer<byte[], byte[]>> producers;
    private volatile @Nullable Producer<byte[], byte[]> producer;

    /** @param producers makes a producer with a transactional id; not called before {@link #fenceOthers()} */
    public TransactionalWriter(Supplier<Producer<byte[], byte[]>> producers) {
        this.producers = producers;
    }

    /**
     * On a run's log.
     *
     * @param transactionalId nobody else's
     * @param timeoutMs the broker aborts what was open for so long
     * @param ofRole further settings of the producer
     */
    public static TransactionalWriter of(
            LogConnection connection, String transactionalId, int timeoutMs, Map<String, Object> ofRole) {
        Map<String, Object> settings = new HashMap<>(ofRole);
        settings.put("transactional.id", transactionalId);
        settings.put("transaction.timeout.ms", timeoutMs);
        return new TransactionalWriter(() -> new KafkaProducer<>(
                connection.producer(settings), new ByteArraySerializer(), new ByteArraySerializer()));
    }

    /**
     * Aborts what an earlier holder of the id left open, this writer included, and shuts the holder out: when this returns,
     * all that was ever committed under the id can be read.
     *
     * @throws FencedWriterException if somebody else takes over at the same time
     * @throws KafkaException if the broker cannot be reached, or the open transaction not ended, within its limit
     */
    public void fenceOthers() {
        close();
        Producer<byte[], byte[]> made = producers.get();
        producer = made;
        try {
            made.initTransactions();
        } catch (RuntimeException e) {
            close();
            throw isFenced(e) ? new FencedWriterException(e) : e;
        }
    }

    /** Of the transactions, until the next {@link #fenceOthers()}. */
    public Producer<byte[], byte[]> producer() {
        Producer<byte[], byte[]> current = producer;
        if (current == null) {
            throw new IllegalStateException("nothing can be written before fenceOthers()");
        }
        return current;
    }

    /**
     * Writes one transaction.
     *
     * @param work sends the records, and the offsets if there are any; need not wait for an acknowledgement, since the
     *     commit fails if any send did
     * @return what the work gives
     * @throws FencedWriterException if somebody else has taken over
     * @throws UncertainCommitException if nobody can say whether it is committed
     * @throws RuntimeException if it is not, by whatever the reason was
     */
    public <T> T compute(Function<Producer<byte[], byte[]>, T> work) {
        Producer<byte[], byte[]> out = producer();
        boolean isWhole = false;
        try {
            out.beginTransaction();
            T result = work.apply(out);
            isWhole = true;
            out.commitTransaction();
            return result;
        } catch (RuntimeException e) {
            if (isFenced(e)) {
                throw new FencedWriterException(e);
            }
            boolean isAborted = aborted(out, e);
            boolean isUncertain = isWhole && !(e instanceof AuthorizationException);
            throw !isAborted && (isUncertain || e instanceof CommitFailedException)
                    ? new UncertainCommitException(e)
                    : e;
        }
    }

    /** As {@link #compute}, of work that gives nothing. */
    public void write(Consumer<Producer<byte[], byte[]>> work) {
        compute(out -> {
            work.accept(out);
            return true;
        });
    }

    private static boolean aborted(Producer<byte[], byte[]> out, RuntimeException reason) {
        try {
            out.abortTransaction();
            return true;
        } catch (KafkaException | IllegalStateException e) { // the latter after a commit without an answer
            LOG.warn("a transaction could not be aborted, which the next start does instead: {}", e.getMessage());
            reason.addSuppressed(e);
            return false;
        }
    }

    /** Somewhere among the causes: a producer says so in several ways. */
    private static boolean isFenced(Throwable failure) {
        for (Throwable e = failure; e != null; e = e.getCause()) {
            if (e instanceof ProducerFencedException
                    || e instanceof InvalidProducerEpochException
                    || e instanceof InvalidTxnStateException
                    || e instanceof FencedInstanceIdException) {
                return true;
            }
        }
        return false;
    }

    /** May be called from any thread: a transaction under way then fails. */
    @Override
    public void close() {
        Producer<byte[], byte[]> current = producer;
        if (current != null) {
            current.close(CLOSE_LIMIT);
        }
    }
}
