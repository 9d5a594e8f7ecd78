package dev.millrace.log.run;

import dev.millrace.log.transaction.LogTable;
import dev.millrace.schemas.EpochParent;
import dev.millrace.schemas.RunClaim;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.ClaimKey;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
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
     * Makes the prefix the run's, or finds that it is, in whichever epoch.
     *
     * @param run its epoch is that of a claim that is new
     * @param configuration recorded with a claim that is new; that of an older one stays
     * @return the claim that is valid now
     * @throws LogSetupException if it is another run's, or of an older epoch than the requested one
     */
    ClaimedRun claim(RunIdentity run, Optional<String> configuration, Clock clock) {
        Found found = new Found();
        AtomicReference<RunClaim> before = new AtomicReference<>();
        try (LogTable table = table(found)) {
            table.append(() -> {
                before.set(found.orGarbage().valid);
                if (before.get() != null) {
                    requireOurs(before.get(), run);
                    return Map.of();
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
        return claimedRun(found, before.get() != null);
    }

    /**
     * Records where the run is, if its claim does not say so yet: one that is new, or of an older form, or to which a topic
     * was added.
     *
     * @param before whether the claim was there before it was asked for
     * @return the claim that is valid now
     */
    ClaimedRun place(RunIdentity run, LogPlace place, boolean before) {
        Found found = new Found();
        try (LogTable table = table(found)) {
            table.append(() -> {
                RunClaim claim = claimed(found.valid);
                requireExactly(claim, run);
                Map<String, String> ids = new TreeMap<>(place.topicIds());
                ids.putAll(claim.getTopics()); // what is recorded stays: it is what a later place is compared with
                if (!found.isSpoilt
                        && !claim.getClusterId().isEmpty()
                        && claim.getTopics().equals(ids)) {
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
        return claimedRun(found, before);
    }

    /**
     * Records another configuration for a run that has claimed the prefix.
     *
     * @throws LogSetupException if it is not this run's at exactly this epoch
     */
    void reconfigure(RunIdentity run, String configuration, Clock clock) {
        Found found = new Found();
        try (LogTable table = table(found)) {
            table.append(() -> {
                RunClaim claim = claimed(found.valid);
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

    /**
     * Asks every role that follows the claim to stop.
     *
     * @throws LogSetupException if there is no claim
     */
    void stop(Clock clock) {
        Found found = new Found();
        try (LogTable table = table(found)) {
            table.append(() -> {
                RunClaim claim = RunClaim.newBuilder(claimed(found.valid))
                        .setClaimedAtMs(clock.millis())
                        .build();
                return Map.of(
                        ClaimKey.STOP, Objects.requireNonNull(serde.serializer().serialize(topics.run(), claim)));
            });
        } catch (KafkaException e) {
            throw unreadable(e);
        }
    }

    /**
     * Begins another epoch, if the run is still in the one that it is to follow.
     *
     * @param beganAt end offset of each partition, by {@code topic-partition}
     * @param place what is recorded of cluster and topics from now on
     * @throws LogSetupException if the run has gone on to another epoch meanwhile
     */
    ClaimedRun begin(RunIdentity run, EpochParent parent, Map<String, Long> beganAt, LogPlace place, Clock clock) {
        Found found = new Found();
        try (LogTable table = table(found)) {
            table.append(() -> {
                RunClaim claim = claimed(found.valid);
                if (claim.getEpoch() == run.epoch() + 1
                        && parent.equals(claim.getParent())
                        && beganAt.equals(claim.getBeganAt())) {
                    return Map.of(); // written, and its answer was lost
                }
                requireExactly(claim, run);
                return begun(RunClaim.newBuilder(claim)
                        .setEpoch(run.epoch() + 1)
                        .setClaimedAtMs(clock.millis())
                        .setParent(parent)
                        .setBeganAt(beganAt)
                        .setClusterId(place.clusterId())
                        .setTopics(place.topicIds())
                        .build());
            });
        } catch (KafkaException e) {
            throw unreadable(e);
        }
        return claimedRun(found, true);
    }

    private ClaimedRun claimedRun(Found found, boolean before) {
        RunClaim claim = claimed(found.valid);
        found.epochs.put(claim.getEpoch(), claim); // one of an older form is under the one key only
        return new ClaimedRun(
                new RunIdentity(claim.getRunId(), claim.getEpoch(), claim.getPolicyId()),
                Optional.ofNullable(claim.getConfiguration()),
                before,
                new LogPlace(claim.getClusterId(), claim.getTopics()),
                found.epochs.values().stream()
                        .filter(each -> each.getRunId().equals(claim.getRunId()) && each.getEpoch() <= claim.getEpoch())
                        .map(each -> new EpochClaim(
                                each.getEpoch(),
                                Optional.ofNullable(each.getParent()),
                                each.getBeganAt(),
                                each.getClaimedAtMs()))
                        .toList());
    }

    /**
     * Writes again, where the log has lost it, what is known of the run's claim: the valid one and that of each epoch.
     *
     * @return whether it was lost
     */
    boolean restore(ClaimedRun known) {
        Found found = new Found();
        AtomicBoolean isLost = new AtomicBoolean();
        try (LogTable table = table(found)) {
            table.append(() -> {
                isLost.set(found.valid == null
                        || found.valid.getRunId().equals(known.run().runId())
                                && found.valid.getEpoch() < known.run().epoch());
                Map<String, byte[]> records = new TreeMap<>();
                if (isLost.get()) {
                    known.epochs().forEach(epoch -> records.put(ClaimKey.epoch(epoch.epoch()), bytes(known, epoch)));
                    records.put(
                            ClaimKey.VALID,
                            Objects.requireNonNull(
                                    records.get(ClaimKey.epoch(known.run().epoch()))));
                }
                return records;
            });
        } catch (KafkaException e) {
            throw unreadable(e);
        }
        return isLost.get();
    }

    private byte[] bytes(ClaimedRun known, EpochClaim epoch) {
        boolean isValid = epoch.epoch() == known.run().epoch();
        RunClaim claim = new RunClaim(
                known.run().runId(),
                epoch.epoch(),
                known.run().policyId(),
                epoch.claimedAtMs(),
                isValid ? known.configuration().orElse(null) : null,
                epoch.parent().orElse(null),
                known.place().clusterId(),
                known.place().topicIds(),
                epoch.beganAt());
        return Objects.requireNonNull(serde.serializer().serialize(topics.run(), claim));
    }

    /** An epoch's claim under both keys. */
    private Map<String, byte[]> begun(RunClaim claim) {
        byte[] value = Objects.requireNonNull(serde.serializer().serialize(topics.run(), claim));
        return Map.of(ClaimKey.VALID, value, ClaimKey.epoch(claim.getEpoch()), value);
    }

    /** The claim, which must be this run's at exactly this epoch. */
    ClaimedRun require(RunIdentity run) {
        Found found = last();
        requireExactly(claimed(found.valid), run);
        return claimedRun(found, true);
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
        return claimedRun(last(), true);
    }

    Optional<ClaimedRun> found() {
        Found found = last();
        return found.valid == null ? Optional.empty() : Optional.of(claimedRun(found, true));
    }

    private Found last() {
        Found found = new Found();
        try (LogTable table = table(found)) {
            table.catchUp();
            return found.orGarbage();
        } catch (KafkaException e) {
            throw unreadable(e);
        }
    }

    private RunClaim claimed(@Nullable RunClaim claim) {
        if (claim == null) {
            throw new LogSetupException("the run under the topic prefix '" + topics.prefix()
                    + "' is only partly created; run the command that creates it again, or, if "
                    + topics.run()
                    + " lost its end, wait half a minute for a process of the run to rewrite the claim");
        }
        return claim;
    }

    /**
     * What the topic holds, as far as it was read. The run that was first is whose it is: what lies under its keys and is no claim
     * of this run, or one of an older epoch, counts for nothing.
     */
    private static final class Found {
        private @Nullable RunClaim valid;
        private final SortedMap<Integer, RunClaim> epochs = new TreeMap<>();
        /** Whether the last record under the key of the valid claim is none, so that it must be written again. */
        private boolean isSpoilt;

        private @Nullable MalformedRecordException garbage;

        private void take(String key, RunClaim claim) {
            boolean isOther = valid != null
                    && (!valid.getRunId().equals(claim.getRunId()) || valid.getEpoch() > claim.getEpoch());
            if (key.equals(ClaimKey.VALID)) {
                isSpoilt = isOther;
                valid = isOther ? valid : claim;
            } else if (!isOther) {
                epochs.put(claim.getEpoch(), claim);
                if (valid == null || valid.getEpoch() < claim.getEpoch()) {
                    valid = claim; // behind it comes its like under the other key, or compaction has left none
                    isSpoilt = true;
                }
            }
        }

        private void spoil(String key, @Nullable MalformedRecordException why) {
            if (key.equals(ClaimKey.VALID)) {
                isSpoilt = true;
                garbage = why == null ? garbage : why;
            }
        }

        /** @throws MalformedRecordException if there is garbage and no claim */
        private Found orGarbage() {
            if (valid == null && garbage != null) {
                throw garbage;
            }
            return this;
        }
    }

    private LogTable table(Found found) {
        return new LogTable(clientProperties, topics.run(), timeoutMs, (key, value) -> take(found, key, value));
    }

    private void take(Found found, String key, byte @Nullable [] value) {
        if (!key.equals(ClaimKey.VALID) && !ClaimKey.isEpoch(key)) {
            return;
        }
        try {
            RunClaim claim = serde.deserializer().deserialize(topics.run(), value);
            if (claim == null) {
                found.spoil(key, null);
            } else {
                found.take(key, claim);
            }
        } catch (MalformedRecordException e) {
            found.spoil(key, e);
        }
    }

    /** The claim that records of the topic add up to, from wherever they were read. */
    Optional<ClaimedRun> in(Iterable<ConsumerRecord<byte[], byte[]>> records) {
        Found found = new Found();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            if (record.key() != null) {
                take(found, new String(record.key(), StandardCharsets.UTF_8), record.value());
            }
        }
        return found.orGarbage().valid == null ? Optional.empty() : Optional.of(claimedRun(found, true));
    }

    private void requireOurs(RunClaim claim, RunIdentity run) {
        if (!claim.getRunId().equals(run.runId())) {
            throw new LogSetupException("the topics under '" + topics.prefix() + "' belong to run " + claim.getRunId()
                    + ", not to run " + run.runId() + "; continue that run, or choose another topic prefix");
        }
        if (!claim.getPolicyId().equals(run.policyId())) {
            throw new LogSetupException("run " + run.runId() + " trains the policy " + claim.getPolicyId() + ", not "
                    + run.policyId() + "; correct policy_id, or choose another topic prefix");
        }
        if (claim.getEpoch() < run.epoch()) {
            throw new LogSetupException("run " + run.runId() + " is at epoch " + claim.getEpoch() + ", and no epoch "
                    + run.epoch() + " was begun; millrace rollback begins one");
        }
    }

    private LogSetupException unreadable(KafkaException e) {
        String what = e instanceof MalformedRecordException ? "does not hold a claim" : "cannot be used";
        return new LogSetupException("topic " + topics.run() + " " + what + ": " + e.getMessage(), e);
    }
}
