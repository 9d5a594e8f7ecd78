package dev.millrace.cli.live;

import dev.millrace.cli.live.TonedLine.Tone;
import dev.millrace.runtime.live.RunStatus;
import dev.millrace.runtime.report.StepRow;
import java.util.List;

/** What to think of a run at one moment, in two words; the most pressing that is true. */
enum RunState {
    ALARM("ALARM", Tone.BAD),
    STARVED("STARVED", Tone.BAD),
    STARTING("STARTING", Tone.FAINT),
    WAITING("WAITING", Tone.LOOK),
    STALLED("NO STEP", Tone.BAD),
    FALLING("REWARD FALLS", Tone.LOOK),
    LOW_ESS("LOW ESS", Tone.LOOK),
    TRAINING("TRAINING OK", Tone.GOOD);

    /** Where the page and the doctor say so too: few rollouts decide. */
    static final double LOW = 0.3;

    private static final double STALLED_SECONDS = 120;
    private static final int WINDOW = 10;
    private static final double FALLEN = 0.7;

    final String words;
    final Tone tone;

    RunState(String words, Tone tone) {
        this.words = words;
        this.tone = tone;
    }

    /** @param stepAge seconds since the newest step; NaN where there is none */
    static RunState of(RunStatus status, double stepAge) {
        StepRow newest = status.newest();
        if (!status.alarms().isEmpty() || !status.unserved().isEmpty()) {
            return ALARM;
        }
        if (newest == null) {
            return STARTING;
        }
        if (!status.phase().isEmpty()) {
            return WAITING;
        }
        if (status.starvedInARow() > 0) {
            return STARVED;
        }
        if (stepAge > STALLED_SECONDS) {
            return STALLED;
        }
        if (hasFallen(status.rewards())) {
            return FALLING;
        }
        return newest.essRatio() < LOW ? LOW_ESS : TRAINING;
    }

    /** Whether the mean of the last steps is far below the best such mean. */
    private static boolean hasFallen(List<Double> rewards) {
        double sum = 0;
        double best = 0;
        double last = 0;
        for (int i = 0; i < rewards.size(); i++) {
            sum += rewards.get(i) - (i >= WINDOW ? rewards.get(i - WINDOW) : 0);
            if (i >= WINDOW - 1) {
                last = sum / WINDOW;
                best = Math.max(best, last);
            }
        }
        return last < FALLEN * best;
    }
}
