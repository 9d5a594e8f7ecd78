package dev.millrace.loadtests.replay;

import com.sun.management.GarbageCollectionNotificationInfo;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.ListenerNotFoundException;
import javax.management.Notification;
import javax.management.NotificationEmitter;
import javax.management.NotificationListener;
import javax.management.openmbean.CompositeData;

/**
 * The most heap that a collection left in use while this was open: an upper bound of what is live, since a collection of the
 * young generation leaves dead objects in the old one.
 */
final class HeapWatch implements AutoCloseable {
    private final AtomicLong most = new AtomicLong();
    private final NotificationListener listener = this::seen;

    /** Collects, and begins to watch. */
    HeapWatch() {
        System.gc();
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            ((NotificationEmitter) collector).addNotificationListener(listener, null, null);
        }
    }

    private void seen(Notification notification, Object unused) {
        if (notification.getType().equals(GarbageCollectionNotificationInfo.GARBAGE_COLLECTION_NOTIFICATION)) {
            long left = GarbageCollectionNotificationInfo.from((CompositeData) notification.getUserData()).getGcInfo()
                .getMemoryUsageAfterGc().entrySet().stream().filter(pool -> isHeap(pool.getKey())).map(java.util.Map.Entry::getValue)
                .mapToLong(MemoryUsage::getUsed).sum();
            most.accumulateAndGet(left, Math::max);
        }
    }

    private static boolean isHeap(String pool) {
        return ManagementFactory.getMemoryPoolMXBeans().stream()
            .anyMatch(bean -> bean.getName().equals(pool) && bean.getType() == java.lang.management.MemoryType.HEAP);
    }

    /** So far, in bytes; 0 if nothing was collected yet. */
    long mostBytes() {
        return most.get();
    }

    @Override
    public void close() {
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            try {
                ((NotificationEmitter) collector).removeNotificationListener(listener);
            } catch (ListenerNotFoundException e) {
                throw new IllegalStateException("a listener was there a moment ago", e);
            }
        }
    }
}
