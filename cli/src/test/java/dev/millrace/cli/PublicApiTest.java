package dev.millrace.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.avro.specific.AvroGenerated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The public API of the modules that others compile against is what was agreed on, as files under {@code docs/api}. */
class PublicApiTest {
    private static final Path FILES = Path.of("..", "docs", "api");
    private static final boolean ACCEPT = Boolean.getBoolean("millrace.api.accept");

    @ParameterizedTest
    @ValueSource(strings = {"api", "corrections", "stages", "topology", "runtime", "schemas"})
    void shouldOfferWhatWasAgreedOn(String module) throws IOException {
        String found = signatures(module);
        Path file = FILES.resolve(module + ".txt");
        if (ACCEPT) {
            Files.createDirectories(FILES);
            Files.writeString(file, found);
        }

        String agreed = Files.readString(file);

        assertThat(found)
                .as(
                        "the public API of %s is another than docs/api/%s.txt says. If it is meant, run"
                                + " ./mvnw -pl cli -am -Dtest=PublicApiTest -Dmillrace.api.accept=true"
                                + " -Dsurefire.failIfNoSpecifiedTests=false -DskipITs test, look at the difference, and commit it",
                        module, module)
                .isEqualTo(agreed);
    }

    private static String signatures(String module) {
        return new ClassFileImporter()
                        .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
                        .withImportOption(location -> !location.contains("-tests.jar"))
                        .importPackages(packageOf(module))
                        .stream()
                        .filter(PublicApiTest::isOffered)
                        .sorted(Comparator.comparing(JavaClass::getName))
                        .map(JavaClass::reflect)
                        .map(PublicSignature::of)
                        .flatMap(List::stream)
                        .collect(Collectors.joining());
    }

    private static String packageOf(String module) {
        return "dev.millrace." + module;
    }

    /** Of the runtime it is what somebody embeds: the run itself and its configuration. */
    private static boolean isOffered(JavaClass written) {
        String name = written.getPackageName();
        return !written.isAnnotatedWith(AvroGenerated.class)
                && (!name.startsWith("dev.millrace.runtime.") || name.equals("dev.millrace.runtime.config"));
    }
}
