package dev.millrace.audit.trace;

import java.util.List;

/**
 * Selects dead letters; empty conditions match everything.
 *
 * @param names offsets ({@code 17}) or source positions ({@code rollouts-0@12}), with or without prefix
 * @param source topic with or without prefix
 * @param prefix of the run's topics
 */
public record DeadLetterFilter(List<String> names, String reason, String source, String prefix) {
    public DeadLetterFilter {
        names = List.copyOf(names);
    }

    public boolean takes(DeadLetter letter) {
        return (names.isEmpty() || names.stream().anyMatch(name -> isNamed(letter, name)))
                && (reason.isEmpty() || reason.equals(letter.reason()))
                && (source.isEmpty()
                        || source.equals(letter.sourceTopic())
                        || letter.sourceTopic().equals(prefix + source));
    }

    public boolean isNamed(DeadLetter letter, String name) {
        String place = "dead-letters-" + letter.partition() + "@" + letter.offset();
        return name.equals(Long.toString(letter.offset())) && letter.partition() == 0
                || name.equals(place)
                || name.equals(prefix + place)
                || name.equals(letter.source())
                || (prefix + name).equals(letter.source());
    }
}
