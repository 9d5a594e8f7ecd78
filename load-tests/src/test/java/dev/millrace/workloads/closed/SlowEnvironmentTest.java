package dev.millrace.workloads.closed;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.workloads.topology.Distribution;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class SlowEnvironmentTest {
    private final AtomicLong nanos = new AtomicLong(Long.MAX_VALUE - 1_000_000); // the clock may run over

    private Episode episode(long ms) {
        return new SlowEnvironment(new FixedAnswer(), Distribution.fixed(ms), 1, nanos::get).begin("12");
    }

    private static Transcript written(int tokens) {
        return new Transcript() {
            @Override
            public int length() {
                return tokens;
            }

            @Override
            public int token(int position) {
                return 4;
            }

            @Override
            public boolean byPolicy(int position) {
                return true;
            }
        };
    }

    @Test
    void shouldReactAsTheOtherAndLater() {
        Episode episode = episode(50);
        assertThat(episode.afterToken(written(1)))
                .as("nothing is said, nothing is waited for")
                .isEqualTo(StepResult.GO_ON);
        assertThat(episode.afterToken(written(2))).isEqualTo(StepResult.LATER);
        nanos.addAndGet(TimeUnit.MILLISECONDS.toNanos(49));
        assertThat(episode.afterToken(written(2))).isEqualTo(StepResult.LATER);
        nanos.addAndGet(TimeUnit.MILLISECONDS.toNanos(1));
        assertThat(episode.afterToken(written(2))).isEqualTo(StepResult.END);
        assertThat(episode.verify(written(2)).reward())
                .isEqualTo(new FixedAnswer().begin("12").verify(written(2)).reward());
    }

    @Test
    void shouldReactAtOnceWhereNoTimeIsSimulated() {
        assertThat(episode(0).afterToken(written(2))).isEqualTo(StepResult.END);
    }
}
