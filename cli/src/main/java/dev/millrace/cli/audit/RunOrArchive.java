package dev.millrace.cli.audit;

import dev.millrace.cli.HelpHeading;
import dev.millrace.runtime.report.AuditedRun;
import java.nio.file.Path;
import java.util.Optional;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The options of a command that reads a run or an archive. */
@HelpHeading("Which run")
final class RunOrArchive {
    @Mixin
    private RunOptions run = new RunOptions();

    @Option(
            names = "--archive",
            paramLabel = "DIR",
            description = "Archive of 'millrace export' or 'millrace import --records', in place of a run.")
    private Path archive;

    /** Folder of the archive; empty for a run. */
    Optional<Path> archive() {
        run.requireNotBeside(archive);
        return Optional.ofNullable(archive);
    }

    AuditedRun read() {
        return archive().isPresent() ? AuditedRun.inArchive(archive, run.file()) : run.read();
    }

    RunOptions run() {
        return run;
    }
}
