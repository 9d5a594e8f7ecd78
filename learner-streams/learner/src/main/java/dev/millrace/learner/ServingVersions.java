package dev.millrace.learner;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Clock;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Who serves which version, from the topic {@code serving}. Used by one thread. */
final class ServingVersions implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ServingVersions.class);

    private final RunIdentity run;
    private final LogReader log;
    private final Deserializer<Serving> servings;
    private final ServerBoard board = new ServerBoard(System::nanoTime);
    private final Clock clock;
    private final List<TopicPartition> partitions;

    /** @param clock the clock that dates the servers' messages */
    ServingVersions(LogConnection connection, Clock clock) {
        this.clock = clock;
        this.run = connection.run();
        this.servings = AvroSerde.of(Serving.class, connection.registry()).deserializer();
        this.log = new LogReader(connection.as("serving"));
        this.partitions = log.fromBeginning(connection.topics().serving());
    }

    /** Reads new records up to the log's end at the time of the call, or until the limit has passed. */
    void update(Duration limit) {
        log.readTo(log.consumer().endOffsets(partitions), ReadLimit.within(limit), this::accept);
    }

    private void accept(ConsumerRecord<byte[], byte[]> record) {
        if (record.value() == null) {
            return;
        }
        try {
            Serving serving = servings.deserialize(record.topic(), record.value());
            if (!run.owns(serving.getRunId(), serving.getEpoch())
                    || !run.policyId().equals(serving.getPolicyId())) {
                return; // of an older epoch: its servers have ended or will say something else
            }
            Server server = Server.of(serving);
            if (serving.getLeft()) {
                board.left(server);
            } else {
                board.hear(server, clock.millis());
            }
        } catch (MalformedRecordException e) {
            LOG.warn("passed over {}-{}@{}: {}", record.topic(), record.partition(), record.offset(), e.getMessage());
        }
    }

    /** Every server that is not forgotten. */
    Collection<Server> servers() {
        return board.servers();
    }

    @Override
    public void close() {
        log.close();
    }
}
