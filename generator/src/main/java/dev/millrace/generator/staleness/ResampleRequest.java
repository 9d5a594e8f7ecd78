package dev.millrace.generator.staleness;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A prompt that is to be released once more, because its samples were rewarded alike, or too little.
 *
 * @param attempt how often it will have been released before, at least 1
 */
record ResampleRequest(long prompt, int attempt) {
    private static final Pattern TEXT = Pattern.compile("(\\d{1,18}):(\\d{1,9})");

    String text() {
        return prompt + ":" + attempt;
    }

    /** Empty if the text is none. */
    static Optional<ResampleRequest> parse(String text) {
        Matcher matcher = TEXT.matcher(text);
        return matcher.matches()
                ? Optional.of(new ResampleRequest(Long.parseLong(matcher.group(1)), Integer.parseInt(matcher.group(2))))
                : Optional.empty();
    }
}
