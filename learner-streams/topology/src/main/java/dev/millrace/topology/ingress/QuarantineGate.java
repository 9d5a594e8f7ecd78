package dev.millrace.topology.ingress;

import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.schemas.Quarantine;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Refuses rollouts of generators that are in quarantine, and counts each generator's rollouts, so that a refused one says of how
 * many it is one.
 *
 * <p>Only what arrives goes through here, never what is read again: who was in quarantine when is no matter of the inputs, so the
 * dead letter is what a replay goes by. Thread-safe.
 */
public final class QuarantineGate implements RecordReader<Arrival> {
    private final RecordReader<Arrival> reader;
    private final Quarantines quarantines;
    private final Deserializer<Rollout> rollouts;
    private final RunIdentity run;
    /** By partition and generator, the records since the last that was refused. */
    private final Map<String, Long> sinceRefused = new ConcurrentHashMap<>();

    /** @param reader of rollouts */
    public QuarantineGate(
            RecordReader<Arrival> reader, Quarantines quarantines, Deserializer<Rollout> rollouts, RunIdentity run) {
        this.reader = reader;
        this.quarantines = quarantines;
        this.rollouts = rollouts;
        this.run = run;
    }

    @Override
    public void open() {
        quarantines.openSoon(); // a stream thread must not wait here
    }

    @Override
    public void close() {
        quarantines.close();
    }

    @Override
    public Optional<Arrival> read(Record<byte[], byte[]> raw, int partition, long offset) throws RefusedException {
        Optional<Arrival> read;
        try {
            read = reader.read(raw, partition, offset);
        } catch (RefusedException e) {
            throw new RefusedException(blamed(e.refusal(), raw, partition));
        }
        if (read.isPresent() && read.get() instanceof RolloutArrival arrival) {
            Rollout rollout = arrival.rollout();
            Optional<Quarantine> quarantine = quarantines.of(rollout.getGeneratorId());
            if (quarantine.isPresent()) {
                throw new RefusedException(refusal(quarantine.get())
                        .about(rollout.getRunId(), rollout.getEpoch(), rollout.getRolloutId()));
            }
            sinceRefused.merge(key(partition, rollout), 1L, Long::sum);
        }
        return read;
    }

    private static Refusal refusal(Quarantine quarantine) {
        return Refusal.of(
                RefusalReason.QUARANTINED,
                "generator_id",
                "generator " + quarantine.getGeneratorId() + " is in quarantine: " + quarantine.getSentence());
    }

    /** Says whose it is, where that can be read and it is of this run. */
    private Refusal blamed(Refusal refusal, Record<byte[], byte[]> raw, int partition) {
        if (!run.owns(refusal.runId(), refusal.epoch()) || raw.value() == null) {
            return refusal;
        }
        try {
            Rollout rollout = rollouts.deserialize("", raw.value());
            Optional<Quarantine> quarantine = quarantines.of(rollout.getGeneratorId());
            if (quarantine.isPresent()) {
                return refusal(quarantine.get()).about(refusal.runId(), refusal.epoch(), refusal.rolloutId());
            }
            Long before = sinceRefused.remove(key(partition, rollout));
            return refusal.ofSender(before == null ? 1 : before + 1);
        } catch (MalformedRecordException e) {
            return refusal; // nobody's, as far as can be said
        }
    }

    private static String key(int partition, Rollout rollout) {
        return partition + "/" + rollout.getGeneratorId();
    }
}
