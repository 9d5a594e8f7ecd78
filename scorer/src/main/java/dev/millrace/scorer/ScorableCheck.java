package dev.millrace.scorer;

import dev.millrace.log.LogConnection;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.scorer.RolloutReading.Scorable;
import dev.millrace.scorer.RolloutReading.Skipped;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;

/** Accepts a record of the rollouts topic or says why it cannot be scored; checks what scoring relies on, no more. */
final class ScorableCheck {
    private final RunIdentity run;
    private final Deserializer<Rollout> rollouts;
    private final String tokenizerHash;
    private final DecoderShape shape;

    ScorableCheck(LogConnection connection, String tokenizerHash, DecoderShape shape) {
        this.run = connection.run();
        this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).deserializer();
        this.tokenizerHash = tokenizerHash;
        this.shape = shape;
    }

    RolloutReading read(ConsumerRecord<byte[], byte[]> record) {
        try {
            Rollout rollout = rollouts.deserialize(record.topic(), record.value());
            return rollout == null ? new Skipped("unreadable", "the record has no value") : check(record, rollout);
        } catch (MalformedRecordException e) {
            return new Skipped("unreadable", String.valueOf(e.getMessage()));
        } catch (IllegalArgumentException e) { // a packed vector that is no multiple of its element
            return new Skipped("lengths", String.valueOf(e.getMessage()));
        }
    }

    private RolloutReading check(ConsumerRecord<byte[], byte[]> record, Rollout rollout) {
        if (!rollout.getRunId().equals(run.runId())) {
            return new Skipped("wrong-run", "it belongs to run " + rollout.getRunId() + ", not to " + run.runId());
        }
        if (rollout.getEpoch() != run.epoch()) {
            return new Skipped("wrong-epoch", "it belongs to epoch " + rollout.getEpoch() + ", not to " + run.epoch());
        }
        if (!rollout.getTokenizerHash().equals(tokenizerHash)) {
            return new Skipped(
                    "wrong-tokenizer",
                    "its tokens belong to the vocabulary " + rollout.getTokenizerHash() + ", the policy's is "
                            + tokenizerHash);
        }
        int[] prompt = PackedInts.toArray(rollout.getPromptTokens());
        int[] response = PackedInts.toArray(rollout.getResponseTokens());
        byte[] mask = PackedMask.toArray(rollout.getMask());
        if (prompt.length == 0 || response.length == 0 || mask.length != response.length) {
            return new Skipped(
                    "lengths",
                    "it has " + prompt.length + " prompt tokens, " + response.length + " response tokens and a mask of "
                            + mask.length);
        }
        int length = prompt.length + response.length;
        if (length > shape.maxPositions()) {
            return new Skipped(
                    "lengths",
                    "its " + length + " tokens are more than the policy's " + shape.maxPositions() + " positions");
        }
        int[] tokens = Arrays.copyOf(prompt, length);
        System.arraycopy(response, 0, tokens, prompt.length, response.length);
        for (int i = 0; i < length; i++) {
            if (tokens[i] < 0 || tokens[i] >= shape.vocabSize()) {
                return new Skipped(
                        "tokens",
                        "token " + tokens[i] + " at " + i + " is not among the " + shape.vocabSize()
                                + " of the vocabulary");
            }
        }
        float temperature = (float) rollout.getSampling().getTemperature();
        if (!(temperature > 0 && temperature < Float.POSITIVE_INFINITY)) {
            return new Skipped(
                    "sampling", "its temperature is " + rollout.getSampling().getTemperature());
        }
        if (!covers(rollout.getVersionSpans(), response.length)) {
            return new Skipped(
                    "version-spans",
                    "its version spans do not cover its " + response.length + " response tokens in order: "
                            + rollout.getVersionSpans());
        }
        return new Scorable(rollout, record.partition(), record.offset(), tokens, prompt.length, mask, temperature);
    }

    private static boolean covers(List<VersionSpan> spans, int length) {
        int at = 0;
        for (VersionSpan span : spans) {
            if (span.getStart() != at || span.getEnd() <= at || span.getVersion() < 0) {
                return false;
            }
            at = span.getEnd();
        }
        return at == length;
    }
}
