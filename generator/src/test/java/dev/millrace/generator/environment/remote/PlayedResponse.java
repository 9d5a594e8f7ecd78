package dev.millrace.generator.environment.remote;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** A response that grows by tokens of the policy and of its episode, as in a generator's slot. */
final class PlayedResponse implements Transcript {
    private final Episode episode;
    private final List<Integer> tokens = new ArrayList<>();
    private final List<Boolean> byPolicy = new ArrayList<>();
    boolean isOver;

    PlayedResponse(Episode episode) {
        this.episode = episode;
        assertThat(episode.opens()).isTrue();
        heard();
    }

    /** Appends tokens of the policy and calls the episode after each. */
    PlayedResponse writes(int... written) {
        for (int token : written) {
            assertThat(isOver).isFalse();
            tokens.add(token);
            byPolicy.add(true);
            heard();
        }
        return this;
    }

    private void heard() {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(150);
        StepResult result = episode.afterToken(this);
        while (result.later()) {
            assertThat(System.nanoTime()).isLessThan(deadline);
            LockSupport.parkNanos(100_000);
            result = episode.afterToken(this);
        }
        for (int said : result.tokens()) {
            tokens.add(said);
            byPolicy.add(false);
        }
        isOver = result.ends();
    }

    List<Integer> tokens() {
        return tokens;
    }

    @Override
    public int length() {
        return tokens.size();
    }

    @Override
    public int token(int position) {
        return tokens.get(position);
    }

    @Override
    public boolean byPolicy(int position) {
        return byPolicy.get(position);
    }
}
