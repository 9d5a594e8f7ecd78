package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.generator.staleness.StalenessController.AdmissionMeters;
import dev.millrace.schemas.rollout.SampleName;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.junit.jupiter.api.Test;

class AdmissionMetersTest {
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
    private final AdmissionMeters meters = new AdmissionMeters(registry);
    private final ReleasedSamples samples = new ReleasedSamples();

    private double gauge(String name) {
        return registry.get("millrace.admission." + name).gauge().value();
    }

    @Test
    void shouldShowWhatWasReleasedAndWhatBecameOfIt() {
        samples.released(new AdmittedGroup("0-0", 4, 0, 1), 0);
        samples.left(new SampleName("0-0", 1));
        samples.left(new SampleName("9-9", 0)); // not requested
        assertThat(gauge("released.samples")).as("before it is shown").isZero();
        meters.show(samples, 2);
        assertThat(gauge("released.samples")).isEqualTo(4);
        assertThat(gauge("lost.samples")).isEqualTo(1);
        assertThat(gauge("settled.samples")).isEqualTo(1);
        assertThat(gauge("under.way.samples")).isEqualTo(3);
        assertThat(gauge("unknown.records")).isEqualTo(1);
        assertThat(gauge("quarantined.generators")).isEqualTo(2);
        assertThat(gauge("released.again.samples")).isZero();
    }

    @Test
    void shouldCountWhatIsReleasedOnceMore() {
        meters.resampled();
        meters.resampled();
        meters.lostOnLog().increment(4);
        assertThat(registry.get("millrace.admission.resampled").counter().count())
                .isEqualTo(2);
        assertThat(registry.get("millrace.admission.lost.on.log").counter().count())
                .isEqualTo(4);
    }
}
