package dev.millrace.generator.sampling;

/**
 * Cuts a sequence for recomputation into the pieces of its prefill, then pieces of the same length, short ones, and a
 * last one.
 *
 * <p>All pieces but the last are known before the point of continuation is, so they are computed while the sequence
 * continues; it pauses for the last piece only.
 */
final class RecomputedPieces {
    private static final int SHORT_PIECE = 32;

    private final int pieceTokens;

    /** @param pieceTokens longest piece */
    RecomputedPieces(int pieceTokens) {
        this.pieceTokens = pieceTokens;
    }

    /**
     * Tokens of the next piece.
     *
     * @param held  tokens of the sequence that are computed again, at a piece's end, the first one at least
     * @return the remaining tokens if they make the last piece
     */
    int next(int promptTokens, int held, int known) {
        int whole = nextWhole(promptTokens, held, known);
        return whole > 0 ? whole : known - held;
    }

    /** The same, and 0 where only a last piece is left, which grows with the sequence. */
    int nextWhole(int promptTokens, int held, int known) {
        if (held < promptTokens) {
            return Math.min(promptTokens - held, pieceTokens);
        }
        int left = known - held;
        if (left >= pieceTokens && (held - promptTokens) % pieceTokens == 0) {
            return pieceTokens;
        }
        return left >= SHORT_PIECE ? SHORT_PIECE : 0;
    }

    /** Whether so little is left that a sequence need not go on as it was meanwhile. */
    boolean isShort(int held, int known) {
        return known - held <= SHORT_PIECE;
    }

    /** Where a sequence that grew meanwhile is to be taken up again: {@code held}, or before its short pieces where they are one long piece by now. */
    int takenUp(int promptTokens, int held, int known) {
        int start = held - Math.floorMod(held - promptTokens, pieceTokens);
        return held > promptTokens && known - start >= pieceTokens ? start : held;
    }
}
