package org.example.lab;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.api.plugin.Meaning;
import java.util.SplittableRandom;

/** The task of answering letters with the same letters, last one first. */
public record Reverse(@Meaning("letters of a question, 1 to 16") int length) implements TaskSettings {

    public Reverse {
        if (length < 1 || length > 16) {
            throw new IllegalArgumentException("length must be 1 to 16: " + length); // begins with the key
        }
    }

    @Override
    public Task task() {
        return new Task("reverse", this::prompt, new Spelling(), new Letters(), length + 2, length);
    }

    /** A function of seed and ordinal, so that a restarted run continues with the prompts it would have had. */
    private Prompt prompt(long seed, long ordinal) {
        SplittableRandom random = new SplittableRandom(seed * 0x9E3779B97F4A7C15L + ordinal);
        StringBuilder letters = new StringBuilder();
        for (int i = 0; i < length; i++) {
            letters.append("abcd".charAt(random.nextInt(4)));
        }
        String question = letters.toString();
        return new Prompt(new Letters().encode("^" + question + "="), letters.reverse().toString());
    }
}
