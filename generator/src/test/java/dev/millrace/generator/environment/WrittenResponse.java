package dev.millrace.generator.environment;

import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import java.util.Arrays;

/** A response that a test writes token by token, as the engine would. */
public final class WrittenResponse implements Transcript {
    private int[] tokens = {};
    private boolean[] byPolicy = {};

    /** Appends a sampled token and the environment's answer to it. */
    public StepResult policy(int token, Episode episode) {
        append(token, true);
        StepResult result = episode.afterToken(this);
        for (int said : result.tokens()) {
            append(said, false);
        }
        return result;
    }

    public WrittenResponse append(int token, boolean policy) {
        tokens = Arrays.copyOf(tokens, tokens.length + 1);
        byPolicy = Arrays.copyOf(byPolicy, tokens.length);
        tokens[tokens.length - 1] = token;
        byPolicy[tokens.length - 1] = policy;
        return this;
    }

    public int[] tokens() {
        return tokens.clone();
    }

    @Override
    public int length() {
        return tokens.length;
    }

    @Override
    public int token(int position) {
        return tokens[position];
    }

    @Override
    public boolean byPolicy(int position) {
        return byPolicy[position];
    }
}
