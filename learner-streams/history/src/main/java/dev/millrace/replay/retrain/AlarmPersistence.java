package dev.millrace.replay.retrain;

import dev.millrace.corrections.diagnostics.DiagnosticsCourse;
import java.util.List;

/**
 * How often an alarm clears by itself: the baseline for a patch.
 *
 * @param followed steps with the alarm and a next step
 * @param gone next steps without it
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

    /** True if it cleared at least once. */
    public boolean goesByItself() {
        return gone > 0;
    }

    /** False for an alarm shorter than the tree's window, which may be one noisy batch. */
    public boolean isKnown() {
        return goesByItself() || followed >= DiagnosticsCourse.WINDOW;
    }
}
