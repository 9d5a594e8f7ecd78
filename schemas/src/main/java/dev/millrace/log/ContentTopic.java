package dev.millrace.log;

import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.transaction.LogTable;
import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.kafka.common.KafkaException;

/**
 * The run's topic {@code files}: contents of files, found by their SHA-256. A record is one piece of a content, its bytes as they are, under
 * the key {@code SHA-256/piece/pieces}, piece from 0 on. The topic is compacted, and what is written once stays for as long as the run's topics do.
 *
 * <p>Nothing is handed out whose hash is another than it was asked for by. Any number may write at once. Thread-safe.
 */
public final class ContentTopic {
    /** Larger pieces are not made; where records must be smaller, a quarter of what a record may have. */
    static final int PIECE_BYTES = 512 << 10;

    private final LogConnection connection;
    private final long timeoutMs;
    private final int pieceBytes;

    /** @param timeoutMs limit of every call */
    public ContentTopic(LogConnection connection, long timeoutMs) {
        this.connection = connection;
        this.timeoutMs = timeoutMs;
        Object most = connection.clientProperties().get("max.request.size");
        this.pieceBytes =
                most == null ? PIECE_BYTES : Math.max(1, Math.min(PIECE_BYTES, Integer.parseInt(most.toString()) / 4));
    }

    /** The name of a content: its SHA-256, in lower-case hexadecimal digits. */
    public static String hash(byte[] content) {
        return DigestUtils.sha256Hex(content);
    }

    /**
     * Writes those that are not there yet, all in one transaction.
     *
     * @throws LogSetupException if the topic cannot be read or written within the time
     */
    public void keep(Collection<byte[]> contents) {
        Map<String, byte[]> byHash = new LinkedHashMap<>();
        contents.forEach(content -> byHash.put(hash(content), content));
        Pieces there = new Pieces(byHash.keySet());
        try (LogTable table = table(there)) {
            table.append(() -> {
                Map<String, byte[]> missing = new LinkedHashMap<>();
                byHash.forEach((hash, content) -> {
                    if (there.content(hash).isEmpty()) {
                        missing.putAll(pieces(hash, content));
                    }
                });
                return missing;
            });
        } catch (KafkaException e) {
            throw unusable(e);
        }
    }

    /**
     * Reads contents.
     *
     * @return those of them that are there, whole and right, by their hash
     * @throws LogSetupException if the topic cannot be read within the time
     */
    public Map<String, byte[]> find(Set<String> hashes) {
        Pieces there = new Pieces(hashes);
        try (LogTable table = table(there)) {
            table.catchUp();
        } catch (KafkaException e) {
            throw unusable(e);
        }
        Map<String, byte[]> found = new HashMap<>();
        hashes.forEach(hash -> there.content(hash).ifPresent(content -> found.put(hash, content)));
        return found;
    }

    private LogTable table(Pieces pieces) {
        return new LogTable(connection.clientProperties(), connection.topics().files(), timeoutMs, pieces::take);
    }

    private Map<String, byte[]> pieces(String hash, byte[] content) {
        int count = Math.max(1, (content.length + pieceBytes - 1) / pieceBytes);
        Map<String, byte[]> pieces = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            pieces.put(hash + "/" + i + "/" + count, Arrays.copyOfRange(content, i * pieceBytes, (int)
                    Math.min(content.length, (long) (i + 1) * pieceBytes)));
        }
        return pieces;
    }

    private LogSetupException unusable(KafkaException e) {
        return new LogSetupException(
                "topic " + connection.topics().files() + ", which holds the run's files, cannot be used: "
                        + e.getMessage(),
                e);
    }

    /** The pieces of the contents that somebody wants; others are passed over. */
    private static final class Pieces {
        private final Set<String> wanted;
        private final Map<String, byte[]> byKey = new HashMap<>();

        Pieces(Set<String> wanted) {
            this.wanted = wanted;
        }

        void take(String key, byte[] value) {
            int end = key.indexOf('/');
            if (end < 0 || !wanted.contains(key.substring(0, end))) {
                return;
            }
            if (value == null) {
                byKey.remove(key);
            } else {
                byKey.put(key, value);
            }
        }

        /** Pieces of another size may be there too, from a process with other limits. */
        Optional<byte[]> content(String hash) {
            Set<String> counts = byKey.keySet().stream()
                    .filter(key -> key.startsWith(hash + "/"))
                    .map(key -> key.substring(key.lastIndexOf('/')))
                    .collect(Collectors.toSet());
            return counts.stream()
                    .map(count -> joined(hash, count))
                    .filter(content -> hash(content).equals(hash))
                    .findFirst();
        }

        /** @param count with the slash before it */
        private byte[] joined(String hash, String count) {
            ByteArrayOutputStream joined = new ByteArrayOutputStream();
            for (int i = 0; ; i++) {
                byte[] piece = byKey.get(hash + "/" + i + count);
                if (piece == null) {
                    return joined.toByteArray();
                }
                joined.writeBytes(piece);
            }
        }
    }
}
