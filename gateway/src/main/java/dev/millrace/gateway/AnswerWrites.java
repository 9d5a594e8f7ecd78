package dev.millrace.gateway;

import dev.millrace.gateway.CallBodies.RegularLook;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Answers on their way to callers. What a caller does not take in time is given up with its connection, so that callers who do not
 * read hold no thread for ever: nothing else ends a write of the JDK's server, which it does by the thread that answers.
 *
 * <p>A write is given up by an interrupt of its thread, which closes the connection.
 *
 * <p>Thread-safe.
 */
final class AnswerWrites implements AutoCloseable {
    /** What a write may take, of a whole answer or of one event of a stream. */
    static final long LONGEST_MS = 60_000;

    private static final long LOOK_MS = 1_000;

    private final LongSupplier nanos;
    private final Set<Write> underWay = new LinkedHashSet<>(); // guarded by this; the one begun first is first
    private final RegularLook watch;

    /** A write that has begun. Guarded by the writes. */
    private static final class Write {
        final Thread writer = Thread.currentThread();
        final long begunNanos;
        boolean isGivenUp;

        Write(long begunNanos) {
            this.begunNanos = begunNanos;
        }
    }

    AnswerWrites() {
        this(System::nanoTime);
    }

    /** @param nanos a clock that only goes forward */
    AnswerWrites(LongSupplier nanos) {
        this.nanos = nanos;
        this.watch = new RegularLook("gateway-answers", LOOK_MS, this::look);
    }

    /** From now on looks by itself, until it is closed. */
    void start() {
        watch.start();
    }

    /**
     * Writes all of it and flushes.
     *
     * @throws IOException if the caller is gone, or did not take it within {@value #LONGEST_MS} ms
     */
    void write(OutputStream out, byte[] bytes) throws IOException {
        Write write = begin();
        try {
            out.write(bytes);
            out.flush();
        } catch (IOException e) {
            throw end(write)
                    ? e
                    : new IOException(
                            "its caller did not take " + bytes.length + " bytes within " + LONGEST_MS + " ms", e);
        } finally {
            if (!end(write)) {
                Thread.interrupted(); // it was meant for this write
            }
        }
    }

    private synchronized Write begin() {
        Write write = new Write(nanos.getAsLong());
        underWay.add(write);
        return write;
    }

    /** Nobody interrupts its thread any more; says whether nobody has. */
    private synchronized boolean end(Write write) {
        underWay.remove(write);
        return !write.isGivenUp;
    }

    /** Gives up what takes too long. */
    synchronized void look() {
        long now = nanos.getAsLong();
        for (Iterator<Write> each = underWay.iterator(); each.hasNext(); ) {
            Write write = each.next();
            if (now - write.begunNanos <= TimeUnit.MILLISECONDS.toNanos(LONGEST_MS)) {
                return;
            }
            write.isGivenUp = true;
            write.writer.interrupt();
            each.remove();
        }
    }

    /** Writes that have begun and have not ended. */
    synchronized int underWay() {
        return underWay.size();
    }

    @Override
    public void close() {
        watch.close();
    }
}
