package dev.millrace.log.run;

import dev.millrace.log.table.LogTable;
import dev.millrace.log.topics.LogSetupException;
import dev.millrace.schemas.RunClaim;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Clock;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.KafkaException;

/** The record that says whose the topics under a prefix are: written once, by compare-and-set, and by each epoch. */
final class RunClaims {
    private static final String KEY = "run";

    private final Map<String, Object> clientProperties;
    private final RunTopics topics;
    private final AvroSerde<RunClaim> serde;
    private final long timeoutMs;

    RunClaims(Map<String, Object> clientProperties, RunTopics topics, SchemaRegistry registry, long timeoutMs) {
        this.clientProperties = clientProperties;
        this.topics = topics;
        this.serde = AvroSerde.of(RunClaim.class, registry);
        this.timeoutMs = timeoutMs;
    }

    /**
     * Makes the prefix the run's, or finds that it is.
     *
     * @return whether it was before
     * @throws LogSetupException if it is another run's, or the run has gone on to a later epoch
     */
    boolean claim(RunIdentity run, Clock clock) {
        AtomicReference<RunClaim> valid = new AtomicReference<>();
        AtomicReference<RunClaim> before = new AtomicReference<>();
        try (LogTable table = table(valid)) {
            table.append(() -> {
                before.set(valid.get());
                if (before.get() != null) {
                    requireOurs(before.get(), run);
                    if (before.get().getEpoch() == run.epoch()) {
                        return Map.of();
                    }
                }
                RunClaim claim = new RunClaim(run.runId(), run.epoch(), run.policyId(), clock.millis());
                return Map.of(KEY, serde.serializer().serialize(topics.run(), claim));
            });
        } catch (KafkaException e) {
            throw unreadable(e);
        }
        return before.get() != null;
    }

    /** Refuses if the prefix is not this run's at exactly this epoch. */
    void require(RunIdentity run) {
        RunClaim claim = valid();
        requireOurs(claim, run);
        if (claim.getEpoch() != run.epoch()) {
            throw new LogSetupException(
                    "run " + run.runId() + " is at epoch " + claim.getEpoch() + ", not at epoch " + run.epoch());
        }
    }

    /**
     * Whose the prefix is.
     *
     * @throws LogSetupException if nobody has claimed it to the end
     */
    RunIdentity owner() {
        RunClaim claim = valid();
        return new RunIdentity(claim.getRunId(), claim.getEpoch(), claim.getPolicyId());
    }

    private RunClaim valid() {
        AtomicReference<RunClaim> valid = new AtomicReference<>();
        try (LogTable table = table(valid)) {
            table.catchUp();
        } catch (KafkaException e) {
            throw unreadable(e);
        }
        if (valid.get() == null) {
            throw new LogSetupException("the run under the topic prefix '" + topics.prefix()
                    + "' is not created to the end; start it once with the command that creates it");
        }
        return valid.get();
    }

    private LogTable table(AtomicReference<RunClaim> valid) {
        return new LogTable(clientProperties, topics.run(), timeoutMs, (key, value) -> {
            if (key.equals(KEY)) {
                valid.set(serde.deserializer().deserialize(topics.run(), value));
            }
        });
    }

    private void requireOurs(RunClaim claim, RunIdentity run) {
        if (!claim.getRunId().equals(run.runId())) {
            throw new LogSetupException("the topics under '" + topics.prefix() + "' belong to run " + claim.getRunId()
                    + ", not to run " + run.runId() + "; go on with that run, or choose another topic prefix");
        }
        if (!claim.getPolicyId().equals(run.policyId())) {
            throw new LogSetupException("run " + run.runId() + " trains the policy " + claim.getPolicyId() + ", not "
                    + run.policyId() + "; correct policy_id, or choose another topic prefix");
        }
        if (claim.getEpoch() > run.epoch()) {
            throw new LogSetupException("run " + run.runId() + " has gone on to epoch " + claim.getEpoch()
                    + "; nothing of epoch " + run.epoch() + " would be read any more");
        }
    }

    private LogSetupException unreadable(KafkaException e) {
        String what = e instanceof MalformedRecordException ? "holds something else than a claim" : "cannot be used";
        return new LogSetupException("topic " + topics.run() + " " + what + ": " + e.getMessage(), e);
    }
}
