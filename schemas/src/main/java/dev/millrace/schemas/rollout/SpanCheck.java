package dev.millrace.schemas.rollout;

import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import java.util.List;

/** Checks that spans are in order, without gaps or overlaps, not empty, and cover the response. */
public final class SpanCheck {
    private SpanCheck() {}

    /** @throws RefusedException naming the first invalid span */
    public static void requireVersionSpans(List<VersionSpan> spans, int tokens, String field) throws RefusedException {
        requireVersionSpans(spans, tokens, 0, field);
    }

    /**
     * @param least 0, or -1 to allow a policy that is not a version of the run
     * @throws RefusedException naming the first invalid span
     */
    public static void requireVersionSpans(List<VersionSpan> spans, int tokens, long least, String field)
            throws RefusedException {
        int covered = 0;
        for (int i = 0; i < spans.size(); i++) {
            VersionSpan span = spans.get(i);
            String name = field + "[" + i + "]";
            if (span.getVersion() < least) {
                throw new RefusedException(
                        RefusalReason.VERSION_SPANS, name, "a version is at least " + least + ": " + span.getVersion());
            }
            covered = requireNext(RefusalReason.VERSION_SPANS, name, span.getStart(), span.getEnd(), covered, tokens);
        }
        requireCovered(RefusalReason.VERSION_SPANS, field, covered, tokens);
    }

    /** @throws RefusedException naming the first invalid turn */
    public static void requireTurns(List<Turn> turns, int tokens) throws RefusedException {
        int covered = 0;
        for (int i = 0; i < turns.size(); i++) {
            Turn turn = turns.get(i);
            covered = requireNext(
                    RefusalReason.TURNS, "turns[" + i + "]", turn.getStart(), turn.getEnd(), covered, tokens);
        }
        requireCovered(RefusalReason.TURNS, "turns", covered, tokens);
    }

    private static int requireNext(RefusalReason reason, String field, int start, int end, int covered, int tokens)
            throws RefusedException {
        if (start != covered || end <= start || end > tokens) {
            throw new RefusedException(
                    reason,
                    field,
                    field + " must begin where the one before ends, at " + covered + ", hold a token, and end by "
                            + tokens + ": [" + start + ", " + end + ")");
        }
        return end;
    }

    private static void requireCovered(RefusalReason reason, String field, int covered, int tokens)
            throws RefusedException {
        if (covered != tokens) {
            throw new RefusedException(
                    reason, field, field + " must cover all " + tokens + " response tokens: they end at " + covered);
        }
    }
}
