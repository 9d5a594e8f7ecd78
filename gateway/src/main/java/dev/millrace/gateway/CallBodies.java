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
 * Bodies of calls, read before a call takes its place among {@code gateway.calls}: who sends slowly holds none. A body has a longest
 * length, a longest time and a least rate, and as many are read at once as there may be calls. One more takes the place of the one
 * that was begun first, so that a body that comes in one piece is read however many others do not end.
 *
 * <p>A body is given up by an interrupt of the thread that reads it, which closes its connection: nothing else ends a read of the
 * JDK's server. Who sends a little now and then hears why, who is silent does not.
 *
 * <p>Thread-safe.
 */
final class CallBodies implements AutoCloseable {
    /** What a body may take before its rate counts: a connection begins slowly. */
    static final long RATE_COUNTS_AFTER_MS = 2_000;

    private static final long LOOK_MS = 250;
    private static final int PIECE_BYTES = 16 << 10;

    private final GatewayConfig config;
    private final LongSupplier nanos;
    private final Set<Body> underWay = new LinkedHashSet<>(); // guarded by this; the one begun first is first
    private final RegularLook watch;

    /** A body that is being read. Guarded by the bodies, but for what its thread alone writes. */
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

    /** @param nanos a clock that only goes forward */
    CallBodies(GatewayConfig config, LongSupplier nanos) {
        this.config = config;
        this.nanos = nanos;
        this.watch = new RegularLook("gateway-bodies", LOOK_MS, this::look);
    }

    /** From now on looks by itself, until it is closed. */
    void start() {
        watch.start();
    }

    /**
     * Reads a body to its end.
     *
     * @throws RefusedCallException if it is too long, too slow or takes too long, or makes room for another one
     */
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
                                    + " bodies of calls are being read (gateway.calls), and of those this one was"
                                    + " begun first; send it in one piece, or again later"));
            first.remove();
        }
        Body body = new Body(nanos.getAsLong());
        underWay.add(body);
        return body;
    }

    /** Nobody interrupts its thread any more; says whether nobody has. */
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

    /** Gives up what is too slow. */
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

    /** The reader's own look: it hears of no interrupt while bytes come, and can still say why. */
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

    /** Bodies that are being read. */
    synchronized int underWay() {
        return underWay.size();
    }

    @Override
    public void close() {
        watch.close();
    }

    /** A daemon thread that looks again and again whether something takes too long, from its start until it is closed. */
    static final class RegularLook implements AutoCloseable {
        private final long everyMs;
        private final Runnable look;
        private final Thread thread;

        /** @param look called by its thread alone */
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
