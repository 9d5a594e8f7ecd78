package dev.millrace.audit.ledger;

import dev.millrace.schemas.LogCoordinates;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A place on the rollouts topic that another record points at. */
record RolloutPlace(int partition, long offset) {
    private static final Pattern PLACE = Pattern.compile("(\\d{1,9})@(\\d{1,18})");

    static RolloutPlace of(LogCoordinates source) {
        return new RolloutPlace(source.getPartition(), source.getOffset());
    }

    /** Empty if the text is no place, as in a header that somebody else wrote. */
    static Optional<RolloutPlace> parse(String text) {
        Matcher place = PLACE.matcher(text);
        return place.matches()
                ? Optional.of(new RolloutPlace(Integer.parseInt(place.group(1)), Long.parseLong(place.group(2))))
                : Optional.empty();
    }
}
