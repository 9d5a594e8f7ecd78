package dev.millrace.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.Pulse;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ProbesTest {
    private static final long LIMIT_MS = 30_000;

    private long nanos = 1;
    private boolean hasFailed;
    private final Pulse generator = new Pulse(() -> nanos);
    private final Pulse learner = new Pulse(() -> nanos);
    private final Map<String, Pulse> pulses = new TreeMap<>(Map.of("generator", generator, "learner", learner));
    private final Probes probes = new Probes(pulses, Duration.ofSeconds(630), () -> hasFailed);

    private void pass(long seconds) {
        nanos += TimeUnit.SECONDS.toNanos(seconds);
    }

    @Test
    void shouldLiveWhileEveryLoopTurnsWithinTheBound() {
        pass(630);
        learner.turn();
        assertThat(probes.whyDead()).isEmpty();
        pass(1);
        assertThat(probes.whyDead()).contains("generator: its loop has made no iteration for 631 s, more than 630 s");
        generator.turn();
        assertThat(probes.whyDead()).isEmpty();
    }

    @Test
    void shouldLiveNoLongerThanEachOfItsRoles() {
        hasFailed = true;
        assertThat(probes.whyDead()).contains("a role has failed; see the log");
        assertThat(probes.whyUnready()).isEqualTo(probes.whyDead());
    }

    @Test
    void shouldBeReadyOnceEveryRoleIs() {
        assertThat(probes.whyUnready()).contains("generator: it is starting");
        generator.turn(Optional.empty());
        learner.turn(Optional.of("it restores the training state"));
        assertThat(probes.whyUnready()).contains("learner: it restores the training state");
        learner.turn(Optional.empty());
        assertThat(probes.whyUnready()).isEmpty();
        pulses.put("scorer", new Pulse(() -> nanos));
        assertThat(probes.whyUnready()).contains("scorer: it is starting");
    }

    @Test
    void shouldNotBeReadyBeforeAVersionIsServed() {
        learner.turn(Optional.empty());
        generator.turnServing(-1, -1, LIMIT_MS);
        assertThat(probes.whyUnready()).contains("generator: it serves no version yet");
        generator.turnServing(0, 0, LIMIT_MS);
        assertThat(probes.whyUnready()).isEmpty();
    }

    @Test
    void shouldLetANewVersionWaitForTheNextCommitOnlyForAMoment() {
        assertThat(Pulse.needsServing(499, 2_000, true)).isFalse();
        assertThat(Pulse.needsServing(500, 2_000, true)).isTrue();
        assertThat(Pulse.needsServing(1_999, 2_000, false)).isFalse();
        assertThat(Pulse.needsServing(2_000, 2_000, false)).isTrue();
        assertThat(Pulse.needsServing(100, 100, true)).as("interval below it").isTrue();
    }

    @Test
    void shouldNotBeReadyWhileAnOldVersionIsServedForTooLong() {
        learner.turn(Optional.empty());
        generator.turnServing(4, 5, LIMIT_MS);
        pass(30);
        generator.turnServing(4, 7, LIMIT_MS);
        assertThat(probes.whyUnready()).isEmpty();
        pass(1);
        generator.turnServing(4, 7, LIMIT_MS);
        assertThat(probes.whyUnready())
                .contains("generator: it serves version 4, and has not loaded version 7 for 31 s, longer than"
                        + " weights.unserved_alarm_ms=30000");
        generator.turnServing(6, 7, LIMIT_MS);
        assertThat(probes.whyUnready()).as("it follows, a version behind").isEmpty();
        pass(30);
        generator.turnServing(7, 8, LIMIT_MS);
        pass(30);
        generator.turnServing(7, 8, LIMIT_MS);
        assertThat(probes.whyUnready()).isEmpty();
    }

    @Test
    void shouldTakeTheWordOfWhoWatchesALoop() {
        pass(600);
        generator.turn(Optional.of("its engine is REBALANCING"), false);
        assertThat(generator.age()).hasSeconds(600);
        generator.turn(Optional.empty(), true);
        assertThat(generator.age()).isZero();
    }
}
