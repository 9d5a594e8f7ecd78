package dev.millrace.workloads;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicBoolean;

/** How busy the machine's processors are, averaged over samples, everything that runs on it included. */
public final class ProcessorLoad implements AutoCloseable {
    private static final long EVERY_MS = 250;

    private final OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private final AtomicBoolean counting = new AtomicBoolean();
    private final Thread thread;
    private double sum;
    private int count;

    public ProcessorLoad() {
        thread = new Thread(this::sample, "processor load");
        thread.setDaemon(true);
        thread.start();
    }

    private void sample() {
        try {
            while (true) {
                double load = system.getCpuLoad();
                if (counting.get() && load >= 0) {
                    synchronized (this) {
                        sum += load;
                        count++;
                    }
                }
                Thread.sleep(EVERY_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closed
        }
    }

    /** What is sampled counts from now. */
    public void begin() {
        counting.set(true);
    }

    /** 0 to 1; 0 where the system does not say. */
    public synchronized double load() {
        return count == 0 ? 0 : sum / count;
    }

    @Override
    public void close() {
        thread.interrupt();
    }
}
