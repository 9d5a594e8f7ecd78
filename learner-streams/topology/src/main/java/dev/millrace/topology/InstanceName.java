package dev.millrace.topology;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;

/**
 * The name under which an instance comes back: the configured one, or one that its state directory keeps. Under it the
 * instance takes its partitions and its open transaction back at once after a crash.
 */
final class InstanceName {
    private static final String FILE = "instance-id";

    private InstanceName() {}

    /**
     * @param configured empty for the directory's own
     * @param stateDirectory of this instance alone; is made if it is not there
     * @throws TopologyException if the directory cannot be used
     */
    static String of(String configured, Path stateDirectory) {
        if (!configured.isEmpty()) {
            return configured;
        }
        Path file = stateDirectory.resolve(FILE);
        try {
            if (!Files.exists(file)) {
                Files.createDirectories(stateDirectory);
                Files.writeString(file, UUID.randomUUID().toString(), StandardCharsets.US_ASCII);
            }
            String name = Files.readString(file, StandardCharsets.US_ASCII).trim();
            if (!name.matches("[A-Za-z0-9._-]{1,100}")) {
                throw new TopologyException(
                        file + " must hold 1 to 100 letters, digits, '-', '_' or '.', the instance's name: '" + name
                                + "'; delete it to generate another");
            }
            return name;
        } catch (IOException e) {
            throw new TopologyException(
                    "the state directory " + stateDirectory + " cannot be used: " + e.getMessage(), e);
        }
    }
}
