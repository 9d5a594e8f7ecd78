package dev.millrace.chaos.process;

import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.specific.SpecificDatumReader;
import org.apache.avro.specific.SpecificDatumWriter;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.jspecify.annotations.Nullable;

/**
 * Makes a generator lie: each token of its rollouts is said to have the same log-prob, which no version gave it. A producer takes it as
 * {@code interceptor.classes}.
 */
public final class LyingInterceptor implements ProducerInterceptor<Object, Object> {
    private static final float LIE = -9;
    /** Of the wire: a byte and the schema's number. */
    private static final int PREFIX = 5;

    /** Configuration keys of the process that is to lie. */
    public static List<String> settings() {
        return List.of("kafka.producer.interceptor.classes=" + LyingInterceptor.class.getName());
    }

    @Override
    public ProducerRecord<Object, Object> onSend(ProducerRecord<Object, Object> record) {
        if (!record.topic().endsWith(".rollouts") || !(record.value() instanceof byte[] told)) {
            return record;
        }
        return new ProducerRecord<>(
                record.topic(), record.partition(), record.timestamp(), record.key(), lied(told), record.headers());
    }

    private static byte[] lied(byte[] told) {
        try {
            Rollout rollout = new SpecificDatumReader<>(Rollout.class)
                    .read(null, DecoderFactory.get().binaryDecoder(told, PREFIX, told.length - PREFIX, null));
            float[] lies = new float[PackedFloats.length(rollout.getBehaviorLogProbs())];
            byte[] mask = PackedMask.toArray(rollout.getMask());
            for (int t = 0; t < lies.length; t++) {
                lies[t] = mask[t] == 1 ? LIE : 0;
            }
            Rollout lie = Rollout.newBuilder(rollout)
                    .setBehaviorLogProbs(PackedFloats.of(lies))
                    .build();
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            bytes.write(told, 0, PREFIX);
            BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
            new SpecificDatumWriter<>(Rollout.class).write(lie, encoder);
            encoder.flush();
            return bytes.toByteArray();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void onAcknowledgement(RecordMetadata metadata, @Nullable Exception failure) {
        // what it said is said
    }

    @Override
    public void close() {
        // it holds nothing
    }

    @Override
    public void configure(Map<String, ?> settings) {
        // it lies always
    }
}
