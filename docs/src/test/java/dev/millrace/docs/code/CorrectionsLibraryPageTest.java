package dev.millrace.docs.code;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CorrectionsLibraryPageTest {
    private static final String PAGE = "how-to/corrections-library.md";

    @TempDir
    private Path folder;

    @Test
    void shouldPrintWhatThePageSays() throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream before = System.out;
        try (PageCode code = PageCode.compile(PAGE, folder)) {
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            code.type("example.Corrected").getMethod("main", String[].class).invoke(null, (Object) new String[0]);
        } finally {
            System.setOut(before);
        }
        assertThat(printed.toString(StandardCharsets.UTF_8)).isEqualToNormalizingNewlines(PageCode.block(PAGE, "text"));
    }

    @Test
    void shouldNameALibraryThatIsBuiltHere() throws Exception {
        String dependency = PageCode.block(PAGE, "xml");
        String corrections = Files.readString(Path.of("../corrections/pom.xml"));

        assertThat(first(dependency, "<dependency><groupId>(.*?)<"))
                .isEqualTo(first(corrections, "<parent>\\s*<groupId>(.*?)<"));
        assertThat(first(dependency, "<dependency>.*<artifactId>(.*?)<"))
                .isEqualTo(first(corrections, "</parent>\\s*<artifactId>(.*?)<"));
        assertThat(first(dependency, "<dependency>.*<version>(.*?)<")).isEqualTo(first(corrections, "<version>(.*?)<"));
    }

    private static String first(String text, String pattern) {
        Matcher matcher = Pattern.compile(pattern).matcher(text);
        assertThat(matcher.find()).as(pattern).isTrue();
        return matcher.group(1);
    }
}
