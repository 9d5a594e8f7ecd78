package dev.millrace.cli;

import java.io.IOException;
import java.net.JarURLConnection;
import java.util.Objects;
import java.util.Optional;
import java.util.jar.Attributes;
import picocli.CommandLine.IVersionProvider;

/** Output of {@code --version}: Millrace with its commit, Java, libraries, platform. */
final class Versions implements IVersionProvider {
    @Override
    public String[] getVersion() throws IOException {
        Attributes built = manifest();
        return new String[] {
            "Millrace " + of(built, "Implementation-Version") + ", commit " + of(built, "Build-Commit"),
            "Java " + System.getProperty("java.version") + " (" + System.getProperty("java.vm.name") + ")",
            "Kafka clients " + of(built, "Kafka-Version"),
            "ONNX Runtime " + of(built, "ONNX-Runtime-Version"),
            System.getProperty("os.name") + " " + System.getProperty("os.arch")
        };
    }

    /** From the jar of this class; empty without a jar. */
    private static Attributes manifest() throws IOException {
        return Objects.requireNonNull(Versions.class.getResource("Versions.class"))
                                .openConnection()
                        instanceof JarURLConnection jar
                ? jar.getMainAttributes()
                : new Attributes();
    }

    /** A build outside a Git checkout leaves the POM's commit property unresolved. */
    private static String of(Attributes built, String name) {
        return Optional.ofNullable(built.getValue(name))
                .filter(value -> !value.startsWith("$"))
                .orElse("unknown");
    }
}
