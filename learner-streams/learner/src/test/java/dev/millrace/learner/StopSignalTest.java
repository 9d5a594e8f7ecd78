package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class StopSignalTest {
    private static final Duration FOR_EVER = Duration.ofDays(1);

    private final StopSignal stop = new StopSignal();

    @Test
    void shouldEndTheWaitThatIsUnderWayAndNoneBeforeIt() {
        List<String> ended = new ArrayList<>();
        stop.wakes(() -> ended.add("first"));
        stop.wakes(() -> ended.add("second"));

        stop.stop();

        assertThat(stop.isStopped()).isTrue();
        assertThat(ended).containsExactly("second");
    }

    @Test
    void shouldNotWaitOnceItIsGiven() {
        stop.stop();

        stop.await(FOR_EVER);

        assertThat(stop.isStopped()).isTrue();
    }

    @Test
    void shouldBeGivenByAnInterrupt() {
        Thread.currentThread().interrupt();

        stop.await(FOR_EVER);

        assertThat(stop.isStopped()).isTrue();
        assertThat(Thread.interrupted()).as("other callers see it too").isTrue();
    }
}
