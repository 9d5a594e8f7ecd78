package dev.millrace.topology.state;

import dev.millrace.topology.Fingerprint;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Events as bytes: one byte for up to 31 arrivals of an input, so that a record costs about a byte.
 *
 * <pre>
 *   low 3 bits   0..4  arrivals of that input         5  told         6  idled             7  a mark
 *   high 5 bits  how many; 31: 31 and a number more   input           0                    which
 *   then                                              n, n numbers    counted, wall clock  see below
 *
 *   marks        0  began by settings of an unknown form (8 bytes, which say nothing)
 *                1  lost
 *                2  began (the form's number, 32 bytes of SHA-256)
 *                3  began again
 * </pre>
 *
 * <p>Numbers are of as few bytes as they need, zigzagged. Mutable, confined to one task.
 */
final class EventEncoding {
    /** Inputs that a task can have. */
    static final int INPUTS = 5;

    private static final int TOLD = 5;
    private static final int IDLED = 6;
    private static final int MARK = 7;
    private static final int BEGAN_UNKNOWN = 0;
    private static final int LOST = 1;
    private static final int BEGAN = 2;
    private static final int BEGAN_AGAIN = 3;
    private static final int MANY = 31;

    /** Complete events. */
    private final CompactBytes.Writer bytes;
    /** The event that may still grow: arrivals of an input, or idle time; -1 if there is none. */
    private int open = -1;

    private long count;
    private long wallClockMs;

    EventEncoding(byte[] bytes) {
        this.bytes = new CompactBytes.Writer(bytes);
    }

    void arrived(int input) {
        if (open != input) {
            settle();
            open = input;
        }
        count++;
    }

    void told(int input, long... facts) {
        settle();
        bytes.put(TOLD | input << 3);
        bytes.number(facts.length);
        for (long fact : facts) {
            bytes.number(fact);
        }
    }

    void idled(long countedMs, long endMs) {
        if (open != IDLED) {
            settle();
            open = IDLED;
        }
        count += countedMs;
        wallClockMs = endMs;
    }

    void began(Fingerprint settings) {
        settle();
        bytes.put(MARK | BEGAN << 3);
        bytes.number(settings.form());
        for (byte b : settings.bytes()) {
            bytes.put(b);
        }
    }

    void restarted() {
        settle();
        if (hasJustBegun()) {
            return; // beginning twice is as good as once
        }
        bytes.put(MARK | BEGAN_AGAIN << 3);
    }

    private boolean hasJustBegun() {
        List<TaskEvent> events = events(bytes.toByteArray());
        TaskEvent last = events.isEmpty() ? null : events.get(events.size() - 1);
        return last instanceof TaskEvent.Began || last instanceof TaskEvent.BeganAgain;
    }

    /** Something changed at the end of the idle time so far: what follows must not be added to it. */
    void changed() {
        settle();
    }

    void lose() {
        clear();
        bytes.put(MARK | LOST << 3);
    }

    void clear() {
        bytes.truncate(0);
        open = -1;
        count = 0;
    }

    /** At most this many bytes so far. */
    int size() {
        return bytes.size() + 24;
    }

    byte[] toByteArray() {
        int complete = bytes.size();
        int kind = open;
        long many = count;
        settle();
        byte[] all = bytes.toByteArray();
        bytes.truncate(complete); // what may still grow is written again
        open = kind;
        count = many;
        return all;
    }

    private void settle() {
        if (open == IDLED) {
            bytes.put(IDLED);
            bytes.number(count);
            bytes.number(wallClockMs);
        } else if (open >= 0) {
            bytes.put(open | (int) Math.min(count, MANY) << 3);
            if (count >= MANY) {
                bytes.number(count - MANY);
            }
        }
        open = -1;
        count = 0;
    }

    /** @throws java.nio.BufferUnderflowException if the bytes end too early */
    static List<TaskEvent> events(byte[] trace) {
        ByteBuffer in = ByteBuffer.wrap(trace);
        List<TaskEvent> events = new ArrayList<>();
        while (in.hasRemaining()) {
            int head = in.get() & 0xff;
            int high = head >>> 3;
            switch (head & 7) {
                case TOLD -> {
                    long[] facts = new long[(int) CompactBytes.number(in)];
                    for (int i = 0; i < facts.length; i++) {
                        facts[i] = CompactBytes.number(in);
                    }
                    events.add(new TaskEvent.Told(high, facts));
                }
                case IDLED -> events.add(new TaskEvent.Idled(CompactBytes.number(in), CompactBytes.number(in)));
                case MARK -> events.add(mark(high, in));
                default ->
                    events.add(new TaskEvent.Arrivals(head & 7, high == MANY ? MANY + CompactBytes.number(in) : high));
            }
        }
        return events;
    }

    private static TaskEvent mark(int which, ByteBuffer in) {
        switch (which) {
            case BEGAN_UNKNOWN -> {
                in.getLong();
                return new TaskEvent.Began(Fingerprint.UNKNOWN);
            }
            case LOST -> {
                return new TaskEvent.Lost();
            }
            case BEGAN -> {
                int form = Math.toIntExact(CompactBytes.number(in));
                byte[] sha256 = new byte[Fingerprint.BYTES];
                in.get(sha256);
                return new TaskEvent.Began(Fingerprint.of(form, sha256));
            }
            case BEGAN_AGAIN -> {
                return new TaskEvent.BeganAgain();
            }
            default ->
                throw new IllegalStateException(
                        "it has a mark of kind " + which + ", which this version does not know");
        }
    }
}
