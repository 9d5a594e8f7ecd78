package dev.millrace.cli.audit;

import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.log.run.RoleRights;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.report.AuditedRun;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code millrace quarantine lift}. */
@Command(
        name = "lift",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = "Lifts a generator's quarantine: its records count again, and a Millrace generator takes "
                + "prompts again. Records refused in between stay dead letters; other generators have their "
                + "samples. Unread older records count too: if they quarantine it again, lift it again.")
final class LiftQuarantine implements Callable<Integer> {
    @Parameters(paramLabel = "NAME", description = "The generator's id, as 'millrace quarantine list' has it.")
    private String generatorId;

    @Mixin
    private RunOptions run;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        run.require(RoleRights.QUARANTINE);
        PrintWriter out = spec.commandLine().getOut();
        try (AuditedRun audited = run.open()) {
            if (!Quarantines.lift(audited.connection(), generatorId)) {
                throw new ConfigException("generator '" + generatorId + "' is not in quarantine; "
                        + audited.connection().command("quarantine list") + " says who is");
            }
            out.println("The quarantine of generator " + generatorId + " is lifted.");
            out.flush();
            return 0;
        }
    }
}
