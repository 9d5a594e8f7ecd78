package dev.millrace.topology.state;

import dev.millrace.topology.CanonicalSettings;
import dev.millrace.topology.Fingerprint;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Writes down what happens to a task, and gives it to the records that the task makes.
 *
 * <p>What has not been given to a record yet is in the store, under one key: a crash takes the task back to its last
 * commit, and the journal with it. The store is cached, so a commit writes it once, in some tens of bytes.
 *
 * <p>Between two records a task can only gather what waits, so the journal stays short; should it pass
 * {@value #LIMIT_BYTES} bytes all the same, it says so instead ({@link TaskEvent.Lost}), since a header must not outgrow its
 * record. Confined to one task.
 */
public final class Journal {
    private static final byte FORMAT = 1;
    private static final int LIMIT_BYTES = 3000;
    private static final Bytes KEY = Bytes.wrap("journal".getBytes(StandardCharsets.UTF_8));

    private final KeyValueStore<Bytes, byte[]> store;
    private final byte[] task;
    private final EventEncoding trace;
    private final SettingsBook settings;
    private long number;
    private long[] positions = new long[0];
    private boolean isLost;

    /**
     * Resumes from the store.
     *
     * @param task the task that keeps it, such as {@code join-3}
     * @param settings all settings that the task's decisions depend on
     */
    public Journal(KeyValueStore<Bytes, byte[]> store, String task, CanonicalSettings settings) {
        this.store = store;
        this.task = task.getBytes(StandardCharsets.UTF_8);
        byte[] held = store.get(KEY);
        if (held == null) {
            trace = new EventEncoding(new byte[0]);
        } else {
            CompactBytes.Reader reader = new CompactBytes.Reader(held, FORMAT, store.name());
            number = reader.number();
            positions = new long[(int) reader.number()];
            Arrays.setAll(positions, i -> reader.number());
            isLost = reader.number() == 1;
            trace = new EventEncoding(reader.bytes());
        }
        this.settings = new SettingsBook(store);
        boolean isOther = this.settings.begin(settings);
        if (!isLost && isOther) {
            trace.began(settings.fingerprint());
        } else if (!isLost) {
            trace.restarted();
        }
        keep();
    }

    /** To be called before the task takes it. */
    public void arrived(Observation observation) {
        int input = observation.input();
        if (input < 0 || input >= EventEncoding.INPUTS) {
            throw new IllegalArgumentException("an input must be in [0, " + EventEncoding.INPUTS + "): " + input);
        }
        if (input >= positions.length) {
            positions = Arrays.copyOf(positions, input + 1);
        }
        positions[input] = observation.offset() + 1;
        long[] facts = observation.facts();
        if (!isLost && facts.length > 0) {
            trace.told(input, facts);
        } else if (!isLost) {
            trace.arrived(input);
        }
        keep();
    }

    /** To be called before the task is told that nothing came. */
    public void idled(long countedMs, long wallClockMs) {
        if (!isLost) {
            trace.idled(countedMs, wallClockMs);
        }
        keep();
    }

    /** To be called if the task changed, its clock aside, when it was told so: more idle time is then another event. */
    public void changed() {
        trace.changed();
        keep();
    }

    /** The header's value for a record that the task makes now. */
    public byte[] seen(long activityMs) {
        byte[] seen = SeenHeader.encode(task, number++, activityMs, positions, trace.toByteArray(), settings.give());
        trace.clear();
        isLost = false;
        keep();
        return seen;
    }

    private void keep() {
        if (!isLost && trace.size() > LIMIT_BYTES) {
            trace.lose();
            isLost = true;
        }
        CompactBytes.Writer writer =
                new CompactBytes.Writer(FORMAT).number(number).number(positions.length);
        for (long position : positions) {
            writer.number(position);
        }
        store.put(KEY, writer.number(isLost ? 1 : 0).bytes(trace.toByteArray()).toByteArray());
    }

    /**
     * The settings of a task's last start, and the texts of settings that are in no record of the task yet.
     *
     * <p>A text of settings has about two kilobytes, and a task makes millions of records. So a text is written to one
     * record only, the first after a start with changed settings. The book has a key of its own, since the journal's
     * key is written with every arrival. Confined to one task.
     */
    static final class SettingsBook {
        private static final byte FORMAT = 1;
        private static final int LIMIT_BYTES = 4000;
        private static final Bytes KEY = Bytes.wrap("settings".getBytes(StandardCharsets.UTF_8));

        private final KeyValueStore<Bytes, byte[]> store;
        private final List<byte[]> texts = new ArrayList<>();
        private Fingerprint last = Fingerprint.UNKNOWN;

        SettingsBook(KeyValueStore<Bytes, byte[]> store) {
            this.store = store;
            byte[] held = store.get(KEY);
            if (held != null) {
                CompactBytes.Reader reader = new CompactBytes.Reader(held, FORMAT, store.name());
                last = Fingerprint.of((int) reader.number(), reader.bytes());
                while (reader.hasMore()) {
                    texts.add(reader.bytes());
                }
            }
        }

        /** Records the settings of a start; true if they changed since the last start, or this is the first. */
        boolean begin(CanonicalSettings settings) {
            Fingerprint now = settings.fingerprint();
            if (now.equals(last)) {
                return false;
            }
            last = now;
            texts.add(settings.text().getBytes(StandardCharsets.UTF_8));
            while (texts.stream().mapToInt(text -> text.length).sum() > LIMIT_BYTES && texts.size() > 1) {
                texts.remove(0); // changed again and again without a record in between: the oldest text is lost
            }
            keep();
            return true;
        }

        /** The texts that are to go with the record that is made now; they are not held any longer. */
        List<byte[]> give() {
            if (texts.isEmpty()) {
                return List.of();
            }
            List<byte[]> given = List.copyOf(texts);
            texts.clear();
            keep();
            return given;
        }

        private void keep() {
            CompactBytes.Writer writer =
                    new CompactBytes.Writer(FORMAT).number(last.form()).bytes(last.bytes());
            texts.forEach(writer::bytes);
            store.put(KEY, writer.toByteArray());
        }
    }
}
