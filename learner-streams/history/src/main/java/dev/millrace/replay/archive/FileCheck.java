package dev.millrace.replay.archive;

import dev.millrace.replay.archive.ArchiveIndex.PartitionFile;
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.function.LongConsumer;
import org.apache.avro.Schema;
import org.apache.commons.codec.digest.DigestUtils;

/**
 * Whether the file of a partition is what the index says: its hash, its frame and how many records are in it. Nothing is unpacked, and
 * no length that stands in the file is believed before as many bytes were there.
 *
 * <pre>
 * "Obj" 1   metadata: map of texts to bytes   marker of 16 bytes
 * then blocks: records in it, length, that many packed bytes, the marker again
 * </pre>
 */
final class FileCheck {
    private static final byte[] MAGIC = {'O', 'b', 'j', 1};
    private static final int MARKER_BYTES = 16;
    private static final int MOST_METADATA = 1 << 20;
    private static final int MOST_ENTRIES = 100;
    /** A block is about 1 MiB before it is packed, or one record, which a topic's limit bounds. */
    private static final long MOST_BLOCK_BYTES = 1 << 30;

    private final Path path;
    private final PartitionFile file;
    private final String topic;
    private final LongConsumer passed;
    private InputStream in = InputStream.nullInputStream();
    private long position;

    /**
     * @param topic with the run's prefix
     * @param passed told how many bytes were read more
     */
    FileCheck(Path path, PartitionFile file, String topic, LongConsumer passed) {
        this.path = path;
        this.file = file;
        this.topic = topic;
        this.passed = passed;
    }

    /** @throws ArchiveException if it is missing, or not what the index says */
    void require() {
        MessageDigest digest = DigestUtils.getSha256Digest();
        ArchiveException broken = null;
        OpenOption[] options = {StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS};
        try (InputStream opened =
                new BufferedInputStream(new DigestInputStream(Files.newInputStream(path, options), digest), 1 << 16)) {
            in = opened;
            try {
                frame();
            } catch (EOFException e) {
                broken = refused("it ends within what should be there");
            } catch (ArchiveException e) {
                broken = e;
            }
            skip(Long.MAX_VALUE); // for the hash, which says more: a file that was changed on its way, or one
            // that was made so
        } catch (IOException e) {
            throw new ArchiveException(
                    "cannot read " + path + ", which the archive's index names: " + e.getMessage(), e);
        }
        String found = HexFormat.of().formatHex(digest.digest());
        if (!found.equals(file.sha256())) {
            throw new ArchiveException(path + " is not as it was exported: its SHA-256 is " + found
                    + ", the index says " + file.sha256() + "; copy the archive again");
        }
        if (broken != null) {
            throw broken;
        }
    }

    private void frame() throws IOException {
        if (!Arrays.equals(bytes(MAGIC.length), MAGIC)) {
            throw refused("it is no Avro container");
        }
        metadata();
        byte[] marker = bytes(MARKER_BYTES);
        Set<Long> due = new HashSet<>();
        file.blocks().forEach(block -> due.add(block[1]));
        if (!file.blocks().isEmpty() && file.blocks().get(0)[1] != position) {
            throw refused("its first block begins at byte " + position + ", and the index says at "
                    + file.blocks().get(0)[1]);
        }
        long records = 0;
        for (int first = read(); first >= 0; first = read()) {
            due.remove(position - 1);
            long count = varint(first);
            if (count < 1 || count > file.records() - records) {
                throw refused("a block at byte " + position + " says it has " + count
                        + " records, and the index speaks of " + (file.records() - records) + " more");
            }
            records += count;
            long length = varint(readByte());
            if (length < 0 || length > MOST_BLOCK_BYTES) {
                throw refused("a block at byte " + position + " says it has " + length + " bytes, and has at most "
                        + MOST_BLOCK_BYTES);
            }
            if (skip(length) < length) {
                throw new EOFException();
            }
            if (!Arrays.equals(bytes(MARKER_BYTES), marker)) {
                throw refused("a block does not end where it says, before byte " + position);
            }
        }
        if (records != file.records()) {
            throw refused("it has " + records + " records, and the index says " + file.records());
        }
        if (!due.isEmpty()) {
            throw refused("no block begins at byte " + due.iterator().next() + ", where the index says that one does");
        }
    }

    private void metadata() throws IOException {
        Map<String, String> metadata = new HashMap<>();
        for (long count = varint(readByte()); count != 0; count = varint(readByte())) {
            if (count < 0
                    && count > Long.MIN_VALUE) { // then the size of the entries follows, for those who pass over them
                count = -count;
                varint(readByte());
            }
            if (count < 0 || count > MOST_ENTRIES - metadata.size()) {
                throw refused("it has more than " + MOST_ENTRIES + " entries of metadata");
            }
            for (long i = 0; i < count; i++) {
                metadata.put(text(), text());
            }
        }
        require("millrace.topic", topic, metadata);
        require("millrace.partition", Integer.toString(file.partition()), metadata);
        require("avro.codec", "zstandard", metadata);
        String schema = metadata.getOrDefault("avro.schema", "");
        try {
            if (new Schema.Parser().parse(schema).equals(ArchivedRecord.SCHEMA)) {
                return;
            }
        } catch (RuntimeException e) { // Avro's parser has no common type for what it stumbles over
            throw refused("its schema is none: " + e.getMessage());
        }
        throw refused("its records are not those of an archive");
    }

    private void require(String key, String due, Map<String, String> metadata) {
        if (!due.equals(metadata.get(key))) {
            throw refused("its " + key + " is " + metadata.get(key) + ", and should be " + due);
        }
    }

    private String text() throws IOException {
        long length = varint(readByte());
        if (length < 0 || length > MOST_METADATA) {
            throw refused("an entry of its metadata says it has " + length + " bytes");
        }
        return new String(bytes((int) length), StandardCharsets.UTF_8);
    }

    private byte[] bytes(int count) throws IOException {
        byte[] bytes = in.readNBytes(count);
        passed(bytes.length);
        if (bytes.length < count) {
            throw new EOFException();
        }
        return bytes;
    }

    private int read() throws IOException {
        int next = in.read();
        if (next >= 0) {
            passed(1);
        }
        return next;
    }

    private int readByte() throws IOException {
        int next = read();
        if (next < 0) {
            throw new EOFException();
        }
        return next;
    }

    /** Avro's: seven bits a byte, the least first, and the sign in the lowest. */
    private long varint(int first) throws IOException {
        long value = first & 0x7f;
        int next = first;
        for (int shift = 7; (next & 0x80) != 0; shift += 7) {
            if (shift > 63) {
                throw refused("a number at byte " + position + " has more than 64 bits");
            }
            next = readByte();
            value |= (next & 0x7fL) << shift;
        }
        return value >>> 1 ^ -(value & 1);
    }

    private long skip(long count) throws IOException {
        byte[] buffer = new byte[(int) Math.min(count, 1 << 16)];
        long skipped = 0;
        while (skipped < count) {
            int read = in.read(buffer, 0, (int) Math.min(buffer.length, count - skipped));
            if (read < 0) {
                break;
            }
            skipped += read;
            passed(read);
        }
        return skipped;
    }

    private void passed(long bytes) {
        position += bytes;
        passed.accept(bytes);
    }

    private ArchiveException refused(String why) {
        return new ArchiveException(path + " is not as 'millrace export' writes it: " + why
                + "; export the run again, or copy the archive again");
    }
}
