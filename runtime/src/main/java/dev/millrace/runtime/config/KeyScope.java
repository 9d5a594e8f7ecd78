package dev.millrace.runtime.config;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * Scope of a configuration key: the run, for every process that works on it, or one process on one machine.
 *
 * <p>The creator of a run writes keys of the run into its claim, where later roles, replays and audits read them. Keys
 * of a process stay off the log: they would be wrong elsewhere or, like client settings, would let a writer of the log
 * run code and open files on other machines.
 */
public enum KeyScope {
    /** What the run computes: on the log, and the same for everyone. */
    RUN,
    /**
     * Speed, time limits, sizes and file locations: recorded on the log as the creator chose, and a process may
     * override them.
     */
    DEFAULT,
    /** Identity, location and machine of a process: not on the log. */
    PROCESS;

    private static final Pattern INDEX = Pattern.compile("\\[\\d*]");
    /** Keys or groups of keys, in the order of the reference; the longest prefix decides. */
    private static final Map<String, KeyScope> OF = new LinkedHashMap<>();

    static {
        put(PROCESS, "kafka"); // how to reach the cluster: a reader of the log has done so already

        put(PROCESS, "run.epoch"); // the log has it
        put(RUN, "run.id", "run.policy_id", "run.topic_prefix", "run.seed", "run.recorded");
        put(
                PROCESS,
                "run.bootstrap_servers",
                "run.schema_registry_url"); // other names for the same, from another network
        put(PROCESS, "run.device");
        put(DEFAULT, "run.patience_seconds");

        put(RUN, "task", "reward", "environments", "model");
        // addresses depend on the network, and a command from the log is not executed
        for (String asks : List.of("reward", "task.environment", "environments")) {
            put(PROCESS, asks + ".url", asks + ".command", asks + ".token_variable");
            put(DEFAULT, asks + ".timeout_ms", asks + ".attempts", asks + ".patience_ms");
            put(DEFAULT, asks + ".concurrency", asks + ".answer_bytes");
        }
        put(
                DEFAULT,
                "task.data.file",
                "task.eval.data.file",
                "task.tokenizer.directory"); // the same files under another path

        put(RUN, "admission.eta", "admission.batch_sequences", "admission.group_size", "admission.task_seed");
        put(RUN, "admission.max_resamples", "admission.resample_below", "admission.sampling");
        put(DEFAULT, "admission.first_version_timeout_ms");
        put(DEFAULT, "admission.dead_letter_limit_batches", "admission.zero_variance_limit_batches"); // alarms
        put(DEFAULT, "admission.quarantine", "admission.release_again_after_ms");

        put(PROCESS, "generator.id");
        put(RUN, "generator.capacity_tokens", "generator.weight_update", "generator.cache_on_swap");
        put(DEFAULT, "generator.slots", "generator.threads", "generator.tokens_per_call", "generator.version_wait_ms");
        put(DEFAULT, "generator.prefill_chunk_tokens", "generator.prefill_tokens_per_call", "generator.precision");
        put(DEFAULT, "generator.weight_placement", "generator.swap_pause_ms");
        put(DEFAULT, "generator.commit_interval_ms", "generator.heartbeat_ms", "generator.drain_ms");
        put(DEFAULT, "generator.first_version_timeout_ms", "generator.commit_timeout_ms");

        put(PROCESS, "engine"); // which one stands where, and what it is called there

        put(PROCESS, "gateway.host", "gateway.port", "gateway.public_url", "gateway.token_variable");
        put(DEFAULT, "gateway"); // agents' limits, and whether train has one

        put(PROCESS, "scorer.id");
        put(RUN, "scorer.entropies", "scorer.sum_squared_probs", "scorer.top_log_probs");
        put(RUN, "scorer.reference.version", "scorer.teacher.version");
        put(DEFAULT, "scorer.reference.directory", "scorer.teacher.directory"); // the same files under another path
        put(DEFAULT, "scorer.max_batch_sequences", "scorer.token_budget", "scorer.cached_versions");
        put(DEFAULT, "scorer.version_wait_ms", "scorer.heartbeat_ms");
        put(DEFAULT, "scorer.first_version_timeout_ms", "scorer.commit_timeout_ms");

        put(RUN, "algorithm");

        put(RUN, "topology.ingress", "topology.groups", "topology.batch");
        put(RUN, "topology.join.reward", "topology.join.reference", "topology.join.teacher");
        put(RUN, "topology.join.unscored_after_ms", "topology.join.orphan_after_ms", "topology.join.max_gap_ms");
        put(RUN, "topology.join.dedupe_retention_ms", "topology.join.dedupe_groups");
        put(DEFAULT, "topology.join.payload_cache_bytes");

        put(PROCESS, "topology.runtime.threads", "topology.runtime.instance_id");
        put(DEFAULT, "topology.runtime.commit_interval_ms", "topology.runtime.max_task_idle_ms");
        put(DEFAULT, "topology.runtime.state_stores", "topology.runtime.store_cache_bytes");
        put(DEFAULT, "topology.runtime.member_cache_bytes", "topology.runtime.rocksdb_bytes");
        put(DEFAULT, "topology.runtime.buffered_records", "topology.runtime.standby_replicas");
        put(DEFAULT, "topology.runtime.rebalance_protocol", "topology.runtime.session_timeout_ms");
        put(DEFAULT, "topology.runtime.transaction_timeout_ms", "topology.runtime.compression");
        put(DEFAULT, "topology.runtime.start_timeout_ms", "topology.runtime.stop_timeout_ms");
        put(DEFAULT, "topology.runtime.alarm_after_ms");

        put(RUN, "learner.step", "learner.lora");
        put(DEFAULT, "learner.max_steps"); // a run that has ended there may be resumed
        put(DEFAULT, "learner.trajectory_timeout_ms", "learner.kept_trajectory_bytes", "learner.idle_report_ms");

        put(
                RUN,
                "weights.store",
                "weights.optimizer_store",
                "weights.dtype",
                "weights.anchor_every"); // one store, under the same path for all
        put(DEFAULT, "weights.checkpoint_every");
        put(DEFAULT, "weights.keep_versions", "weights.unserved_alarm_ms", "weights.on_broken_version");
        put(DEFAULT, "weights.chunk_bytes", "weights.kept_manifests");
        put(DEFAULT, "weights.read_timeout_ms", "weights.send_timeout_ms");

        put(RUN, "topics.partitions");
        put(
                DEFAULT,
                "topics.replication_factor",
                "topics.min_insync_replicas"); // the cluster's administrator may change these
        put(DEFAULT, "topics.record_retention_ms", "topics.passing_retention_ms");
        put(DEFAULT, "topics.weights_retention_bytes", "topics.optimizer_retention_bytes", "topics.max_record_bytes");
        put(DEFAULT, "topics.timeout_ms");
        put(PROCESS, "topics.schemas_topic"); // without it the log could not be read to find it

        put(PROCESS, "observers"); // only learners have them
        put(PROCESS, "broker");
        put(DEFAULT, "goal", "evaluation");
        put(PROCESS, "metrics", "http");
    }

    private static void put(KeyScope scope, String... keys) {
        for (String key : keys) {
            if (OF.put(key, scope) != null) {
                throw new IllegalStateException(key + " is classified twice");
            }
        }
    }

    /** The keys and groups of keys that are classified. */
    static Map<String, KeyScope> all() {
        return Map.copyOf(OF);
    }

    /**
     * Returns the scope of a key.
     *
     * @param key with dots, such as {@code learner.step.epochs}
     * @throws IllegalArgumentException if the key is unknown
     */
    public static KeyScope of(String key) {
        return find(key).orElseThrow(() -> new IllegalArgumentException("no role is listed for the key " + key + ""));
    }

    /** Returns the scope of a key; empty if the key is unknown. The scope of a list applies to each element. */
    static Optional<KeyScope> find(String key) {
        for (String group = INDEX.matcher(key).replaceAll(""); ; group = group.substring(0, group.lastIndexOf('.'))) {
            KeyScope scope = OF.get(group);
            if (scope != null || group.indexOf('.') < 0) {
                return Optional.ofNullable(scope);
            }
        }
    }
}
