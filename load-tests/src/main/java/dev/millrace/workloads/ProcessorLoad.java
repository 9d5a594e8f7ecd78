package dev.millrace.workloads;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicBoolean;

/** Mean load of the machine's processors over samples. */
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

    public void begin() {
        counting.set(true);
    }

    /** 0 to 1; 0 if the system does not report it. */
    public synchronized double load() {
        return count == 0 ? 0 : sum / count;
    }

    @Override
    public void close() {
        thread.interrupt();
    }
}
