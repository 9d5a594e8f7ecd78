package dev.millrace.generator.staleness;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A request's name, which is its group's id: {@code epoch-ordinal}, or {@code epoch-ordinal-again-prompt-attempt} where a
 * prompt is released once more.
 *
 * @param prompt which of the task's prompts it asks for; the ordinal, unless it was released before
 * @param attempt how often the prompt was released before
 */
record RequestName(int epoch, long ordinal, long prompt, int attempt) {
    private static final Pattern TEXT = Pattern.compile("(\\d{1,9})-(\\d{1,18})(?:-again-(\\d{1,18})-(\\d{1,9}))?");

    static RequestName first(int epoch, long ordinal) {
        return new RequestName(epoch, ordinal, ordinal, 0);
    }

    String groupId() {
        return epoch + "-" + ordinal + (attempt == 0 ? "" : "-again-" + prompt + "-" + attempt);
    }

    /** Takes a group id apart; empty if it is not one of admission's. */
    static Optional<RequestName> parse(String groupId) {
        Matcher matcher = TEXT.matcher(groupId);
        if (!matcher.matches()) {
            return Optional.empty();
        }
        RequestName first = first(Integer.parseInt(matcher.group(1)), Long.parseLong(matcher.group(2)));
        return Optional.of(
                matcher.group(3) == null
                        ? first
                        : new RequestName(
                                first.epoch(),
                                first.ordinal(),
                                Long.parseLong(matcher.group(3)),
                                Integer.parseInt(matcher.group(4))));
    }
}
