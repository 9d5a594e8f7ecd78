package dev.millrace.generator.sampling;

import dev.millrace.api.environment.Task;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.policy.session.WeightPlacement;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * How a generator samples.
 *
 * @param id unique in the run: 1 to 60 letters, digits, '-', '_', '.'; a second process with the id replaces the first
 * @param slots sequences in flight
 * @param threads compute threads, at least two slots each; rollouts do not depend on the number
 * @param capacityTokens longest prompt and response together; longer ones are refused
 * @param tokensPerCall most tokens per sequence and engine call; weights load between calls
 * @param prefillChunkTokens longest prefill chunk; affects the last bits
 * @param prefillTokensPerCall most prefill tokens between two sampling calls; at least one chunk
 * @param precision engine precision; other than {@code f32}, log-probs differ from the scorer's
 * @param weightPlacement {@code fed} with each call, or {@code packed} into the graphs, which recompiles per version
 *     and takes twice their memory more; {@code auto} packs on CUDA
 * @param weightUpdate when weights change: {@code in_flight}, after sequences ({@code drain}), after groups
 *     ({@code group_end}), or for new sequences only ({@code multi_version}, two versions at most)
 * @param cacheOnSwap KV cache of sequences at a swap, with {@code in_flight} only
 * @param swapPauseMs longest pause to recompute KV caches at once; longer recomputes run in the background; 0 always does
 * @param versionWaitMs longest wait for the prompt's admitted version before starting with an older one
 * @param commitIntervalMs longest wait of a finished rollout for its commit
 * @param heartbeatMs interval of {@code serving} records
 * @param drainMs how long a stop waits for rollouts in flight
 * @param firstVersionTimeoutMs timeout of the first version; 0 is {@code run.patience_seconds}
 * @param commitTimeoutMs timeout of one commit; retries last {@code run.patience_seconds}
 */
public record GeneratorConfig(
        String id,
        int slots,
        int threads,
        int capacityTokens,
        int tokensPerCall,
        int prefillChunkTokens,
        int prefillTokensPerCall,
        Precision precision,
        WeightPlacement weightPlacement,
        WeightUpdate weightUpdate,
        CacheOnSwap cacheOnSwap,
        int swapPauseMs,
        int versionWaitMs,
        int commitIntervalMs,
        int heartbeatMs,
        int drainMs,
        long firstVersionTimeoutMs,
        long commitTimeoutMs) {
    private static final Pattern ID = Pattern.compile("[A-Za-z0-9._-]{1,60}");

    public GeneratorConfig {
        if (id == null || !ID.matcher(id).matches()) {
            throw new IllegalArgumentException("id must be 1 to 60 letters, digits, '-', '_' or '.': '" + id + "'");
        }
        atLeast(1, "slots", slots);
        atLeast(1, "threads", threads);
        if (threads > 1 && slots / threads < 2) { // a product of a single row has other roundings
            throw new IllegalArgumentException("threads must be at most half of slots=" + slots
                    + ", since each needs at least two slots: " + threads);
        }
        atLeast(2, "capacity_tokens", capacityTokens);
        atLeast(1, "tokens_per_call", tokensPerCall);
        atLeast(1, "prefill_chunk_tokens", prefillChunkTokens);
        atLeast(1, "prefill_tokens_per_call", prefillTokensPerCall);
        atLeast(0, "swap_pause_ms", swapPauseMs);
        atLeast(0, "version_wait_ms", versionWaitMs);
        atLeast(0, "commit_interval_ms", commitIntervalMs);
        atLeast(10, "heartbeat_ms", heartbeatMs);
        atLeast(0, "drain_ms", drainMs);
        atLeast(0, "first_version_timeout_ms", firstVersionTimeoutMs);
        atLeast(1, "commit_timeout_ms", commitTimeoutMs);
        if (precision == null) {
            throw new IllegalArgumentException("precision must be f32, bf16 or int8: null");
        }
        if (weightPlacement == null) {
            throw new IllegalArgumentException("weight_placement must be auto, fed or packed: null");
        }
        if (weightUpdate == null) {
            throw new IllegalArgumentException(
                    "weight_update must be in_flight, drain, group_end or multi_version: null");
        }
        if (cacheOnSwap == null) {
            throw new IllegalArgumentException("cache_on_swap must be recompute or keep: null");
        }
    }

    /** Fits the default task: its prompts and answers take 12 positions. */
    public static GeneratorConfig defaults() {
        return new GeneratorConfig(
                "generator-0",
                256,
                1,
                16,
                4,
                256,
                1024,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.IN_FLIGHT,
                CacheOnSwap.RECOMPUTE,
                25,
                2_000,
                25,
                1_000,
                2_000,
                0,
                60_000);
    }

    public GeneratorConfig withSlots(int slots, int capacityTokens, int tokensPerCall) {
        return new GeneratorConfig(
                id,
                slots,
                Math.max(1, Math.min(threads, slots / 2)),
                capacityTokens,
                tokensPerCall,
                prefillChunkTokens,
                prefillTokensPerCall,
                precision,
                weightPlacement,
                weightUpdate,
                cacheOnSwap,
                swapPauseMs,
                versionWaitMs,
                commitIntervalMs,
                heartbeatMs,
                drainMs,
                firstVersionTimeoutMs,
                commitTimeoutMs);
    }

    /**
     * Refuses a task whose prompts and responses do not fit a slot.
     *
     * @param maxTokens of a response as configured; 0 for what the task can use
     */
    public void requireRoomFor(Task task, int maxTokens) {
        int needed = task.promptTokens() + (maxTokens == 0 ? task.responseTokens() : maxTokens);
        if (needed > capacityTokens) {
            throw new IllegalArgumentException("capacity_tokens must be at least " + needed + " for the task "
                    + task.name() + " with max_tokens=" + maxTokens + ": " + capacityTokens);
        }
    }

    /** Nothing yet, in the form that this generator's engine takes it in. */
    PreparedWeights prepared(Engine engine) {
        return new PreparedWeights(precision, weightPlacement.packs());
    }

    /** Why a token may go through other experts later than when what follows it was sampled; empty if it does not. */
    public Optional<String> twoRoutings() {
        return weightUpdate == WeightUpdate.IN_FLIGHT && cacheOnSwap == CacheOnSwap.RECOMPUTE
                ? Optional.of("with weight_update=in_flight and cache_on_swap=recompute a recomputed token takes other"
                        + " experts, and one recorded routing cannot cover both; choose weight_update=multi_version,"
                        + " drain or group_end, or cache_on_swap=keep")
                : Optional.empty();
    }

    private static void atLeast(long bound, String key, long value) {
        if (value < bound) {
            throw new IllegalArgumentException(key + " must be at least " + bound + ": " + value);
        }
    }
}
