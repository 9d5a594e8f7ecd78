package dev.millrace.generator.environment.text;

import dev.millrace.api.dataset.DataRow;
import dev.millrace.api.dataset.Dataset;
import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.PromptDataset;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.sampling.CounterBasedRandom;
import org.jspecify.annotations.Nullable;

/**
 * Rows of data, pass after pass. The row at a position follows from seed, position and number of rows, so a run that goes on at a position
 * goes on with the rows it would have had.
 */
final class TextPrompts implements PromptDataset {
    private static final long ORDER = 0x6F72646572L; // a stream that no sample draws from

    private final Dataset data;
    private final Tokenizer tokenizer;
    private final boolean shuffle;
    private @Nullable Pass pass;

    TextPrompts(Dataset data, Tokenizer tokenizer, boolean shuffle) {
        this.data = data;
        this.tokenizer = tokenizer;
        this.shuffle = shuffle;
    }

    @Override
    public Prompt prompt(long seed, long ordinal) {
        int rows = data.size();
        int place = (int) (ordinal % rows);
        int row = shuffle ? order(seed, ordinal / rows)[place] : place;
        return new Prompt(encoded(data, row, tokenizer), data.row(row).state());
    }

    static int[] encoded(Dataset data, int index, Tokenizer tokenizer) {
        DataRow row = data.row(index);
        int[] tokens = row.messages().isEmpty() ? tokenizer.encode(row.prompt()) : tokenizer.encode(row.messages());
        if (tokens.length == 0) {
            throw new IllegalArgumentException(
                    "the prompt has no token: '" + (row.messages().isEmpty() ? row.prompt() : row.messages()) + "'");
        }
        return tokens;
    }

    private synchronized int[] order(long seed, long number) {
        Pass now = pass;
        if (now == null || now.seed() != seed || now.number() != number) {
            now = new Pass(
                    seed,
                    number,
                    CounterBasedRandom.permutation(CounterBasedRandom.stream(seed, number, ORDER), data.size()));
            pass = now;
        }
        return now.order();
    }

    /** One pass over the data; the last one is kept, since positions come one after the other. */
    private record Pass(long seed, long number, int[] order) {}
}
