package dev.millrace.cli.run;

import dev.millrace.cli.audit.RunOptions;
import dev.millrace.log.EvaluationLog;
import dev.millrace.log.EvaluationRecordReader;
import dev.millrace.log.Evaluations;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.evaluation.HeldOutTrial.Versions;
import dev.millrace.runtime.pipeline.TokenizerFiles;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import java.nio.file.Path;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

interface EvaluatedRun extends AutoCloseable {

    RunIdentity run();

    /** One-line description of the run. */
    String title();

    /** The run's configuration with a local tokenizer. */
    MillraceConfig config();

    /** Recorded evaluations. */
    Evaluations evaluations();

    /** Source of versions back to this one. */
    Versions versions(long version);

    /** Returns whether a version's weights still exist. */
    boolean isKept(long version);

    /** The newest version; empty before the first was published. */
    OptionalLong newest();

    @Override
    void close();

    /** @param audited closed with this */
    static EvaluatedRun on(AuditedRun audited) {
        return new EvaluatedRun() {
            private @Nullable PolicyFeed feed;

            private PolicyFeed feed() {
                PolicyFeed known = feed;
                if (known == null) {
                    known = new PolicyFeed(
                            audited.connection(), audited.config().weights());
                    feed = known;
                }
                return known;
            }

            @Override
            public RunIdentity run() {
                return audited.connection().run();
            }

            @Override
            public String title() {
                return audited.title();
            }

            @Override
            public MillraceConfig config() {
                return TokenizerFiles.of(audited.config(), audited.connection())
                        .map(files -> audited.config().withTask(files.readTask()))
                        .orElse(audited.config());
            }

            @Override
            public Evaluations evaluations() {
                return EvaluationLog.read(audited.connection(), RunOptions.PATIENCE);
            }

            @Override
            public Versions versions(long version) {
                if (feed == null || !isKnown(feed, version)) {
                    close(feed);
                    feed = PolicyFeed.reaching(
                            version, audited.connection(), audited.config().weights());
                }
                return Versions.of(feed);
            }

            private static boolean isKnown(PolicyFeed feed, long version) {
                try {
                    feed.manifest(version);
                    return true;
                } catch (VersionUnavailableException e) {
                    return false;
                }
            }

            @Override
            public boolean isKept(long version) {
                return BestVersion.isKept(audited.connection(), audited.config().weights(), version);
            }

            @Override
            public OptionalLong newest() {
                return feed().newestCommitted().stream()
                        .mapToLong(PolicyVersion::getVersion)
                        .findFirst();
            }

            private static void close(@Nullable PolicyFeed feed) {
                if (feed != null) {
                    feed.close();
                }
            }

            @Override
            public void close() {
                close(feed);
                audited.close();
            }
        };
    }

    /** @param file the run's configuration, where the archive has none; else null */
    static EvaluatedRun in(Path folder, @Nullable Path file) {
        ArchivedRun archive = new ArchivedRun(folder);
        archive.verify();
        MillraceConfig config = ConfigBinder.bind(
                MillraceConfig.defaults(),
                file != null
                        ? ConfigTree.read(file)
                        : ConfigTree.parse(
                                archive.configuration()
                                        .orElseThrow(() -> new ConfigException("the archive in " + folder
                                                + " has no configuration; give the run's with --config FILE")),
                                "the archive's configuration"));
        return new EvaluatedRun() {
            private @Nullable RecordedVersions recorded;

            private RecordedVersions recordedVersions() {
                RecordedVersions known = recorded;
                if (known == null) {
                    known = new RecordedVersions(archive, config.weights());
                    recorded = known;
                }
                return known;
            }

            @Override
            public RunIdentity run() {
                return archive.run();
            }

            @Override
            public String title() {
                return "run " + archive.run().runId() + " of the archive in " + folder;
            }

            @Override
            public MillraceConfig config() {
                return config;
            }

            @Override
            public Evaluations evaluations() {
                EvaluationRecordReader records =
                        new EvaluationRecordReader(archive.run(), archive.lineage(), archive.registry());
                archive.forEach(archive.topics().evaluations(), records::accept);
                return records.evaluations();
            }

            @Override
            public Versions versions(long version) {
                return new Versions(
                        each -> recordedVersions().manifest(each),
                        each -> recordedVersions().load(each, other -> null));
            }

            @Override
            public boolean isKept(long version) {
                try {
                    recordedVersions().load(version, other -> null);
                    return true;
                } catch (VersionUnavailableException | CorruptVersionException e) {
                    return false;
                }
            }

            @Override
            public OptionalLong newest() {
                return recordedVersions().newest();
            }

            @Override
            public void close() {
                if (recorded != null) {
                    recorded.close();
                }
                archive.close();
            }
        };
    }
}
