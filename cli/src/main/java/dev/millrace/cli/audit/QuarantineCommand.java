package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.log.run.RoleRights;
import dev.millrace.report.Lines;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.schemas.Quarantine;
import java.util.Collection;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code millrace quarantine}: lists the generators whose records a run refuses, and readmits them. */
@Command(
        name = "quarantine",
        synopsisSubcommandLabel = "COMMAND",
        description = "Lists and lifts quarantines of generators.",
        subcommands = {
            QuarantineCommand.ListQuarantines.class,
            QuarantineCommand.LiftQuarantine.class,
            CommandLine.HelpCommand.class
        },
        footer = {
            "",
            "millrace quarantine list --run-dir runs/<run id>",
            "millrace quarantine lift generator-3 --run-dir runs/<run id>"
        })
public final class QuarantineCommand extends ScreenCommand {
    @Override
    public Integer call() {
        throw mistake("list or lift is missing");
    }

    /** {@code millrace quarantine list}. */
    @Command(
            name = "list",
            description = "Lists the generators in quarantine with time, reason and the lifting command.")
    static final class ListQuarantines extends ScreenCommand {
        @Mixin
        private RunOptions run;

        @Option(names = "--json", description = "Print JSON.")
        private boolean json;

        @Override
        public Integer call() {
            try (AuditedRun audited = run.open()) {
                Collection<Quarantine> standing;
                Quarantines quarantines = Quarantines.of(audited.connection());
                quarantines.open();
                try (quarantines) {
                    standing = quarantines.active().values();
                }
                if (json) {
                    out().println(json(standing).toPrettyString());
                } else {
                    out().println(audited.title());
                    for (Quarantine quarantine : standing) {
                        out().println();
                        labelled(
                                quarantine.getGeneratorId(),
                                "since " + Lines.time(quarantine.getSinceMs()) + ": " + quarantine.getSentence());
                        labelled(
                                "",
                                "-> " + audited.connection().command("quarantine lift " + quarantine.getGeneratorId()));
                    }
                    out().println();
                    out().println(
                                    standing.isEmpty()
                                            ? "No generator is in quarantine."
                                            : standing.size() == 1
                                                    ? "1 generator is in quarantine."
                                                    : standing.size() + " generators are in quarantine.");
                }
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

    /** {@code millrace quarantine lift}. */
    @Command(
            name = "lift",
            description = "Lifts a generator's quarantine: its records count again, and a Millrace generator takes "
                    + "prompts again. Records refused in between stay dead letters; other generators have their "
                    + "samples. Unread older records count too: if they quarantine it again, lift it again.")
    static final class LiftQuarantine extends ScreenCommand {
        @Parameters(paramLabel = "NAME", description = "The generator's id, as 'millrace quarantine list' has it.")
        private String generatorId;

        @Mixin
        private RunOptions run;

        @Override
        public Integer call() {
            run.require(RoleRights.QUARANTINE);
            try (AuditedRun audited = run.open()) {
                if (!Quarantines.lift(audited.connection(), generatorId)) {
                    throw new ConfigException("generator '" + generatorId + "' is not in quarantine; "
                            + audited.connection().command("quarantine list") + " lists the quarantined");
                }
                out().println("The quarantine of generator " + generatorId + " is lifted.");
                return 0;
            }
        }
    }
}
