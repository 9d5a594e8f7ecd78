package dev.millrace.generator.environment.text;

/**
 * A text that lets itself be read a bounded number of times: some patterns look at every way to match a text, and a reward must come back, after
 * the same work on every machine.
 */
final class CountedText implements CharSequence {
    private static final int MOST_READS_PER_CHARACTER = 10_000;
    private static final long LEAST_LIMIT = 1_000_000;

    private final String text;
    private final long limit;
    private long reads;

    CountedText(String text) {
        this.text = text;
        this.limit = Math.max(LEAST_LIMIT, (long) text.length() * MOST_READS_PER_CHARACTER);
    }

    @Override
    public int length() {
        return text.length();
    }

    @Override
    public char charAt(int index) {
        if (++reads > limit) {
            throw new TooManyReadsException();
        }
        return text.charAt(index);
    }

    @Override
    public CharSequence subSequence(int start, int end) {
        return text.subSequence(start, end);
    }

    @Override
    public String toString() {
        return text;
    }

    /** The limit was reached. */
    static final class TooManyReadsException extends RuntimeException {
        private static final long serialVersionUID = 1;

        TooManyReadsException() {
            super("a pattern reads a text too often", null, false, false);
        }
    }
}
