package dev.millrace.replay.retrain;

import dev.millrace.corrections.diagnostics.DiagnosticsCourse;
import java.util.List;

/**
 * How often an alarm clears by itself in the recorded run: of the steps with the alarm that have a next step, how many
 * have a next step without it. A patch must clear the alarm more often than this baseline of no change.
 *
 * @param followed steps with the alarm that have a next step
 * @param gone those whose next step no longer had it
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
