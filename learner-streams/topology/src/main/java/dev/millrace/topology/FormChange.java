package dev.millrace.topology;

import java.util.Set;
import java.util.SortedMap;
import java.util.function.UnaryOperator;

/**
 * How settings of one form are written in the next.
 *
 * @param what the change, as the end of "the forms differ in ..."
 * @param translation makes the next form's keys and values of this form's; gets a copy, which it may change
 * @param unknownBefore keys of the next form that this one did not know and for which no value is known to decide as before;
 *     they are not compared with a text of this form or an older one
 */
public record FormChange(String what, UnaryOperator<SortedMap<String, String>> translation, Set<String> unknownBefore) {
    public FormChange {
        unknownBefore = Set.copyOf(unknownBefore);
    }
}
