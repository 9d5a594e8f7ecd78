package dev.millrace.cli.loadtest;

import dev.millrace.cli.audit.RunOptions;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.workloads.topology.RecordedShape;
import java.nio.file.Path;
import java.util.Optional;
import picocli.CommandLine;

/** Counts the rollouts of a recorded run: an archive, or the folder of a run, whose broker is started for it if it is down. */
final class RecordedShapes {
    private RecordedShapes() {}

    /** @throws dev.millrace.runtime.config.ConfigException if the folder holds neither */
    static RecordedShape read(String folder) {
        if (ArchivedRun.isIn(Path.of(folder))) {
            try (ArchivedRun archive = new ArchivedRun(Path.of(folder))) {
                archive.verify();
                return RecordedShape.of(archive);
            }
        }
        RunOptions options = CommandLine.populateCommand(new RunOptions(), "--run-dir", folder);
        try (AuditedRun audited = options.open();
                LiveRun run = new LiveRun(audited.connection(), Optional.empty())) {
            return RecordedShape.of(run);
        }
    }
}
