package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.junit.jupiter.api.Test;

class TerminalViewTest {
    private final Properties properties = new Properties();

    @Test
    void shouldDrawInTheEncodingOfTheUsersLocale() {
        properties.setProperty("native.encoding", "ANSI_X3.4-1968"); // as JDK 17 says under LC_ALL=C
        properties.setProperty("file.encoding", "UTF-8");
        assertThat(TerminalView.encoding(properties)).isEqualTo(StandardCharsets.US_ASCII);
        properties.setProperty("native.encoding", "UTF-8");
        assertThat(TerminalView.encoding(properties)).isEqualTo(StandardCharsets.UTF_8);
    }

    @Test
    void shouldTakeTheTerminalsOwnWhereTheJdkSaysIt() {
        properties.setProperty("native.encoding", "UTF-8");
        properties.setProperty("stdout.encoding", "ISO-8859-1");
        assertThat(TerminalView.encoding(properties)).isEqualTo(StandardCharsets.ISO_8859_1);
    }

    @Test
    void shouldDrawInAsciiWhereTheEncodingIsNotKnown() {
        properties.setProperty("native.encoding", "x-nobodys");
        assertThat(TerminalView.encoding(properties)).isEqualTo(StandardCharsets.US_ASCII);
    }
}
