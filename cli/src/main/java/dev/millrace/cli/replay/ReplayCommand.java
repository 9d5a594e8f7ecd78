package dev.millrace.cli.replay;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.TypedCommand;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.cli.correct.ImportedRecords;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.AsRecorded;
import dev.millrace.replay.KeptFiles;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.TaskVerdict;
import dev.millrace.replay.WhatIf;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.report.ReplayTotals;
import dev.millrace.replay.report.WhatIfReport;
import dev.millrace.replay.report.WhatIfReport.StepUnder;
import dev.millrace.replay.retrain.Agreement;
import dev.millrace.replay.retrain.Rescorer;
import dev.millrace.replay.retrain.Rescoring;
import dev.millrace.report.CsvFile;
import dev.millrace.report.Lines;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.ReportText;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.report.NamedCorrections;
import dev.millrace.runtime.train.RunDirectory;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace replay}: replays a recorded run's decisions. */
@Command(
        name = "replay",
        description = "Replays a recorded run. By default with its own settings: confirms that every trajectory, "
                + "batch, outcome and dead letter is identical, or shows the first difference. With "
                + "--corrections: recomputes the same batches under other corrections; with --retrain or "
                + "--gradients: also the learning. Reads only, without a consumer group, also during the run.",
        footer = {
            "",
            "millrace replay --run-dir runs/<run id>",
            "millrace replay --archive my-run.archive --corrections none --corrections decoupled_k3_rs_token_tis --report report",
            "millrace replay --archive my-run.archive --retrain --from-version 20 --corrections decoupled_geo_rs --report report",
            "millrace replay --archive my-run.archive --retrain --live --seeds 3 --from-version 20 --corrections decoupled_geo_rs",
            "millrace replay --run-dir runs/<run id> --rescore own,at-step --corrections none",
            "millrace replay --run-dir runs/<run id> --corrections decoupled_geo_rs --report report --keep",
            "millrace replay --archive my-run.archive --rewarder 'python3 verify.py' --report report",
            "millrace replay --run-dir runs/<run id> --rewards numeric --retrain --live --from-version 20",
            "",
            "Exit codes: 0 the same; 4 a difference; 5 not all could be replayed; 1 a failure; 2 a mistake in the command line."
        })
public final class ReplayCommand extends ScreenCommand {
    /** Exit status if the replay and the run differ. */
    public static final int DIFFERS = 4;
    /** Exit status if the record is insufficient. */
    public static final int NOT_PROVED = 5;

    @Mixin
    private RunOptions run;

    @Option(names = "--archive", paramLabel = "DIR", description = "Archive of 'millrace export', in place of a run.")
    private Path archive;

    @Option(
            names = "--corrections",
            paramLabel = "WHAT",
            description = "Corrections to compare: a preset, optionally with thresholds, a named algorithm, none, "
                    + "or a YAML file with keys of algorithm; may be given often. With --retrain and "
                    + "--gradients the file may have the sections algorithm and step, the latter with keys of "
                    + "learner.step.")
    private List<String> corrections = new ArrayList<>();

    @Option(
            names = "--rescore",
            paramLabel = "WHAT",
            description = "Recompute log-probs: own (old, under the sampling versions) and one of recorded, at-step "
                    + "or a version (proximal), such as own,at-step. Corrections use these.")
    private String rescore;

    @Option(
            names = "--report",
            paramLabel = "DIR",
            description =
                    "Folder for a page, JSON, CSV and pictures (with --corrections, --rescore, --retrain or --gradients).")
    private Path report;

    @Option(
            names = "--keep",
            description = "Keep the batches and weighted trajectories of each alternative as Avro files under kept/ "
                    + "in the report's folder.")
    private boolean keep;

    @Mixin
    private StepRangeOptions range;

    @Mixin
    private CounterfactualOptions counterfactual;

    @Mixin
    private RewardOptions rewards;

    @Option(
            names = "--threads",
            paramLabel = "N",
            description = "Tasks that are replayed at once (default: one a processor).")
    private @Nullable Integer threads;

    @Override
    public Integer call() throws Exception {
        if (threads() < 1) {
            throw mistake("--threads must be at least 1: " + threads());
        }
        run.requireNotBeside(archive);
        requireOptions();
        try (ReplayedRun replayed = archive != null ? ReplayedRun.open(archive, run.file()) : ReplayedRun.open(run)) {
            int epoch = replayed.recorded().run().epoch();
            out().println("run " + replayed.recorded().run().runId() + (epoch == 0 ? "" : ", epoch " + epoch)
                    + ", topics " + replayed.recorded().topics().prefix() + "*");
            requireRecorded(replayed);
            if (counterfactual.isGiven()) {
                return new CounterfactualReplay(replayed, counterfactual, range, corrections, rewards, spec)
                        .run(report);
            }
            if (isAsRecorded()) {
                return asRecorded(replayed);
            }
            return whatIf(replayed);
        }
    }

    /** Refuses invalid options before a broker starts. */
    private void requireOptions() {
        if (counterfactual.isGiven() && rescore != null) {
            throw new ConfigException(
                    "--rescore belongs to --corrections; --retrain and --gradients compute log-probs with their own"
                            + " weights, so leave it out");
        }
        if (keep && (report == null || counterfactual.isGiven() || corrections.isEmpty() && rescore == null)) {
            throw new ConfigException(
                    "--keep writes the batches of --corrections or --rescore to the folder of --report; give"
                            + " --report and one of these, or leave it out");
        }
        if (rewards.isGiven() && (rescore != null || keep)) {
            throw new ConfigException(
                    "--rewards and --rewarder apply to --corrections, --retrain and --gradients; leave out"
                            + " --rescore and --keep");
        }
        counterfactual.check();
        if (isAsRecorded() && (report != null || range.isGiven())) {
            throw new ConfigException(
                    "--report and ranges belong to --corrections and --rescore; a replay as recorded covers the"
                            + " whole run, so leave them out");
        }
        if (run.folder() != null && RunDirectory.holdsRun(run.folder())) {
            Algorithm ofRun = run.over(ConfigTree.empty()).resolve().algorithm();
            corrections.forEach(named -> NamedCorrections.parse(named, ofRun));
        }
    }

    private boolean isAsRecorded() {
        return !counterfactual.isGiven() && corrections.isEmpty() && rescore == null && !rewards.isGiven();
    }

    private int threads() {
        return threads == null ? Runtime.getRuntime().availableProcessors() : threads;
    }

    /** Another system's records have batches and trajectories only. */
    private void requireRecorded(ReplayedRun replayed) {
        if (replayed.recorded() instanceof ArchivedRun archived
                && archived.origin().isPresent()
                && (counterfactual.isGiven() || rescore != null || corrections.isEmpty())) {
            throw new RefusedRequestException(ImportedRecords.whatCanBeAsked(archived));
        }
    }

    private int whatIf(ReplayedRun replayed) throws Exception {
        Algorithm ofRun = replayed.config().algorithm();
        List<Alternative> alternatives = new ArrayList<>(List.of(new Alternative("recorded", ofRun)));
        if (rescore != null) {
            alternatives.add(new Alternative("rescored " + rescore, ofRun, true));
        }
        if (rewards.isGiven()) {
            alternatives.add(new Alternative("other rewards", ofRun, false, true));
        }
        for (String named : corrections) {
            Alternative other = NamedCorrections.parse(named, ofRun);
            alternatives.add(new Alternative(other.name(), other.algorithm(), rescore != null, rewards.isGiven()));
        }
        List<String> names = alternatives.stream().map(Alternative::name).toList();
        if (new HashSet<>(names).size() < names.size()) {
            throw new ConfigException("--corrections has two of the same name: " + names);
        }
        ReplayTotals totals = new ReplayTotals(names);
        long start = System.nanoTime();
        try (RescoreSetup rescoring = new RescoreSetup(rescore, replayed);
                RewardOptions.Given others = rewards.isGiven() ? rewards.begin(replayed, err()) : null;
                KeptAlternatives kept = keep ? KeptAlternatives.begin(report, names, err()) : null;
                ReportFolder files = report == null ? null : begin(report, WhatIfReport.FILES)) {
            WhatIf replay = new WhatIf(
                    replayed.recorded(),
                    range.range(),
                    alternatives,
                    rescoring.rescorer,
                    rescoring.isLearnersDecision(replayed.config()));
            if (kept != null) {
                replay.keeping(kept.files);
            }
            if (others != null) {
                replay.rewardedBy(others.rewards());
            }
            try (CsvFile<StepUnder> csv =
                    files == null ? null : new CsvFile<>(files.file(WhatIfReport.STEPS), WhatIfReport.STEP_COLUMNS)) {
                ProgressLine.during("replaying", replay::passed, replay.toPass(), err(), () -> {
                    replay.replay(threads(), step -> {
                        totals.add(step);
                        if (csv != null) {
                            write(step, names, csv);
                        }
                    });
                    return true;
                });
            }
            if (totals.steps() == 0 && replay.undecided().isPresent()) {
                throw new RefusedRequestException("nothing left to compare: "
                        + replay.undecided().get() + "; leave these corrections out, or change that stage's settings");
            }
            Report made = WhatIfReport.of(
                    replayed.recorded().run().runId(),
                    replayed.recorded() instanceof ArchivedRun archived
                            && archived.origin().isPresent(),
                    totals,
                    replay.tokens(),
                    (System.nanoTime() - start) / 1e9,
                    sentences(totals, replay, others));
            ReportText.lines(made).forEach(out()::println);
            if (files != null) {
                WhatIfReport.write(
                        files,
                        made.shownBy(replayed.viewedBy()).madeBy(ReportOrigin.here(TypedCommand.of(spec), null)),
                        err()::println);
                files.finish();
            }
            if (kept != null) {
                paragraph(kept.finish());
            }
        }
        if (report != null) {
            out().println("results are in " + report + ": report.html, report.json, steps.csv");
        }
        return totals.agreement().different() > 0 || totals.notAsTrained() > 0 ? DIFFERS : 0;
    }

    private static List<String> sentences(ReplayTotals totals, WhatIf replay, RewardOptions.@Nullable Given others) {
        List<String> sentences = new ArrayList<>(rescored(totals, replay.untrained(), replay.copies()));
        replay.undecided().ifPresent(sentences::add);
        if (others != null) {
            sentences.addAll(RewardOptions.sentences(others.rewards().comparison(), totals));
        }
        return sentences;
    }

    static ReportFolder begin(Path report, List<String> files) {
        try {
            return ReportFolder.begin(report, files);
        } catch (IOException e) {
            throw new RefusedRequestException("cannot start a report in " + report + ": " + e.getMessage(), e);
        }
    }

    private static void write(ReplayedStep step, List<String> names, CsvFile<StepUnder> csv) {
        try {
            for (int a = 0; a < names.size(); a++) {
                csv.write(new StepUnder(step, a, names.get(a)));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private int asRecorded(ReplayedRun replayed) throws InterruptedException {
        if (replayed.some().isPresent()) {
            paragraph("not replayed as recorded: the archive starts in the middle of the run, at batch "
                    + replayed.some().get().firstBatch()
                    + ", and every decision depends on all earlier ones; try other corrections on"
                    + " it (--corrections), or export the whole run");
            return NOT_PROVED;
        }
        AsRecorded replay = new AsRecorded(
                replayed.recorded(),
                replayed.config().topology(),
                replayed.config().algorithm(),
                replayed.maxValueBytes());
        long start = System.nanoTime();
        List<TaskVerdict> verdicts = ProgressLine.during(
                "replaying", replay::passed, replay.toPass(), err(), () -> replay.replay(threads()));
        lines(
                        verdicts,
                        replayed.recorded().topics().prefix(),
                        (System.nanoTime() - start) / 1e9,
                        replayed.recorded().hasGrown())
                .forEach(out()::println);
        if (verdicts.stream().anyMatch(verdict -> verdict.difference().isPresent())) {
            return DIFFERS;
        }
        return verdicts.stream().allMatch(TaskVerdict::isProved) ? 0 : NOT_PROVED;
    }

    /**
     * @param prefix of the run's topics
     * @param isGrowing whether the run is live, so that its last records may have been read partly
     */
    private static List<String> lines(List<TaskVerdict> verdicts, String prefix, double seconds, boolean isGrowing) {
        List<String> lines = new ArrayList<>();
        Map<String, Long> same = new TreeMap<>();
        long taken = 0;
        int again = 0;
        for (TaskVerdict verdict : verdicts) {
            verdict.same().forEach((topic, count) -> same.merge(topic.substring(prefix.length()), count, Long::sum));
            taken += verdict.taken();
            again += Math.max(0, verdict.beginnings() - 1);
            verdict.difference()
                    .ifPresent(difference -> lines.addAll(Lines.wrapped("  differs     ", difference.toString())));
            verdict.gap().ifPresent(gap -> lines.addAll(Lines.wrapped("  not checked  ", verdict.task() + ": " + gap)));
        }
        boolean differs =
                verdicts.stream().anyMatch(verdict -> verdict.difference().isPresent());
        boolean isProved = verdicts.stream().allMatch(TaskVerdict::isProved);
        List<String> all = new ArrayList<>();
        all.add(
                isProved
                        ? "as recorded: the replay reproduced every record of the run byte for byte"
                        : differs
                                ? "as recorded: the replay and the run differ"
                                : "as recorded: no difference, but not all could be replayed");
        all.addAll(lines);
        same.forEach(
                (topic, count) -> all.addAll(Lines.labelled(topic, String.format(Locale.ROOT, "%,d the same", count))));
        all.addAll(Lines.labelled(
                "tasks",
                verdicts.size() + ", which read " + String.format(Locale.ROOT, "%,d", taken)
                        + " records and were restarted or moved " + again + " times"));
        all.addAll(Lines.labelled(
                "time",
                String.format(Locale.ROOT, "%.1f s, %,.0f records/s", seconds, taken / Math.max(1e-9, seconds))));
        if (isGrowing && !isProved) {
            all.addAll(Lines.wrapped(
                    "  ",
                    "The run is live: its newest steps may be incomplete. Replay again later, or after"
                            + " it ended."));
        }
        return all;
    }

    /** The files of {@code --keep} and the lines about them, also when a signal ends the replay. */
    static final class KeptAlternatives implements AutoCloseable {
        private final Path folder;
        private final KeptFiles files;
        private final Thread whenInterrupted;

        private KeptAlternatives(Path folder, KeptFiles files, PrintWriter err) {
            this.folder = folder;
            this.files = files;
            this.whenInterrupted = new Thread(
                    () -> {
                        err.println("interrupted: the output in " + folder + " is incomplete, and its files end in "
                                + KeptFiles.UNFINISHED + " (" + files.steps()
                                + " batches); the next replay with this report starts them again");
                    },
                    "kept files");
            Runtime.getRuntime().addShutdownHook(whenInterrupted);
        }

        /** @param names of all alternatives, the run's own first, which is not written */
        static KeptAlternatives begin(Path report, List<String> names, PrintWriter err) {
            Path folder = report.resolve("kept");
            return new KeptAlternatives(folder, new KeptFiles(folder, names.subList(1, names.size())), err);
        }

        /** Prints the written files after a complete replay. */
        String finish() {
            if (isEnding()) {
                throw new RefusedRequestException("interrupted before the files in " + folder + " were renamed");
            }
            files.finish();
            List<String> others = files.others();
            return "the decisions of each alternative on "
                    + (files.steps() == 1 ? "1 batch" : String.format(Locale.ROOT, "%,d batches", files.steps()))
                    + " are written, with the trajectories, to " + folder
                    + (others.isEmpty() ? "" : "; next to the output of another replay: " + String.join(", ", others));
        }

        @Override
        public void close() {
            if (!isEnding()) {
                files.close();
            }
        }

        /** True after a signal: then the shutdown hook prints, and written files stay unchanged. */
        private boolean isEnding() {
            try {
                Runtime.getRuntime().removeShutdownHook(whenInterrupted);
                return false;
            } catch (IllegalStateException ending) {
                return true;
            }
        }
    }

    /** Versions and engine of {@code --rescore}. */
    static final class RescoreSetup implements AutoCloseable {
        private final @Nullable RecordedVersions versions;
        /** Null if nothing is recomputed. */
        private final @Nullable Rescorer rescorer;

        /** @param text as given; null if not */
        RescoreSetup(@Nullable String text, ReplayedRun run) {
            if (text == null) {
                versions = null;
                rescorer = null;
                return;
            }
            Rescoring what;
            try {
                what = Rescoring.parse(text);
            } catch (IllegalArgumentException e) {
                throw new ConfigException("--rescore " + e.getMessage(), e);
            }
            MillraceConfig config = run.config();
            versions = new RecordedVersions(run.recorded(), config.weights());
            rescorer = new Rescorer(
                    versions,
                    what,
                    new Engine(Device.parse(config.run().device()), 1),
                    config.scorer().cachedVersions(versions.shape().parameterCount()),
                    config.scorer().tokenBudget());
        }

        /**
         * True if a replay can decide as the learner did: with its own log-probs at the step, none interpolated, and
         * no penalty in rewards or advantages.
         */
        boolean isLearnersDecision(MillraceConfig config) {
            return rescorer != null
                    && rescorer.what().isAtStep()
                    && config.algorithm().mode() == Mode.DECOUPLED
                    && !(config.algorithm().kl() instanceof KlConfig.InReward)
                    && !(config.algorithm().kl() instanceof KlConfig.Centred)
                    && config.algorithm().missingOldLogProbs() == MissingOldLogProbs.RECOMPUTE;
        }

        @Override
        public void close() {
            if (rescorer != null) {
                rescorer.close();
            }
            if (versions != null) {
                versions.close();
            }
        }
    }

    /** @param untrained skipped batches without a recorded step */
    private static List<String> rescored(ReplayTotals totals, long untrained, long copies) {
        List<String> sentences = new ArrayList<>();
        Agreement agreement = totals.agreement();
        if (agreement.computed() > 0) {
            long compared = agreement.same() + agreement.different();
            sentences.add(count(agreement.computed()) + " log-prob vectors were recomputed; "
                    + (compared == 0
                            ? "none of them under a recorded version, so there is no comparison"
                            : agreement.different() == 0
                                    ? count(compared)
                                            + " of them under the versions of the record: the same bit for bit"
                                    : count(agreement.different()) + " of the " + count(compared)
                                            + " under the versions of the record differ from it, by "
                                            + String.format(Locale.ROOT, "%.2g", agreement.largest())
                                            + " at most: another device or machine type, or a wrong record"));
        }
        if (totals.asTrained() + totals.notAsTrained() > 0) {
            sentences.add(
                    totals.notAsTrained() == 0
                            ? "the run's own corrections at the start of each step match the learner's log at all "
                                    + count(totals.asTrained()) + " steps"
                            : "at " + count(totals.notAsTrained()) + " of "
                                    + count(totals.asTrained() + totals.notAsTrained())
                                    + " steps the run's own corrections do not match the learner's log; give"
                                    + " the run's configuration");
        }
        if (untrained > 0) {
            sentences.add((untrained == 1
                            ? "1 batch is left out: no step on it"
                            : count(untrained) + " batches are left out: no step on them")
                    + " is recorded yet");
        }
        if (copies > 0) {
            sentences.add((copies == 1 ? "1 batch is" : count(copies) + " batches are")
                    + " duplicated on the log: the learner skipped the copies, which count once here");
        }
        return sentences;
    }

    private static String count(long value) {
        return String.format(Locale.ROOT, "%,d", value);
    }
}
