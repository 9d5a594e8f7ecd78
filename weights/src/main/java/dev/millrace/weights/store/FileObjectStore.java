package dev.millrace.weights.store;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.commons.codec.digest.DigestUtils;
import org.jspecify.annotations.Nullable;

/**
 * Stores objects as files below one directory, which every role of a run sees under the same path: a shared file
 * system, or one machine.
 *
 * <p>An object is written to a file next to its destination, forced to the disk, and moved there atomically; then the
 * directory is forced. A crash leaves the object, nothing, or a file that ends in {@value #PARTIAL}, which the next
 * {@link #put} of that name overwrites.
 */
public final class FileObjectStore implements ObjectStore {
    static final String PARTIAL = ".partial";

    static final Pattern NAME = Pattern.compile("[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*");

    private final Path directory;

    /** @param directory created with the first object */
    public FileObjectStore(Path directory) {
        this.directory = directory.toAbsolutePath().normalize();
    }

    static Path directory(String location) {
        try {
            URI uri = URI.create(location);
            if ("file".equals(uri.getScheme())
                    && uri.getPath() != null
                    && uri.getPath().startsWith("/")) {
                return Path.of(uri);
            }
        } catch (IllegalArgumentException e) {
            throw refused(location, e);
        }
        throw refused(location, null);
    }

    private static IllegalArgumentException refused(String location, @Nullable Throwable cause) {
        return new IllegalArgumentException(
                "store must be kafka, a directory as file:///path, or a bucket as s3://bucket/prefix: " + location,
                cause);
    }

    @Override
    public URI put(String name, String sha256, List<ByteBuffer> content) throws IOException {
        Path target = target(name);
        long bytes = content.stream().mapToLong(ByteBuffer::remaining).sum();
        if (Files.exists(target) && Files.size(target) == bytes && hash(target).equals(sha256)) {
            return target.toUri();
        }
        Files.createDirectories(target.getParent());
        Path partial = target.resolveSibling(target.getFileName() + PARTIAL);
        MessageDigest digest = DigestUtils.getSha256Digest();
        try (FileChannel channel = FileChannel.open(
                partial, StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)) {
            for (ByteBuffer part : content) {
                digest.update(part.duplicate());
                ByteBuffer rest = part.duplicate();
                while (rest.hasRemaining()) {
                    channel.write(rest);
                }
            }
            channel.force(true);
        }
        String found = HexFormat.of().formatHex(digest.digest());
        if (!found.equals(sha256)) {
            Files.delete(partial);
            throw new IOException(name + " should have the SHA-256 " + sha256 + ", but its content has " + found
                    + ": it changed while it was written");
        }
        Files.move(partial, target, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        force(Objects.requireNonNull(target.getParent(), "a name below the directory has a parent"));
        return target.toUri();
    }

    /** Makes the rename durable; some file systems cannot open a directory, and order renames themselves. */
    private static void force(Path parent) throws IOException {
        FileChannel channel;
        try {
            channel = FileChannel.open(parent, StandardOpenOption.READ);
        } catch (IOException e) {
            return;
        }
        try (channel) {
            channel.force(true);
        }
    }

    private static String hash(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            return DigestUtils.sha256Hex(in);
        }
    }

    @Override
    public InputStream get(URI uri) throws IOException {
        Path path = path(uri);
        Path real = path.toRealPath();
        if (!real.startsWith(directory.toRealPath()) || !Files.isRegularFile(real)) {
            throw new IllegalArgumentException(uri + " links to " + real + ", outside the store " + directory.toUri()
                    + "; links must stay inside it");
        }
        return Files.newInputStream(real);
    }

    @Override
    public void delete(URI uri) throws IOException {
        Files.deleteIfExists(path(uri));
    }

    @Override
    public List<URI> list(String prefix) throws IOException {
        if (!NAME.matcher(prefix).matches()) {
            throw new IllegalArgumentException(
                    "a prefix is slash-separated letters, digits, '-', '_' and '.': " + prefix);
        }
        try (Stream<Path> files = Files.walk(directory.resolve(prefix))) {
            return files.filter(Files::isRegularFile).map(Path::toUri).toList();
        } catch (NoSuchFileException e) {
            return List.of();
        }
    }

    @Override
    public URI uriOf(String name) {
        return target(name).toUri();
    }

    private Path target(String name) {
        return directory.resolve(requireName(name));
    }

    static String requireName(String name) {
        if (!NAME.matcher(name).matches()) {
            throw new IllegalArgumentException(
                    "an object's name is slash-separated letters, digits, '-', '_' and '.': " + name);
        }
        return name;
    }

    @Override
    public String nameOf(URI uri) {
        return directory.relativize(path(uri)).toString().replace('\\', '/');
    }

    /** A manifest must not name arbitrary files of this machine. */
    private Path path(URI uri) {
        Path path = "file".equals(uri.getScheme()) ? Path.of(uri).normalize() : null;
        if (path == null || !path.startsWith(directory) || path.equals(directory)) {
            throw new IllegalArgumentException(uri + " is not in the store " + directory.toUri()
                    + "; give every role of the run the same weights.store");
        }
        return path;
    }

    @Override
    public String toString() {
        return directory.toUri().toString();
    }
}
