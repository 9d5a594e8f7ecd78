package dev.millrace.runtime.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.MeterRegistry;
import java.lang.management.ManagementFactory;
import java.util.List;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * Counters of the brokers in this process, from Kafka's MBeans: {@value #REQUESTS}, tagged {@code request} with Kafka's name of
 * it, for the requests of transactional roles; and {@value #FLUSHES} of log segments to the disk.
 */
public final class BrokerMeters {
    public static final String REQUESTS = "millrace.broker.requests";
    public static final String FLUSHES = "millrace.broker.flushes";

    private static final List<String> COUNTED =
            List.of("AddPartitionsToTxn", "EndTxn", "FetchConsumer", "Produce", "TxnOffsetCommit", "WriteTxnMarkers");

    private BrokerMeters() {}

    /** Registers them, for as long as the registry lives. */
    public static void bind(MeterRegistry registry) {
        MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
        for (String request : COUNTED) {
            FunctionCounter.builder(
                            REQUESTS,
                            beans,
                            from -> count(
                                    from,
                                    "kafka.network:type=RequestMetrics,name=RequestsPerSec,request=" + request + ",*"))
                    .tag("request", request)
                    .description("requests answered by the embedded broker")
                    .register(registry);
        }
        FunctionCounter.builder(
                        FLUSHES, beans, from -> count(from, "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs"))
                .description("log segments that the embedded broker has flushed to disk, each with its indexes")
                .register(registry);
    }

    private static double count(MBeanServer beans, String pattern) {
        try {
            double count = 0;
            for (ObjectName name : beans.queryNames(new ObjectName(pattern), null)) {
                count += ((Number) beans.getAttribute(name, "Count")).doubleValue();
            }
            return count;
        } catch (JMException e) { // one that is closing takes its beans away
            return Double.NaN;
        }
    }
}
