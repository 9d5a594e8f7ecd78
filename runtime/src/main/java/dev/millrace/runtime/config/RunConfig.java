package dev.millrace.runtime.config;

import dev.millrace.log.LogConnection;
import dev.millrace.log.SecretText;
import dev.millrace.policy.session.Device;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.time.Duration;

/**
 * Which run this is and where its log is.
 *
 * @param id run id; empty derives one from task and time
 * @param epoch epoch that the process joins; -1 is the newest on the log, any older one is refused
 * @param policyId name of the policy being trained
 * @param topicPrefix prefix of topic names; empty is {@code millrace.} on the embedded broker and
 *     {@code millrace.<run id>.} on a cluster
 * @param bootstrapServers Kafka cluster; empty starts a broker in the process
 * @param schemaRegistryUrl Confluent-compatible registry, such as {@code https://user:${env:PASSWORD}@host}; empty uses
 *     the cluster's {@code _schemas} topic
 * @param seed seed of initial weights, prompts and draws
 * @param device {@code cpu}, {@code cuda:N}, or {@code cuda:N:tf32}, whose products of float32 use TF32
 * @param patienceSeconds longest that a role waits for the cluster or another dependency before it ends, 10 to 604800 s
 * @param recorded another trainer's recorder writes the run, which then has no weights; {@code learn --first-version}
 *     creates it, and no role starts on it
 */
public record RunConfig(
        String id,
        int epoch,
        String policyId,
        String topicPrefix,
        String bootstrapServers,
        SecretText schemaRegistryUrl,
        long seed,
        String device,
        int patienceSeconds,
        boolean recorded) {

    public RunConfig {
        if (!id.isEmpty()) {
            new RunIdentity(id, 0, "policy");
        }
        if (!topicPrefix.isEmpty()) {
            new RunTopics(topicPrefix);
        }
        if (epoch < -1) {
            throw new IllegalArgumentException("epoch must be at least 0, or -1 for the run's newest: " + epoch);
        }
        Device.parse(device);
        if (patienceSeconds < 10 || patienceSeconds > 604_800) {
            throw new IllegalArgumentException("patience_seconds must be from 10 to 604800: " + patienceSeconds);
        }
    }

    public static RunConfig defaults() {
        return new RunConfig(
                "",
                -1,
                "policy",
                "",
                "",
                SecretText.ofAddress(""),
                1,
                "cpu",
                (int) LogConnection.PATIENCE.toSeconds(),
                false);
    }

    /** True if the broker runs inside this process. */
    public boolean embedded() {
        return bootstrapServers.isEmpty();
    }

    /** How long every role waits for an unavailable service. */
    public Duration patience() {
        return Duration.ofSeconds(patienceSeconds);
    }

    public RunConfig withId(String newId) {
        return new RunConfig(
                newId,
                epoch,
                policyId,
                topicPrefix,
                bootstrapServers,
                schemaRegistryUrl,
                seed,
                device,
                patienceSeconds,
                recorded);
    }

    /** The run's identity, in its first epoch if it is left to the log; its id must be known. */
    public RunIdentity identity() {
        return new RunIdentity(id, Math.max(0, epoch), policyId);
    }

    /** The run's topics; its id must be known. */
    public RunTopics topics() {
        if (!topicPrefix.isEmpty()) {
            return new RunTopics(topicPrefix);
        }
        return new RunTopics(embedded() ? "millrace." : "millrace." + id + ".");
    }
}
