package dev.millrace.docs.reference;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Every promise names tests that are there. */
class PromisesTest {
    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();

    @Test
    void shouldNameForEveryPromiseTestsThatAreThere() throws IOException {
        Set<String> tests = tests();

        assertThat(Promises.all()).isNotEmpty().allSatisfy(promise -> {
            assertThat(promise.text()).isNotBlank();
            assertThat(promise.tests()).as(promise.text()).isNotEmpty().isSubsetOf(tests);
        });
        assertThat(Promises.all()).extracting(Promises.Promise::text).doesNotHaveDuplicates();
    }

    private static Set<String> tests() throws IOException {
        try (Stream<Path> files = Files.walk(ROOT)) {
            return files.filter(file -> file.toString().contains("/src/test/java/"))
                    .map(file -> file.getFileName().toString())
                    .filter(name -> name.endsWith(".java"))
                    .map(name -> name.substring(0, name.length() - ".java".length()))
                    .collect(Collectors.toSet());
        }
    }
}
