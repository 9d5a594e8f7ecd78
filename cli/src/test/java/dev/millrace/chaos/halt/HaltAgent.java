package dev.millrace.chaos.halt;

import dev.millrace.chaos.AgentJar;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Loaded with a JVM, has it tell {@link HaltPoint} when it comes to a {@link ProtocolPoint}. */
public final class HaltAgent {
    private HaltAgent() {}

    /** Options of the JVM that is to end at a point; the agent's jar is written to the directory. */
    public static List<String> options(Path directory, HaltPoint.When when, ProtocolPoint point, int nth) {
        Path jar = AgentJar.of(directory.resolve("halt-agent.jar"), "Premain-Class", HaltAgent.class);
        return List.of("-javaagent:" + jar.toAbsolutePath(), HaltPoint.option(when, point.word(), nth));
    }

    /** Never to be called but by the JVM. */
    public static void premain(@Nullable String arguments, Instrumentation instrumentation) {
        instrumentation.addTransformer(new Telling());
    }

    private static final class Telling implements ClassFileTransformer {
        @Override
        public byte @Nullable [] transform(
                @Nullable ClassLoader loader,
                @Nullable String name,
                @Nullable Class<?> redefined,
                @Nullable ProtectionDomain domain,
                byte[] type) {
            List<ProtocolPoint> points = name == null ? List.of() : ProtocolPoint.of(name);
            return points.isEmpty() ? null : HaltCalls.telling(type, points);
        }
    }
}
