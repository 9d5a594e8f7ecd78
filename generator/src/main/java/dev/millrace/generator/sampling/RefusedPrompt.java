package dev.millrace.generator.sampling;

import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.RunIdentity;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A prompt that cannot be served, and why. */
public record RefusedPrompt(ConsumerRecord<byte[], byte[]> record, Refusal refusal) implements PromptReading {

    /** Why, from the closed list. */
    public RefusalReason reason() {
        return refusal.reason();
    }

    /** Returns the record as a dead letter. */
    public ProducerRecord<byte[], byte[]> deadLetter(RunIdentity by, String topic) {
        return DeadLetters.of(record, refusal, by, topic);
    }
}
