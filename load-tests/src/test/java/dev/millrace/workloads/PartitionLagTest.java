package dev.millrace.workloads;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.workloads.PointRun.PartitionLag;
import org.junit.jupiter.api.Test;

class PartitionLagTest {
    private static final long SECOND = 1_000_000_000L;

    @Test
    void shouldBeBehindByWhatIsNotCommitted() {
        PartitionLag lag = new PartitionLag();
        lag.end(0, 100);
        lag.committed(40);
        assertThat(lag.records()).isEqualTo(60);
    }

    /** The end passed offset 40 at second 1 and 100 at second 3; who has committed 40 is behind since it passed 40, at 3. */
    @Test
    void shouldCountSecondsSinceTheEndFirstLayBeyondWhatIsCommitted() {
        PartitionLag lag = new PartitionLag();
        lag.end(SECOND, 40);
        lag.end(3 * SECOND, 100);
        lag.end(4 * SECOND, 100);
        lag.committed(39);
        assertThat(lag.seconds(5 * SECOND)).isEqualTo(4);
        lag.committed(40);
        assertThat(lag.seconds(5 * SECOND)).isEqualTo(2);
        lag.committed(100);
        assertThat(lag.seconds(5 * SECOND)).isZero();
        assertThat(lag.records()).isZero();
    }
}
