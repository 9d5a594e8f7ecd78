package dev.millrace.view.follow;

/**
 * How far the index of a run is.
 *
 * @param read offsets that are in it
 * @param end offsets that there are
 * @param isWhole whether everything that there was at the last look is in it
 */
public record IndexProgress(long read, long end, boolean isWhole) {
    static final IndexProgress NOTHING = new IndexProgress(0, 0, false);
}
