package dev.millrace.generator.environment.text;

import dev.millrace.api.dataset.DataRow;
import dev.millrace.api.dataset.Dataset;
import dev.millrace.generator.sampling.CounterBasedRandom;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** One side of a seeded split of data: the rows that are held out, or those that are left; each side in the data's own order. */
final class Rows implements Dataset {
    private static final long SPLIT = 0x73706C6974L; // a stream that no sample draws from

    private final Dataset data;
    private final long seed;
    private final int total;
    private final int heldOut;
    private final boolean held;
    private volatile int @Nullable [] indices;

    /** @param heldOut how many of them are held out */
    Rows(Dataset data, long seed, int total, int heldOut, boolean held) {
        this.data = data;
        this.seed = seed;
        this.total = total;
        this.heldOut = heldOut;
        this.held = held;
    }

    private int at(int index) {
        int[] known = indices;
        if (known == null) {
            int[] order = CounterBasedRandom.permutation(CounterBasedRandom.stream(seed, 0, SPLIT), total);
            known = held ? Arrays.copyOf(order, heldOut) : Arrays.copyOfRange(order, heldOut, total);
            Arrays.sort(known);
            indices = known;
        }
        return known[index];
    }

    @Override
    public int size() {
        return held ? heldOut : total - heldOut;
    }

    @Override
    public DataRow row(int index) {
        return data.row(at(index));
    }

    @Override
    public String place(int index) {
        return data.place(at(index));
    }

    @Override
    public String hash() {
        return data.hash();
    }
}
