package dev.millrace.topology.state;

import dev.millrace.topology.CanonicalSettings;
import java.nio.BufferUnderflowException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/**
 * The inputs that a task had seen when it made a record; stored in the record's header {@value #HEADER}.
 *
 * <p>The headers of all records that a task made, in the order of their numbers, and the records that it read are
 * enough to repeat all its decisions. Only the interleaving of its inputs, the passed time, and the restarts are not in
 * the inputs themselves.
 *
 * @param task the task that made it, such as {@code join-3}: a kind of task and its partition
 * @param number counts the records that the task made, from 0, over restarts
 * @param activityMs the task's activity clock at the decision
 * @param positions for each input: the offset after the newest record taken in; 0 if there was none
 * @param since events since the previous record; empty if both were made from one input
 * @param settings the texts of all settings that the task started with since the previous record, except those of the
 *     start before
 */
public record SeenHeader(
        String task,
        long number,
        long activityMs,
        List<Long> positions,
        List<TaskEvent> since,
        List<CanonicalSettings> settings) {
    /** The header's name. */
    public static final String HEADER = "millrace.seen";

    private static final byte FORMAT = 1;

    public SeenHeader {
        positions = List.copyOf(positions);
        since = List.copyOf(since);
        settings = List.copyOf(settings);
    }

    static byte[] encode(
            byte[] task, long number, long activityMs, long[] positions, byte[] trace, List<byte[]> settings) {
        CompactBytes.Writer writer = new CompactBytes.Writer(FORMAT)
                .bytes(task)
                .number(number)
                .number(activityMs)
                .number(positions.length);
        for (long position : positions) {
            writer.number(position);
        }
        writer.bytes(trace);
        settings.forEach(writer::bytes);
        return writer.toByteArray();
    }

    /** True if the headers say that this task made the record; nothing else of them is read. */
    public static boolean isOf(Headers headers, String task) {
        Header header = headers.lastHeader(HEADER);
        byte[] name = task.getBytes(StandardCharsets.UTF_8);
        int at = 2; // behind the format and the length, which is below 64
        return header != null
                && header.value().length > at + name.length
                && header.value()[1] == 2 * name.length
                && Arrays.equals(header.value(), at, at + name.length, name, 0, name.length);
    }

    /**
     * What the headers of a record say; empty if it was not made by a task of the topology.
     *
     * @throws IllegalArgumentException if the header is there and cannot be read
     */
    public static Optional<SeenHeader> of(Headers headers) {
        Header header = headers.lastHeader(HEADER);
        if (header == null) {
            return Optional.empty();
        }
        try {
            CompactBytes.Reader reader = new CompactBytes.Reader(header.value(), FORMAT, HEADER);
            String task = new String(reader.bytes(), StandardCharsets.UTF_8);
            long number = reader.number();
            long activityMs = reader.number();
            Long[] positions = new Long[Math.toIntExact(reader.number())];
            for (int i = 0; i < positions.length; i++) {
                positions[i] = reader.number();
            }
            List<TaskEvent> since = EventEncoding.events(reader.bytes());
            List<CanonicalSettings> settings = new ArrayList<>();
            while (reader.hasMore()) {
                settings.add(CanonicalSettings.parse(new String(reader.bytes(), StandardCharsets.UTF_8)));
            }
            return Optional.of(new SeenHeader(task, number, activityMs, List.of(positions), since, settings));
        } catch (BufferUnderflowException
                | ArithmeticException
                | NegativeArraySizeException
                | IllegalArgumentException
                | IllegalStateException e) {
            throw new IllegalArgumentException(
                    "the header " + HEADER + " cannot be read: "
                            + (e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage()),
                    e);
        }
    }
}
