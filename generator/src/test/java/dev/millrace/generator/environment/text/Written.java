package dev.millrace.generator.environment.text;

import dev.millrace.api.environment.Transcript;

/** A response that the policy wrote alone. */
record Written(int... tokens) implements Transcript {

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
        return true;
    }
}
