package dev.millrace.log.transaction;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class ContentionPauseTest {
    private static final long AMPLE = Long.MAX_VALUE;
    private static final double MS = 1e6;

    private final ContentionPause longest = new ContentionPause(limit -> limit - 1);

    @Test
    void shouldAllowTwiceWhatAnAttemptTookAndDoubleWithEach() {
        assertThat(longest.nanos(1_000, AMPLE)).isEqualTo(1_999);
        assertThat(longest.nanos(1_000, AMPLE)).isEqualTo(3_999);
        assertThat(longest.nanos(3_000, AMPLE)).isEqualTo(23_999);
    }

    @Test
    void shouldStopDoublingBeforeItOverflows() {
        for (int attempt = 0; attempt < 100; attempt++) {
            assertThat(longest.nanos(30_000_000_000L, AMPLE)).isBetween(1L, 30_000_000_000L << 10);
        }
    }

    @Test
    void shouldNotWaitBeyondTheDeadline() {
        assertThat(longest.nanos(1_000, 500)).isEqualTo(499);
        assertThat(longest.nanos(1_000, 0)).isZero();
        assertThat(longest.nanos(1_000, -7)).isZero();
    }

    /**
     * A writer that begins while another works fences it; the first undisturbed one writes, and the others need not.
     */
    @Test
    void shouldLetOneOfSixWritersThroughWithinTheLimitHoweverSlowTheMachineIs() {
        for (long attemptMs : new long[] {5, 300, 2_000}) {
            for (int seed = 0; seed < 200; seed++) {
                assertThat(msUntilOneIsLeftAlone(6, attemptMs, seed))
                        .as("attempts of %d ms, seed %d", attemptMs, seed)
                        .isLessThan(30_000);
            }
        }
    }

    private static double msUntilOneIsLeftAlone(int writers, long attemptMs, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        double[] begins = new double[writers];
        ContentionPause[] pauses = new ContentionPause[writers];
        for (int writer = 0; writer < writers; writer++) {
            begins[writer] = random.nextDouble() * attemptMs;
            pauses[writer] = new ContentionPause(random::nextLong);
        }
        while (true) {
            int first = 0;
            for (int writer = 1; writer < writers; writer++) {
                first = begins[writer] < begins[first] ? writer : first;
            }
            double end = begins[first] + attemptMs;
            boolean isLeftAlone =
                    Arrays.stream(begins).filter(begin -> begin < end).count() == 1;
            if (isLeftAlone) {
                return end;
            }
            begins[first] = end + pauses[first].nanos((long) (attemptMs * MS), AMPLE) / MS;
        }
    }
}
