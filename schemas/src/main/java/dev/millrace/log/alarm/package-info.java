/**
 * Conditions that keep a run from getting on and that it does not mend by itself: named, latched, shown to people, with the
 * command that ends them.
 *
 * <p>Whoever finds such a condition raises an alarm, and lowers it when it is over; both may be done again and again. It is one
 * line in the log when it begins and one when it ends, and in between stands wherever a run is looked at: meters, live view,
 * summary and doctor.
 */
@NullMarked
package dev.millrace.log.alarm;

import org.jspecify.annotations.NullMarked;
