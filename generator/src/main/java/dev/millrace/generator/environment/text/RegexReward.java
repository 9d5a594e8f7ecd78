package dev.millrace.generator.environment.text;

import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * How many matches of a pattern the response has, as a share of the wanted number, up to 1.
 *
 * @param pattern Java regular expression
 * @param count matches for a reward of 1, at least 1; fewer earn their share
 */
public record RegexReward(String pattern, int count) implements RewardFunction {

    private static final String NOTHING = "(?!)";

    public RegexReward {
        try {
            Pattern.compile(pattern);
        } catch (PatternSyntaxException e) {
            throw new IllegalArgumentException(
                    "pattern must be a regular expression: '" + pattern + "', " + e.getDescription() + " at "
                            + e.getIndex(),
                    e);
        }
        if (count < 1) {
            throw new IllegalArgumentException("count must be at least 1: " + count);
        }
    }

    /** A pattern must be given; this one matches nothing, and no prompt is judgeable by it. */
    public static RegexReward defaults() {
        return new RegexReward(NOTHING, 1);
    }

    @Override
    public void requireJudgeable(String environmentState) {
        if (pattern.equals(NOTHING)) {
            throw new IllegalArgumentException(
                    "reward regex has no pattern to look for; give one, --set 'reward.pattern=[0-9]+'");
        }
    }

    @Override
    public VerifiedReward reward(FinishedResponse response) {
        Matcher matcher = Pattern.compile(pattern).matcher(new CountedText(response.text()));
        int matches = 0;
        boolean gaveUp = false;
        try {
            while (matches < count && matcher.find()) {
                matches++;
            }
        } catch (CountedText.TooManyReadsException e) {
            gaveUp = true; // what was found until then counts, the same on every machine
        }
        return new VerifiedReward(
                (double) matches / count, Map.of("matches", (double) matches, "gave_up", gaveUp ? 1.0 : 0.0));
    }

    /**
     * Text with a bounded number of reads, since some patterns backtrack without end; the bound is the same on every
     * machine.
     */
    static final class CountedText implements CharSequence {
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

        static final class TooManyReadsException extends RuntimeException {
            private static final long serialVersionUID = 1;

            TooManyReadsException() {
                super("a pattern backtracks too often", null, false, false);
            }
        }
    }
}
