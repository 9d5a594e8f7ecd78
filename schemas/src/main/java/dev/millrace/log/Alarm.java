package dev.millrace.log;

/**
 * A condition that lasts.
 *
 * @param name of the kind of condition, in words that are joined by '-', such as {@code broker-away}; the tag of its meter
 * @param subject whom or what it is about, such as {@code rollouts-3} or {@code generator-1}
 * @param sentence what is so, with the numbers
 * @param remedy the command, or the act, that ends it; empty where it ends by itself
 * @param sinceMs when it began, Unix milliseconds, for people to read
 */
public record Alarm(String name, String subject, String sentence, String remedy, long sinceMs) {
    public Alarm {
        if (!name.matches("[a-z]+(-[a-z]+)*")) {
            throw new IllegalArgumentException("the name of an alarm must be words joined by '-': '" + name + "'");
        }
    }

    /** The sentence and the remedy. */
    public String text() {
        return sentence + (remedy.isEmpty() ? "" : "; to end it: " + remedy);
    }
}
