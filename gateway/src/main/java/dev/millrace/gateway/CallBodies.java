package dev.millrace.gateway;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Reads call bodies before the call takes a slot of {@code gateway.calls}, so slow senders hold none. A body has a
 * size limit, a time limit and a least rate. Beyond as many bodies as calls the oldest is dropped.
 *
 * <p>Interrupts the reading thread, which closes the connection, since the JDK's server has no other way. Slow senders
 * receive the reason, silent ones do not. Thread-safe.
 */
final class CallBodies implements AutoCloseable {
    /** Grace period of the rate. */
    static final long RATE_COUNTS_AFTER_MS = 2_000;

    private static final long LOOK_MS = 250;
    private static final int PIECE_BYTES = 16 << 10;

    private final GatewayConfig config;
    private final LongSupplier nanos;
    private final Set<Body> underWay = new LinkedHashSet<>(); // guarded by this; the one begun first is first
    private final RegularLook watch;

    /** Guarded by the bodies, except for what only its thread writes. */
    private static final class Body {
        final Thread reader = Thread.currentThread();
        final long begunNanos;
        volatile int read;

        @Nullable
        RefusedCallException givenUp;

        Body(long begunNanos) {
            this.begunNanos = begunNanos;
        }
    }

    CallBodies(GatewayConfig config) {
        this(config, System::nanoTime);
    }

    CallBodies(GatewayConfig config, LongSupplier nanos) {
        this.config = config;
        this.nanos = nanos;
        this.watch = new RegularLook("gateway-bodies", LOOK_MS, this::look);
    }

    void start() {
        watch.start();
    }

    byte[] read(InputStream in) throws IOException {
        Body body = begin();
        try {
            return read(in, body);
        } catch (IOException e) {
            if (end(body)) {
                throw e;
            }
            throw refused(body);
        } finally {
            if (!end(body)) {
                Thread.interrupted(); // it was meant for this body
            }
        }
    }

    private byte[] read(InputStream in, Body body) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        byte[] piece = new byte[PIECE_BYTES];
        for (int count = in.read(piece); count >= 0; count = in.read(piece)) {
            all.write(piece, 0, count);
            body.read = all.size();
            if (body.read > config.bodyBytes()) {
                throw RefusedCallException.tooLarge(
                        "the body must not be longer than " + config.bodyBytes() + " bytes (gateway.body_bytes)");
            }
            look(body);
        }
        if (!end(body)) {
            throw refused(body);
        }
        return all.toByteArray();
    }

    private synchronized Body begin() {
        if (underWay.size() >= config.calls()) {
            Iterator<Body> first = underWay.iterator();
            giveUp(
                    first.next(),
                    RefusedCallException.tooMany(
                            "too_many_bodies",
                            config.calls()
                                    + " request bodies are being read (gateway.calls), and this one is the oldest;"
                                    + " send it in one piece, or retry later"));
            first.remove();
        }
        Body body = new Body(nanos.getAsLong());
        underWay.add(body);
        return body;
    }

    /** False if the thread was interrupted. */
    private synchronized boolean end(Body body) {
        underWay.remove(body);
        return body.givenUp == null;
    }

    private synchronized RefusedCallException refused(Body body) {
        return Objects.requireNonNull(body.givenUp);
    }

    private static void giveUp(Body body, RefusedCallException why) {
        body.givenUp = why;
        body.reader.interrupt();
    }

    /** Interrupts slow bodies. */
    synchronized void look() {
        for (Iterator<Body> each = underWay.iterator(); each.hasNext(); ) {
            Body body = each.next();
            RefusedCallException why = tooSlow(body);
            if (why != null) {
                giveUp(body, why);
                each.remove();
            }
        }
    }

    /** The reader's own check, which can still answer the reason. */
    private void look(Body body) {
        RefusedCallException why = tooSlow(body);
        if (why != null) {
            throw why;
        }
    }

    private @Nullable RefusedCallException tooSlow(Body body) {
        long ms = TimeUnit.NANOSECONDS.toMillis(nanos.getAsLong() - body.begunNanos);
        if (ms > config.bodyMs()) {
            return RefusedCallException.tooSlow("the body must be there within " + config.bodyMs()
                    + " ms (gateway.body_ms), and after that " + body.read + " bytes of it were");
        }
        long least = (ms - RATE_COUNTS_AFTER_MS) * config.bodyBytesPerSecond() / 1_000;
        return body.read >= least
                ? null
                : RefusedCallException.tooSlow("the body must come with at least " + config.bodyBytesPerSecond()
                        + " bytes a second (gateway.body_bytes_per_second) after the first "
                        + RATE_COUNTS_AFTER_MS / 1_000 + ", and " + body.read + " came in " + ms + " ms");
    }

    synchronized int underWay() {
        return underWay.size();
    }

    @Override
    public void close() {
        watch.close();
    }

    /** A daemon thread that checks for timeouts until closed. */
    static final class RegularLook implements AutoCloseable {
        private final long everyMs;
        private final Runnable look;
        private final Thread thread;

        RegularLook(String name, long everyMs, Runnable look) {
            this.everyMs = everyMs;
            this.look = look;
            this.thread = new Thread(this::run, name);
            thread.setDaemon(true);
        }

        void start() {
            thread.start();
        }

        private void run() {
            try {
                while (!Thread.currentThread().isInterrupted()) {
                    TimeUnit.MILLISECONDS.sleep(everyMs);
                    look.run();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt(); // closed
            }
        }

        @Override
        public void close() {
            thread.interrupt();
        }
    }
}
