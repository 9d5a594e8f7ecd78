package dev.millrace.scorer;

import dev.millrace.log.LogConnection;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.SampledSupport;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.rollout.RolloutLimits;
import dev.millrace.schemas.rollout.RolloutValidator;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.scorer.RolloutReading.Scorable;
import dev.millrace.scorer.RolloutReading.Skipped;
import java.util.Arrays;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;

/**
 * Accepts a record of the rollouts topic or says why it cannot be scored.
 *
 * <p>Rollouts are held to the same rules as in the topology, with the policy's own vocabulary and positions; limits that
 * a topology may set lower, on rewards and groups, are the topology's.
 */
final class ScorableCheck {
    private final Deserializer<Rollout> rollouts;
    private final RolloutValidator validator;
    private final DecoderShape shape;

    ScorableCheck(LogConnection connection, String tokenizerHash, DecoderShape shape) {
        this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).deserializer();
        this.shape = shape;
        this.validator = new RolloutValidator(
                connection.run(),
                new RolloutLimits(
                        tokenizerHash,
                        shape.vocabSize(),
                        shape.maxPositions(),
                        RolloutLimits.LARGEST_GROUP,
                        RolloutLimits.LARGEST_REWARD));
    }

    RolloutReading read(ConsumerRecord<byte[], byte[]> record) {
        try {
            Rollout rollout = rollouts.deserialize(record.topic(), record.value());
            return rollout == null
                    ? new Skipped(RefusalReason.UNREADABLE.code(), "the record has no value")
                    : read(record, rollout);
        } catch (MalformedRecordException e) {
            return new Skipped(RefusalReason.UNREADABLE.code(), String.valueOf(e.getMessage()));
        } catch (RefusedException e) {
            return new Skipped(e.refusal().reason().code(), e.refusal().message());
        }
    }

    private RolloutReading read(ConsumerRecord<byte[], byte[]> record, Rollout rollout) throws RefusedException {
        validator.validate(rollout, record.key());
        if (rollout.getImages() != null && !rollout.getImages().isEmpty()) {
            return new Skipped(
                    RefusalReason.UNSUPPORTED.code(),
                    "it has " + rollout.getImages().size() + " images in its context, which the engine does not see");
        }
        int[] prompt = PackedInts.toArray(rollout.getPromptTokens());
        int[] response = PackedInts.toArray(rollout.getResponseTokens());
        int[] tokens = Arrays.copyOf(prompt, prompt.length + response.length);
        System.arraycopy(response, 0, tokens, prompt.length, response.length);
        RoutedExperts routing;
        try {
            routing = routing(rollout);
        } catch (IllegalArgumentException e) {
            return new Skipped(RefusalReason.SAMPLING.code(), String.valueOf(e.getMessage()));
        }
        KeptSupport kept = ComparedDistribution.keptTokens(rollout);
        return new Scorable(
                rollout,
                record.partition(),
                record.offset(),
                tokens,
                prompt.length,
                PackedMask.toArray(rollout.getMask()),
                (float) rollout.getSampling().getTemperature(),
                kept == null
                        ? null
                        : new SampledSupport(
                                ComparedDistribution.keptCounts(kept, rollout.getMask()),
                                PackedInts.toArray(kept.getTokenIds())),
                routing);
    }

    /** @throws IllegalArgumentException if it is not one of the policy's model */
    private @Nullable RoutedExperts routing(Rollout rollout) {
        RecordedRouting recorded = ComparedDistribution.routing(rollout);
        if (recorded == null) {
            return null;
        }
        RoutedExperts routing = RoutedExperts.of(
                recorded.getLayers(), recorded.getExpertsPerToken(), recorded.getExperts(), recorded.getWeights());
        routing.require(shape, "rollout " + rollout.getRolloutId());
        return routing;
    }
}
