package dev.millrace.docs.reference;

import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.topology.task.OutcomeReason;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Why rollouts leave, why records are refused, how commands end. */
final class OutcomesPage {
    private static final Pattern CONSTANT =
            Pattern.compile("/\\*\\*((?:(?!\\*/).)*+)\\*/\\s*([A-Z_0-9]+)\\(\"([a-z-]+)\"", Pattern.DOTALL);

    private OutcomesPage() {}

    static String text() {
        return "# Outcomes, dead letters, exit codes\n\n"
                + "## Outcomes\n\nA rollout that leaves before it reaches a batch has one record on `outcomes` with its reason. "
                + "`orphan-…` is about a partner\nwithout a rollout.\n\n"
                + table(OutcomeReason.class, OutcomeReason.values().length)
                + "\n## Dead letters\n\nA record that cannot be used goes to `dead-letters` as it came, with its reason, field, sentence "
                + "and place in\n`millrace.error.*` headers. [How to handle them](../how-to/dead-letters.md).\n\n"
                + table(RefusalReason.class, RefusalReason.values().length)
                + "\n## Masks\n\nA rollout in a batch may have every token masked. The stage that did it is in the batch, and in the "
                + "ledger by its name:\n`staleness`, `rollout_correction`, `m2po`, `sequence_mask`, `missing_old_log_probs`.\n"
                + "\n## Exit codes\n\n"
                + Tables.head("code", "meaning")
                + Tables.row("0", "done")
                + Tables.row("1", "a failure while running; one sentence, and `--verbose` adds where")
                + Tables.row("2", "a mistake in the command line or the configuration")
                + Tables.row("3", "`train`: the time was over before the goal")
                + Tables.row(
                        "4",
                        "what was asked is not so: the ledger does not add up, a replay differs from the record, not all dead "
                                + "letters could be redriven, the doctor found something broken or sick, a model is not supported")
                + Tables.row("5", "what was asked about is not there, or too little is recorded to say")
                + Tables.row("130", "stopped by a signal");
    }

    private static String table(Class<?> reasons, int expected) {
        List<String> rows = new ArrayList<>();
        for (Matcher constant = CONSTANT.matcher(SourceFile.of(reasons).text()); constant.find(); ) {
            rows.add(Tables.row(
                    Tables.code(constant.group(3)),
                    Javadoc.of(constant.group(1)).first()));
        }
        if (rows.size() != expected) {
            throw new AssertionError(
                    reasons + " has " + expected + " reasons, of which " + rows.size() + " have a comment and a code");
        }
        return Tables.head("reason", "meaning") + String.join("", rows);
    }
}
