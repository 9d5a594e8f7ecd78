package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.generator.staleness.StalenessController.StalenessCapacity;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class StalenessCapacityTest {

    @Test
    void shouldReleaseOneBatchAndNoMoreWhenEtaIsZero() {
        StalenessCapacity gate = new StalenessCapacity(0, 256, 8);
        assertThat(gate.releasableGroups(0)).isEqualTo(32); // floor((256 - 1) / 256) = 0
        assertThat(gate.releasableGroups(248)).isEqualTo(1);
        assertThat(gate.releasableGroups(256)).isZero(); // floor((264 - 1) / 256) = 1
        assertThat(gate.releasableGroups(0)).isEqualTo(32); // version 1 has consumed them
    }

    @Test
    void shouldReleaseEtaBatchesMore() {
        StalenessCapacity gate = new StalenessCapacity(2, 256, 8);
        assertThat(gate.releasableGroups(0)).isEqualTo(96);
        assertThat(gate.releasableGroups(768)).isZero();
        assertThat(gate.releasableGroups(512)).isEqualTo(32);
    }

    @Test
    void shouldReplaceLostSamplesByWholeGroups() {
        StalenessCapacity gate = new StalenessCapacity(0, 256, 8);
        assertThat(gate.releasableGroups(249)).isZero(); // room for 7 is not room for a group
        assertThat(gate.releasableGroups(248)).isEqualTo(1);
        assertThat(gate.releasableGroups(240)).isEqualTo(2);
    }

    @Test
    void shouldStayShutWhenMoreIsUnderWayThanAllowed() {
        StalenessCapacity gate = new StalenessCapacity(0, 256, 8); // after eta was lowered, say
        assertThat(gate.releasableGroups(768)).isZero();
    }

    @Test
    void shouldBeTheFormulaItSays() {
        SplittableRandom random = new SplittableRandom(11);
        for (int i = 0; i < 2000; i++) {
            int eta = random.nextInt(4);
            int group = 1 + random.nextInt(8);
            int batch = group * (1 + random.nextInt(16));
            long consumed = random.nextInt(500);
            long lost = random.nextInt(50);
            long released = consumed + lost + random.nextInt(5 * batch);
            long groups = 0;
            while (Math.floorDiv(released + (groups + 1) * group - lost - consumed - 1, (long) batch) <= eta) {
                groups++;
            }
            assertThat(new StalenessCapacity(eta, batch, group).releasableGroups(released - lost - consumed))
                    .as(
                            "eta=%d batch=%d group=%d released=%d lost=%d consumed=%d",
                            eta, batch, group, released, lost, consumed)
                    .isEqualTo(groups);
        }
    }
}
