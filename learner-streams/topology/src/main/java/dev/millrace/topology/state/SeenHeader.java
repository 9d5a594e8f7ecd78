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
 * What a task had seen when it made a record; the record carries it in the header {@value #HEADER}.
 *
 * <p>With the sightings of all records that a task made, in the order of their numbers, and the records that it read,
 * everything it decided can be decided again: the interleaving of its inputs, the time that passed, and the restarts
 * are all that is not in the inputs themselves.
 *
 * @param task who made it, such as {@code join-3}: a kind of task and its partition
 * @param number counts the records that the task made, from 0, over restarts
 * @param activityMs the task's activity clock at the decision
 * @param positions of each input: the offset behind the newest record taken in; 0 if there was none
 * @param since what happened since the record before; empty if both came of one input
 * @param settings the texts of all settings by which the task began since the record before, those aside by which it had
 *     begun the last time
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
