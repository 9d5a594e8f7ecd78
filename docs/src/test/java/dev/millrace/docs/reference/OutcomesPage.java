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
                + "## Outcomes\n\nA rollout dropped before its batch has one record on `outcomes`.\n\n"
                + table(OutcomeReason.class, OutcomeReason.values().length)
                + "\n## Dead letters\n\nA refused record goes unchanged to `dead-letters`, with reason, field, sentence and source in "
                + "`millrace.error.*` headers.\n[How to handle them](../how-to/dead-letters.md).\n\n"
                + table(RefusalReason.class, RefusalReason.values().length)
                + "\n## Masks\n\nBatch and ledger name the stage that masked a rollout's last token: `staleness`, `rollout_correction`, `m2po`, `sequence_mask`, `missing_old_log_probs`.\n"
                + "\n## Exit codes\n\n"
                + Tables.head("code", "meaning")
                + Tables.row("0", "done")
                + Tables.row("1", "failure while running; `--verbose` adds the stack trace")
                + Tables.row("2", "invalid command line or configuration")
                + Tables.row("3", "`train`: time limit before the goal")
                + Tables.row(
                        "4",
                        "negative result: the ledger does not add up, a replay differs, dead letters remain, the doctor found "
                                + "problems, a model is unsupported")
                + Tables.row("5", "subject not found, or too little recorded")
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
