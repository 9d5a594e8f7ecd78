package dev.millrace.topology.ingress;

import dev.millrace.schemas.Score;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.serde.AvroSerde;
import java.util.Optional;
import org.apache.kafka.streams.processor.api.Record;

/** Reads scores, reference scores or teacher scores. */
public final class ScoreReader implements RecordReader<Arrival> {
    private final RecordDecoding<Score> decoding;
    private final JoinSide kind;
    private final ScoreCheck check;

    public ScoreReader(JoinSide kind, String topic, SchemaRegistry registry, ScoreCheck check) {
        this.decoding =
                new RecordDecoding<>(topic, AvroSerde.of(Score.class, registry).deserializer());
        this.kind = kind;
        this.check = check;
    }

    @Override
    public Optional<Arrival> read(Record<byte[], byte[]> raw, int partition, long offset) throws RefusedException {
        Score score = decoding.decode(raw.value());
        try {
            return Optional.of(new ScoreArrival(check.check(score, raw.key(), partition), kind, score, raw, offset));
        } catch (RefusedException e) {
            throw new RefusedException(e.refusal().about(score.getRunId(), score.getEpoch(), score.getRolloutId()));
        }
    }
}
