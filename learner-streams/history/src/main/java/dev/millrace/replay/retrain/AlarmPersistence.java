package dev.millrace.replay.retrain;

import dev.millrace.corrections.diagnostics.DiagnosticsCourse;
import java.util.List;

/**
 * Whether an alarm goes by itself, as far as the run as it went shows it: of the steps that had it and were followed by another, how
 * many were followed by one that did not. That is how often "the alarm is gone" comes of changing nothing, which a patch has to be
 * compared with.
 *
 * @param followed steps with the alarm that have a next step
 * @param gone those whose next step had it no more
 */
public record AlarmPersistence(int followed, int gone) {

    /** @param alarms by step, in order */
    static AlarmPersistence of(List<Boolean> alarms) {
        int followed = 0;
        int gone = 0;
        for (int i = 0; i + 1 < alarms.size(); i++) {
            if (alarms.get(i)) {
                followed++;
                gone += alarms.get(i + 1) ? 0 : 1;
            }
        }
        return new AlarmPersistence(followed, gone);
    }

    /** Whether the alarm went without a patch at least once. */
    public boolean goesByItself() {
        return gone > 0;
    }

    /**
     * Whether anything can be said. An alarm that stood for less steps than the tree looks over may be one noisy batch that is still
     * looked at.
     */
    public boolean isKnown() {
        return goesByItself() || followed >= DiagnosticsCourse.WINDOW;
    }
}
