package dev.millrace.topology.ingress;

import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.topology.state.SeenHeader;
import dev.millrace.topology.task.TopologyMeters;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;

/**
 * Forwards readable records and sends the others to the dead letters; drops records of older epochs. Holds no state.
 *
 * @param <T> type of the forwarded records
 */
public final class IngressProcessor<T> extends ContextualProcessor<byte[], byte[], Object, Object> {
    private final RecordReader<T> reader;
    private final String next;
    private final String deadLetters;
    private final TopologyMeters meters;
    private final RunIdentity run;
    private final EpochLineage lineage;
    private boolean isOpen;

    /**
     * @param next node that takes what was read
     * @param deadLetters node that takes refused records
     * @param run that refuses them
     * @param lineage records before its beginning are skipped
     */
    public IngressProcessor(
            RecordReader<T> reader,
            String next,
            String deadLetters,
            TopologyMeters meters,
            RunIdentity run,
            EpochLineage lineage) {
        this.reader = reader;
        this.next = next;
        this.deadLetters = deadLetters;
        this.meters = meters;
        this.run = run;
        this.lineage = lineage;
    }

    @Override
    public void init(ProcessorContext<Object, Object> context) {
        super.init(context);
        reader.open();
        isOpen = true;
    }

    @Override
    public void close() {
        if (isOpen) {
            isOpen = false;
            reader.close();
        }
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
        RecordMetadata at = context()
                .recordMetadata()
                .orElseThrow(() -> new IllegalStateException("a source record has a topic, partition and offset"));
        if (at instanceof ProcessorRecordContext context) {
            // each entry of a store's cache keeps its context, and with it the source record, which no limit counts
            context.freeRawRecord();
        }
        if (lineage.isHistory(at.topic(), at.partition(), at.offset())) {
            return; // an older epoch's, which has accounted for it
        }
        try {
            reader.read(record, at.partition(), at.offset())
                    .ifPresent(read -> context().forward(new Record<>(null, read, record.timestamp()), next));
        } catch (RefusedException e) {
            meters.deadLetter(e.refusal().reason());
            Headers headers = DeadLetters.headers(
                    record.headers(),
                    new DeadLetters.Source(at.topic(), at.partition(), at.offset(), record.timestamp()),
                    e.refusal(),
                    run);
            headers.remove(SeenHeader.HEADER); // what another task saw that made this record
            context()
                    .forward(record.withHeaders(headers).withTimestamp(context().currentSystemTimeMs()), deadLetters);
        }
    }
}
