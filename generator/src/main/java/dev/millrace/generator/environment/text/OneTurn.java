package dev.millrace.generator.environment.text;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;

/** Nobody to play with: a response of the task {@code text} is one turn, which {@code reward} judges. */
public record OneTurn() implements Environment {

    @Override
    public String name() {
        return "text";
    }

    @Override
    public int endToken() {
        return -1;
    }

    @Override
    public Episode begin(String state) {
        throw new IllegalArgumentException("one_turn works only with the task text; leave it out of environments");
    }
}
