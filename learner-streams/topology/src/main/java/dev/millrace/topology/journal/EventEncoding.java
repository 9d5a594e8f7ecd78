package dev.millrace.topology.journal;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Events as bytes: one byte for up to 31 arrivals of an input, so that a record costs about a byte.
 *
 * <pre>
 *   low 3 bits   0..4  arrivals of that input         5  told         6  idled             7  began or lost
 *   high 5 bits  how many; 31: 31 and a number more   input           0                    0 began, 1 lost
 *   then                                              n, n numbers    counted, wall clock  8 bytes of settings
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
    private static final int MANY = 31;

    /** Complete events. */
    private byte[] bytes;

    private int size;
    /** The event that may still grow: arrivals of an input, or idle time; -1 if there is none. */
    private int open = -1;

    private long count;
    private long wallClockMs;

    EventEncoding(byte[] bytes) {
        this.bytes = bytes.length == 0 ? new byte[64] : bytes.clone();
        this.size = bytes.length;
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
        put(TOLD | input << 3);
        number(facts.length);
        for (long fact : facts) {
            number(fact);
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

    void began(long settings) {
        settle();
        byte[] mark = ByteBuffer.allocate(1 + Long.BYTES)
                .put((byte) MARK)
                .putLong(Long.reverseBytes(settings))
                .array();
        if (size >= mark.length && Arrays.equals(bytes, size - mark.length, size, mark, 0, mark.length)) {
            return; // it had only just begun: beginning twice is as good as once
        }
        for (byte b : mark) {
            put(b);
        }
    }

    /** Something changed at the end of the idle time so far: what follows must not be added to it. */
    void changed() {
        settle();
    }

    void lose() {
        clear();
        put(MARK | 1 << 3);
    }

    void clear() {
        size = 0;
        open = -1;
        count = 0;
    }

    /** At most this many bytes so far. */
    int size() {
        return size + 24;
    }

    byte[] toByteArray() {
        int complete = size;
        int kind = open;
        long many = count;
        settle();
        byte[] all = Arrays.copyOf(bytes, size);
        size = complete; // what may still grow is written again
        open = kind;
        count = many;
        return all;
    }

    private void settle() {
        if (open == IDLED) {
            put(IDLED);
            number(count);
            number(wallClockMs);
        } else if (open >= 0) {
            put(open | (int) Math.min(count, MANY) << 3);
            if (count >= MANY) {
                number(count - MANY);
            }
        }
        open = -1;
        count = 0;
    }

    private void put(int value) {
        if (size == bytes.length) {
            bytes = Arrays.copyOf(bytes, 2 * size);
        }
        bytes[size++] = (byte) value;
    }

    private void number(long value) {
        long rest = (value << 1) ^ (value >> 63);
        while ((rest & ~0x7fL) != 0) {
            put((int) (rest & 0x7f | 0x80));
            rest >>>= 7;
        }
        put((int) rest);
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
                    long[] facts = new long[(int) read(in)];
                    for (int i = 0; i < facts.length; i++) {
                        facts[i] = read(in);
                    }
                    events.add(new TaskEvent.Told(high, facts));
                }
                case IDLED -> events.add(new TaskEvent.Idled(read(in), read(in)));
                case MARK -> {
                    if (high == 1) {
                        events.add(new TaskEvent.Lost());
                    } else {
                        long settings = 0;
                        for (int shift = 0; shift < Long.SIZE; shift += Byte.SIZE) {
                            settings |= (in.get() & 0xffL) << shift;
                        }
                        events.add(new TaskEvent.Began(settings));
                    }
                }
                default -> events.add(new TaskEvent.Arrivals(head & 7, high == MANY ? MANY + read(in) : high));
            }
        }
        return events;
    }

    private static long read(ByteBuffer in) {
        long raw = 0;
        for (int shift = 0; ; shift += 7) {
            byte b = in.get();
            raw |= (b & 0x7fL) << shift;
            if (b >= 0) {
                return (raw >>> 1) ^ -(raw & 1);
            }
        }
    }
}
