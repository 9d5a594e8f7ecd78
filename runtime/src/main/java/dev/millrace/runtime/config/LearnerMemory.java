package dev.millrace.runtime.config;

import dev.millrace.corrections.stage.StageInput;
import dev.millrace.learner.step.StepConfig;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.session.GradientNormSession;
import dev.millrace.policy.session.MicrobatchLimit;
import dev.millrace.policy.session.PassMemory;
import java.util.Locale;
import java.util.Optional;

/**
 * Memory of the learner's forward and backward pass for the longest possible sequence, compared with the configured
 * limit.
 */
public final class LearnerMemory {
    private final StepConfig step;
    private final DecoderShape shape;
    private final Optional<LoraShape> lora;
    private final boolean readsNorms;
    private final PassMemory pass;
    private final int longest;
    private final int sequences;

    private LearnerMemory(MillraceConfig config) {
        this.step = config.learner().step();
        this.shape = config.shape();
        this.lora = config.learner().lora().shape();
        this.readsNorms = config.algorithm().advantage().optionalInputs().contains(StageInput.GRADIENT_NORMS);
        this.pass = PassMemory.of(shape, lora, step.activations(), step.logits());
        int response = config.admission().sampling().maxTokens() == 0
                ? config.task().task().responseTokens()
                : config.admission().sampling().maxTokens();
        this.longest = config.gateway().enabled()
                ? config.generator().capacityTokens()
                : config.task().task().promptTokens() + response;
        this.sequences = config.topology().batch().sequences();
    }

    /**
     * Refuses a run whose longest sequence would not fit.
     *
     * @return a start-up message about the size of the gradient's micro-batches; empty where a whole batch fits
     * @throws ConfigException naming the needed and the available memory, and the ways out
     */
    public static Optional<String> require(MillraceConfig config) {
        LearnerMemory memory = new LearnerMemory(config);
        long bound = memory.limit().bytes();
        long one = memory.bytes(memory.pass, 1);
        if (one > bound) {
            long recomputed = memory.bytes(
                    PassMemory.of(memory.shape, memory.lora, Activations.RECOMPUTED, memory.step.logits()), 1);
            throw new ConfigException(String.format(
                    Locale.ROOT,
                    "one sequence of %,d tokens, the longest that this run can have, takes %,d MB on the gradient's way forward and back; each of"
                            + " learner.step.shards=%d may take %,d of the %,d MB of learner.step.memory_mb; set memory_mb to %d at least%s, or make"
                            + " sequences shorter (admission.sampling.max_tokens)",
                    memory.longest,
                    megabytes(one),
                    memory.step.shards(),
                    megabytes(bound),
                    megabytes(memory.step.passBytes(memory.shape)),
                    megabytes(one) * memory.step.shards(),
                    memory.step.recompute()
                            ? ""
                            : String.format(
                                    Locale.ROOT,
                                    ", or learner.step.recompute=true, which takes %,d MB a shard",
                                    megabytes(recomputed))));
        }
        return memory.sentence();
    }

    private Optional<String> sentence() {
        int most = (sequences + step.shards() - 1) / step.shards();
        int fit = pass.sequences(longest, limit());
        long bytes = bytes(pass, Math.min(fit, most));
        if (fit >= most && bytes < 64L << 20) {
            return Optional.empty();
        }
        return Optional.of(String.format(
                Locale.ROOT,
                "a gradient takes at most %,d sequences of %,d tokens at once in each of %d shards, %,d MB together by the estimate, of %,d MB"
                        + " (learner.step.memory_mb)%s",
                Math.min(fit, most),
                longest,
                step.shards(),
                megabytes(bytes * step.shards()),
                megabytes(step.passBytes(shape)),
                step.recompute() ? ", its layers computed again on the way back (learner.step.recompute)" : ""));
    }

    private MicrobatchLimit limit() {
        return step.limit(shape);
    }

    private long bytes(PassMemory of, int count) {
        long gradient = of.bytes(count, longest);
        return readsNorms ? Math.max(gradient, GradientNormSession.bytes(shape, 1, longest)) : gradient;
    }

    private static long megabytes(long bytes) {
        return (bytes + (1L << 20) - 1) >> 20;
    }
}
