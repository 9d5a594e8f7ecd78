package dev.millrace.cli.live;

import dev.millrace.cli.live.TonedLine.Tone;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.runtime.train.RunStatus;
import java.util.ArrayList;
import java.util.List;

/** What to think of a run at one moment, in two words; the most pressing that is true. */
enum RunState {
    ALARM("ALARM", Tone.BAD),
    STARVED("STARVED", Tone.BAD),
    STARTING("STARTING", Tone.FAINT),
    WAITING("WAITING", Tone.LOOK),
    STALLED("NO STEP", Tone.BAD),
    FALLING("REWARD FALLS", Tone.LOOK),
    FLAT("REWARD FLAT", Tone.LOOK),
    LOW_ESS("LOW ESS", Tone.LOOK),
    TRAINING("TRAINING OK", Tone.GOOD);

    /** Where the page and the doctor say so too: few rollouts decide. */
    static final double LOW = 0.3;

    private static final double STALLED_SECONDS = 120;
    private static final int WINDOW = 10;
    private static final double FALLEN = 0.7;
    /** What stands still; the page judges so too. */
    private static final double RISE = 0.02;

    private static final int FLAT_STEPS = 60;

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
        List<Double> means = means(status.rewards());
        if (hasFallen(means)) {
            return FALLING;
        }
        if (isFlat(means, status.rewards().size(), status.goal())) {
            return FLAT;
        }
        return newest.essRatio() < LOW ? LOW_ESS : TRAINING;
    }

    /** Of each {@value #WINDOW} neighbouring steps. */
    private static List<Double> means(List<Double> rewards) {
        List<Double> means = new ArrayList<>();
        double sum = 0;
        for (int i = 0; i < rewards.size(); i++) {
            sum += rewards.get(i) - (i >= WINDOW ? rewards.get(i - WINDOW) : 0);
            if (i >= WINDOW - 1) {
                means.add(sum / WINDOW);
            }
        }
        return means;
    }

    /** Whether the mean of the last steps is far below the best such mean. */
    private static boolean hasFallen(List<Double> means) {
        double best = means.stream().mapToDouble(Double::doubleValue).max().orElse(0);
        return !means.isEmpty() && means.get(means.size() - 1) < FALLEN * best;
    }

    /** Whether a reward below its goal has not risen over half of its steps; of a run without a goal nobody says where it should be. */
    private static boolean isFlat(List<Double> means, int steps, double goal) {
        int before = means.size() - 1 - steps / 2;
        if (steps < FLAT_STEPS || before < 0) {
            return false;
        }
        double last = means.get(means.size() - 1);
        return last < goal && last - means.get(before) < RISE;
    }
}
