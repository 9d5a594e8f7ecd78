package dev.millrace.gateway;

import java.security.SecureRandom;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A session's name: where its prompt lies, which of the prompt's samples it plays, and what nobody can guess.
 *
 * @param partition of the topic {@code prompts}
 * @param offset of the prompt in it
 */
record SessionId(String text, int partition, long offset) {
    private static final Pattern FORM = Pattern.compile("s(\\d{1,9})-(\\d{1,18})-(\\d{1,9})-[0-9a-z]{1,26}");
    private static final SecureRandom RANDOM = new SecureRandom();

    static SessionId of(int partition, long offset, int sample) {
        String secret = Long.toUnsignedString(RANDOM.nextLong(), 36) + Long.toUnsignedString(RANDOM.nextLong(), 36);
        return new SessionId("s" + partition + "-" + offset + "-" + sample + "-" + secret, partition, offset);
    }

    /** Empty if no gateway gives such a name. */
    static Optional<SessionId> parse(String text) {
        Matcher form = FORM.matcher(text);
        return form.matches()
                ? Optional.of(new SessionId(text, Integer.parseInt(form.group(1)), Long.parseLong(form.group(2))))
                : Optional.empty();
    }
}
