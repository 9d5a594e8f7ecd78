package dev.millrace.chaos.clock;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.nio.charset.StandardCharsets;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Loaded into a running JVM, sets the clock that Millrace's and Kafka's classes see there: those that are loaded, and those that will
 * be. The JDK's own classes and other libraries keep the right time.
 */
public final class ClockAgent {
    private static final String OWN = ShiftedClock.class.getPackageName().replace('.', '/') + "/";
    private static final List<String> ASKED = List.of("currentTimeMillis", "java/time/Instant", "java/time/Clock");
    private static boolean isThere;

    private ClockAgent() {}

    /** @param shiftMs milliseconds from the right time, from now on */
    public static synchronized void agentmain(String shiftMs, Instrumentation instrumentation)
            throws UnmodifiableClassException, IOException {
        if (!isThere) {
            Class<?>[] asking = asking(instrumentation).toArray(new Class<?>[0]);
            ClockCalls.shifted(bytes(ClockAgent.class)); // what it takes is loaded before anything is sent through it
            instrumentation.addTransformer(new Shifting(), true);
            instrumentation.retransformClasses(asking);
            isThere = true;
        }
        ShiftedClock.set(Long.parseLong(shiftMs));
    }

    private static boolean isSeeing(String name) {
        return (name.startsWith("dev/millrace/") || name.startsWith("org/apache/kafka/") || name.startsWith("kafka/"))
                && !name.startsWith(OWN);
    }

    /** Loaded classes that may ask for the time. */
    private static List<Class<?>> asking(Instrumentation instrumentation) throws IOException {
        List<Class<?>> asking = new ArrayList<>();
        for (Class<?> type : instrumentation.getAllLoadedClasses()) {
            String name = type.getName().replace('.', '/');
            if (isSeeing(name) && !type.isHidden() && instrumentation.isModifiableClass(type)) {
                String constants = new String(bytes(type), StandardCharsets.ISO_8859_1);
                if (ASKED.stream().anyMatch(constants::contains)) {
                    asking.add(type);
                }
            }
        }
        return asking;
    }

    /** As it was compiled; nothing where that is not at hand. */
    private static byte[] bytes(Class<?> type) throws IOException {
        try (InputStream in =
                type.getClassLoader().getResourceAsStream(type.getName().replace('.', '/') + ".class")) {
            return in == null ? new byte[0] : in.readAllBytes();
        }
    }

    /** It runs while classes are being loaded, and takes care to need none that is not. */
    private static final class Shifting implements ClassFileTransformer {
        @Override
        public byte @Nullable [] transform(
                @Nullable ClassLoader loader,
                @Nullable String name,
                @Nullable Class<?> redefined,
                @Nullable ProtectionDomain domain,
                byte[] type) {
            return loader == null || name == null || !isSeeing(name)
                    ? null
                    : ClockCalls.shifted(type).orElse(null);
        }
    }
}
