package dev.millrace.topology.ingress;

import dev.millrace.schemas.Trajectory;
import org.apache.kafka.streams.processor.api.Record;

/** A trajectory that was read and holds what it claims. */
public record TrajectoryArrival(Trajectory trajectory, Record<byte[], byte[]> raw, int partition, long offset)
        implements AssemblyArrival {

    @Override
    public int input() {
        return 0;
    }
}
