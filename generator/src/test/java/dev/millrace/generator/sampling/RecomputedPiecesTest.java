package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class RecomputedPiecesTest {
    @Test
    void shouldCutThePromptThenLongPiecesThenShortOnesThenTheRest() {
        assertThat(cut(100, 7, 7 + 250)).containsExactly(7, 107, 207, 239, 257);
        assertThat(cut(100, 120, 130)).containsExactly(101, 120, 130);
        assertThat(cut(3, 1, 9)).containsExactly(4, 7, 9);
    }

    /** However it grew while the pieces were computed. */
    @Test
    void shouldCutASequenceThatGrowsAsOneThatStoodStill() {
        SplittableRandom random = new SplittableRandom(4);
        for (int trial = 0; trial < 2_000; trial++) {
            int longest = random.nextInt(1, 300);
            RecomputedPieces pieces = new RecomputedPieces(longest);
            int prompt = random.nextInt(1, 300);
            int known = prompt + random.nextInt(0, 400);
            List<Integer> ends = new ArrayList<>();
            int held = 1;
            int growth = random.nextInt(0, 300);
            while (true) {
                int from = pieces.takenUp(prompt, held, known);
                ends.removeIf(end -> end > from);
                held = from;
                int whole = pieces.nextWhole(prompt, held, known);
                if (whole == 0) {
                    break;
                }
                held += whole;
                ends.add(held);
                int more = Math.min(growth, random.nextInt(0, 20));
                growth -= more;
                known += more;
            }
            if (held < known) {
                ends.add(known);
            }
            assertThat(ends)
                    .as("%d of %d, pieces of %d", known, prompt, longest)
                    .isEqualTo(cut(longest, prompt, known));
            assertThat(known - held).isLessThan(32);
        }
    }

    private static List<Integer> cut(int longest, int prompt, int known) {
        RecomputedPieces pieces = new RecomputedPieces(longest);
        List<Integer> ends = new ArrayList<>();
        for (int held = 1; held < known; ) {
            held += pieces.next(prompt, held, known);
            ends.add(held);
        }
        return ends;
    }
}
