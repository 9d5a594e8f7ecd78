package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.length.BernoulliExtrapolation;
import dev.millrace.corrections.length.BetaBinomialFit;
import dev.millrace.corrections.length.PassAtK;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;

/**
 * The figures of an evaluation, all derived from the counts of its prompts.
 *
 * <p>Prompts without a judged response are left out of all figures.
 *
 * @param reward mean over prompts of the mean reward of a prompt's responses; the interval is cut off at 0 and 1 where each prompt's mean is within them
 * @param passAtK for k of 1, 2, 4 and so on to {@value #REACH} times the most responses of a prompt, and that number itself
 * @param fit of solve rates; empty if all responses or none are correct, no prompt has two responses, or no fit is best
 * @param difficulties from prompts never solved to those always solved, without empty bins
 */
public record EvaluationFigures(
        MeanInterval reward,
        List<PassAtKPoint> passAtK,
        Optional<BetaBinomialFit> fit,
        List<DifficultyBin> difficulties,
        double truncatedShare) {
    /** How far beyond the responses taken is extrapolated. */
    static final int REACH = 8;

    private static final double[] EDGES = {0, 0.25, 0.5, 0.75, 1};

    public EvaluationFigures {
        passAtK = List.copyOf(passAtK);
        difficulties = List.copyOf(difficulties);
    }

    /**
     * Computes the figures of an evaluation.
     *
     * @throws IllegalArgumentException if no prompt has a judged response
     */
    public static EvaluationFigures of(List<PromptCounts> prompts) {
        List<PromptCounts> judged =
                prompts.stream().filter(prompt -> prompt.samples() > 0).toList();
        if (judged.isEmpty()) {
            throw new IllegalArgumentException("no response to any of " + prompts.size() + " prompts was scored");
        }
        int responses = judged.stream().mapToInt(PromptCounts::samples).sum();
        Optional<BetaBinomialFit> fit = fit(judged);
        MeanInterval reward = MeanInterval.of(judged.stream()
                .mapToDouble(prompt -> prompt.rewardSum() / prompt.samples())
                .toArray());
        return new EvaluationFigures(
                judged.stream().allMatch(EvaluationFigures::isShare) ? reward.ofShare() : reward,
                passAtK(judged, fit),
                fit,
                difficulties(judged),
                (double) judged.stream().mapToInt(PromptCounts::truncated).sum() / responses);
    }

    private static boolean isShare(PromptCounts prompt) {
        return prompt.rewardSum() >= 0 && prompt.rewardSum() <= prompt.samples();
    }

    private static Optional<BetaBinomialFit> fit(List<PromptCounts> prompts) {
        int solved = prompts.stream().mapToInt(PromptCounts::correct).sum();
        int all = prompts.stream().mapToInt(PromptCounts::samples).sum();
        if (solved == 0 || solved == all || prompts.stream().noneMatch(prompt -> prompt.samples() > 1)) {
            return Optional.empty();
        }
        try {
            return Optional.of(BetaBinomialFit.of(
                    prompts.stream().mapToLong(PromptCounts::samples).toArray(),
                    prompts.stream().mapToLong(PromptCounts::correct).toArray()));
        } catch (ArithmeticException noOptimum) {
            return Optional.empty();
        }
    }

    private static List<PassAtKPoint> passAtK(List<PromptCounts> prompts, Optional<BetaBinomialFit> fit) {
        int most = prompts.stream().mapToInt(PromptCounts::samples).max().orElseThrow();
        TreeSet<Integer> wanted = new TreeSet<>();
        for (int k = 1; k <= REACH * most; k *= 2) {
            wanted.add(k);
        }
        wanted.add(most);
        List<PassAtKPoint> points = new ArrayList<>();
        for (int k : wanted) {
            MeanInterval unbiased = MeanInterval.of(prompts.stream()
                            .filter(prompt -> prompt.samples() >= k)
                            .mapToDouble(prompt -> PassAtK.unbiased(prompt.samples(), prompt.correct(), k))
                            .toArray())
                    .ofShare();
            double bernoulli = prompts.stream()
                    .mapToDouble(prompt -> BernoulliExtrapolation.passAtK(prompt.samples(), prompt.correct(), k))
                    .average()
                    .orElseThrow();
            points.add(new PassAtKPoint(
                    k, unbiased, bernoulli, fit.map(found -> found.passAtK(k)).orElse(Double.NaN)));
        }
        return points;
    }

    private static List<DifficultyBin> difficulties(List<PromptCounts> prompts) {
        List<DifficultyBin> bins = new ArrayList<>();
        bin(0, 0, prompts.stream().filter(prompt -> prompt.correct() == 0).toList(), bins);
        for (int edge = 0; edge + 1 < EDGES.length; edge++) {
            double from = EDGES[edge];
            double to = EDGES[edge + 1];
            List<PromptCounts> within = prompts.stream()
                    .filter(prompt -> prompt.solveRate() > from && prompt.solveRate() <= to && prompt.solveRate() < 1)
                    .toList();
            bin(from, to, within, bins);
        }
        bin(
                1,
                1,
                prompts.stream()
                        .filter(prompt -> prompt.correct() == prompt.samples())
                        .toList(),
                bins);
        return bins;
    }

    private static void bin(double from, double to, List<PromptCounts> prompts, List<DifficultyBin> into) {
        if (prompts.isEmpty()) {
            return;
        }
        int responses = prompts.stream().mapToInt(PromptCounts::samples).sum();
        into.add(new DifficultyBin(
                from,
                to,
                prompts.size(),
                responses,
                (double) prompts.stream().mapToLong(PromptCounts::tokens).sum() / responses,
                (double) prompts.stream().mapToInt(PromptCounts::truncated).sum() / responses));
    }

    /**
     * How often at least one of k responses to a prompt is correct, by three estimators.
     *
     * @param k responses, at least 1
     * @param unbiased over the prompts with at least k responses; its mean is NaN where there is none
     * @param bernoulli extrapolated from each prompt's observed share of correct responses; biased low where prompts are
     *     seldom solved
     * @param betaBinomial extrapolated from the fit over all prompts; NaN without a fit
     */
    public record PassAtKPoint(int k, MeanInterval unbiased, double bernoulli, double betaBinomial) {}

    /**
     * The responses to prompts of like difficulty, which is a prompt's own share of correct responses: 0, up to a quarter, up to a half, up to
     * three quarters, below 1, and 1.
     *
     * <p>Where prompts have few responses the share is rough, and a prompt that is seldom solved stands among those never solved.
     *
     * @param from share from which on; itself in the bin only where it is 0 and {@code to} is 0, or both are 1
     * @param to share up to which, itself in the bin unless it is 1 and {@code from} is not
     * @param prompts of it, at least 1
     * @param tokensMean tokens that the policy wrote in one, mean over responses
     */
    public record DifficultyBin(
            double from, double to, int prompts, int responses, double tokensMean, double truncatedShare) {}
}
