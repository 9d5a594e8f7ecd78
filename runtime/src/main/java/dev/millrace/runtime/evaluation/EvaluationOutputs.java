package dev.millrace.runtime.evaluation;

import dev.millrace.log.Evaluations;
import dev.millrace.log.LogConnection;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.MetricsConfig;
import dev.millrace.runtime.metrics.EventFiles;
import dev.millrace.runtime.metrics.Reading;
import dev.millrace.runtime.metrics.ReadingMeters;
import dev.millrace.schemas.DifficultyLengths;
import dev.millrace.schemas.PassAtKEstimate;
import dev.millrace.schemas.VersionEvaluation;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Exports evaluations: gauges of the newest one, also to a collector, and TensorBoard files if configured. Confined to one thread.
 *
 * <p>It opens the files at the first evaluation, when a replaced evaluator has released them. On failure it raises an alarm and tries
 * again at the next evaluation.
 */
final class EvaluationOutputs implements AutoCloseable {
    private final LogConnection connection;
    private final String dataSha256;
    private final String directory;
    private final ReadingMeters meters;
    private @Nullable EventFiles files;

    /** @param dataSha256 identity of the prompts whose evaluations are shown */
    EvaluationOutputs(MetricsConfig config, LogConnection connection, MeterRegistry registry, String dataSha256) {
        this.connection = connection;
        this.dataSha256 = dataSha256;
        this.directory = config.tensorboard().directory();
        this.meters = new ReadingMeters(registry);
    }

    /** All so far; skips those on other prompts. */
    void show(Evaluations evaluations) {
        if (evaluations
                .last()
                .filter(last -> last.getDataSha256().equals(dataSha256))
                .isEmpty()) {
            return;
        }
        EventFiles open = files();
        List<Reading> newest = List.of();
        @Nullable EvaluationStanding standing = null;
        for (VersionEvaluation each : evaluations.onSamePrompts()) {
            standing = standing == null ? EvaluationStanding.first(each) : standing.then(each);
            newest = EvaluationReadings.of(each, standing);
            if (open != null) {
                open.write(each.getVersion(), each.getFinishedAtMs() / 1e3, newest);
            }
        }
        meters.show(newest);
    }

    private @Nullable EventFiles files() {
        if (files == null && !directory.isEmpty()) {
            Path folder = EventFiles.heldOut(Path.of(directory), connection.run(), dataSha256);
            try {
                files = EventFiles.open(folder, connection.alarms());
                connection.alarms().lower(EventFiles.ALARM, folder.toString());
            } catch (RefusedRequestException e) {
                EventFiles.unwritten(
                        connection.alarms(),
                        folder,
                        "earlier evaluations are missing from TensorBoard's files: " + e.getMessage(),
                        "the next evaluation writes them once the folder is free");
            }
        }
        return files;
    }

    @Override
    public void close() {
        meters.close();
        if (files != null) {
            files.close();
        }
    }

    /**
     * Every figure of an evaluation's record and of its rank among earlier ones, each with its gauge and its curve;
     * absent values are left out. The mean reward has verl's name of a validation, {@code
     * val-core/held_out/reward/mean@N} with N responses to each prompt; figures that verl lacks or computes differently
     * are under {@code evaluation/}.
     */
    static final class EvaluationReadings {
        private static final String REWARD = "millrace.evaluator.reward";
        private static final String BEST = "millrace.evaluator.best.";
        private static final String PASS_AT_K = "millrace.evaluator.pass.at.k";

        private final List<Reading> readings = new ArrayList<>();

        private EvaluationReadings() {}

        /** @param standing of this one among those of earlier versions */
        static List<Reading> of(VersionEvaluation record, EvaluationStanding standing) {
            EvaluationReadings all = new EvaluationReadings();
            all.add(
                    REWARD,
                    "mean reward of the version evaluated last on held-out prompts",
                    "val-core/held_out/reward/mean@" + record.getSamplesPerPrompt(),
                    record.getRewardMean());
            all.add(
                    REWARD + ".low",
                    "lower end of its interval of 95 %",
                    "evaluation/reward_low",
                    record.getRewardLow());
            all.add(
                    REWARD + ".high",
                    "upper end of its interval of 95 %",
                    "evaluation/reward_high",
                    record.getRewardHigh());
            record.getPassAtK().forEach(all::addPassAtK);
            record.getDifficulties().forEach(all::addDifficulty);
            int responses = EvaluationRecords.responses(record);
            all.add(
                    "millrace.evaluator.response.tokens.mean",
                    "tokens that the policy wrote in a response, mean over responses",
                    "evaluation/response_length_mean",
                    responses == 0 ? null : (double) EvaluationRecords.tokens(record) / responses);
            all.add(
                    "millrace.evaluator.truncated.ratio",
                    "share of the responses that were cut off",
                    "evaluation/truncated_share",
                    record.getTruncatedShare());
            all.add(
                    "millrace.evaluator.start.log.prob",
                    "mean log-prob of a token of the responses under the weights of version 0, in nats",
                    "evaluation/start_log_prob",
                    record.getStartLogProb());
            all.add(
                    "millrace.evaluator.evaluated.version",
                    "version evaluated last on held-out prompts",
                    "evaluation/version",
                    (double) record.getVersion());
            all.add(standing);
            return all.readings;
        }

        private void add(EvaluationStanding standing) {
            VersionEvaluation best = standing.best();
            add(
                    BEST + "version",
                    "version with the highest mean reward on held-out prompts so far, of several the earliest",
                    "evaluation/best_version",
                    (double) best.getVersion());
            add(BEST + "reward", "its mean reward", "evaluation/best_reward", best.getRewardMean());
            add(
                    BEST + "reward.low",
                    "lower end of its interval of 95 %",
                    "evaluation/best_reward_low",
                    best.getRewardLow());
            add(
                    "millrace.evaluator.evaluations.since.best",
                    "evaluations of later versions, none of them better",
                    "evaluation/evaluations_since_best",
                    (double) standing.sinceBest());
            add(
                    "millrace.evaluator.first.start.log.prob",
                    "mean log-prob under version 0 of the first evaluation that has it, in nats",
                    "evaluation/first_start_log_prob",
                    standing.firstStartLogProb());
        }

        private void addPassAtK(PassAtKEstimate estimate) {
            addPassAtK(estimate.getK(), "unbiased", "", estimate.getUnbiased());
            addPassAtK(estimate.getK(), "low", "_low", estimate.getLow());
            addPassAtK(estimate.getK(), "high", "_high", estimate.getHigh());
            addPassAtK(estimate.getK(), "bernoulli", "_bernoulli", estimate.getBernoulli());
            addPassAtK(estimate.getK(), "beta_binomial", "_beta_binomial", estimate.getBetaBinomial());
        }

        private void addPassAtK(int k, String estimate, String ending, @Nullable Double value) {
            add(
                    PASS_AT_K,
                    Tags.of("k", Integer.toString(k), "estimate", estimate),
                    "how often one of k responses is correct: unbiased with its interval, and extrapolated in two ways",
                    "evaluation/pass_at_" + k + ending,
                    value);
        }

        private void addDifficulty(DifficultyLengths bin) {
            String shares = String.format(Locale.ROOT, "%.2f-%.2f", bin.getFrom(), bin.getTo());
            Tags tags = Tags.of("solved", shares);
            add(
                    "millrace.evaluator.difficulty.prompts",
                    tags,
                    "prompts with this share of correct responses",
                    "evaluation/solved_" + shares + "/prompts",
                    (double) bin.getPrompts());
            add(
                    "millrace.evaluator.difficulty.tokens.mean",
                    tags,
                    "tokens that the policy wrote in a response to one of them, mean over responses",
                    "evaluation/solved_" + shares + "/response_length_mean",
                    bin.getTokensMean());
        }

        private void add(String meter, String meaning, String curve, @Nullable Double value) {
            add(meter, Tags.empty(), meaning, curve, value);
        }

        private void add(String meter, Tags tags, String meaning, String curve, @Nullable Double value) {
            if (value != null && Double.isFinite(value)) {
                readings.add(new Reading(meter, tags, "", meaning, curve, value));
            }
        }
    }

    /**
     * Compares the newest evaluation with earlier ones on the same prompts, for alerts, which see only the current version.
     *
     * @param best the one with the highest mean reward, of several the earliest
     * @param sinceBest how many were of later versions
     * @param firstStartLogProb mean log-prob under version 0 of the first one that has it; null where none has
     */
    record EvaluationStanding(
            VersionEvaluation best, int sinceBest, @Nullable Double firstStartLogProb) {

        /** Standing of the first evaluation. */
        static EvaluationStanding first(VersionEvaluation evaluation) {
            return new EvaluationStanding(evaluation, 0, evaluation.getStartLogProb());
        }

        /** Adds the evaluation of a later version. */
        EvaluationStanding then(VersionEvaluation next) {
            boolean isBetter = next.getRewardMean() > best.getRewardMean();
            return new EvaluationStanding(
                    isBetter ? next : best,
                    isBetter ? 0 : sinceBest + 1,
                    firstStartLogProb == null ? next.getStartLogProb() : firstStartLogProb);
        }
    }
}
