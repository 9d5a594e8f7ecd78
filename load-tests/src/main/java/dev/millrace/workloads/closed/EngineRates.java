package dev.millrace.workloads.closed;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import dev.millrace.report.Sample;
import org.jspecify.annotations.Nullable;

/**
 * Seconds of each kind of work of an {@link EnginePlan}.
 *
 * @param pack the weights that a step wrote put into the graphs that generate; null where they are fed
 * @param takeUp how long sampling waits for a version prepared in parallel; null where nothing is prepared
 * @param gaps between passes that should agree
 */
public record EngineRates(
        EnginePlan plan,
        @JsonUnwrapped Work work,
        @Nullable Sample pack,
        @Nullable Sample takeUp,
        @JsonUnwrapped Gaps gaps) {

    /**
     * Work of a round.
     *
     * @param decode all sampled tokens drawn
     * @param score all sequences scored behind their prompts
     * @param gradient forward and backward pass over the same
     * @param update one step of AdamW over all parameters
     * @param step gradient and update of the same round
     */
    public record Work(Sample prefill, Sample decode, Sample score, Sample gradient, Sample update, Sample step) {}

    /**
     * Gaps between passes.
     *
     * @param decodeAndScore how far the log-probs of the sampled tokens are from what scoring says of them
     * @param deviceAndCpu how far scoring on the device is from scoring on the CPU; null where the device is the CPU
     * @param gradientGap how far a sequence's gradient on the device is from that on the CPU, relative to its norm; likewise
     */
    public record Gaps(
            LogProbGap decodeAndScore,
            @Nullable LogProbGap deviceAndCpu,
            @Nullable Double gradientGap) {}

    /** Prompt tokens in a second, at the median. */
    public double prefillRate() {
        return plan.sequences() * plan.promptTokens() / work.prefill().median();
    }

    /** Sampled tokens in a second, at the median. */
    public double decodeRate() {
        return plan.sequences() * plan.sampledTokens() / work.decode().median();
    }

    /** Tokens of scored sequences, prompts included, in a second, at the median. */
    public double scoreRate() {
        return plan.sequences() * plan.length() / work.score().median();
    }

    /** Tokens of sequences in a second that go through forward and backward pass, prompts included, at the median. */
    public double gradientRate() {
        return plan.sequences() * plan.length() / work.gradient().median();
    }

    /**
     * How far an engine's log-probs of the tokens that it drew are from another engine's of the same tokens, in nats.
     *
     * @param mean of the absolute differences
     * @param most the largest of them
     * @param kl   divergence of the sampler from the scorer by Schulman's k3: mean of {@code r - 1 - log r}, r the scorer's
     *     probability over the sampler's
     * @param ess  effective share of the tokens under weights r: {@code (sum r)^2 / (n sum r^2)}
     */
    public record LogProbGap(double mean, double most, double kl, double ess) {
        static final LogProbGap NONE = new LogProbGap(0, 0, 0, 1);

        /** Of as many log-probs on either side, at least one. */
        static LogProbGap between(float[] sampler, float[] scorer) {
            if (sampler.length != scorer.length || sampler.length == 0) {
                throw new IllegalArgumentException(
                        "as many log-probs on either side, at least one: " + sampler.length + " and " + scorer.length);
            }
            double absolute = 0;
            double most = 0;
            double kl = 0;
            double ratios = 0;
            double squares = 0;
            for (int i = 0; i < sampler.length; i++) {
                double log = (double) scorer[i] - sampler[i];
                double ratio = Math.exp(log);
                absolute += Math.abs(log);
                most = Math.max(most, Math.abs(log));
                kl += ratio - 1 - log;
                ratios += ratio;
                squares += ratio * ratio;
            }
            int count = sampler.length;
            return new LogProbGap(absolute / count, most, kl / count, ratios * ratios / (count * squares));
        }

        /** The worse of each figure. */
        LogProbGap worst(LogProbGap other) {
            return new LogProbGap(
                    Math.max(mean, other.mean),
                    Math.max(most, other.most),
                    Math.max(kl, other.kl),
                    Math.min(ess, other.ess));
        }
    }
}
