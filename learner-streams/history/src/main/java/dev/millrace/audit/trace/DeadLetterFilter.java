package dev.millrace.audit.trace;

import java.util.List;

/**
 * Which letters are meant. What is not given does not matter; a letter must fit all that is given.
 *
 * @param names letters by offset ({@code 17}) or by the place they came from ({@code rollouts-0@12}, with or without the
 *     run's prefix); empty for any
 * @param reason code of the reason; empty for any
 * @param source topic they came from, with or without the run's prefix; empty for any
 * @param prefix of the run's topics
 */
public record DeadLetterFilter(List<String> names, String reason, String source, String prefix) {
    public DeadLetterFilter {
        names = List.copyOf(names);
    }

    /** Whether the letter is one of them. */
    public boolean takes(DeadLetter letter) {
        return (names.isEmpty() || names.stream().anyMatch(name -> isNamed(letter, name)))
                && (reason.isEmpty() || reason.equals(letter.reason()))
                && (source.isEmpty()
                        || source.equals(letter.sourceTopic())
                        || letter.sourceTopic().equals(prefix + source));
    }

    /** Whether this is a name of the letter. */
    public boolean isNamed(DeadLetter letter, String name) {
        String place = "dead-letters-" + letter.partition() + "@" + letter.offset();
        return name.equals(Long.toString(letter.offset())) && letter.partition() == 0
                || name.equals(place)
                || name.equals(prefix + place)
                || name.equals(letter.source())
                || (prefix + name).equals(letter.source());
    }
}
