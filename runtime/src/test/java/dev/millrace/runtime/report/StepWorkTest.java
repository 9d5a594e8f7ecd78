package dev.millrace.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.audit.trace.Laps;
import dev.millrace.audit.trace.Laps.Hop;
import dev.millrace.audit.trace.Laps.Lap;
import dev.millrace.report.ReportText;
import dev.millrace.runtime.report.StepWork.Reading;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class StepWorkTest {
    private static final String REQUESTS = "kafka.producer.request.total";
    private static final Laps LAPS = new Laps(
            List.of(new Lap(
                    7,
                    8,
                    1_000,
                    Stream.of(Hop.values()).collect(Collectors.toMap(hop -> hop, hop -> 10L * (hop.ordinal() + 1))))),
            0);

    private final SimpleMeterRegistry meters = new SimpleMeterRegistry();
    private final Map<String, AtomicLong> counts = new HashMap<>();

    private void count(String meter, String tag, String value, long count) {
        counts.computeIfAbsent(meter + value, unseen -> {
                    AtomicLong counted = new AtomicLong();
                    FunctionCounter.builder(meter, counted, AtomicLong::get)
                            .tag(tag, value)
                            .register(meters);
                    return counted;
                })
                .set(count);
    }

    private StepWork work() {
        count("millrace.processor.seconds", "threads", "learner", 1);
        count("millrace.processor.seconds", "threads", "gateway", 0);
        count(REQUESTS, "client.id", "learner-commits", 100);
        count("kafka.producer.txn.commit.time.ns.total", "client.id", "learner-commits", 5_000_000);
        count("millrace.broker.requests", "request", "EndTxn", 40);
        count("millrace.processor.idle", "threads", "learner", 1);
        Reading before = Reading.NONE.next(10, meters);
        count(REQUESTS, "client.id", "scorer-scorer-0", 60);
        Reading between = before.next(20, meters);
        meters.remove(meters.get(REQUESTS).tag("client.id", "scorer-scorer-0").meter());
        count("millrace.processor.seconds", "threads", "learner", 3);
        count(REQUESTS, "client.id", "learner-commits", 130);
        count(REQUESTS, "client.id", "learner-2", 10);
        count("kafka.producer.txn.commit.time.ns.total", "client.id", "learner-commits", 85_000_000);
        count("millrace.broker.requests", "request", "EndTxn", 190);
        return StepWork.between(before, between.next(30, meters));
    }

    @Test
    void shouldDivideWhatCameBetweenTwoReadingsByTheSteps() {
        StepWork work = work();
        assertThat(work.steps()).isEqualTo(20);
        assertThat(work.processorMs())
                .as("2 s in 20 steps, none of the gateway's")
                .isEqualTo(Map.of("learner", 100.0));
        assertThat(work.requests())
                .as("30 and 10 of a new client; 60 of one that has ended")
                .isEqualTo(Map.of("learner", 2.0, "scorer", 3.0));
        assertThat(work.commitMs().get("learner")).isCloseTo(4, within(1e-9));
        assertThat(work.broker()).isEqualTo(Map.of("EndTxn", 7.5));
    }

    @Test
    void shouldStandBesideTheLapOrSayThatItIsNotKnown() {
        assertThat(ReportText.lines(LapReport.of(LAPS, Optional.of(work()))))
                .contains("Work per step, over 20 steps")
                .anyMatch(line -> line.matches("learner +100\\.0 +2\\.0 +4\\.0"))
                .anyMatch(line -> line.matches("EndTxn +7\\.5"))
                .anyMatch(line -> line.contains("the critical path are take-up, step, fetch."));
        assertThat(String.join(" ", ReportText.lines(LapReport.of(LAPS, Optional.empty()))))
                .contains("The cost of a step is unknown")
                .doesNotContain("Work per step");
    }
}
