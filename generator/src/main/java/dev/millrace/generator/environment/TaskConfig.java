package dev.millrace.generator.environment;

import dev.millrace.api.environment.Task;
import dev.millrace.generator.environment.answer.FixedAnswer;
import dev.millrace.generator.environment.answer.IncPrompts;
import dev.millrace.generator.environment.answer.SortPrompts;
import dev.millrace.generator.environment.guess.Guess;
import dev.millrace.generator.environment.guess.GuessPrompts;
import java.util.List;

/**
 * Which task is trained, and the settings of each.
 *
 * @param name {@code inc}, {@code sort} or {@code guess}
 * @param inc settings of {@code inc}
 * @param sort settings of {@code sort}
 * @param guess settings of {@code guess}
 */
public record TaskConfig(String name, IncPrompts inc, SortPrompts sort, GuessPrompts guess) {
    private static final List<String> NAMES = List.of("inc", "sort", "guess");

    public TaskConfig {
        if (!NAMES.contains(name)) {
            throw new IllegalArgumentException("name must be a known task: " + NearestName.sentence(name, NAMES));
        }
    }

    /** The task {@code inc} with five digits. */
    public static TaskConfig defaults() {
        return new TaskConfig("inc", IncPrompts.defaults(), SortPrompts.defaults(), GuessPrompts.defaults());
    }

    /** The names of all tasks. */
    public static List<String> names() {
        return NAMES;
    }

    /** The configured task. */
    public Task task() {
        return switch (name) {
            case "inc" -> new Task(name, inc, new FixedAnswer(), Symbols.tokenizer(), inc.digits() + 2, inc.digits());
            case "sort" ->
                new Task(name, sort, new FixedAnswer(), Symbols.tokenizer(), sort.digits() + 2, sort.digits());
            case "guess" -> new Task(name, guess, new Guess(), Symbols.tokenizer(), 2, guess.responseTokens());
            default -> throw new IllegalStateException("a task without a case: " + name);
        };
    }
}
