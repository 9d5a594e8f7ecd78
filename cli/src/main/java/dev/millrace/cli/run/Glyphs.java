package dev.millrace.cli.run;

import java.nio.charset.Charset;

/**
 * Characters of the panel's drawings.
 *
 * @param full the part of a bar that is reached
 * @param empty the part that is not
 * @param heights of a sparkline, lowest first
 * @param between two facts on one line
 * @param done after completed parts
 * @param cut at the end of a line that continues beyond the edge
 */
record Glyphs(String full, String empty, String heights, String between, String done, String cut) {
    private static final Glyphs BLOCKS = new Glyphs("█", "·", "▁▂▃▄▅▆▇█", " · ", "✓", "…");
    private static final Glyphs ASCII = new Glyphs("#", ".", "_.-=+*%#", ", ", "ok", "~");

    /** Blocks where the terminal's encoding has them, plain ASCII elsewhere, as under {@code LANG=C}. */
    static Glyphs of(Charset encoding) {
        return encoding.canEncode()
                        && encoding.newEncoder()
                                .canEncode(BLOCKS.full + BLOCKS.empty + BLOCKS.heights + BLOCKS.done + BLOCKS.cut)
                ? BLOCKS
                : ASCII;
    }

    /** The bar for a value from 0 to 1. */
    char height(double value) {
        return heights.charAt((int) Math.max(0, Math.min(heights.length() - 1, Math.floor(value * heights.length()))));
    }
}
