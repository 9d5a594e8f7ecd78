package dev.millrace.log.run;

import dev.millrace.log.table.LogTable;
import dev.millrace.log.topics.LogSetupException;
import dev.millrace.schemas.RunClaim;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.ClaimKey;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Clock;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.KafkaException;
import org.jspecify.annotations.Nullable;

/**
 * The record that says whose the topics under a prefix are: written once, by compare-and-set, and by each epoch. It is
 * under two keys: {@link ClaimKey#VALID}, where the newest epoch's takes its place, and {@link ClaimKey#epoch}, where it stays.
 */
final class RunClaims {
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
     * @param configuration recorded with a claim that is new; that of an older one stays
     * @return the claim that is valid now
     * @throws LogSetupException if it is another run's, or the run has gone on to a later epoch
     */
    ClaimedRun claim(RunIdentity run, Optional<String> configuration, Clock clock) {
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
                return begun(new RunClaim(
                        run.runId(),
                        run.epoch(),
                        run.policyId(),
                        clock.millis(),
                        configuration.orElse(null),
                        null,
                        "",
                        Map.of(),
                        Map.of()));
            });
        } catch (KafkaException e) {
            throw unreadable(e);
        }
        return claimedRun(claimed(valid.get()), before.get() != null);
    }

    /**
     * Records where the run is, if its claim does not say so yet: one that is new, or of an older form, or to which a topic
     * was added.
     *
     * @param before whether the claim was there before it was asked for
     * @return the claim that is valid now
     */
    ClaimedRun place(RunIdentity run, LogPlace place, boolean before) {
        AtomicReference<RunClaim> valid = new AtomicReference<>();
        try (LogTable table = table(valid)) {
            table.append(() -> {
                RunClaim claim = claimed(valid.get());
                requireExactly(claim, run);
                Map<String, String> ids = new TreeMap<>(place.topicIds());
                ids.putAll(claim.getTopics()); // what is recorded stays: it is what a later place is compared with
                if (!claim.getClusterId().isEmpty() && claim.getTopics().equals(ids)) {
                    return Map.of();
                }
                return begun(RunClaim.newBuilder(claim)
                        .setClusterId(claim.getClusterId().isEmpty() ? place.clusterId() : claim.getClusterId())
                        .setTopics(ids)
                        .build());
            });
        } catch (KafkaException e) {
            throw unreadable(e);
        }
        return claimedRun(claimed(valid.get()), before);
    }

    /**
     * Records another configuration for a run that has claimed the prefix.
     *
     * @throws LogSetupException if it is not this run's at exactly this epoch
     */
    void reconfigure(RunIdentity run, String configuration, Clock clock) {
        AtomicReference<RunClaim> valid = new AtomicReference<>();
        try (LogTable table = table(valid)) {
            table.append(() -> {
                RunClaim claim = claimed(valid.get());
                requireExactly(claim, run);
                return configuration.equals(claim.getConfiguration())
                        ? Map.of()
                        : begun(RunClaim.newBuilder(claim)
                                .setClaimedAtMs(clock.millis())
                                .setConfiguration(configuration)
                                .build());
            });
        } catch (KafkaException e) {
            throw unreadable(e);
        }
    }

    private static ClaimedRun claimedRun(RunClaim claim, boolean before) {
        return new ClaimedRun(
                new RunIdentity(claim.getRunId(), claim.getEpoch(), claim.getPolicyId()),
                Optional.ofNullable(claim.getConfiguration()),
                before,
                Optional.ofNullable(claim.getParent()),
                new LogPlace(claim.getClusterId(), claim.getTopics()),
                claim.getBeganAt());
    }

    /** An epoch's claim under both keys. */
    private Map<String, byte[]> begun(RunClaim claim) {
        byte[] value = Objects.requireNonNull(serde.serializer().serialize(topics.run(), claim));
        return Map.of(ClaimKey.VALID, value, ClaimKey.epoch(claim.getEpoch()), value);
    }

    /** The claim, which must be this run's at exactly this epoch. */
    ClaimedRun require(RunIdentity run) {
        RunClaim claim = claimed(last());
        requireExactly(claim, run);
        return claimedRun(claim, true);
    }

    private void requireExactly(RunClaim claim, RunIdentity run) {
        requireOurs(claim, run);
        if (claim.getEpoch() != run.epoch()) {
            throw new LogSetupException(
                    "run " + run.runId() + " is at epoch " + claim.getEpoch() + ", not at epoch " + run.epoch());
        }
    }

    /**
     * The claim, whosever it is.
     *
     * @throws LogSetupException if nobody has claimed the prefix to the end
     */
    ClaimedRun owner() {
        return claimedRun(claimed(last()), true);
    }

    /** The claim, if there is one. */
    Optional<ClaimedRun> found() {
        return Optional.ofNullable(last()).map(claim -> claimedRun(claim, true));
    }

    private @Nullable RunClaim last() {
        AtomicReference<RunClaim> valid = new AtomicReference<>();
        try (LogTable table = table(valid)) {
            table.catchUp();
        } catch (KafkaException e) {
            throw unreadable(e);
        }
        return valid.get();
    }

    private RunClaim claimed(@Nullable RunClaim claim) {
        if (claim == null) {
            throw new LogSetupException("the run under the topic prefix '" + topics.prefix()
                    + "' is not created to the end; start it once with the command that creates it");
        }
        return claim;
    }

    private LogTable table(AtomicReference<RunClaim> valid) {
        return new LogTable(clientProperties, topics.run(), timeoutMs, (key, value) -> {
            if (key.equals(ClaimKey.VALID)) {
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
