package dev.millrace.workloads.closed;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.workloads.topology.Distribution;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Delays another environment's replies and episode ends by a drawn time; tokens without a reply cost nothing. Each
 * episode draws from its own stream. Thread-safe.
 */
public final class SlowEnvironment implements Environment {
    private final Environment environment;
    private final Distribution latencyMs;
    private final long seed;
    private final LongSupplier nanoTime;
    private final AtomicLong episodes = new AtomicLong();

    /** @param nanoTime such as {@link System#nanoTime} */
    public SlowEnvironment(Environment environment, Distribution latencyMs, long seed, LongSupplier nanoTime) {
        this.environment = environment;
        this.latencyMs = latencyMs;
        this.seed = seed;
        this.nanoTime = nanoTime;
    }

    @Override
    public String name() {
        return environment.name();
    }

    @Override
    public int endToken() {
        return environment.endToken();
    }

    @Override
    public Episode begin(String state) {
        return new SlowEpisode(environment.begin(state), new SplittableRandom(seed + episodes.getAndIncrement()));
    }

    private final class SlowEpisode implements Episode {
        private final Episode episode;
        private final SplittableRandom random;
        /** The reply until it is due; null if there is none. */
        private @Nullable StepResult held;

        private long dueNanos;

        SlowEpisode(Episode episode, SplittableRandom random) {
            this.episode = episode;
            this.random = random;
        }

        @Override
        public StepResult afterToken(Transcript response) {
            StepResult due = held;
            if (due == null) {
                StepResult result = episode.afterToken(response);
                if (!result.ends() && result.tokens().length == 0) {
                    return result;
                }
                held = result;
                due = result;
                dueNanos = nanoTime.getAsLong() + TimeUnit.MILLISECONDS.toNanos(latencyMs.draw(random));
            }
            if (nanoTime.getAsLong() - dueNanos < 0) {
                return StepResult.LATER;
            }
            held = null;
            return due;
        }

        @Override
        public VerifiedReward verify(Transcript response) {
            return episode.verify(response);
        }
    }
}
