package dev.millrace.runtime.evaluation;

import dev.millrace.corrections.diagnostics.EvaluationFigures;
import dev.millrace.corrections.diagnostics.MeanInterval;
import dev.millrace.corrections.diagnostics.PromptCounts;
import dev.millrace.schemas.BetaFit;
import dev.millrace.schemas.DifficultyLengths;
import dev.millrace.schemas.EvaluatedPrompt;
import dev.millrace.schemas.PassAtKEstimate;
import dev.millrace.schemas.VersionEvaluation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Figures of an evaluation's record; absent where not computed. */
public final class EvaluationRecords {
    private EvaluationRecords() {}

    /** The counts of a record and every figure that follows from them. */
    static VersionEvaluation.Builder fill(VersionEvaluation.Builder record, List<PromptCounts> prompts) {
        EvaluationFigures figures = EvaluationFigures.of(prompts);
        return record.setPrompts(prompts.stream()
                        .map(prompt -> new EvaluatedPrompt(
                                prompt.samples(),
                                prompt.correct(),
                                prompt.rewardSum(),
                                prompt.tokens(),
                                prompt.truncated()))
                        .toList())
                .setRewardMean(figures.reward().mean())
                .setRewardLow(known(figures.reward().low()))
                .setRewardHigh(known(figures.reward().high()))
                .setPassAtK(figures.passAtK().stream()
                        .map(point -> {
                            MeanInterval unbiased = point.unbiased();
                            return new PassAtKEstimate(
                                    point.k(),
                                    known(unbiased.mean()),
                                    known(unbiased.low()),
                                    known(unbiased.high()),
                                    point.bernoulli(),
                                    known(point.betaBinomial()));
                        })
                        .toList())
                .setBetaFit(figures.fit()
                        .map(fit -> new BetaFit(fit.alpha(), fit.beta()))
                        .orElse(null))
                .setDifficulties(figures.difficulties().stream()
                        .map(bin -> new DifficultyLengths(
                                bin.from(),
                                bin.to(),
                                bin.prompts(),
                                bin.responses(),
                                bin.tokensMean(),
                                bin.truncatedShare()))
                        .toList())
                .setTruncatedShare(figures.truncatedShare());
    }

    /** Returns the record with every figure computed again from its counts, so that a reader need not trust it. */
    public static VersionEvaluation recomputed(VersionEvaluation record) {
        return fill(
                        identity(record),
                        record.getPrompts().stream()
                                .map(prompt -> new PromptCounts(
                                        prompt.getSamples(),
                                        prompt.getCorrect(),
                                        prompt.getRewardSum(),
                                        prompt.getTokens(),
                                        prompt.getTruncated()))
                                .toList())
                .build();
    }

    /** Fields of a record that are not figures. {@code newBuilder(of)} fails: Avro does not trust the nested class. */
    private static VersionEvaluation.Builder identity(VersionEvaluation of) {
        return VersionEvaluation.newBuilder()
                .setRunId(of.getRunId())
                .setEpoch(of.getEpoch())
                .setPolicyId(of.getPolicyId())
                .setVersion(of.getVersion())
                .setWeightsSha256(of.getWeightsSha256())
                .setDataSha256(of.getDataSha256())
                .setSamplesPerPrompt(of.getSamplesPerPrompt())
                .setSampling(of.getSampling())
                .setCorrectAbove(of.getCorrectAbove())
                .setStartLogProb(of.getStartLogProb())
                .setFailed(of.getFailed())
                .setPassedOver(of.getPassedOver())
                .setStartedAtMs(of.getStartedAtMs())
                .setFinishedAtMs(of.getFinishedAtMs());
    }

    public static int responses(VersionEvaluation record) {
        return record.getPrompts().stream()
                .mapToInt(EvaluatedPrompt::getSamples)
                .sum();
    }

    /** Tokens that the policy wrote in them. */
    public static long tokens(VersionEvaluation record) {
        return record.getPrompts().stream()
                .mapToLong(EvaluatedPrompt::getTokens)
                .sum();
    }

    public static PassAtKEstimate passAt(VersionEvaluation record, int k) {
        return record.getPassAtK().stream()
                .filter(estimate -> estimate.getK() == k)
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(
                        "no pass@" + k + " at version " + record.getVersion() + ": " + record.getPassAtK()));
    }

    private static @Nullable Double known(double value) {
        return Double.isNaN(value) ? null : value;
    }
}
