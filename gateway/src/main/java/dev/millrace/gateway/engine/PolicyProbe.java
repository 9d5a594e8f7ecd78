package dev.millrace.gateway.engine;

import dev.millrace.gateway.engine.EngineApi.EngineAnswer;
import dev.millrace.generator.sampling.CounterBasedRandom;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.SamplingParameters;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compares an engine's log-probs with Millrace's under the same weights, at temperatures that distinguish raw from
 * processed ones. Detects another distribution, model, weights or hidden settings; tolerates small precision
 * differences. Owned by one thread.
 */
final class PolicyProbe implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PolicyProbe.class);
    private static final double[] TEMPERATURES = {2, 0.5};
    private static final int PROMPT_TOKENS = 8;
    private static final int SCORED_AT_ONCE = 1024;

    /** Mean absolute differences, nats per token. */
    record Finding(double declared, double other, List<EngineAnswer> answers) {}

    private final EngineConfig config;
    private final int vocabSize;
    private final int capacityTokens;
    private final ScoringSession scoring;

    PolicyProbe(Engine own, DecoderShape shape, EngineConfig config, int capacityTokens) {
        this.config = config;
        this.vocabSize = shape.vocabSize();
        this.capacityTokens = capacityTokens;
        this.scoring = new ScoringSession(own, shape, SCORED_AT_ONCE);
    }

    boolean isWanted() {
        return config.probeTokens() > 0;
    }

    /**
     * @param ask runs an order on the engine
     * @throws EngineException if the log-probs are not as declared
     */
    Finding require(Weights weights, long version, Function<TurnOrder, EngineAnswer> ask) {
        Finding found = compare(weights, ask);
        String differences = String.format(
                Locale.ROOT,
                "its log-probs at temperatures 2 and 0.5 differ by %.3f nats a token from %s ones and by %.3f from %s ones, of"
                        + " Millrace's own engine under version %d",
                found.declared(),
                config.logProbs().name().toLowerCase(Locale.ROOT),
                found.other(),
                config.logProbs().other().name().toLowerCase(Locale.ROOT),
                version);
        if (found.declared() <= config.tolerance()) {
            LOG.info("engine {} at {}: {}", config.name(), config.url(), differences);
            return found;
        }
        if (found.other() <= config.tolerance()) {
            throw EngineException.unfit(
                    "engine.log_probs is "
                            + config.logProbs().name().toLowerCase(Locale.ROOT) + ", and the engine's are not: "
                            + differences
                            + "; set engine.log_probs="
                            + config.logProbs().other().name().toLowerCase(Locale.ROOT)
                            + ", or start the engine so that they are (vLLM: --logprobs-mode; SGLang: SGLANG_RETURN_ORIGINAL_LOGPROB)");
        }
        throw EngineException.unfit(
                "the engine samples with another policy than version " + version + ": " + differences
                        + " (engine.tolerance is " + config.tolerance()
                        + "); it did not load the weights, runs another model, or computes in a narrower type than"
                        + " engine.dtype");
    }

    private Finding compare(Weights weights, Function<TurnOrder, EngineAnswer> ask) {
        int prompt = Math.min(PROMPT_TOKENS, capacityTokens / 2);
        int each = Math.max(1, Math.min(capacityTokens - prompt, config.probeTokens() / TEMPERATURES.length));
        int asked =
                Math.max(1, config.probeTokens() / (each * TEMPERATURES.length)); // small slots are probed more often
        double declared = 0;
        double other = 0;
        int tokens = 0;
        List<EngineAnswer> answers = new ArrayList<>();
        for (int number = 0; number < asked * TEMPERATURES.length; number++) {
            double temperature = TEMPERATURES[number % TEMPERATURES.length];
            TurnOrder order = order(number, prompt, each, temperature);
            EngineAnswer answer = ask.apply(order);
            answers.add(answer);
            declared += difference(weights, order, answer, config.logProbs().temperature(temperature));
            other +=
                    difference(weights, order, answer, config.logProbs().other().temperature(temperature));
            tokens += answer.tokens().length;
        }
        return new Finding(declared / tokens, other / tokens, answers);
    }

    private TurnOrder order(int number, int promptTokens, int maxTokens, double temperature) {
        int[] prompt = new int[promptTokens];
        for (int i = 0; i < promptTokens; i++) {
            prompt[i] = CounterBasedRandom.below(CounterBasedRandom.stream(11, number, 0), i, vocabSize);
        }
        return new TurnOrder(
                prompt,
                new SamplingParameters(temperature, 0, 1.0, maxTokens, 17L + number, false, 0, 0.0, false),
                List.of(),
                List.of(),
                0);
    }

    /** Sum of absolute differences. */
    private double difference(Weights weights, TurnOrder order, EngineAnswer answer, double temperature) {
        int[] prompt = order.promptTokens();
        int[] all = Arrays.copyOf(prompt, prompt.length + answer.tokens().length);
        System.arraycopy(answer.tokens(), 0, all, prompt.length, answer.tokens().length);
        for (int token : answer.tokens()) {
            if (token >= vocabSize) {
                throw EngineException.unfit("the engine sampled token " + token + ", and the policy's vocabulary has "
                        + vocabSize + "; it runs another model");
            }
        }
        float[] ours = scoring.score(
                        weights,
                        new SequenceBatch(new int[][] {all}, new int[] {prompt.length}),
                        new float[] {(float) temperature})
                .logProbs();
        double sum = 0;
        for (int i = 0; i < ours.length; i++) {
            sum += Math.abs((double) ours[i] - answer.logProbs()[i]);
        }
        return sum;
    }

    @Override
    public void close() {
        scoring.close();
    }
}
