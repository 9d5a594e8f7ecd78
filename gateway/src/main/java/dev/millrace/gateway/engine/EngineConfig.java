package dev.millrace.gateway.engine;

import dev.millrace.gateway.engine.EngineApi.WeightChange;
import dev.millrace.generator.sampling.CacheOnSwap;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.WeightUpdate;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.schemas.SamplingParameters;
import java.util.Locale;
import java.util.Optional;

/**
 * The external engine of a generator or gateway.
 *
 * @param kind {@code own}, {@code vllm} or {@code sglang}; the other keys are for the last two
 * @param url base URL without {@code /v1}, such as {@code http://127.0.0.1:8000}
 * @param keyVariable environment variable with the API key; empty for none
 * @param model model name in calls; empty for vLLM's only one; SGLang needs none
 * @param directory folder for versions as Hugging Face directories, which the engine reads
 * @param seenAs {@code directory} as the engine's machine sees it; empty for the same path
 * @param dtype precision of the engine and of the written versions
 * @param logProbs distribution of the engine's log-probs; probed with every version
 * @param probeTokens tokens sampled at start and after updates to compare log-probs with Millrace's engine; 0 skips the
 *     probe
 * @param tolerance largest mean difference in the probe, in nats
 * @param keptVersions newest version directories to keep
 * @param startMs longest absence of the engine, at start and later
 * @param updateMs timeout of one update call
 * @param answerMs timeout of one answer
 */
public record EngineConfig(
        EngineKind kind,
        String url,
        String keyVariable,
        String model,
        String directory,
        String seenAs,
        EngineDtype dtype,
        EngineLogProbs logProbs,
        int probeTokens,
        double tolerance,
        int keptVersions,
        long startMs,
        long updateMs,
        long answerMs) {

    public EngineConfig {
        if (kind == null || dtype == null || logProbs == null) {
            throw new IllegalArgumentException("kind, dtype and log_probs must be given");
        }
        if (kind == EngineKind.OWN) {
            requireEmpty("url", url);
            requireEmpty("key_variable", keyVariable);
            requireEmpty("model", model);
            requireEmpty("directory", directory);
            requireEmpty("seen_as", seenAs);
        } else {
            if (!url.matches("https?://[^\\s/]+(/\\S*[^/\\s])?") || url.endsWith("/v1")) {
                throw new IllegalArgumentException(
                        "url must be where the engine answers, such as http://127.0.0.1:8000, without"
                                + " /v1 and without a slash at its end: '" + url + "'");
            }
            if (directory.isEmpty()) {
                throw new IllegalArgumentException(
                        "directory must be a folder that this process writes and the engine reads, where kind is another than own");
            }
            if (kind == EngineKind.SGLANG) {
                requireEmpty("model", model);
            }
        }
        between("probe_tokens", probeTokens, 0, 4_096);
        if (!(tolerance > 0 && tolerance <= 10)) {
            throw new IllegalArgumentException("tolerance must be above 0 and at most 10 nats: " + tolerance);
        }
        between("kept_versions", keptVersions, 1, 1_000);
        between("start_ms", startMs, 100, Integer.MAX_VALUE);
        between("update_ms", updateMs, 100, Integer.MAX_VALUE);
        between("answer_ms", answerMs, 100, Integer.MAX_VALUE);
    }

    private static void requireEmpty(String key, String value) {
        if (!value.isEmpty()) {
            throw new IllegalArgumentException(key + " is for engines that ask for it, and this one does not: '" + value
                    + "'; set engine.kind to vllm or sglang, or leave " + key + " out");
        }
    }

    private static void between(String key, long value, long least, long most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(key + " must be from " + least + " to " + most + ": " + value);
        }
    }

    public static EngineConfig defaults() {
        return new EngineConfig(
                EngineKind.OWN,
                "",
                "",
                "",
                "",
                "",
                EngineDtype.BF16,
                EngineLogProbs.RAW,
                32,
                0.25,
                2,
                600_000,
                600_000,
                600_000);
    }

    public boolean isRemote() {
        return kind != EngineKind.OWN;
    }

    /**
     * @throws IllegalArgumentException naming the generator's key that another engine does not support, and the way
     *     out
     */
    public void require(GeneratorConfig generator) {
        if (!isRemote()) {
            return;
        }
        if (generator.weightUpdate() != WeightUpdate.IN_FLIGHT && generator.weightUpdate() != WeightUpdate.DRAIN) {
            throw new IllegalArgumentException("weight_update must be in_flight or drain with engine.kind=" + name()
                    + ", which is updated as a whole and knows of no groups: "
                    + generator.weightUpdate().name().toLowerCase(Locale.ROOT));
        }
        if (generator.precision() != Precision.F32) {
            throw new IllegalArgumentException("precision is that of Millrace's own engine, and engine.kind is "
                    + name() + "; leave it out, and say with engine.dtype what the other one computes in");
        }
    }

    /** Why such samples could not be trained on, starting with the parameter; empty if they could. */
    public Optional<String> refusal(SamplingParameters sampling) {
        if (!isRemote()) {
            return Optional.empty();
        }
        String cut = sampling.getTopK() > 0
                ? "top_k must be 0"
                : sampling.getTopP() < 1 ? "top_p must be 1" : sampling.getMinP() > 0 ? "min_p must be 0" : "";
        if (!cut.isEmpty()) {
            return Optional.of(cut + " with engine.kind=" + name()
                    + ": a token from a truncated vocabulary needs log-probs with and without truncation,"
                    + " and it gives one");
        }
        if (sampling.getKeepSamplingMask() || sampling.getTopLogProbs() > 0) {
            return Optional.of((sampling.getKeepSamplingMask() ? "keep_sampling_mask" : "top_log_probs")
                    + " must be left out with engine.kind=" + name() + ", which records only the sampled token");
        }
        if (logProbs == EngineLogProbs.RAW && sampling.getTemperature() != 1) {
            return Optional.of("temperature must be 1 with engine.log_probs=raw, which are at temperature 1, not at the"
                    + " sampled temperature: " + sampling.getTemperature()
                    + "; start vLLM with --logprobs-mode processed_logprobs"
                    + " (SGLang without SGLANG_RETURN_ORIGINAL_LOGPROB) and set engine.log_probs=processed");
        }
        return Optional.empty();
    }

    /** What happens to answers in progress at a weight update. */
    WeightChange change(GeneratorConfig generator) {
        return generator.weightUpdate() == WeightUpdate.DRAIN
                ? WeightChange.DRAINED
                : generator.cacheOnSwap() == CacheOnSwap.KEEP ? WeightChange.KEEP : WeightChange.RECOMPUTE;
    }

    String name() {
        return kind.name().toLowerCase(Locale.ROOT);
    }

    /** What an engine computes in. */
    public enum EngineDtype {
        F32("float32"),
        BF16("bfloat16"),
        F16("float16");

        private final String torchName;

        EngineDtype(String torchName) {
            this.torchName = torchName;
        }

        String torchName() {
            return torchName;
        }
    }

    public enum EngineKind {
        OWN,
        VLLM,
        SGLANG
    }

    /** Distribution of an engine's log-probs. */
    public enum EngineLogProbs {
        /** Softmax at temperature 1; trainable only if sampled at 1. */
        RAW,
        /** Softmax that was sampled from. */
        PROCESSED;

        double temperature(double sampledAt) {
            return this == RAW ? 1 : sampledAt;
        }

        EngineLogProbs other() {
            return this == RAW ? PROCESSED : RAW;
        }
    }
}
