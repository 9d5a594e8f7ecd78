package dev.millrace.generator.environment.text;

import dev.millrace.api.dataset.DataRow;
import dev.millrace.api.dataset.Dataset;
import dev.millrace.api.dataset.DatasetSettings;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A run's data, opened when the first row is asked for, and then for the whole process.
 *
 * @param sha256 of the rows that the run began with
 * @param key that names it, for a sentence
 */
record RecordedDataset(DatasetSettings settings, String sha256, String key) implements Dataset {
    private static final Map<RecordedDataset, Dataset> OPENED = new ConcurrentHashMap<>();

    /** Reads it now, whatever was read before. */
    void requireAsRecorded() {
        OPENED.put(this, open());
    }

    private Dataset opened() {
        return OPENED.computeIfAbsent(this, RecordedDataset::open);
    }

    private Dataset open() {
        Dataset found = settings.open();
        if (!found.hash().equals(sha256)) {
            throw new IllegalArgumentException(
                    key + ": the rows of " + settings + " are others than those the run began with (sha-256 "
                            + found.hash() + ", then " + sha256
                            + "); put these back, or name the new ones under another file name: --set " + key
                            + ".file=FILE");
        }
        return found;
    }

    @Override
    public int size() {
        return opened().size();
    }

    @Override
    public DataRow row(int index) {
        return opened().row(index);
    }

    @Override
    public String place(int index) {
        return opened().place(index);
    }

    @Override
    public String hash() {
        return sha256;
    }
}
