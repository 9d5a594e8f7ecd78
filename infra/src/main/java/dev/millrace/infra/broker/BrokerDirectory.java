package dev.millrace.infra.broker;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.raft.DynamicVoters;

/** The directory under which a broker keeps everything: checked before each start, formatted before the first. */
record BrokerDirectory(Path path) {
    private static final String META_PROPERTIES = "meta.properties";
    /** Kafka's own lock file; a broker that uses the directory holds it. */
    private static final String LOCK = ".lock";

    /**
     * Makes the directory if need be.
     *
     * @throws BrokerException if it cannot be written to, is used by another broker or has too little space
     */
    void check(long minFreeBytes) {
        try {
            Files.createDirectories(path);
            requireUnused();
            long free = Files.getFileStore(path).getUsableSpace();
            if (free < minFreeBytes) {
                throw new BrokerException("no space for the broker's data in " + path + ": " + (free >> 20)
                        + " MiB are free, at least " + (minFreeBytes >> 20)
                        + " MiB are needed; free some or choose another directory");
            }
        } catch (IOException e) {
            throw new BrokerException(
                    "cannot write the broker's data to " + path + ": " + reason(e) + "; choose another directory", e);
        }
    }

    void formatIfNew(Membership member, String controllerListener) {
        if (Files.exists(path.resolve(META_PROPERTIES))) {
            return;
        }
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        try (PrintStream out = new PrintStream(said, true, StandardCharsets.UTF_8)) {
            new Formatter()
                    .setPrintStream(out)
                    .setNodeId(member.nodeId())
                    .setClusterId(member.clusterId())
                    .setDirectories(List.of(path.toString()))
                    .setMetadataLogDirectory(path.toString())
                    .setControllerListenerName(controllerListener)
                    .setIgnoreFormatted(true)
                    .setHasDynamicQuorum(true)
                    .setInitialControllers(DynamicVoters.parse(member.votersText()))
                    .run();
        } catch (Exception e) { // what the formatter declares
            throw new BrokerException(
                    "cannot prepare " + path + " for the broker: " + reason(e) + " "
                            + said.toString(StandardCharsets.UTF_8).strip(),
                    e);
        }
    }

    private void requireUnused() throws IOException {
        try (FileChannel channel =
                        FileChannel.open(path.resolve(LOCK), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                FileLock lock = channel.tryLock()) {
            if (lock == null) {
                throw inUse();
            }
        } catch (OverlappingFileLockException e) {
            throw inUse();
        }
    }

    private BrokerException inUse() {
        return new BrokerException("another broker uses " + path + "; stop it or choose another directory");
    }

    private static String reason(Exception e) {
        String type = e.getClass().getSimpleName().replace("Exception", "");
        return e.getMessage() == null ? type : type + " " + e.getMessage();
    }
}
