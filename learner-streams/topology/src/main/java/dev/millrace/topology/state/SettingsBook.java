package dev.millrace.topology.state;

import dev.millrace.topology.CanonicalSettings;
import dev.millrace.topology.Fingerprint;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * By which settings a task began the last time, and the texts of settings that none of its records carries yet.
 *
 * <p>A text of settings is about two kilobytes, the records that a task makes are counted in millions: so a text is given to
 * one record, the first after a beginning by other settings than before. Under a key of its own, since the journal's is
 * written with everything that arrives. Confined to one task.
 */
final class SettingsBook {
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

    /** The task begins by these; true if they are others than the last time, or it is the first. */
    boolean begin(CanonicalSettings settings) {
        Fingerprint now = settings.fingerprint();
        if (now.equals(last)) {
            return false;
        }
        last = now;
        texts.add(settings.text().getBytes(StandardCharsets.UTF_8));
        while (texts.stream().mapToInt(text -> text.length).sum() > LIMIT_BYTES && texts.size() > 1) {
            texts.remove(0); // others and others again, and no record between them: the oldest can no longer be named
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
