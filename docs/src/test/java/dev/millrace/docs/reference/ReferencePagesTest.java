package dev.millrace.docs.reference;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** The pages under {@code docs/reference} that are made from code are those that the code makes now. */
class ReferencePagesTest {
    private static final String COMMAND = "./mvnw -pl docs -am test -Dtest=ReferencePagesTest "
            + "-Dsurefire.failIfNoSpecifiedTests=false -Dmillrace.write.reference=true";

    @Test
    void shouldTellEveryCommandAndOption() throws IOException {
        requireCurrent("commands.md", CommandsPage.text());
    }

    @Test
    void shouldTellEveryTopicAndField() throws IOException {
        requireCurrent("topics.md", TopicsPage.text());
    }

    @Test
    void shouldTellEveryMeter() throws IOException {
        requireCurrent("metrics.md", MetricsPage.text());
    }

    @Test
    void shouldTellEveryReasonAndExitCode() throws IOException {
        requireCurrent("outcomes.md", OutcomesPage.text());
    }

    @Test
    void shouldTellEveryExtensionPointAndKind() throws IOException {
        requireCurrent("plugins.md", PluginsPage.text());
    }

    @Test
    void shouldTellEveryMethodOfTheLibrary() throws IOException {
        requireCurrent("methods.md", MethodsPage.text());
    }

    @Test
    void shouldTellEveryPromiseAndTheTestsThatHoldIt() throws IOException {
        requireCurrent("promises.md", PromisesPage.text());
    }

    @Test
    void shouldTellEveryClaimThatIsCheckedWithOfficialClients() throws IOException {
        requireCurrent("gateway-conformance.md", ConformancePage.text());
    }

    private static void requireCurrent(String name, String text) throws IOException {
        Path page = Path.of("reference", name);
        if (Boolean.getBoolean("millrace.write.reference")) {
            Files.writeString(page, text);
        }
        assertThat(Files.readString(page).equals(text))
                .as("docs/reference/" + name + " is older than the code; write it anew: " + COMMAND)
                .isTrue();
    }
}
