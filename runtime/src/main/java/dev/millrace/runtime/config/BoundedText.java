package dev.millrace.runtime.config;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The text of a file that somebody wrote by hand. A device that has no end, or a pipe that nobody writes to, is given up: the first
 * after {@value #MOST_BYTES} bytes, the second after a while.
 */
final class BoundedText {
    static final int MOST_BYTES = 1 << 20;

    private final Duration patience;

    /** @param patience with what is no regular file, such as a pipe */
    BoundedText(Duration patience) {
        this.patience = patience;
    }

    /**
     * Reads all of it.
     *
     * @throws ConfigException if it has no end within the limits, or is no text
     * @throws IOException if it cannot be read
     */
    String read(Path file) throws IOException {
        byte[] bytes = Files.isRegularFile(file) ? bytes(file) : within(file);
        if (bytes.length > MOST_BYTES) {
            throw new ConfigException("the configuration file " + file + " has more than " + MOST_BYTES
                    + " bytes, which no configuration needs; give a YAML file with a few keys");
        }
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(bytes))
                    .toString();
        } catch (CharacterCodingException e) {
            throw new ConfigException(
                    "the configuration file " + file + " is no text in UTF-8; save it as UTF-8, or give another file",
                    e);
        }
    }

    private static byte[] bytes(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            return in.readNBytes(MOST_BYTES + 1);
        }
    }

    private byte[] within(Path file) throws IOException {
        FutureTask<byte[]> reading = new FutureTask<>(() -> bytes(file));
        Thread thread = new Thread(reading, "configuration file"); // one that waits in open() cannot be interrupted
        thread.setDaemon(true);
        thread.start();
        try {
            return reading.get(patience.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new ConfigException(
                    "the configuration file " + file + " is a pipe or a device, and it did not end within "
                            + patience.toSeconds() + " s; write to it and close it, or give a regular file",
                    e);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof IOException cause ? cause : new IOException(e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while reading", e);
        }
    }
}
