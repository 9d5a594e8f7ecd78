package dev.millrace.topology.join;

import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.JoinSide;
import java.util.List;

/** Reads again what waits, from the log. */
interface PayloadSource {

    /**
     * The arrivals of one kind that the log still holds.
     *
     * @param waiting in the order of their offsets, at least one
     */
    List<Arrival> read(JoinSide kind, List<PendingRecord> waiting);
}
