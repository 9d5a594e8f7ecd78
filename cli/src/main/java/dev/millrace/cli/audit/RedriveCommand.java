package dev.millrace.cli.audit;

import dev.millrace.audit.trace.DeadLetter;
import dev.millrace.audit.trace.DeadLetterFilter;
import dev.millrace.audit.trace.Redrive;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.log.run.RoleRights;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.report.AuditedRun;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code millrace dead-letters redrive}. */
@Command(
        name = "redrive",
        description = "Writes refused records back to their topics unchanged: key, value, headers, time. Redrives "
                + "each once, in one transaction with a mark. A record that is still invalid is refused again.",
        footer = {
            "",
            "millrace dead-letters redrive 17 18 --run-dir runs/<run id>",
            "millrace dead-letters redrive --reason reward --dry-run --bootstrap-servers kafka:9092 --run my-run",
            "",
            "Exit codes: 0 all of them are redriven; 4 some could not be; 5 there are none; 1 a failure; 2 a mistake."
        })
final class RedriveCommand extends ScreenCommand {
    /** Exit status if some letters could not be redriven. */
    static final int NOT_ALL = 4;

    private static final int NAMED = 20;

    @Mixin
    private RunOptions run;

    @Parameters(
            paramLabel = "LETTER",
            arity = "0..*",
            description = "Letters by number or source, such as rollouts-0@12.")
    private List<String> names = new ArrayList<>();

    @Option(
            names = "--reason",
            paramLabel = "R",
            defaultValue = "",
            description = "Only those with this reason, such as reward.")
    private String reason;

    @Option(
            names = "--source",
            paramLabel = "TOPIC",
            defaultValue = "",
            description = "Only those from this topic, such as rollouts.")
    private String source;

    @Option(names = "--all", description = "All letters not redriven yet.")
    private boolean all;

    @Option(names = "--dry-run", description = "Say what would be redriven, and write nothing.")
    private boolean dryRun;

    @Override
    public Integer call() {
        boolean chosen = !names.isEmpty() || !reason.isEmpty() || !source.isEmpty();
        if (!chosen && !all) {
            throw new ConfigException("no records chosen; name them, or give --reason R, --source TOPIC or --all");
        }
        if (chosen && all) {
            throw new ConfigException("--all and a choice exclude each other; leave one out");
        }
        if (!dryRun) {
            run.require(RoleRights.REDRIVE);
        }
        try (AuditedRun audited = run.open()) {
            String prefix = audited.connection().topics().prefix();
            DeadLetterFilter choice = new DeadLetterFilter(names, reason, source, prefix);
            Redrive redrive = new Redrive(audited.connection(), RunOptions.PATIENCE);
            Redrive.Done done = dryRun ? redrive.plan(choice) : redrive.put(choice);
            if (done.redriven().isEmpty() && done.refused().isEmpty()) {
                throw new NotFoundException("there is no such dead letter in run "
                        + audited.connection().run().runId()
                        + "; 'millrace dead-letters list' prints them");
            }
            print(done, prefix);
            boolean onlyDoneBefore =
                    all && done.refused().values().stream().allMatch(why -> why.startsWith("it was already redriven"));
            return done.refused().isEmpty() || onlyDoneBefore ? 0 : NOT_ALL;
        }
    }

    private void print(Redrive.Done done, String prefix) {
        Map<String, Long> bySource = new TreeMap<>();
        done.redriven()
                .forEach(letter -> bySource.merge(ListCommand.without(prefix, letter.sourceTopic()), 1L, Long::sum));
        String verb = dryRun ? "would be redriven" : done.redriven().size() == 1 ? "is redriven" : "are redriven";
        out().println(String.format(
                Locale.ROOT,
                "%,d record%s %s%s",
                done.redriven().size(),
                done.redriven().size() == 1 ? "" : "s",
                verb,
                bySource.isEmpty()
                        ? ""
                        : ": "
                                + String.join(
                                        ", ",
                                        bySource.entrySet().stream()
                                                .map(e -> String.format(
                                                        Locale.ROOT, "%,d on %s", e.getValue(), e.getKey()))
                                                .toList())));
        int named = 0;
        for (Map.Entry<DeadLetter, String> refused : done.refused().entrySet()) {
            if (named++ == NAMED) {
                out().println("and " + (done.refused().size() - NAMED) + " more");
                break;
            }
            paragraph("  ", "not " + refused.getKey().offset() + ": " + refused.getValue());
        }
    }
}
