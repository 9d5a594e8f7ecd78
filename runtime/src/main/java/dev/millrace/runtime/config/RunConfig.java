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
 * @param id name of the run; empty makes one from the task and the time
 * @param epoch in which a process takes part, raised by {@code millrace rollback}; -1 is the newest on the run's log, and any other
 *     than that is refused
 * @param policyId name of the policy being trained
 * @param topicPrefix put before every topic name; empty is {@code millrace.} on the embedded broker, which has one
 *     run, and {@code millrace.<run id>.} on a cluster, so that runs do not meet
 * @param bootstrapServers the cluster; empty starts a broker inside the process
 * @param schemaRegistryUrl Confluent-compatible registry, such as {@code https://user:${env:PASSWORD}@host}; empty keeps schemas on
 *     the cluster's {@code _schemas} topic
 * @param seed of the initial weights, the prompts and the draws
 * @param device where the policy runs: {@code cpu} or {@code cuda:0}
 * @param patienceSeconds for how long every role waits for what is away, the cluster above all, before it ends: 10 to 604800
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
        int patienceSeconds) {

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
                "", -1, "policy", "", "", SecretText.ofAddress(""), 1, "cpu", (int) LogConnection.PATIENCE.toSeconds());
    }

    /** True if the broker runs inside this process. */
    public boolean embedded() {
        return bootstrapServers.isEmpty();
    }

    /** For how long every role waits for what is away. */
    public Duration patience() {
        return Duration.ofSeconds(patienceSeconds);
    }

    /** The same with an id. */
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
                patienceSeconds);
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
