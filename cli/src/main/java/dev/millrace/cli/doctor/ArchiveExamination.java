package dev.millrace.cli.doctor;

import dev.millrace.audit.doctor.Doctor;
import dev.millrace.audit.doctor.Finding;
import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.WhatIf;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** What an archive tells a doctor: the batches and what was in them, from the first to the last. */
final class ArchiveExamination {
    private long steps;
    private @Nullable Diagnosis last;
    private long firstIll = -1;

    private final MillraceConfig config;

    private ArchiveExamination(MillraceConfig config) {
        this.config = config;
    }

    /** @param file the run's configuration, where the archive has none; else null */
    static ArchiveExamination of(ArchivedRun archive, @Nullable Path file) throws InterruptedException {
        archive.verify();
        MillraceConfig config = ConfigBinder.bind(
                MillraceConfig.defaults(),
                file != null
                        ? ConfigTree.read(file)
                        : ConfigTree.parse(
                                archive.configuration()
                                        .orElseThrow(() -> new ConfigException(
                                                "the archive has no configuration; give the run's with --config FILE")),
                                "the archive's configuration"));
        ArchiveExamination examined = new ArchiveExamination(config);
        new WhatIf(archive, StepRange.ALL, List.of(new Alternative("recorded", config.algorithm())))
                .replay(Runtime.getRuntime().availableProcessors(), examined::add);
        return examined;
    }

    private void add(ReplayedStep step) {
        steps++;
        step.diagnoses().get(0).ifPresent(diagnosis -> {
            last = diagnosis;
            if (firstIll < 0 && diagnosis.cause() != Cause.NONE) {
                firstIll = step.batchId();
            }
        });
    }

    /** The run's configuration. */
    MillraceConfig config() {
        return config;
    }

    /** Of the last steps; empty if nothing could be trained on. */
    Optional<Diagnosis> diagnosis() {
        return Optional.ofNullable(last);
    }

    long steps() {
        return steps;
    }

    /** Of the last steps, most important first; then since when, and what an archive cannot tell. */
    List<Finding> findings() {
        List<Finding> findings = new ArrayList<>();
        if (last != null) {
            findings.addAll(Doctor.offPolicy(last));
        }
        if (firstIll >= 0) {
            findings.add(new Finding(
                    Weight.NOTE, "off policy", "something is wrong for the first time at batch " + firstIll, ""));
        }
        findings.add(new Finding(
                Weight.NOTE,
                "archive",
                "ledger, progress, serving and what the learner measured are not looked at",
                ""));
        return findings;
    }
}
