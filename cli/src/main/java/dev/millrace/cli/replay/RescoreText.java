package dev.millrace.cli.replay;

import dev.millrace.replay.report.ReplayTotals;
import dev.millrace.replay.retrain.Agreement;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** What a replay says to a person about log-probs that it computed again; nothing if it computed none. */
final class RescoreText {
    private RescoreText() {}

    /** @param untrained batches on which no step is recorded, left out */
    static List<String> sentences(ReplayTotals totals, long untrained, long copies) {
        List<String> sentences = new ArrayList<>();
        Agreement agreement = totals.agreement();
        if (agreement.computed() > 0) {
            long compared = agreement.same() + agreement.different();
            sentences.add(
                    count(agreement.computed()) + " vectors of log-probs were computed again; "
                            + (compared == 0
                                    ? "none of them under a version of the record, so there is nothing to compare them with"
                                    : agreement.different() == 0
                                            ? count(compared)
                                                    + " of them under the versions of the record: the same bit for bit"
                                            : count(agreement.different()) + " of the " + count(compared)
                                                    + " under the versions of the record differ from it, by "
                                                    + String.format(Locale.ROOT, "%.2g", agreement.largest())
                                                    + " at most: another device or kind of machine, or a record that is not what it says"));
        }
        if (totals.asTrained() + totals.notAsTrained() > 0) {
            sentences.add(
                    totals.notAsTrained() == 0
                            ? "the run's own corrections at the beginning of each step decide what the learner's log says of it, at all "
                                    + count(totals.asTrained()) + " steps"
                            : "at " + count(totals.notAsTrained()) + " of "
                                    + count(totals.asTrained() + totals.notAsTrained())
                                    + " steps the run's own corrections do not decide what the learner's log says; give the configuration that it had");
        }
        if (untrained > 0) {
            sentences.add((untrained == 1
                            ? "1 batch is left out: no step on it"
                            : count(untrained) + " batches are left out: no step on them")
                    + " is recorded yet");
        }
        if (copies > 0) {
            sentences.add((copies == 1 ? "1 batch is" : count(copies) + " batches are")
                    + " on the log once more: copies, which the learner passed over, and which count once here");
        }
        return sentences;
    }

    private static String count(long value) {
        return String.format(Locale.ROOT, "%,d", value);
    }
}
