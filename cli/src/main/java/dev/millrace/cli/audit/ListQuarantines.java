package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.report.Lines;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.schemas.Quarantine;
import java.io.PrintWriter;
import java.util.Collection;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code millrace quarantine list}. */
@Command(
        name = "list",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = "Lists the generators in quarantine with time, reason and the lifting command.")
final class ListQuarantines implements Callable<Integer> {
    @Mixin
    private RunOptions run;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        PrintWriter out = spec.commandLine().getOut();
        try (AuditedRun audited = run.open()) {
            Collection<Quarantine> standing;
            Quarantines quarantines = Quarantines.of(audited.connection());
            quarantines.open();
            try (quarantines) {
                standing = quarantines.standing().values();
            }
            if (json) {
                out.println(json(standing).toPrettyString());
            } else {
                out.println(audited.title());
                for (Quarantine quarantine : standing) {
                    out.println();
                    Lines.labelled(
                                    quarantine.getGeneratorId(),
                                    "since " + Lines.time(quarantine.getSinceMs()) + ": " + quarantine.getSentence())
                            .forEach(out::println);
                    Lines.labelled(
                                    "",
                                    "-> "
                                            + audited.connection()
                                                    .command("quarantine lift " + quarantine.getGeneratorId()))
                            .forEach(out::println);
                }
                out.println();
                out.println(
                        standing.isEmpty()
                                ? "No generator is in quarantine."
                                : standing.size() == 1
                                        ? "1 generator is in quarantine."
                                        : standing.size() + " generators are in quarantine.");
            }
            out.flush();
            return 0;
        }
    }

    private static ObjectNode json(Collection<Quarantine> standing) {
        ObjectNode json = new ObjectMapper().createObjectNode();
        var array = json.putArray("quarantines");
        standing.forEach(quarantine -> array.addObject()
                .put("generator_id", quarantine.getGeneratorId())
                .put("since_ms", quarantine.getSinceMs())
                .put("why", quarantine.getWhy())
                .put("sentence", quarantine.getSentence()));
        return json;
    }
}
