package dev.millrace.cli.replay;

import dev.millrace.cli.TypedCommand;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.replay.archive.HeldRange;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.report.CounterfactualFiles;
import dev.millrace.replay.report.GradientReport;
import dev.millrace.replay.report.GradientReport.GradientRecord;
import dev.millrace.replay.report.RetrainRecord;
import dev.millrace.replay.report.RetrainReport;
import dev.millrace.replay.report.RetrainSeeds;
import dev.millrace.replay.retrain.FreshRollouts;
import dev.millrace.replay.retrain.FreshRollouts.FreshRolloutOptions;
import dev.millrace.replay.retrain.PolicyEvaluation;
import dev.millrace.replay.retrain.Retraining;
import dev.millrace.replay.retrain.StepGradients;
import dev.millrace.replay.retrain.Variant;
import dev.millrace.replay.retrain.VersionInterval;
import dev.millrace.report.Lines;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.ReportText;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.report.RunRollouts;
import dev.millrace.runtime.report.RunTask;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;

/** {@code replay --retrain} and {@code replay --gradients}. */
final class CounterfactualReplay {
    private final ReplayedRun replayed;
    private final CounterfactualOptions options;
    private final StepRangeOptions range;
    private final List<Variant> variants;
    private final RewardOptions rewards;
    private RewardOptions.@Nullable Given others;
    private final PrintWriter out;
    private final PrintWriter err;
    private final String command;

    CounterfactualReplay(
            ReplayedRun replayed,
            CounterfactualOptions options,
            StepRangeOptions range,
            List<String> corrections,
            RewardOptions rewards,
            CommandSpec spec) {
        this.replayed = replayed;
        this.options = options;
        this.range = range;
        this.rewards = rewards;
        this.variants = variants(corrections, replayed.config());
        this.out = spec.commandLine().getOut();
        this.err = spec.commandLine().getErr();
        this.command = TypedCommand.of(spec);
    }

    /** Variants, the run's own first; all use other rewards if given. */
    private List<Variant> variants(List<String> corrections, MillraceConfig config) {
        Variant own =
                new Variant("recorded", config.algorithm(), config.learner().step(), config.adapter());
        List<Variant> variants = new ArrayList<>();
        if (!isWithoutRecordedRewards()) {
            variants.add(own);
        }
        if (rewards.isGiven()) {
            variants.add(new Variant("other rewards", own.algorithm(), own.step(), own.lora()).rewarded());
        }
        corrections.forEach(named -> {
            Variant variant = VariantOption.parse(named, config);
            variants.add(rewards.isGiven() ? variant.rewarded() : variant);
        });
        List<String> names = variants.stream().map(Variant::name).toList();
        if (new HashSet<>(names).size() < names.size()) {
            throw new ConfigException("--corrections has two of the same name: " + names);
        }
        return variants;
    }

    /**
     * True if rollouts are resampled and the run's rewards came from outside, so all variants use the other ones.
     */
    private boolean isWithoutRecordedRewards() {
        return rewards.isGiven()
                && options.live
                && replayed.config().topology().join().reward();
    }

    /**
     * Runs the replay.
     *
     * @param place of the report; null for none
     * @return the exit status
     */
    int run(@Nullable Path place) throws IOException {
        try (RewardOptions.Given given = rewards.isGiven() ? rewards.begin(replayed, err) : null) {
            if (given != null && options.live && !given.judgesAnew()) {
                throw new ConfigException(
                        "--live samples new rollouts, and a file or a topic of rewards has only the recorded ones;"
                                + " name a kind of reward, or a program with --rewarder, or leave out --live");
            }
            others = given;
            return replayed(place);
        }
    }

    private int replayed(@Nullable Path place) throws IOException {
        if (range.isByTimeOrOffset()) {
            throw new ConfigException(
                    "--retrain and --gradients work on versions; give --from-version and --to-version in place of"
                            + " times and offsets");
        }
        Engine engine = new Engine(Device.parse(replayed.config().run().device()), 1);
        try (RecordedVersions versions = new RecordedVersions(
                        replayed.recorded(), replayed.config().weights());
                RunTask task = task(versions, engine);
                ReportFolder folder = place == null ? null : ReplayCommand.begin(place, CounterfactualFiles.NAMES)) {
            VersionInterval steps = steps(versions);
            CounterfactualFiles report = folder == null
                    ? null
                    : new CounterfactualFiles(
                            folder,
                            replayed.recorded().run().runId(),
                            replayed.viewedBy(),
                            ReportOrigin.here(command, null),
                            err::println);
            int status = 0;
            if (options.retrain) {
                status = retrain(
                        versions,
                        steps,
                        engine,
                        Optional.ofNullable(options.evaluationPrompts == 0 ? null : task),
                        report);
            }
            if (options.gradients) {
                gradients(
                        versions,
                        steps,
                        engine,
                        Optional.ofNullable(options.referenceGroups == 0 ? null : task),
                        report);
            }
            if (report != null) {
                report.finish();
                out.println("results are in " + place
                        + ": counterfactual.html, counterfactual.json, CSV files and pictures");
            }
            if (others != null) {
                Lines.wrapped("", RewardOptions.judged(others.rewards().comparison()))
                        .forEach(out::println);
            }
            if (isWithoutRecordedRewards()) {
                Lines.wrapped(
                                "",
                                "The run's rewards came on a topic, and their writer cannot score newly sampled"
                                        + " rollouts: every variant used the other rewards, and none can match the record.")
                        .forEach(out::println);
            }
            return status;
        }
    }

    private VersionInterval steps(RecordedVersions versions) {
        try {
            if (!options.gradients || options.atVersions.isEmpty()) {
                return held(range.fromVersion(), range.toVersion(), versions);
            }
            if (options.retrain || range.isGiven()) {
                throw new ConfigException(
                        "--at-version chooses steps by itself; leave out --from-version, --to-version and --retrain");
            }
            TreeSet<Long> at = new TreeSet<>(options.atVersions);
            return held(at.first(), at.last() + 1, versions);
        } catch (IllegalArgumentException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
    }

    private VersionInterval held(Long from, Long to, RecordedVersions versions) {
        Optional<HeldRange> some = replayed.some();
        return some.isEmpty()
                ? VersionInterval.of(from, to, versions)
                : VersionInterval.within(some.get(), from, to, versions);
    }

    /** An archive of some batches has one optimizer state. */
    private void requireOptimizer(VersionInterval steps) {
        replayed.some()
                .filter(held -> held.store().isEmpty() && held.optimizerVersion() != steps.from())
                .ifPresent(held -> {
                    throw new ConfigException("cannot continue training from version " + steps.from()
                            + ": the archive of some batches holds "
                            + (held.optimizerVersion() < 0
                                    ? "no optimiser's state; export it from a log that still stores that of version "
                                            + held.startVersion()
                                    : "the optimiser's state of version " + held.optimizerVersion()
                                            + " alone, from which its first step started; leave out --from-version"));
                });
    }

    /** The run's task; null, with a message, if the configured one does not apply to the run. */
    private @Nullable RunTask task(RecordedVersions versions, Engine engine) {
        if (versions.newest().isEmpty()) {
            return null;
        }
        MillraceConfig config = replayed.config();
        Optional<String> refusal = RunTask.refusal(
                config, versions.manifest(versions.newest().getAsLong()).getTokenizerHash());
        if (refusal.isPresent()) {
            Lines.wrapped(
                            "",
                            refusal.get()
                                    + ", so nothing is sampled: no rewards of the policies, no on-policy gradient")
                    .forEach(out::println);
            return null;
        }
        return new RunTask(
                replayed.recorded().run(),
                config,
                versions.shape(),
                engine,
                options.evaluationPrompts,
                options.referenceGroups);
    }

    private int retrain(
            RecordedVersions versions,
            VersionInterval steps,
            Engine engine,
            Optional<PolicyEvaluation> task,
            @Nullable CounterfactualFiles report)
            throws IOException {
        requireOptimizer(steps);
        long start = System.nanoTime();
        RetrainSeeds found = new RetrainSeeds(
                options.live
                        ? live(versions, steps, engine, task)
                        : List.of(learn(versions, steps, engine, task, Optional.empty(), new AtomicLong())),
                options.live);
        Report text = RetrainReport.of(found, steps, (System.nanoTime() - start) / 1e9);
        ReportText.lines(text).forEach(out::println);
        if (report != null) {
            report.add(found, text);
        }
        return found.first().parted().isEmpty() || isWithoutRecordedRewards() ? 0 : ReplayCommand.DIFFERS;
    }

    private List<RetrainRecord> live(
            RecordedVersions versions, VersionInterval steps, Engine engine, Optional<PolicyEvaluation> task) {
        MillraceConfig config = replayed.config();
        AtomicLong before = new AtomicLong();
        List<RetrainRecord> found = new ArrayList<>();
        try (RunRollouts source = new RunRollouts(config, versions.shape(), engine);
                FreshRollouts sampling = new FreshRollouts(
                        replayed.recorded(),
                        versions,
                        steps,
                        source,
                        engine,
                        config.learner().step().tokensPerMicrobatch(),
                        isWithoutRecordedRewards())) {
            for (int seed = 0; seed < options.seeds; seed++) {
                found.add(learn(
                        versions, steps, engine, task, Optional.of(new FreshRolloutOptions(sampling, seed)), before));
                before.addAndGet(steps.steps());
            }
        }
        return found;
    }

    /** @param before completed steps with other draws */
    private RetrainRecord learn(
            RecordedVersions versions,
            VersionInterval steps,
            Engine engine,
            Optional<PolicyEvaluation> task,
            Optional<FreshRolloutOptions> live,
            AtomicLong before) {
        RetrainRecord found =
                new RetrainRecord(variants.stream().map(Variant::name).toList());
        Retraining retraining =
                new Retraining(replayed.recorded(), versions, engine, variants, live, task, options.evaluateEvery);
        if (others != null) {
            retraining.rewardedBy(others.rewards());
        }
        ProgressLine.during(
                "retraining", () -> before.get() + retraining.passed(), steps.steps() * options.seeds, err, () -> {
                    retraining.replay(steps, found);
                    return true;
                });
        return found;
    }

    private void gradients(
            RecordedVersions versions,
            VersionInterval steps,
            Engine engine,
            Optional<PolicyEvaluation> task,
            @Nullable CounterfactualFiles report)
            throws IOException {
        GradientRecord found =
                new GradientRecord(variants.stream().map(Variant::name).toList());
        StepGradients gradients = new StepGradients(replayed.recorded(), versions, engine, variants, task);
        if (others != null) {
            gradients.rewardedBy(others.rewards());
        }
        List<Long> at = options.atVersions;
        long start = System.nanoTime();
        ProgressLine.during(
                "gradients", gradients::passed, at.isEmpty() ? steps.steps() : new TreeSet<>(at).size(), err, () -> {
                    gradients.replay(steps, version -> at.isEmpty() || at.contains(version), found::add);
                    return true;
                });
        Report text = GradientReport.of(found, (System.nanoTime() - start) / 1e9);
        ReportText.lines(text).forEach(out::println);
        if (report != null) {
            report.add(found, text);
        }
    }
}
