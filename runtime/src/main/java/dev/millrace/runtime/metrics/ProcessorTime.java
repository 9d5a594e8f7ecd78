package dev.millrace.runtime.metrics;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.schemas.run.RunTopics;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Processor time of this process as counters {@value #METER} by groups of threads: the roles, the embedded broker, and on
 * Linux the JVM's compilers and garbage collector. The rest of the process's time is in {@value #OTHER}.
 *
 * <p>A role's threads are those started in its {@link ThreadGroup}, and those with its name, such as threads of a Kafka
 * client with its id. A counter reads the threads, at most every {@value #FRESH_MS} ms. Ended threads keep what was read;
 * their last part is in {@value #OTHER}. Thread-safe.
 */
public final class ProcessorTime implements MeterBinder {
    /** Tagged {@code threads}. */
    public static final String METER = "millrace.processor.seconds";

    static final String OTHER = "other";
    /** Before the client's id in the names of its threads. */
    private static final String CLIENT = " | ";

    private static final String COMPILER = "compiler";
    private static final String COLLECTOR = "collector";
    private static final List<String> ROLES = Stream.concat(RunTopics.ROLES.stream(), Stream.of(EmbeddedBroker.THREADS))
            .toList();
    private static final Map<String, String> OF_JVM =
            Map.of("C1 ", COMPILER, "C2 ", COMPILER, "GC Thread", COLLECTOR, "G1 ", COLLECTOR, "VM Thread", COLLECTOR);

    private static final Path TASKS = Path.of("/proc/self/task");
    /** Of a processor clock tick, which Linux gives in hundredths of a second. */
    private static final long TICK_NANOS = 10_000_000;

    private static final long FRESH_MS = 100;

    private final Supplier<List<Used>> threads;
    private final LongSupplier processNanos;
    private final LongSupplier clockNanos;
    private final Map<String, Long> totals = new HashMap<>();
    private Map<Long, Long> seen = Map.of();
    private long readAt;

    /**
     * Time of a living thread.
     *
     * @param id unique among those that live
     */
    record Used(long id, String group, long nanos) {}

    /** Of this process. */
    public ProcessorTime() {
        this(
                ProcessorTime::ofThisProcess,
                ManagementFactory.getPlatformMXBean(com.sun.management.OperatingSystemMXBean.class)::getProcessCpuTime,
                System::nanoTime);
    }

    ProcessorTime(Supplier<List<Used>> threads, LongSupplier processNanos, LongSupplier clockNanos) {
        this.threads = threads;
        this.processNanos = processNanos;
        this.clockNanos = clockNanos;
    }

    /** Registers nothing in a JVM that does not measure threads. */
    @Override
    public void bindTo(MeterRegistry registry) {
        ThreadMXBean measured = ManagementFactory.getThreadMXBean();
        if (!measured.isThreadCpuTimeSupported() || !measured.isThreadCpuTimeEnabled()) {
            return;
        }
        List<String> groups = new ArrayList<>(ROLES);
        if (Files.isDirectory(TASKS)) {
            groups.addAll(List.of(COMPILER, COLLECTOR));
        }
        groups.add(OTHER);
        for (String group : groups) {
            FunctionCounter.builder(METER, this, time -> time.nanos(group) / 1e9)
                    .tag("threads", group)
                    .description("processor time of a role's threads, the broker's, the JVM's own or the rest")
                    .register(registry);
        }
    }

    synchronized long nanos(String group) {
        long now = clockNanos.getAsLong();
        if (totals.isEmpty() || now - readAt >= TimeUnit.MILLISECONDS.toNanos(FRESH_MS)) {
            readAt = now;
            try {
                read();
            } catch (UncheckedIOException e) {
                // such as too many open files: the next reading has their time
            }
        }
        return totals.getOrDefault(group, 0L);
    }

    private void read() {
        Map<Long, Long> living = new HashMap<>();
        for (Used thread : threads.get()) {
            long before = seen.getOrDefault(thread.id(), 0L);
            // less than before: another thread has the id
            totals.merge(thread.group(), thread.nanos() - (thread.nanos() < before ? 0 : before), Long::sum);
            living.put(thread.id(), thread.nanos());
        }
        seen = living;
        long rest = processNanos.getAsLong();
        for (Map.Entry<String, Long> total : totals.entrySet()) {
            rest -= total.getKey().equals(OTHER) ? 0 : total.getValue();
        }
        totals.merge(OTHER, Math.max(0, rest), Math::max);
    }

    /**
     * The group of a thread or Kafka client.
     *
     * @param threadGroup empty for none
     * @param name may begin with a run's prefix, which ends with a period
     */
    public static String group(String threadGroup, String name) {
        if (ROLES.contains(threadGroup)) {
            return threadGroup;
        }
        int client = name.indexOf(CLIENT);
        String own = client < 0 ? name : name.substring(client + CLIENT.length());
        int from = own.length() + 1;
        while (from > 0) {
            from = own.lastIndexOf('.', from - 2) + 1;
            for (String role : ROLES) {
                if (own.startsWith(role, from)) {
                    return role;
                }
            }
        }
        return OTHER;
    }

    private static List<Used> ofThisProcess() {
        ThreadMXBean measured = ManagementFactory.getThreadMXBean();
        ThreadGroup root = Thread.currentThread().getThreadGroup();
        while (root.getParent() != null) {
            root = root.getParent();
        }
        Thread[] found = new Thread[2 * root.activeCount() + 64];
        int count = root.enumerate(found);
        List<Used> used = new ArrayList<>();
        for (int t = 0; t < count; t++) {
            ThreadGroup its = found[t].getThreadGroup();
            String group = group(its == null ? "" : its.getName(), found[t].getName());
            long nanos = measured.getThreadCpuTime(found[t].getId());
            if (nanos >= 0 && !group.equals(OTHER)) {
                used.add(new Used(found[t].getId(), group, nanos));
            }
        }
        used.addAll(ofJvm());
        return used;
    }

    /** Threads that only the operating system knows of; their ids are negative. */
    private static List<Used> ofJvm() {
        if (!Files.isDirectory(TASKS)) {
            return List.of();
        }
        List<Used> used = new ArrayList<>();
        try (Stream<Path> tasks = Files.list(TASKS)) {
            for (Path task : (Iterable<Path>) tasks::iterator) {
                String stat = stat(task);
                OF_JVM.forEach((begin, group) -> {
                    if (stat.startsWith(begin, stat.indexOf('(') + 1)) {
                        String[] fields =
                                stat.substring(stat.lastIndexOf(')') + 2).split(" ");
                        long ticks = Long.parseLong(fields[11]) + Long.parseLong(fields[12]); // utime, stime: proc(5)
                        used.add(new Used(-Long.parseLong(task.getFileName().toString()), group, ticks * TICK_NANOS));
                    }
                });
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return used;
    }

    /** Empty for a thread that has ended since. */
    private static String stat(Path task) {
        try {
            return Files.readString(task.resolve("stat"), StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            return "";
        }
    }
}
