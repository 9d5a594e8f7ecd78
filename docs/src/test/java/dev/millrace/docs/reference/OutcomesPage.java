package dev.millrace.docs.reference;

import dev.millrace.cli.Main;
import dev.millrace.runtime.train.RunEnd;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.topology.task.OutcomeReason;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine;

/** Why rollouts leave, why records are refused, how commands end. */
final class OutcomesPage {
    private static final Pattern CONSTANT =
            Pattern.compile("/\\*\\*((?:(?!\\*/).)*+)\\*/\\s*([A-Z_0-9]+)\\(\"([a-z-]+)\"", Pattern.DOTALL);

    private static final Pattern STATUS = Pattern.compile(
            "/\\*\\* Exit status (?:if|of) ([^*]+)\\. \\*/\\s*(?:public |private )?static final int (\\w+) = (\\d+);");
    private static final Pattern RUN_END = Pattern.compile("\\(([1-9]\\d*), \"([^\"]+)\"\\)");
    private static final Pattern RETURNED =
            Pattern.compile("return [^;]*\\?\\s+(?:0\\s+:\\s+)?(?:\\w+\\.)?([A-Z][A-Z_]+)(?:\\s+: 0)?;");
    private static final Comparator<String> GENERAL_FIRST =
            Comparator.comparing((String meaning) -> meaning.startsWith("`")).thenComparing(Comparator.naturalOrder());

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
                + exitCodes();
    }

    /** Those that the commands' sources declare; what a command returns and does not declare is an error. */
    private static String exitCodes() {
        Map<String, String> commands = new HashMap<>();
        names(Main.commandLine(), commands);
        Map<Integer, Set<String>> meanings = new TreeMap<>(Map.of(0, Set.of("done")));
        Set<String> declared = new HashSet<>();
        List<SourceFile> sources = SourceFile.below("dev.millrace.cli");
        for (SourceFile source : sources) {
            String command = commands.get(source.simpleName());
            for (Matcher status = STATUS.matcher(source.text()); status.find(); ) {
                declared.add(status.group(2));
                meanings.computeIfAbsent(Integer.valueOf(status.group(3)), code -> new TreeSet<>(GENERAL_FIRST))
                        .add((command == null ? "" : "`" + command + "`: ")
                                + Javadoc.of(status.group(1)).first());
            }
        }
        for (Matcher end = RUN_END.matcher(SourceFile.of(RunEnd.class).text()); end.find(); ) {
            meanings.computeIfAbsent(
                    Integer.valueOf(end.group(1)), code -> new TreeSet<>(Set.of("`train`: " + end.group(2))));
        }
        for (SourceFile source : sources) {
            for (Matcher returned = RETURNED.matcher(source.text()); returned.find(); ) {
                if (!declared.contains(returned.group(1))) {
                    throw new AssertionError(source.path() + " returns " + returned.group(1)
                            + ", which no comment '/** Exit status if ... */' declares");
                }
            }
        }
        StringBuilder rows = new StringBuilder(Tables.head("code", "meaning"));
        meanings.forEach((code, each) -> rows.append(Tables.row(code.toString(), String.join("; ", each))));
        return rows.toString();
    }

    /** Commands by the simple names of their classes. */
    private static void names(CommandLine command, Map<String, String> names) {
        String name = command.getCommandSpec().qualifiedName().replaceFirst("^millrace ?", "");
        if (!name.isEmpty()) {
            names.put(command.getCommandSpec().userObject().getClass().getSimpleName(), name);
        }
        command.getSubcommands().values().forEach(below -> names(below, names));
    }

    private static String table(Class<?> reasons, int expected) {
        List<String> rows = new ArrayList<>();
        for (Matcher constant = CONSTANT.matcher(SourceFile.of(reasons).text()); constant.find(); ) {
            rows.add(Tables.row(
                    Tables.code(constant.group(3)),
                    Javadoc.of(constant.group(1)).first()));
        }
        if (rows.size() != expected) {
            throw new AssertionError(reasons + " has " + expected + " reasons, among them " + rows.size()
                    + " have a comment and a code");
        }
        return Tables.head("reason", "meaning") + String.join("", rows);
    }
}
