package dev.millrace.cli.correct;

import dev.millrace.runtime.RefusedRequestException;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** Reads lines of at most {@value #MOST_CHARACTERS} characters, since a device may have neither end nor line ends. */
public final class BoundedLines implements AutoCloseable {
    static final int MOST_CHARACTERS = 1 << 26;
    static final int MOST_LINES = 10_000_000;

    private static final int BYTE_ORDER_MARK = 0xFEFF;

    private final Path path;
    private final BufferedReader reader;
    private final StringBuilder line = new StringBuilder();
    private int number;

    public BoundedLines(Path path) throws IOException {
        this.path = path;
        this.reader = Files.newBufferedReader(path, StandardCharsets.UTF_8);
    }

    /** Number of the line returned last by {@link #next}, from 1. */
    public int number() {
        return number;
    }

    /**
     * Returns the next line without its end; null after the last.
     *
     * @throws RefusedRequestException if it is too long, exceeds the line limit, or is not text
     */
    @Nullable
    public String next() throws IOException {
        line.setLength(0);
        try {
            int next = reader.read();
            if (next < 0) {
                return null;
            }
            if (number == 0 && next == BYTE_ORDER_MARK) {
                next = reader.read();
            }
            if (++number > MOST_LINES) {
                throw new RefusedRequestException(path + " has more than " + MOST_LINES + " lines; split it");
            }
            for (; next >= 0 && next != '\n'; next = reader.read()) {
                if (line.length() == MOST_CHARACTERS) {
                    throw new RefusedRequestException(path + ": line " + number + " has more than " + MOST_CHARACTERS
                            + " characters; give a file with one JSON object per line");
                }
                line.append((char) next);
            }
        } catch (CharacterCodingException e) {
            throw new RefusedRequestException(
                    path + " is not UTF-8 text after line " + number + "; give a file with one JSON object per line",
                    e);
        }
        return line.toString();
    }

    @Override
    public void close() throws IOException {
        reader.close();
    }
}
