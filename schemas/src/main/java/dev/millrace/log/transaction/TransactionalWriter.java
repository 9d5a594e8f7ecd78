package dev.millrace.log.transaction;

import dev.millrace.log.Alarms;
import dev.millrace.log.LogConnection;
import dev.millrace.log.Patience;
import dev.millrace.log.run.RootCause;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes transactions one after the other, under one transactional id.
 *
 * <p>What becomes of one that is not committed is decided here:
 *
 * <ul>
 *   <li>The producer is fenced, {@link FencedWriterException}: somebody else has taken over, or the broker gave a transaction up
 *       that was open for too long.
 *   <li>It was aborted: the exception that was the reason, and the next one can begin. That the group has given partitions
 *       away whose offsets were to go along, Kafka's CommitFailedException, is such a reason.
 *   <li>It could not be aborted either, since the coordinator is lost: before its commit the reason, at its commit {@link
 *       UncertainCommitException}.
 * </ul>
 *
 * <p>{@link #fenceOthers()} closes the producer and makes another, which ends what was left open; after that the log says what was
 * committed. The first call takes the id over from its owner; later ones keep it, and throw {@link
 * TakenOverException} if a newer process has taken it over. {@link #recover} does so until it succeeds, for as long as the run's
 * patience lasts.
 *
 * <p>Used by one thread, save {@link #close()}.
 */
public final class TransactionalWriter implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(TransactionalWriter.class);
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);
    private static final int CLAIMS = 5;
    /** The commit sends what lingers: records of a transaction go in one request, and the broker adds their partitions at once. */
    private static final int LINGER_MS = 100;

    private final Supplier<Producer<byte[], byte[]>> producers;
    private final @Nullable OwnerRecord owner;
    private final Incarnation incarnation;
    private final Patience patience;
    private volatile @Nullable Producer<byte[], byte[]> producer;

    /**
     * Creates a writer of an id without an owner record: each newcomer takes it over.
     *
     * @param producers makes a producer with a transactional id; not called before {@link #fenceOthers()}
     */
    public TransactionalWriter(Supplier<Producer<byte[], byte[]>> producers) {
        this(
                producers,
                null,
                new Incarnation(),
                new Patience("a writer", Duration.ZERO, new Alarms(), Optional::empty));
    }

    TransactionalWriter(
            Supplier<Producer<byte[], byte[]>> producers,
            @Nullable OwnerRecord owner,
            Incarnation incarnation,
            Patience patience) {
        this.producers = producers;
        this.owner = owner;
        this.incarnation = incarnation;
        this.patience = patience;
    }

    /** Of a role that makes several writers in its life, with producers of its own. */
    public static TransactionalWriter of(
            LogConnection connection,
            String transactionalId,
            Incarnation incarnation,
            Supplier<Producer<byte[], byte[]>> producers) {
        return new TransactionalWriter(
                producers,
                new OwnerRecord(connection, transactionalId),
                incarnation,
                new Patience(
                        transactionalId, connection.patience(), connection.alarms(), () -> RootCause.of(connection)));
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
        settings.put("compression.type", "lz4");
        settings.put("linger.ms", LINGER_MS);
        settings.put("transactional.id", transactionalId);
        settings.put("transaction.timeout.ms", timeoutMs);
        return of(
                connection,
                transactionalId,
                new Incarnation(),
                () -> new AcknowledgedProducer(connection.producer(settings)));
    }

    /**
     * Aborts what an earlier holder of the id left open, this writer included, and shuts the holder out: when this returns,
     * all that was ever committed under the id can be read.
     *
     * @throws TakenOverException if this one had the id, and somebody newer has it now
     * @throws FencedWriterException if somebody else takes over at the same time, again and again
     * @throws KafkaException if the broker cannot be reached, or the open transaction not ended, within its limit
     */
    public void fenceOthers() {
        if (owner == null) {
            open();
        } else if (incarnation.term() == 0) {
            claim(owner);
        } else {
            owner.isStillOf(incarnation); // first, so that a successor is not disturbed
            open();
            if (!owner.isStillOf(incarnation)) {
                claim(owner);
            }
        }
    }

    /** One that was taken over may come back in between and fence this one before it finds whose the id is now. */
    private void claim(OwnerRecord of) {
        for (int attempt = 1; ; attempt++) {
            open();
            try {
                of.claim(incarnation, producer());
                return;
            } catch (RuntimeException e) {
                close();
                if (!isFenced(e)) {
                    throw e;
                }
                if (attempt == CLAIMS) {
                    throw new FencedWriterException(e);
                }
            }
        }
    }

    private void open() {
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

    /**
     * Opens another producer after a failed transaction, and retries while the patience lasts. The caller then reads its
     * position from the log.
     *
     * @param failure what {@link #compute} threw; thrown again if waiting does not mend it
     * @param stopped true gives it up
     * @param place finds the place on the log; where it fails, all is tried again
     * @return false if it was given up; nothing can be written then
     * @throws TakenOverException if somebody newer has the id now
     * @throws dev.millrace.log.PatienceOverException if transactions have failed for too long
     */
    public boolean recover(RuntimeException failure, BooleanSupplier stopped, Runnable place) {
        return patience.again(failure, stopped) && takeOver(stopped, place);
    }

    /**
     * As {@link #fenceOthers()}, as often as it takes and the patience lasts.
     *
     * @param stopped true gives it up
     * @param place finds the place on the log; where it fails, all is tried again
     * @return false if it was given up; nothing can be written then
     */
    public boolean takeOver(BooleanSupplier stopped, Runnable place) {
        while (true) {
            try {
                fenceOthers();
                place.run();
                patience.reopened();
                return true;
            } catch (RuntimeException e) {
                if (!patience.again(e, stopped)) {
                    return false;
                }
            }
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
     *     commit sends what is left and fails if any send did (see {@link AcknowledgedProducer})
     * @return what the work gives
     * @throws FencedWriterException if somebody else has taken over, or the broker gave a transaction up
     * @throws UncertainCommitException if nobody can say whether it is committed
     * @throws RuntimeException if it is not, for any reason
     */
    public <T> T compute(Function<Producer<byte[], byte[]>, T> work) {
        Producer<byte[], byte[]> out = producer();
        boolean isWhole = false;
        try {
            out.beginTransaction();
            T result = work.apply(out);
            isWhole = true;
            out.commitTransaction();
            patience.succeeded();
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
            LOG.warn("a transaction could not be aborted; the next start aborts it: {}", e.getMessage());
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
