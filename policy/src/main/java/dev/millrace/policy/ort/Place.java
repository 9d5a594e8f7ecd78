package dev.millrace.policy.ort;

import com.sun.jna.Pointer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Location of a tensor: host memory or a CUDA device. Immutable and thread-safe. */
public final class Place {
    private static final int DEVICE_ALLOCATOR = 0;
    private static final int DEFAULT_MEMORY = 0;
    private static final Map<Integer, Place> CUDA = new ConcurrentHashMap<>();

    public static final Place HOST = new Place("Cpu", 0);

    private final String name;
    private final int ordinal;
    private final Pointer info;

    private Place(String name, int ordinal) {
        this.name = name;
        this.ordinal = ordinal;
        Ort ort = Ort.get();
        this.info = ort.create(Ort.CREATE_MEMORY_INFO, ort.text(name), DEVICE_ALLOCATOR, ordinal, DEFAULT_MEMORY);
    }

    public static Place cuda(int ordinal) {
        return CUDA.computeIfAbsent(ordinal, absent -> new Place("Cuda", absent));
    }

    public boolean isHost() {
        return this == HOST;
    }

    Pointer info() {
        return info;
    }

    @Override
    public String toString() {
        return isHost() ? "host" : name + ":" + ordinal;
    }
}
