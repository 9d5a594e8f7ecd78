package dev.millrace.weights.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileObjectStoreTest {
    /** printf abcdef | sha256sum */
    private static final String SHA = "bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721";

    @TempDir
    private Path directory;

    private ObjectStore store;

    @BeforeEach
    void open() {
        store = ObjectStore.of(directory.resolve("store").toUri().toString()).orElseThrow();
    }

    @Test
    void shouldGiveBackWhatWasPutUnderItsName() throws IOException {
        URI uri = store.put("run/0/policy/7-weights-x", SHA, content());

        assertThat(read(uri)).isEqualTo("abcdef");
        assertThat(store.nameOf(uri)).isEqualTo("run/0/policy/7-weights-x");
        assertThat(store.list("run/0/policy")).containsExactly(uri);
        assertThat(store.list("run/1")).isEmpty();
    }

    @Test
    void shouldLeaveAnObjectThatIsThereAndReplaceOneThatIsDamaged() throws IOException {
        Path file = Path.of(store.put("a", SHA, content()));
        FileTime longAgo = FileTime.fromMillis(1000);
        Files.setLastModifiedTime(file, longAgo);
        store.put("a", SHA, content());
        assertThat(Files.getLastModifiedTime(file)).isEqualTo(longAgo);

        Files.writeString(file, "abcdeX");
        assertThat(read(store.put("a", SHA, content()))).isEqualTo("abcdef");
    }

    @Test
    void shouldPutNothingInPlaceWhenTheContentIsNotWhatItClaims() throws IOException {
        assertThatThrownBy(() -> store.put("a", "0".repeat(64), content()))
                .isInstanceOf(IOException.class)
                .hasMessageStartingWith("a should have the SHA-256 0000")
                .hasMessageContaining("but its content has " + SHA);
        try (Stream<Path> left = Files.list(directory.resolve("store"))) {
            assertThat(left).isEmpty();
        }
    }

    @Test
    void shouldOverwriteWhatACrashLeftHalfWritten() throws IOException {
        Path partial = directory.resolve("store/a" + FileObjectStore.PARTIAL);
        Files.createDirectories(partial.getParent());
        Files.writeString(partial, "much longer than what will be written");

        assertThat(read(store.put("a", SHA, content()))).isEqualTo("abcdef");
        assertThat(partial).doesNotExist();
    }

    @Test
    void shouldDeleteAgainAndAgain() throws IOException {
        URI uri = store.put("a", SHA, content());
        store.delete(uri);
        store.delete(uri);
        assertThatThrownBy(() -> store.get(uri)).isInstanceOf(NoSuchFileException.class);
    }

    @Test
    void shouldOpenNothingOutsideItsDirectory() {
        for (String uri : List.of("file:///etc/passwd", directory.toUri() + "store/../secret", "https://example/a")) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> store.get(URI.create(uri)))
                    .withMessage(uri + " is not in the store "
                            + directory.resolve("store").toUri()
                            + "; give every role of the run the same weights.store");
        }
        for (String name : List.of("../a", "/a", "a//b", "a/../b", "", ".hidden")) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> store.put(name, SHA, content()))
                    .withMessageEndingWith(": " + name);
        }
    }

    @Test
    void shouldFollowNoLinkOutOfItsDirectoryAndReadNothingButFiles() throws IOException {
        Path objects = Files.createDirectories(directory.resolve("store"));
        Path secret = Files.writeString(directory.resolve("secret"), "s");
        Path out = Files.createSymbolicLink(objects.resolve("out"), secret);
        Path endless = Files.createSymbolicLink(objects.resolve("endless"), Path.of("/dev/zero"));
        Path folder = Files.createDirectories(objects.resolve("folder"));
        for (Path path : List.of(out, endless, folder)) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> store.get(path.toUri()))
                    .withMessageContaining("outside the store");
        }
        URI uri = store.put("a", SHA, content());
        Files.createSymbolicLink(objects.resolve("b"), Path.of(uri));
        assertThat(read(objects.resolve("b").toUri())).isEqualTo("abcdef");
    }

    @Test
    void shouldRefuseWhatIsNoLocation() {
        assertThat(ObjectStore.of("kafka")).isEmpty();
        for (String location : List.of("", "gs://bucket/a", "/data", "file:data", "a b")) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> ObjectStore.of(location))
                    .withMessage("store must be kafka, a directory as file:///path, or a bucket as s3://bucket/prefix: "
                            + location);
        }
    }

    private static List<ByteBuffer> content() {
        return Stream.of("abc", "", "def")
                .map(part -> ByteBuffer.wrap(part.getBytes(StandardCharsets.UTF_8)))
                .toList();
    }

    private String read(URI uri) throws IOException {
        try (InputStream in = store.get(uri)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
