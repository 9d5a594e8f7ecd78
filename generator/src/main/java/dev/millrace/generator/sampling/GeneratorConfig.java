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
 * @param id of this generator, unique in its run: letters, digits, '-', '_' and '.', 1 to 60 of them; a second
 *     generator with the same id takes the place of the first
 * @param slots sequences in flight
 * @param threads that compute, each with a part of the slots, two at least; rollouts are the same with any number. In {@code train} the other roles
 *     want cores too
 * @param capacityTokens longest prompt with its response; longer ones are refused
 * @param tokensPerCall most tokens a sequence advances by in one call of the engine; weights are taken up between calls
 * @param prefillChunkTokens longest piece of a prompt that goes through the model at once; decides the last bits of what
 *     follows
 * @param prefillTokensPerCall most tokens of prompts that are taken in between two calls of the engine that sample, so that the
 *     sequences in flight do not wait long for new ones; one piece goes in always
 * @param precision what the generator's engine computes in; with anything but {@code f32} it is another engine than the scorer's, and
 *     its log-probs differ from the scores under the same weights
 * @param weightPlacement whether weights are fed with every call, or packed into the engine's graphs when a version is loaded, which compiles them
 *     anew each time and takes their memory twice more for each version; {@code auto} packs on a CUDA device
 * @param weightUpdate whether new weights are taken up with sequences in flight ({@code in_flight}), when these are finished
 *     ({@code drain}), when all groups are ({@code group_end}), or at once for what is begun from then on, while sequences in flight
 *     are finished with the version that they began with ({@code multi_version}: two versions are held at most)
 * @param cacheOnSwap what becomes of a sequence's keys and values when new weights are taken up; of no
 *     effect with any other {@code weight_update} than {@code in_flight}, where no sequence is of two versions
 * @param swapPauseMs with {@code cache_on_swap: recompute} the longest that every sequence may stand still while all keys and values are computed
 *     again at once, by the time that known tokens have taken so far; what would take longer is computed beside sampling, by a thread of its own, a few
 *     sequences at a time, while the others go on with the version that they have; 0 does so always
 * @param versionWaitMs longest wait for the version that admission knew when it released a prompt, before the prompt is
 *     begun with an older one; without it staleness could exceed what admission allows
 * @param commitIntervalMs longest time a finished rollout waits for its commit to begin
 * @param heartbeatMs interval of the records that say which version is served
 * @param drainMs how long a stop lets rollouts in flight finish before it gives them up
 * @param firstVersionTimeoutMs longest wait for the first policy version; 0 for {@code run.patience_seconds}
 * @param commitTimeoutMs longest wait for one attempt at a commit; attempts go on for {@code run.patience_seconds}
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
                    + ", since each has two slots of its own at least: " + threads);
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

    /** The same with other slots. */
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
        return new PreparedWeights(precision, weightPlacement.packsOn(engine.device()));
    }

    /** Why a token may go through other experts later than when what follows it was sampled; empty if it does not. */
    public Optional<String> twoRoutings() {
        return weightUpdate == WeightUpdate.IN_FLIGHT && cacheOnSwap == CacheOnSwap.RECOMPUTE
                ? Optional.of(
                        "with weight_update=in_flight and cache_on_swap=recompute a token goes through other experts when it"
                                + " is computed again, and one routing says nothing of both; choose weight_update=multi_version,"
                                + " drain or group_end, or cache_on_swap=keep")
                : Optional.empty();
    }

    private static void atLeast(long bound, String key, long value) {
        if (value < bound) {
            throw new IllegalArgumentException(key + " must be at least " + bound + ": " + value);
        }
    }
}
