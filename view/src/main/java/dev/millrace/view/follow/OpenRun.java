package dev.millrace.view.follow;

import dev.millrace.log.LogConnection;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.runtime.audit.AuditedRun;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** A run whose records can be read now: on a log, or in an archive. Thread-safe. */
public final class OpenRun implements AutoCloseable {
    /** What is asked soon after sees the log as it was; what comes later looks where the log ends now. */
    private static final long SEEN_FOR_NANOS = 1_000_000_000L;

    private final @Nullable AuditedRun audited;
    private final @Nullable ArchivedRun archive;
    private final MillraceConfig config;
    private final String identity;
    private @Nullable RecordedRun seen;
    private long seenAt;

    private OpenRun(
            @Nullable AuditedRun audited, @Nullable ArchivedRun archive, MillraceConfig config, String identity) {
        this.audited = audited;
        this.archive = archive;
        this.config = config;
        this.identity = identity;
    }

    /** On a log; closed with this. */
    static OpenRun on(AuditedRun audited) {
        var claim = audited.claim();
        return new OpenRun(
                audited,
                null,
                audited.config(),
                audited.connection().topics().prefix() + " " + claim.run() + " "
                        + claim.place().clusterId() + " "
                        + new TreeMap<>(claim.place().topicIds()));
    }

    /** In an archive. Its configuration is the one that it was exported with, and the defaults where it has none. */
    static OpenRun in(Path folder) {
        ArchivedRun archive = new ArchivedRun(folder);
        MillraceConfig config = ConfigBinder.bind(
                MillraceConfig.defaults(),
                archive.configuration()
                        .map(text -> ConfigTree.parse(text, "the archive's configuration"))
                        .orElseGet(ConfigTree::empty));
        return new OpenRun(null, archive, config, "archive " + archive.run() + " " + archive.digest());
    }

    /** Names the index of exactly these topics. */
    String indexName() {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(identity.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(hash).substring(0, 24);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }

    /** The run's records, up to where they end now, or ended a second ago. */
    public synchronized RecordedRun recorded() {
        if (audited == null) {
            return java.util.Objects.requireNonNull(archive);
        }
        if (seen == null || System.nanoTime() - seenAt > SEEN_FOR_NANOS) {
            seen = new LiveRun(audited.connection(), audited.recorded());
            seenAt = System.nanoTime();
        }
        return seen;
    }

    /** Its log; empty for an archive. */
    public Optional<LogConnection> connection() {
        return Optional.ofNullable(audited).map(AuditedRun::connection);
    }

    /** Whether the run cannot go on while this is open. */
    boolean holdsFolder() {
        return audited != null && audited.holdsFolder();
    }

    /** Its claim's topics and configuration, as its log had them; empty for an archive. */
    public Optional<AuditedRun> audited() {
        return Optional.ofNullable(audited);
    }

    /** The archive; empty for a log. */
    public Optional<ArchivedRun> archive() {
        return Optional.ofNullable(archive);
    }

    /** The run's configuration. */
    public MillraceConfig config() {
        return config;
    }

    @Override
    public void close() {
        if (audited != null) {
            audited.close();
        }
        if (archive != null) {
            archive.close();
        }
    }
}
