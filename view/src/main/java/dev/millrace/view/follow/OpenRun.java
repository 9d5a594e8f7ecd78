package dev.millrace.view.follow;

import dev.millrace.log.LogConnection;
import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.folder.FolderRun;
import dev.millrace.runtime.report.AuditedRun;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.kafka.clients.admin.Admin;
import org.jspecify.annotations.Nullable;

/** A run with readable records: on a log, in its folder, or in an archive. Thread-safe. */
public final class OpenRun implements AutoCloseable {
    /** Questions within this time share one view of the log's end. */
    private static final long SEEN_FOR_NANOS = 1_000_000_000L;

    private final @Nullable AuditedRun audited;
    private final @Nullable ArchivedRun archive;
    private final MillraceConfig config;
    private final String identity;
    private @Nullable RecordedRun seen;
    private long seenAt;
    private @Nullable Admin admin;

    private OpenRun(
            @Nullable AuditedRun audited, @Nullable ArchivedRun archive, MillraceConfig config, String identity) {
        this.audited = audited;
        this.archive = archive;
        this.config = config;
        this.identity = identity;
    }

    static OpenRun on(AuditedRun audited) {
        ClaimedRun claim = audited.claim();
        String identity = audited.records().topics().prefix() + " " + claim.run() + " "
                + claim.place().clusterId() + " " + new TreeMap<>(claim.place().topicIds());
        return new OpenRun(audited, null, audited.config(), identity);
    }

    static OpenRun in(Path folder) {
        ArchivedRun archive = new ArchivedRun(folder);
        MillraceConfig config = ConfigBinder.bind(
                MillraceConfig.defaults(),
                archive.configuration()
                        .map(text -> ConfigTree.parse(text, "the archive's configuration"))
                        .orElseGet(ConfigTree::empty));
        return new OpenRun(null, archive, config, "archive " + archive.run() + " " + archive.digest());
    }

    /** Index name for exactly these topics. */
    String indexName() {
        return DigestUtils.sha256Hex(identity).substring(0, 24);
    }

    /** Records up to the log's end at most a second ago. */
    public synchronized RecordedRun recorded() {
        if (audited == null) {
            return Objects.requireNonNull(archive);
        }
        if (seen == null || System.nanoTime() - seenAt > SEEN_FOR_NANOS) {
            seen = audited.recordedRun();
            seenAt = System.nanoTime();
        }
        return seen;
    }

    /** Empty for an archive. */
    public Optional<RunRecords> records() {
        return Optional.ofNullable(audited).map(AuditedRun::records);
    }

    /** Empty for an archive and an ended run read from its files. */
    public Optional<LogConnection> connection() {
        return Optional.ofNullable(audited).flatMap(AuditedRun::log);
    }

    /** Created once: creation costs more than most answers. */
    public synchronized Admin admin() {
        if (admin == null) {
            admin = Admin.create(connection().orElseThrow().as("view").admin());
        }
        return admin;
    }

    /** Everything to index, including earlier epochs in the folder. */
    RecordedRun everything() {
        return recorded() instanceof FolderRun folder ? folder.withEveryEpoch() : recorded();
    }

    public MillraceConfig config() {
        return config;
    }

    @Override
    public synchronized void close() {
        if (admin != null) {
            admin.close(Duration.ZERO);
        }
        if (audited != null) {
            audited.close();
        }
        if (archive != null) {
            archive.close();
        }
    }
}
