package dev.millrace.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.StringWriter;
import org.junit.jupiter.api.Test;

class HintWriterTest {
    private static String written(String text, String typed) {
        StringWriter out = new StringWriter();
        new HintWriter(out, typed).print(text);
        return out.toString();
    }

    @Test
    void shouldWriteACommandAsItWasTyped() {
        assertThat(written("to end it: millrace repair --run a; 'millrace ledger'", "./millrace"))
                .isEqualTo("to end it: ./millrace repair --run a; './millrace ledger'");
        assertThat(written("millrace view", "/opt/$HOME/millrace")).isEqualTo("/opt/$HOME/millrace view");
    }

    @Test
    void shouldLeaveWhatIsNoCommand() {
        String text =
                "millrace: no; millrace.run; ./millrace train; runs/millrace train; a millrace turns; millrace-view";
        assertThat(written(text, "./millrace")).isEqualTo(text);
    }
}
