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
 * Writes answers with a time limit, since the JDK's server writes on the answering thread without one. A slow write is
 * interrupted, which closes the connection. Thread-safe.
 */
final class AnswerWrites implements AutoCloseable {
    /** Limit of a whole answer or one stream event. */
    static final long LONGEST_MS = 60_000;

    private static final long LOOK_MS = 1_000;

    private final LongSupplier nanos;
    private final Set<Write> underWay = new LinkedHashSet<>(); // guarded by this; the one begun first is first
    private final RegularLook watch;

    /** Guarded by the writes. */
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

    AnswerWrites(LongSupplier nanos) {
        this.nanos = nanos;
        this.watch = new RegularLook("gateway-answers", LOOK_MS, this::look);
    }

    void start() {
        watch.start();
    }

    /**
     * Writes and flushes.
     *
     * @throws IOException if the caller disconnected, or took longer than {@value #LONGEST_MS} ms
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
                            "its caller did not read " + bytes.length + " bytes within " + LONGEST_MS + " ms", e);
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

    /** False if the thread was interrupted. */
    private synchronized boolean end(Write write) {
        underWay.remove(write);
        return !write.isGivenUp;
    }

    /** Interrupts slow writes. */
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

    synchronized int underWay() {
        return underWay.size();
    }

    @Override
    public void close() {
        watch.close();
    }
}
