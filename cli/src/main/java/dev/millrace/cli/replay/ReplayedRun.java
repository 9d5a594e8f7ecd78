package dev.millrace.cli.replay;

import dev.millrace.cli.audit.RunOptions;
import dev.millrace.log.LogConnection;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.HeldRange;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.topology.MillraceTopology;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The run that is replayed or exported as tables, on a log or in an archive, and its configuration. */
record ReplayedRun(
        RecordedRun recorded,
        MillraceConfig config,
        int maxValueBytes,
        @Nullable AuditedRun audited,
        String options) implements AutoCloseable {
    static ReplayedRun open(RunOptions options) {
        AuditedRun audited = options.open();
        try {
            return new ReplayedRun(
                    new LiveRun(audited.connection(), audited.recorded()),
                    audited.config(),
                    MillraceTopology.maxValueBytes(audited.connection()),
                    audited,
                    options.asGiven());
        } catch (RuntimeException e) {
            audited.close();
            throw e;
        }
    }

    /** @param file the run's configuration, where the archive has none; else null */
    static ReplayedRun open(Path archive, @Nullable Path file) {
        ArchivedRun run = new ArchivedRun(archive);
        run.verify();
        MillraceConfig config = AuditedRun.configuration(run, file);
        return new ReplayedRun(
                run,
                config,
                MillraceTopology.maxValueBytes(config.topics().maxRecordBytes()),
                null,
                "--archive " + archive);
    }

    /** Contents, for an archive of some batches. */
    Optional<HeldRange> some() {
        return recorded instanceof ArchivedRun archived ? archived.held() : Optional.empty();
    }

    String viewedBy() {
        return "./millrace view " + options;
    }

    /** The run's log; empty for an archive. */
    Optional<LogConnection> connection() {
        return Optional.ofNullable(audited).map(AuditedRun::connection);
    }

    @Override
    public void close() {
        recorded.close();
        if (audited != null) {
            audited.close();
        }
    }
}
